"""When a recomputed `uniform` is exact although the log is cut: judged by trying the orders that are possible."""

import random
from dataclasses import replace

import pytest

from groupledger.core.assignors.server.judgement import TargetCertainty, certainty
from groupledger.core.assignors.server.server_batch import assign, written
from groupledger.core.assignors.server.server_group import ServerGroup, ServerMember, Topic, TopicId, encode

TOPICS = {f"t{at}": Topic(TopicId(bytes([at]) * 16), 5 + at) for at in range(4)}
COMPETE = TargetCertainty.UNLESS_NEIGHBOURS_COMPETE


def drawn(seed):
    draw = random.Random(seed)  # noqa: S311 - seeded on purpose
    names = tuple(sorted(TOPICS)) if seed % 2 else None
    members = tuple(
        ServerMember(f"member-{draw.random()}", names or tuple(sorted(draw.sample(sorted(TOPICS), draw.randint(1, 4)))))
        for _ in range(draw.randint(2, 40))
    )
    return ServerGroup(members, TOPICS)


def answer(group):
    batch, names = encode([group])
    return written(batch, names, assign("uniform", batch), 0)


def sure(group, name="uniform", history=False):
    batch, _ = encode([group])
    return certainty(name, batch, [history])[0] is TargetCertainty.EXACT


def test_a_sure_group_answers_alike_whatever_the_log_hides():
    """Other join orders, tables that were once larger: the same target whenever the verdict is `exact`."""
    exact = 0
    for seed in range(80):
        group = drawn(seed)
        if not sure(group):
            continue
        exact += 1
        draw = random.Random(seed)  # noqa: S311 - seeded on purpose
        for larger in (0, 50, 400):
            shuffled = tuple(draw.sample(group.members, len(group.members)))
            changes = (1,) * (len(group.members) + larger) + (-1,) * larger
            assert answer(ServerGroup(shuffled, TOPICS, changes)) == answer(group)
    assert exact > 40


def java_hash(text):
    value = 0
    for unit in text:
        value = (31 * value + ord(unit)) & 0xFFFFFFFF
    return value


def bucket_of(member_id, members):
    """Of a HashMap that `members` ids were put into."""
    hashed, capacity = java_hash(member_id), 16
    while 4 * members > 3 * capacity:
        capacity *= 2
    return (hashed ^ hashed >> 16) & (capacity - 1)


def slot_of(member_id, settled):
    """Of the smallest TimelineHashMap for so many ids: the upper bits of the hash times 2^64 by the golden ratio."""
    hashed, bits = java_hash(member_id), 1
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    while 3 * settled > 4 << bits:
        bits += 1
    return (signed * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> (64 - bits)


def neighbours(group, settled):
    """Whether two members meet in a bucket and a slot; one that is joining is in no slot yet."""
    members = len(group.members)
    places = [
        (
            bucket_of(each.member_id, members),
            None if each.member_id == group.joining else slot_of(each.member_id, settled),
        )
        for each in group.members
    ]
    return len(set(places)) < members


def subscribers_of_all(seed, members):
    draw = random.Random(seed)  # noqa: S311 - seeded on purpose
    return ServerGroup(tuple(ServerMember(f"m-{draw.random()}", ("t0",)) for _ in range(members)), TOPICS)


@pytest.mark.parametrize("members", [2, 3, 5, 6, 9, 11, 12, 13, 22, 24, 25])
def test_the_order_is_hidden_where_two_meet_in_bucket_and_slot(members):
    """Spelled out in Python. Who is joining fills no slot."""
    doubted = set()
    for seed in range(60 if members < 9 else 30):
        group = subscribers_of_all(seed, members)
        last = group.members[-1].member_id
        joins = replace(group, joining=last)
        assert sure(group) is not neighbours(group, members)
        assert sure(joins) is not neighbours(joins, members - 1)
        doubted |= {sure(group), sure(joins)}
    assert doubted == {True, False}


def test_a_doubtful_group_can_answer_otherwise():
    """The doubt is not empty talk: some doubtful group does change with the order of its records."""
    doubtful = [group for group in map(drawn, range(80)) if not sure(group)]
    assert any(answer(ServerGroup(group.members[::-1], TOPICS)) != answer(group) for group in doubtful)


@pytest.mark.parametrize(("name", "history"), [("range", False), ("uniform", True)])
def test_range_and_a_whole_history_are_always_exact(name, history):
    assert all(sure(drawn(seed), name, history) for seed in range(20))


def test_verdicts_read_as_sentences():
    assert [each.value for each in TargetCertainty] == ["exact", "exact unless bucket neighbours compete"]
    assert COMPETE.value.endswith("compete")
