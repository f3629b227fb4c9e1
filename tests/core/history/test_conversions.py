"""An online conversion: a classic group goes on as a KIP-848 group, or back, under one name and without a break."""

from __future__ import annotations

import json
from base64 import b64decode
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from groupledger.core.history import Folded, LogRow, TopicChange, TopicHistory, fold_group
from groupledger.core.wire.consumer_protocol import ConsumerProtocolSubscription
from groupledger.core.wire.offsets_log import RecordKind, decode_key
from tests.core.history.captured import changes_of
from tests.core.history.parts import Facts, in_parts, together
from tests.core.history.records import CLICKS, TOPICS, Log, head_of, member

CASE = Path(__file__).parents[2] / "data/conversions"
GROUPS = ("d-whole", "d-no-upgrade-tombstone", "d-late-tombstones")
UPGRADE, LAST_ROUND, DOWNGRADE, AFTER = 1795262460000, 1795262465000, 1795262520000, 1795262523000
SAID = ConsumerProtocolSubscription(3, ("clicks",), None, (("clicks", (0, 1)),), 6)


@cache
def case(group: str) -> tuple[LogRow, ...]:
    """The records of one of its groups."""
    lines = map(json.loads, (CASE / "log.jsonl").read_text(encoding="utf-8").splitlines())
    rows = [
        LogRow(
            each["partition"],
            each["offset"],
            each["timestamp"],
            b64decode(each["key"]),
            each["value"] and b64decode(each["value"]),
        )
        for each in lines
    ]
    return tuple(row for row in rows if decode_key(row.key).group_id == group)


def changes() -> list[TopicChange]:
    """Its topics."""
    lines = map(json.loads, (CASE / "topics.jsonl").read_text(encoding="utf-8").splitlines())
    return changes_of(lines)


@cache
def topics() -> TopicHistory:
    """Its topics at each moment."""
    return TopicHistory(changes())


class Step(NamedTuple):
    """A snapshot in short."""

    at: int
    kind: str
    number: int
    members: int


def steps(fold: Folded) -> list[Step]:
    """The snapshots, one for each that differs from the one before."""
    found: list[Step] = []
    for row in fold.group_snapshots:
        number = row.generation if row.generation is not None else row.group_epoch
        step = Step(row.observed_at, row.group_type, number or 0, row.members)
        if not found or found[-1] != step:
            found.append(step)
    return found


def handed(fold: Folded, topic: str = "orders") -> dict[int, list[tuple[int, str | None, str | None]]]:
    """Of each partition its changes: when, from whom, to whom."""
    found: dict[int, list[tuple[int, str | None, str | None]]] = {}
    for row in fold.ownership_changes:
        assert row.topic == topic
        found.setdefault(row.partition, []).append((row.at, row.from_member_id, row.to_member_id))
    return found


def state(parts: list[Folded]) -> tuple[Facts, bytes]:
    """What counts of a fold in parts, and the head it leaves."""
    return together(parts), head_of(parts[-1]).state


@pytest.mark.parametrize("group", GROUPS)
def test_a_member_of_both_types_is_there_all_along_and_keeps_its_partition(group):
    fold = fold_group("eu-1", case(group), None, topics())
    assert {row.incarnation for row in fold.group_snapshots} == {1}
    assert "deleted" not in {row.snapshot_kind for row in fold.group_snapshots}
    assert [row.previous_snapshot_id for row in fold.group_snapshots][1:] == [
        row.snapshot_id for row in fold.group_snapshots
    ][:-1]
    assert {row.member_id for row in fold.member_snapshots if row.offset == fold.group_snapshots[0].offset} == {"A"}
    by_snapshot = {row.snapshot_id: set() for row in fold.group_snapshots}
    for row in fold.member_snapshots:
        by_snapshot[row.snapshot_id].add(row.member_id)
    assert all("A" in members for members in by_snapshot.values())
    first = handed(fold)[0]
    assert [(giver, taker) for _, giver, taker in first] == [(None, "A")]


@pytest.mark.parametrize("group", GROUPS)
def test_the_downgrade_is_one_step_in_which_the_last_kip_848_member_goes(group):
    fold = fold_group("eu-1", case(group), None, topics())
    assert steps(fold)[-3:] == [
        Step(LAST_ROUND, "consumer", 4, 2),
        Step(DOWNGRADE, "classic", 4, 1),
        Step(AFTER, "classic", 5, 1),
    ]
    begins = case(group)[0].timestamp_ms
    assert handed(fold)[1] == [
        (begins, None, "A"),
        (UPGRADE + 3_000, "A", None),
        (LAST_ROUND, None, "B"),
        (DOWNGRADE, "B", None),
        (AFTER, None, "A"),
    ]
    assert all(row.recorded for row in fold.member_snapshots if row.member_id == "A")


@pytest.mark.parametrize("group", GROUPS)
def test_nothing_is_missing_in_a_conversion(group):
    fold = fold_group("eu-1", case(group), None, topics())
    assert [row.kind for row in fold.coverage] == ["history-begins-late"]
    assert all(row.complete for row in fold.group_snapshots)
    assert not fold.violations


@pytest.mark.parametrize("group", GROUPS)
def test_every_cut_between_two_reads_ends_in_the_same_facts(group):
    rows = case(group)
    expected = state([fold_group("eu-1", rows, None, topics())])
    for cut in range(1, len(rows)):
        assert state(in_parts(rows, [cut], topics())) == expected, cut
    assert state(in_parts(rows, range(1, len(rows)), topics())) == expected


def test_until_the_rest_of_the_batch_is_read_a_tombstone_is_a_deletion():
    rows = case("d-whole")
    first = fold_group("eu-1", rows[:2], None, topics())
    assert first.group_snapshots[-1].snapshot_kind == "deleted"
    rest = fold_group("eu-1", rows[2:], head_of(first).state, topics())
    assert head_of(rest).refolded
    assert head_of(rest).from_offset == rows[0].offset
    assert rest.counts.records == len(rows) - 2


def converting(log: Log, generation: int = 6, tombstone: bool = True) -> None:
    """The batch of a conversion: `c` of the classic group is a classic member of the consumer group."""
    with log.batch():
        if tombstone:
            log.deleted()
        log.joined("c", classic=SAID)
        log.step(generation, {"c": {CLICKS: (0, 1)}})


def classic(log: Log, last: int = 6, *members: str) -> Log:
    """A classic group up to a generation."""
    log.classic(0)
    for generation in range(1, last + 1):
        log.classic(generation, [member(name, {"clicks": (0, 1)}) for name in members or ("c",)])
    return log


def folded(log: Log) -> Folded:
    """The log's fold; every cut of it gives the same."""
    fold = fold_group("eu-1", log.rows, None, TOPICS)
    for cut in range(1, len(log.rows)):
        assert state(in_parts(log.rows, [cut], TOPICS)) == state([fold]), cut
    return fold


def test_a_group_whose_first_record_is_the_tombstone_of_a_conversion_was_not_deleted():
    log = Log()
    converting(log)
    fold = fold_group("eu-1", log.rows, None, TOPICS)
    assert [row.snapshot_kind for row in fold.group_snapshots] == ["fold", "fold"]
    assert {row.incarnation for row in fold.group_snapshots} == {1}
    assert {row.kind for row in fold.coverage} == {"history-begins-late"}


def test_a_group_that_is_deleted_and_made_again_as_a_consumer_group_is_another():
    log = classic(Log())
    log.classic(7)
    log.deleted()
    log.joined("n")
    log.step(2, {"n": {CLICKS: (0, 1)}})
    fold = folded(log)
    assert [row.incarnation for row in fold.group_snapshots if row.group_type == "consumer"] == [2, 2]
    assert [row.snapshot_kind for row in fold.group_snapshots].count("deleted") == 1


@pytest.mark.parametrize("generation", [1, 2, 3])
def test_an_empty_group_that_a_new_member_replaces_in_one_batch_is_deleted(generation):
    """Kafka deletes an empty classic group when a KIP-848 member joins, and begins at its first epoch."""
    log = classic(Log(), generation - 1)
    log.classic(generation)
    with log.batch():
        log.deleted()
        log.joined("n")
        log.step(2, {"n": {CLICKS: (0, 1)}})
    fold = folded(log)
    assert fold.group_snapshots[-1].incarnation == 2
    assert [row.snapshot_kind for row in fold.group_snapshots].count("deleted") == 1


def test_an_empty_consumer_group_that_a_classic_member_replaces_in_one_batch_is_deleted():
    log = Log()
    log.joined("n")
    log.step(2, {"n": {CLICKS: (0, 1)}})
    log.left("n")
    log.epoch(3)
    with log.batch():
        log.put(RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, None)
        log.epoch(None)
        log.classic(0)
    log.classic(1, [member("c", {"clicks": (0, 1)})])
    fold = folded(log)
    assert [row.incarnation for row in fold.group_snapshots][-1] == 2
    assert [row.snapshot_kind for row in fold.group_snapshots].count("deleted") == 1


def test_another_group_of_that_name_whose_tombstone_is_not_there_is_another():
    log = classic(Log(), 1)
    log.joined("n")
    log.step(2, {"n": {CLICKS: (0, 1)}})
    fold = folded(log)
    assert [row.incarnation for row in fold.group_snapshots if row.group_type == "consumer"] == [2, 2]


def test_members_that_go_in_the_same_step_hold_nothing_from_then_on():
    log = Log()
    log.classic(6, [member("c", {"clicks": (0,)}), member("d", {"clicks": (1,)})])
    with log.batch():
        log.deleted()
        log.joined("c", classic=SAID)
        log.step(6, {"c": {CLICKS: (0,)}})
    fold = folded(log)
    at = log.rows[-1].timestamp_ms
    assert handed(fold, "clicks") == {0: [(0, None, "c")], 1: [(0, None, "d"), (at, "d", None)]}
    assert {row.member_id for row in fold.member_snapshots if row.offset > 0} == {"c"}


def test_a_group_that_went_to_and_fro_at_once_is_one():
    log = classic(Log())
    converting(log)
    with log.batch():
        for kind in (
            RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        ):
            log.put(kind, None, member_id="c")
        log.put(RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, None)
        log.put(RecordKind.CONSUMER_GROUP_MEMBER_METADATA, None, member_id="c")
        log.epoch(None)
        log.classic(6, [member("c", {"clicks": (0, 1)})])
    converting(log)
    fold = folded(log)
    assert {row.incarnation for row in fold.group_snapshots} == {1}
    assert handed(fold, "clicks") == {0: [(1_000, None, "c")], 1: [(1_000, None, "c")]}


def test_what_compaction_left_of_a_conversion_is_still_one():
    """The first classic generation after a downgrade has taken the place of the batch's own."""
    rows = tuple(row for row in case("d-whole") if row.timestamp_ms != DOWNGRADE or row.value is None)
    fold = fold_group("eu-1", rows, None, topics())
    assert {row.incarnation for row in fold.group_snapshots} == {1}
    assert handed(fold)[0] == [(rows[0].timestamp_ms, None, "A")]
    assert handed(fold)[1][-2:] == [(DOWNGRADE, "B", None), (AFTER, None, "A")]
    for cut in range(1, len(rows)):
        assert state(in_parts(rows, [cut], topics())) == state([fold]), cut


def test_without_its_epoch_a_conversion_is_told_by_its_members_and_the_epochs_that_are_missing():
    rows = tuple(
        row
        for row in case("d-whole")
        if decode_key(row.key).kind is not RecordKind.CONSUMER_GROUP_METADATA or row.timestamp_ms != UPGRADE
    )
    fold = fold_group("eu-1", rows, None, topics())
    assert {row.incarnation for row in fold.group_snapshots} == {1}
    assert "deleted" not in {row.snapshot_kind for row in fold.group_snapshots}
