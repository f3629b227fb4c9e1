"""What a real broker wrote of a share group, a Streams group and an online upgrade (tests/data/groups)."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from functools import cache
from pathlib import Path

import pytest

from groupledger.core.history import LogRow, TopicChange, TopicHistory, fold_group
from groupledger.core.wire.offsets_log import LogRecord, decode, encode
from tests.core.history.parts import together
from tests.core.history.records import head_of

DATA = Path(__file__).parents[2] / "data" / "groups"


def lines(name):
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="ascii") as file:
        return [json.loads(line) for line in file]


@cache
def log() -> tuple[tuple[LogRow, LogRecord], ...]:
    """Each record, undecoded and decoded."""
    found = []
    for line in lines("offsets"):
        key, value = b64decode(line["key"]), None if line["value"] is None else b64decode(line["value"])
        found.append((LogRow(line["partition"], line["offset"], line["timestamp"], key, value), decode(key, value)))
    return tuple(found)


def rows_of(group):
    return [row for row, record in log() if record.group_id == group]


@cache
def topics():
    return TopicHistory(
        TopicChange(line["topic"], line["topic_id"], line["partitions"], None, 1_000 * line["ts"])
        for line in lines("topics")
    )


@cache
def folded(group):
    return fold_group("eu-1", rows_of(group), None, topics())


def members(fold, offset):
    """Client -> its row in the snapshot at the offset."""
    return {row.client_id.split("-Stream")[0]: row for row in fold.member_snapshots if row.offset == offset}


def named(assignment):
    """Topic -> partitions."""
    return None if assignment is None else {topic: partitions for _, topic, partitions in assignment}


def test_every_record_comes_back_byte_for_byte():
    assert len(log()) == 160
    for row, record in log():
        assert encode(record) == (row.key, row.value)


@pytest.mark.parametrize(("group", "group_types"), [("fanout", {"share"}), ("totals", {"streams"})])
def test_a_whole_history_is_complete_without_gap_or_finding(group, group_types):
    fold = folded(group)
    assert {snapshot.group_type for snapshot in fold.group_snapshots} == group_types
    assert all(snapshot.complete for snapshot in fold.group_snapshots)
    assert (fold.coverage, fold.violations, fold.quarantine) == ([], [], [])
    assert fold.group_snapshots[-1].snapshot_kind == "deleted"
    assert set(fold.counts.unused) <= {"ShareGroupStatePartitionMetadata"}


@pytest.mark.parametrize("group", ["fanout", "totals", "upgrade"])
def test_every_split_gives_the_same_rows_and_the_same_head(group):
    rows, whole = rows_of(group), folded(group)
    for cut in range(1, len(rows)):
        first = fold_group("eu-1", rows[:cut], None, topics())
        rest = fold_group("eu-1", rows[cut:], head_of(first).state, topics())
        assert together([first, rest]) == together([whole]), cut
        assert head_of(rest).state == head_of(whole).state


def test_a_share_group_gave_one_partition_to_two_members():
    at = members(folded("fanout"), 31)
    assert {client: named(row.recorded) for client, row in at.items()} == {
        "share-a": {"payments": (1,)},
        "share-b": {"payments": (0, 1)},
        "share-c": {"orders": (0, 1, 2), "payments": (0,)},
    }
    assert {(row.member_state, row.previous_member_epoch, row.member_epoch) for row in at.values()} == {
        ("STABLE", 4, 6),
        ("STABLE", 5, 6),
    }
    owners = set()
    for change in folded("fanout").ownership_changes:
        if (change.topic, change.partition) == ("payments", 0) and change.offset <= 31:
            owners -= {change.from_member_id}
            owners |= {change.to_member_id} - {None}
    assert owners == {at["share-b"].member_id, at["share-c"].member_id}


def test_a_streams_group_handed_tasks_over_and_kept_standbys():
    """The last subtopology reads `clicks` (4 partitions) and `payments` (2): its task 3 reads clicks-3 alone."""
    fold = folded("totals")
    before, during, after = (members(fold, offset) for offset in (49, 57, 59))
    assert named(before["streams-a"].recorded) == {
        "orders": (0, 1, 2),
        "totals-by-value-repartition": (0, 1, 2),
        "clicks": (0, 1, 2, 3),
        "payments": (0, 1),
    }
    assert named(during["streams-a"].pending_revocation) == {
        "orders": (2,),
        "totals-by-value-repartition": (2,),
        "clicks": (1, 2, 3),
        "payments": (1,),
    }
    assert [row.member_state for row in during.values()] == ["UNREVOKED_TASKS", "UNRELEASED_TASKS"]
    assert named(after["streams-b"].recorded) == named(during["streams-a"].pending_revocation)
    assert [entry for entry in after["streams-b"].tasks if entry[0] == "standby"] == [
        ("standby", "assigned", "1", (0, 1)),
        ("standby", "target", "1", (0, 1)),
    ]
    assert {snapshot.shared_topics for snapshot in fold.group_snapshots if snapshot.members} == {
        ("orders", "totals-by-value-repartition", "clicks", "payments")
    }


def test_an_online_upgrade_has_classic_members_in_it_and_counts_on_in_both_directions():
    fold = folded("upgrade")
    assert (fold.coverage, fold.violations) == ([], [])
    spans = {}
    for snapshot in fold.group_snapshots:
        number = snapshot.generation if snapshot.group_type == "classic" else snapshot.group_epoch
        if number is not None:
            spans.setdefault((snapshot.incarnation, snapshot.group_type), []).append(number)
    assert {key: (min(numbers), max(numbers)) for key, numbers in spans.items()} == {
        (1, "classic"): (0, 10),
        (1, "consumer"): (3, 8),
    }
    kinds = {snapshot.offset: snapshot.snapshot_kind for snapshot in fold.group_snapshots}
    assert [offset for offset, kind in kinds.items() if kind == "deleted"] == [159], "when it was empty"
    previous = [snapshot.previous_snapshot_id for snapshot in fold.group_snapshots]
    assert previous[1:] == [snapshot.snapshot_id for snapshot in fold.group_snapshots][:-1]
    assert {change.offset for change in fold.ownership_changes} & {71, 75, 76, 82, *range(123, 132)} == set()
    assert (kinds[132], kinds[133]) == ("fold", "generation"), "the first is the KIP-848 group's last state"
    mixed = members(fold, 113)
    assert {name: (row.subscription_version, named(row.recorded)) for name, row in mixed.items()} == {
        "modern-a": (None, {"clicks": (0,)}),
        "modern-b": (None, {"clicks": (2, 3)}),
        "classic-c": (3, {"clicks": (1,)}),
    }
    assert {row.subscribed_regex for row in fold.member_snapshots} == {None}
    waiting = members(fold, 110)
    assert (waiting["modern-a"].member_state, named(waiting["modern-a"].pending_revocation)) == (
        "UNREVOKED_PARTITIONS",
        {"clicks": (1,)},
    )
    assert waiting["classic-c"].member_state == "UNRELEASED_PARTITIONS"
