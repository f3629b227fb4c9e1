"""The coordinator's own orders, value by value."""

import uuid

import numpy as np
import pytest

from groupledger.core.arrays.java_orders import TREE
from groupledger.core.assignors.server.java_collections import HashedKey, JavaTable
from groupledger.core.assignors.server.orders import (
    JOINED,
    LEFT,
    REWRITTEN,
    after_changes,
    copy_size,
    table_size,
    timeline_bits,
    uuid_halves,
    uuid_hashes,
    walk,
    walk_added,
)
from groupledger.core.assignors.server.server_group import ServerGroup, ServerMember, Topic, TopicId, encode
from groupledger.core.assignors.server.uniform import with_room


@pytest.mark.parametrize(
    ("changes", "bits"),
    [
        ((), 1),
        ((1, 1), 1),
        ((1, 1, 1), 2),  # 3 * 0.75 > 2
        ((1,) * 5, 2),
        ((1,) * 6, 3),  # 6 * 0.75 > 4
        ((1,) * 6 + (-1,) * 5, 3),  # it never shrinks
        ((1, -1) * 9, 1),
        ((JOINED, JOINED, LEFT, JOINED), 1),  # two are there, not three
        ((JOINED, JOINED, LEFT, JOINED, JOINED), 2),
        ((JOINED, REWRITTEN, JOINED), 1),
        ((JOINED, JOINED, REWRITTEN), 2),  # room for a third is made, and none comes
        ((JOINED, JOINED, REWRITTEN, LEFT, REWRITTEN), 2),
    ],
)
def test_timeline_table_grows_and_never_shrinks(changes, bits):
    assert timeline_bits(changes) == bits


@pytest.mark.parametrize(("joining", "bits"), [(None, 2), ("c", 1)])
def test_a_joining_member_is_not_in_the_timeline_table_yet(joining, bits):
    """Where nobody left, everyone who joined is in the table, but for the one that is about to."""
    members = tuple(ServerMember(each, ()) for each in "abc")
    assert encode([ServerGroup(members, {}, joining=joining)])[0].timeline_bits.tolist() == [bits]


@pytest.mark.parametrize(("least", "size"), [(0, 1), (1, 1), (2, 2), (3, 4), (16, 16), (17, 32)])
def test_table_size_is_the_next_power_of_two(least, size):
    assert table_size(least) == size


@pytest.mark.parametrize(("count", "size"), [(0, 16), (11, 16), (12, 32), (24, 64), (25, 64)])
def test_copied_sets_are_sized_as_on_java_17(count, size):
    assert copy_size(count) == size


@pytest.mark.parametrize("text", ["00000000-0000-0001-0000-000000000001", "80000000-1234-5678-9abc-def012345678"])
def test_uuid_hash_is_java_util_uuids(text):
    """Kafka's Uuid hashes as java.util.UUID does: the four 32-bit words, each exclusive-or'ed with the others."""
    raw = uuid.UUID(text).bytes
    words = np.frombuffer(raw, ">u4").astype(np.uint32)
    expected = np.bitwise_xor.reduce(words).astype(np.int32)
    assert uuid_hashes(*uuid_halves([raw])).tolist() == [expected]


def test_uuids_compare_as_signed_longs():
    ids = [TopicId(bytes([first]) + bytes(14) + bytes([last])) for first, last in [(0, 1), (255, 0), (127, 0), (0, 2)]]
    topics = {f"t{at}": Topic(each, 1) for at, each in enumerate(ids)}
    batch, _ = encode([ServerGroup((ServerMember("m", tuple(topics)),), topics)])
    assert batch.id_rank.tolist() == [1, 0, 3, 2]


@pytest.mark.parametrize(
    ("hashes", "signs", "first", "capacity"),
    [
        ([1], [1], 1, 2),  # new HashMap(1): its one key already doubles it
        (range(12), [1] * 12, 16, 16),
        (range(13), [1] * 13, 16, 32),
        (range(13), [1] * 12 + [-1], 16, 16),
        (range(0, 16 * 8, 16), [1] * 8, 16, 16),
        (range(0, 16 * 9, 16), [1] * 9, 16, 32),  # a ninth key in a bucket doubles a small table
        (range(0, 64 * 9, 64), [1] * 9, 64, TREE),
        (range(0, 64 * 9, 64), [1] * 8 + [-1], 64, 64),
        ([*[0] * 7, *range(1, 43), 0], [1] * 50, 64, 128),  # the eighth of a bucket, after the table doubled
    ],
)
def test_capacity_after_changes(hashes, signs, first, capacity):
    hashed, signed = np.array(list(hashes), np.int32), np.array(signs, np.int32)
    if signs[-1] < 0:
        hashed[-1] = hashed[0]
    assert after_changes(hashed, signed, len(hashed), first) == capacity


@pytest.mark.parametrize(
    "numbers", [[0, 16, 32], [5, 4, 3], [40, 41, 42], [17, 1], [9], [100_000, 1, 65_536], [1, 0, 3], [15, 16]]
)
def test_kernels_walk_as_the_table_kept_key_by_key(numbers):
    table = JavaTable(16)
    for number in numbers:
        table.put(HashedKey(number, number, number))
    seats = np.arange(len(numbers), dtype=np.int32)
    assert walk(np.array(numbers, np.int32), seats, len(numbers), 16) == table.capacity
    assert [numbers[seat] for seat in seats] == list(table)
    walked = np.empty(len(numbers), np.int32)
    assert walk_added(np.array(numbers, np.int32), 16, walked)
    assert walked.tolist() == list(table)


def test_the_example_in_the_docs_of_a_tree():
    table = JavaTable(64)
    for number in range(0, 64 * 9, 64):
        table.put(HashedKey(number, number, number))
    assert next(iter(table)) == 192


@pytest.mark.parametrize("apart", [2, 3])
def test_half_a_tree_of_six_keys_becomes_a_list_in_the_same_order(apart):
    """Eight and more keys of one bucket of 64, `apart` of which go elsewhere as the table doubles."""
    stay, leave = [128 * at for at in range(6)], [64 + 128 * at for at in range(apart + 1)]
    numbers = [*stay, *leave]
    table = JavaTable(64)
    for number in numbers:
        table.put(HashedKey(number, number, number))
    tree = [number for number in table if number in stay]
    assert tree != stay  # the root comes first
    for number in range(1, 50 - len(numbers)):
        table.put(HashedKey(number, number, number))
    assert table.capacity == 128
    assert [number for number in table if number in stay] == tree


def test_a_log_grows_to_the_room_that_is_asked_for():
    log = np.arange(12, dtype=np.int32).reshape(4, 3)
    assert with_room(log, 3, 1) is log
    for more, rows in ((2, 8), (5, 8), (6, 9), (40, 43)):
        longer = with_room(log, 3, more)
        assert longer.shape == (rows, 3)
        assert longer[:3].tolist() == log[:3].tolist()
