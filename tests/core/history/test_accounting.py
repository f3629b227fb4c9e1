"""Every record is used, unused, a tombstone, a duplicate or quarantined; none is lost, none stops the fold."""

import random
from collections import Counter

import pytest

from groupledger.core.history import FoldCounts, LogRow, TopicHistory, fold_group
from groupledger.core.history.fold_rows import Accounts
from groupledger.core.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_assignment,
    encode_subscription,
)
from groupledger.core.wire.offsets_log import LogKey, RecordKind, encode_key
from groupledger.core.wire.records import ClassicGroupMember, OffsetCommit
from tests.core.history.captured import CLUSTER, catalog, every_group, folded, log_rows
from tests.core.history.records import CLICKS, GROW, TOPICS, Log, head_of, member
from tests.core.wire.captured import LOGS


@pytest.mark.parametrize(("name", "records"), LOGS.items())
def test_every_captured_record_is_accounted_for(name, records):
    counts = [folded(name, group).counts for group in log_rows(name)]
    assert sum(c.records for c in counts) == sum(c.accounted for c in counts) == records
    assert {code for c in counts for code in c.quarantined} == set()
    assert {kind for c in counts for kind in c.unused} <= {"OffsetCommit"}


def test_the_edge_cases_in_numbers():
    total: Counter[str] = Counter()
    for group in log_rows("edge/offsets"):
        counts = folded("edge/offsets", group).counts
        for name in ("used", "unused", "tombstones"):
            total[name] += sum(getattr(counts, name).values())
    assert total == {"used": 605, "unused": 197, "tombstones": 186}


def test_counts_that_do_not_add_up_are_a_bug():
    assert FoldCounts(7, {"a": 2}, {"b": 1}, {"a": 1}, 1, {"X": 2}).accounted == 7
    with pytest.raises(AssertionError, match="1 records came, 0 are accounted for"):
        Accounts().close(1)


def test_a_group_of_commits_only_has_no_snapshot():
    fold = folded("edge/offsets", "tool-only")
    assert [fold.group_snapshots, fold.ownership_changes, fold.coverage] == [[], [], []]
    assert fold.counts.unused == {"OffsetCommit": 1}
    assert (head_of(fold).incarnation, head_of(fold).offset) == (0, log_rows("edge/offsets")["tool-only"][0].offset)


@pytest.mark.parametrize("group", ["tx-classic", "tx-new"])
def test_transactional_commits_count_as_commits(group):
    assert folded("edge/offsets", group).counts.unused == {"OffsetCommit": 24}


def test_another_protocol_type_is_recorded_and_not_read():
    log = Log()
    connect = member("worker-1", {})
    log.classic(1, [connect], protocol="sessioned", kind="connect")
    opaque = (log.rows[-1].value or b"").replace(connect.subscription, b"\xff" * len(connect.subscription))
    log.rows[-1] = log.rows[-1]._replace(value=opaque)
    fold = log.fold()
    (snapshot,) = fold.group_snapshots
    assert (snapshot.protocol_type, snapshot.assignor, snapshot.snapshot_kind) == ("connect", "sessioned", "generation")
    (row,) = fold.member_snapshots
    assert (row.member_id, row.topics, row.claimed, row.recorded) == ("worker-1", None, None, None)
    assert fold.quarantine == []


@pytest.mark.parametrize("kind", [4, 15, 9, 99])
def test_records_of_no_history_and_later_types_are_unused_by_kind(kind):
    key = kind.to_bytes(2, "big") + b"\x00\x01g"
    value = None if kind == 4 else b"\x00\x00"
    fold = fold_group("c", [LogRow(0, 5, 9, key, value)], None, TOPICS)
    assert fold.counts.accounted == 1
    assert sum(fold.counts.unused.values()) == (0 if kind == 4 else 1)
    assert fold.group_snapshots == []


def test_markers_of_transactions_are_counted_as_control_records():
    """Of any log partition, and of no group: ABORT and COMMIT with the coordinator's epoch."""
    abort, commit, marker = b"\x00\x00\x00\x00", b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x03"
    rows = [LogRow(number, 1, 5, key, marker) for number in range(3) for key in (abort, commit)]
    rows = [row._replace(offset=number) for number, row in enumerate(rows)]
    fold = fold_group("c", rows, None, TOPICS)
    assert (fold.counts.unused, fold.counts.quarantined, fold.quarantine) == ({"ControlRecord": 6}, {}, [])
    assert fold.head is None
    others = [(abort, None), (abort, marker[1:]), (b"\x00\x00\x00\x02", marker), (b"\x00\x01\x00\x00", marker)]
    odd = fold_group("c", [LogRow(0, at, 5, *each) for at, each in enumerate(others)], None, TOPICS)
    assert odd.counts.quarantined == {"TRUNCATED": 2}, "a marker's key, and nothing of a marker behind it"
    assert odd.counts.unused == {"LegacyOffsetCommit": 1, "OffsetCommit": 1}


@pytest.mark.parametrize("number", [0, 1])
def test_an_offset_commit_is_one_by_the_first_two_bytes_of_its_key(number):
    """Its value may be cut and so may its key: no fact rests on it, so it is neither quarantined nor a gap."""
    log = Log()
    log.classic(1, [member("m", {"clicks": (0,)})])
    log.put(RecordKind.OFFSET_COMMIT, OffsetCommit(1, None, "", 0, None, None), 3, topic="clicks", partition=0)
    row = log.rows[-1]
    key, value = bytes([0, number]) + (row.key or b"")[2:], row.value or b""
    pairs = [(key, value), (key, value[:-3]), (key, b""), (key[:-5], value), (key + b"x", value), (key, None)]
    rows = [row._replace(offset=row.offset + at, key=key, value=value) for at, (key, value) in enumerate(pairs)]
    fold = fold_group("c", [*log.rows[:-1], *rows], None, TOPICS)
    kind = ("LegacyOffsetCommit", "OffsetCommit")[number]
    assert (fold.counts.unused, fold.counts.tombstones) == ({kind: len(pairs) - 1}, {kind: 1})
    assert [row.kind for row in fold.coverage] == []
    assert fold.quarantine == []


def test_a_broken_generation_is_quarantined_and_nothing_is_measured_across_it():
    log = Log()
    log.classic(0)
    log.classic(1, [member("m", {"clicks": (0,)})])
    broken = log.broken()
    log.classic(3, [member("n", {"clicks": (0,)})])
    log.classic(4, [member("n", {"clicks": ()})])
    fold = log.fold()
    (row,) = fold.quarantine
    assert (row.stage, row.source, row.code, row.offset, row.group_id) == (
        "fold",
        "__consumer_offsets",
        "TRUNCATED",
        2,
        "payments",
    )
    assert (row.key, row.value) == (broken.key, broken.value)
    assert "byte 0" in row.message
    assert [(gap.kind, gap.from_value, gap.to_value, gap.offset) for gap in fold.coverage] == [
        ("record-unreadable", 1, None, 2),
        ("generations-skipped", 1, 3, 3),
    ]
    after = fold.group_snapshots[2]
    assert (after.generation, after.previous_snapshot_id) == (3, None)
    assert fold.group_snapshots[3].previous_snapshot_id == after.snapshot_id
    assert [(c.from_member_id, c.to_member_id, c.held_since) for c in fold.ownership_changes] == [
        (None, "m", None),
        ("m", "n", 1_000),
        ("n", None, None),
    ]


def test_one_member_whose_bytes_do_not_decode_quarantines_the_record_and_changes_nothing():
    log = Log()
    log.classic(1, [member("m", {"clicks": (0,)})])
    log.classic(2, [member("n", {"clicks": (0,)}), member("o", {}, assignment=b"\x00\x03\x00\x00\x00\x09")])
    fold = log.fold()
    assert [s.generation for s in fold.group_snapshots] == [1]
    assert [c.to_member_id for c in fold.ownership_changes] == ["m"]
    assert fold.counts.quarantined == {"TRUNCATED": 1}


def test_a_member_whom_the_leader_left_out_has_no_bytes_and_no_partitions():
    log = Log()
    log.classic(1, [member("m", {"clicks": (0,)}), member("n", {}, assignment=b"")])
    assert [m.recorded for m in log.fold().member_snapshots] == [((CLICKS, "clicks", (0,)),), ()]
    assert log.fold().quarantine == []


def test_a_partition_or_topic_written_twice_for_a_member_is_held_once():
    parts = (("clicks", (0, 1, 1)), ("grow", (0,)), ("clicks", (1, 2)))
    log = Log()
    log.classic(1, [member("m", {}, assignment=encode_assignment(ConsumerProtocolAssignment(3, parts)))])
    log.classic(
        2, [member("m", {}, assignment=encode_assignment(ConsumerProtocolAssignment(3, (("clicks", (0, 0)),))))]
    )
    fold = log.fold()
    assert [m.recorded for m in fold.member_snapshots] == [
        ((CLICKS, "clicks", (0, 1, 2)), (GROW, "grow", (0,))),
        ((CLICKS, "clicks", (0,)),),
    ]
    assert [(v.code, v.topic, v.offset) for v in fold.violations] == [("TOPIC_REPEATED", "clicks", 0)]


def test_an_empty_rack_is_no_rack():
    for rack, known in (("", None), (None, None), ("a", "a")):
        said = encode_subscription(ConsumerProtocolSubscription(3, ("clicks",), None, (), None, rack))
        log = Log()
        log.classic(1, [ClassicGroupMember("m", None, "m", "/h", 1, 1, said, b"")])
        assert log.fold().member_snapshots[0].rack_id == known


def test_a_record_read_twice_is_a_duplicate_whatever_its_timestamp():
    log = Log()
    log.classic(0)
    log.classic(1, [member("m", {"clicks": (0,)})])
    once = log.fold()
    log.rows += [log.rows[1], log.rows[1]._replace(timestamp_ms=99_000)]
    again = log.fold()
    assert (again.counts.duplicates, again.counts.records) == (2, 4)
    assert again.head == once.head
    assert again.group_snapshots == once.group_snapshots


@pytest.mark.parametrize("seed", range(5))
def test_an_offset_with_other_bytes_is_a_finding_and_the_choice_does_not_depend_on_arrival(seed):
    """An unclean log: its end was lost and written again."""
    log, other = Log(), Log()
    for one, partition in ((log, 0), (other, 1)):
        one.classic(0)
        one.classic(1, [member("m", {"clicks": (partition,)})])
    rows = [*log.rows, other.rows[1]._replace(timestamp_ms=5_000), other.rows[1]._replace(timestamp_ms=6_000)]
    random.Random(seed).shuffle(rows)  # noqa: S311 - seeded on purpose
    fold = fold_group("eu-1", rows, None, TOPICS)
    assert [m.recorded for m in fold.member_snapshots] == [((CLICKS, "clicks", (0,)),)], "the earlier one stays"
    (finding,) = fold.violations
    assert (finding.code, finding.severity, finding.offset) == ("OFFSET_REWRITTEN", "error", 1)
    (rejected,) = fold.quarantine
    assert (rejected.code, rejected.value) == ("OFFSET_REWRITTEN", other.rows[1].value)
    assert (fold.counts.duplicates, fold.counts.quarantined) == (1, {"OFFSET_REWRITTEN": 1})
    assert head_of(fold).state == head_of(fold_group("eu-1", sorted(rows), None, TOPICS)).state


def test_records_of_no_group_are_quarantined_without_a_head():
    rows = [LogRow(0, 1, 5, b"\x00", b"x"), LogRow(1, 1, 5, None, None), LogRow(2, 4, 5, b"\x00\x63abc", b"y")]
    fold = fold_group("c", rows, None, TopicHistory())
    assert fold.head is None
    assert [(row.log_partition, row.code, row.group_id) for row in fold.quarantine] == [
        (0, "TRUNCATED", None),
        (1, "NO_KEY", None),
    ]
    assert fold.counts.unused == {"Unknown type 99": 1}
    assert fold.coverage == []


def test_records_of_another_group_or_log_partition_are_quarantined_with_the_reason():
    log, other = Log(), Log("other")
    log.classic(0)
    stray = other.classic(0)._replace(offset=7)
    moved = log.rows[0]._replace(log_partition=9)
    fold = fold_group("eu-1", [*log.rows, stray, moved], None, TOPICS)
    assert fold.counts.quarantined == {"OTHER_GROUP": 1, "OTHER_LOG_PARTITION": 1}
    assert "are two clusters read under one cluster id?" in " ".join(row.message for row in fold.quarantine)


def test_a_thousand_mutated_records_never_stop_a_fold_and_are_all_accounted_for():
    """Flipped, cut and grown values and keys among the good records of every group."""
    chosen = random.Random(20)  # noqa: S311 - seeded on purpose
    codes: Counter[str] = Counter()
    mutated = 0
    while mutated < 1_000:
        name, group = chosen.choice(every_group())
        rows = list(log_rows(name)[group])
        for place in chosen.sample(range(len(rows)), min(4, len(rows))):
            rows[place] = mutate(rows[place], chosen)
            mutated += 1
        fold = fold_group(CLUSTER, rows, None, catalog(name.split("/")[0]))
        assert fold.counts.accounted == len(rows)
        assert len(fold.quarantine) == sum(fold.counts.quarantined.values())
        codes.update(fold.counts.quarantined)
    assert len(codes) >= 6


def mutate(row, chosen):
    """A row with one of its two blobs flipped, cut or grown."""
    field = "value" if row.value and chosen.random() < 0.8 else "key"
    data = bytearray(getattr(row, field))
    place = chosen.randrange(len(data))
    match chosen.randrange(3):
        case 0:
            data[place] ^= 1 << chosen.randrange(8)
        case 1:
            del data[place:]
        case _:
            data[place:place] = chosen.randbytes(chosen.randrange(1, 9))
    return row._replace(**{field: bytes(data)})


def test_a_key_is_read_once_for_its_bytes():
    key = encode_key(LogKey(RecordKind.GROUP_METADATA, 2, "g", {}))
    fold = fold_group("c", [LogRow(0, offset, 0, key, None) for offset in range(3)], None, TOPICS)
    assert fold.counts.tombstones == {"GroupMetadata": 3}


@pytest.mark.parametrize("number", [-1, -65_530, -(2**31)])
def test_an_assignment_of_a_partition_below_zero_is_quarantined_alone(number):
    """Its row in `ownership_changes` would break the table's constraint, and with it everybody's run."""
    log = Log()
    log.classic(1, [member("m", {"clicks": (0,)})])
    log.classic(2, [member("m", {"clicks": (1, number)})])
    log.classic(3, [member("m", {"clicks": (1,)})])
    fold = log.fold()
    assert fold.counts.quarantined == {"BAD_PARTITION": 1}
    assert [each.offset for each in fold.quarantine] == [1]
    assert f"got {number}; expected 0 or more" in fold.quarantine[0].message
    assert {change.partition for change in fold.ownership_changes} == {0, 1}
    assert [gap.kind for gap in fold.coverage][:1] == ["record-unreadable"]


@pytest.mark.parametrize("kind", ["target", "current", "pending"])
def test_a_kip_848_assignment_of_a_partition_below_zero_is_quarantined_alone(kind):
    log = Log()
    log.epoch(2)
    log.joined("m")
    negative: dict[str, tuple[int, ...]] = {CLICKS: (-7,)}
    if kind == "target":
        log.target("m", negative)
    else:
        log.current("m", 2, {} if kind == "pending" else negative, negative if kind == "pending" else None)
    fold = log.fold()
    assert fold.counts.quarantined == {"BAD_PARTITION": 1}
    assert fold.ownership_changes == []
