"""Users' own snapshot tables tell who had a partition, in any order; topics change to the microsecond."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from groupledger.answers.owners import ownership
from groupledger.answers.reader import LedgerReader
from groupledger.config import SourceSettings
from groupledger.sinks.current import current
from groupledger.tables import GROUP_SNAPSHOTS, OWNERSHIP_CHANGES
from tests.core.history.records import Log, member
from tests.pages import documented_reader
from tests.pipeline.test_strays import line

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
HELD: dict[int, dict[str, tuple[int, ...]]] = {1: {"a": (0, 1)}, 2: {"a": (0,), "b": (1,)}, 3: {"b": (0, 1)}, 4: {}}


def written(folder, name, rows):
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def at(number):
    return START + timedelta(minutes=number)


def tables(space, name, numbers, topics=()):
    """A folder of snapshot tables with these snapshots of the group `desk`."""
    folder = space.folder / name
    groups = [
        {
            "snapshot_id": f"s{number}",
            "group_id": "desk",
            "offset": number,
            "generation": number,
            "observed_at": at(number).isoformat(),
            "state": "Stable" if HELD[number] else "Empty",
        }
        for number in numbers
    ]
    members = [
        {
            "snapshot_id": f"s{number}",
            "member_id": member_id,
            "topics": ["orders"],
            "recorded": [{"topic_id": None, "topic": "orders", "partitions": list(partitions)}],
        }
        for number in numbers
        for member_id, partitions in HELD[number].items()
    ]
    written(folder, "group_snapshots", groups)
    written(folder, "member_snapshots", members)
    if topics:
        written(folder, "topic_snapshots", topics)
    return SourceSettings(kind="snapshots", path=str(folder), format="json")


def topic(name, moment):
    return {"topic": name, "topic_id": f"id-{name}", "partition_count": 2, "valid_from": moment.isoformat()}


@pytest.fixture(scope="module")
def at_once(new_workspace):
    """All snapshots, and a log whose record lies between two changes of topics in one millisecond."""
    space = new_workspace("at-once")
    log = Log()
    log.classic(1, [member("m", {"clicks": (0,), "grow": (0,)})])
    row = log.rows[0]._replace(timestamp_ms=int(START.timestamp()) * 1_000 + 500)
    moment = START + timedelta(milliseconds=500)
    topics = [
        topic("clicks", moment + timedelta(microseconds=400)),
        topic("grow", moment - timedelta(microseconds=400)),
        topic("orders", START),
    ]
    space.ingest(space.source("log.jsonl", [line(row)]), tables(space, "all", HELD, topics), buckets=2)
    return space


def of_tables(space):
    return [row for row in space.rows(OWNERSHIP_CHANGES) if "group_id='desk'" in row]


def before_each(space):
    """Offset -> the number of the snapshot before it."""
    rows = current(space.spark, space.location, GROUP_SNAPSHOTS).where("group_id = 'desk'").collect()
    return {row["offset"]: ended(row["previous_snapshot_id"]) for row in rows}


def ended(snapshot_id):
    return snapshot_id.removeprefix("table/edge/s") if isinstance(snapshot_id, str) else None


@pytest.mark.long
def test_a_topic_that_changes_within_the_millisecond_of_a_record_is_what_it_was_then(at_once):
    rows = current(at_once.spark, at_once.location, OWNERSHIP_CHANGES)
    found = rows.where("group_id = 'payments'").select("topic", "topic_id").collect()
    ids = {(row["topic"], row["topic_id"]) for row in found}
    assert ids == {("clicks", None), ("grow", "id-grow")}


@pytest.mark.long
def test_snapshots_say_who_had_a_partition(at_once):
    ledger = LedgerReader(at_once.location.path)
    for minute, expected in ((1.5, "a"), (2.5, "b"), (4.5, None)):
        answer = ownership(ledger, "orders", 1, at(minute))
        (holding,) = answer.holdings
        assert (holding.member.member_id if holding.member else None) == expected, minute
    assert len(of_tables(at_once)) == 2 + 1 + 1 + 2


@pytest.mark.long
def test_late_and_repeated_snapshots_end_in_the_same_changes(at_once, workspace):
    workspace.ingest(tables(workspace, "1", (1, 3)))
    before = of_tables(workspace)
    workspace.ingest(tables(workspace, "2", (2, 4, 1)))
    assert before != of_tables(workspace) == of_tables(at_once)
    assert len(workspace.rows(GROUP_SNAPSHOTS)) == len(HELD)
    assert before_each(workspace) == before_each(at_once) == {2: "1", 3: "2", 4: "3", 1: None}
    read = documented_reader()(workspace.location.path, GROUP_SNAPSHOTS.name).to_dict("records")
    assert {row["offset"]: ended(row["previous_snapshot_id"]) for row in read} == before_each(at_once)
