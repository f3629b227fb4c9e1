"""A fleet of simulated groups: rows of a bucket are those of the simulator; a bad script is a row; once under Spark."""

from __future__ import annotations

import json

import pyarrow as pa

from benchmarks.fleet import SETTLEMENTS, TOGETHER, settle, simulate_fleet
from groupledger.core.protocol.script_json import write_script
from groupledger.core.protocol.simulator import simulate
from tests.core.protocol.drawn import script

EVENTS = 6


def scripts(groups):
    return [(f"g{seed:04}", json.dumps(write_script(script(seed, EVENTS), f"g{seed:04}"))) for seed in range(groups)]


def bucket(rows):
    return pa.table({"group_id": [group for group, _ in rows], "script": [line for _, line in rows]})


def test_rows_are_what_the_simulator_says():
    rows = settle(bucket(scripts(5))).to_pylist()
    for seed in range(5):
        mine = [row for row in rows if row["group_id"] == f"g{seed:04}"]
        settled = simulate(script(seed, EVENTS))
        assert [row["event"] for row in mine] == list(range(EVENTS))
        assert [len(row["rounds"]) for row in mine] == [len(each.rounds) for each in settled]
        assert [len(row["calls"]) for row in mine] == [len(each.calls) for each in settled]
        for row, each in zip(mine, settled, strict=True):
            assert [one["generation"] for one in row["rounds"]] == [one.generation for one in each.rounds]
            assert flat(row["unowned"]) == list(each.unowned)
            assert [flat(m["assigned"]) for one in row["rounds"] for m in one["members"]] == [
                sorted(m.assigned) for one in each.rounds for m in one.members
            ]


def flat(wire):
    return [(entry["topic"], number) for entry in wire for number in entry["partitions"]]


def test_two_owners_are_in_the_row_of_their_event():
    old = {"event": "join", "topics": ["t"], "byte_code": "BEFORE_KIP_429"}
    joins = [{**old, "member": "a"}, {"event": "join", "member": "b", "topics": ["t"]}, {**old, "member": "c"}]
    rows = settle(bucket([("g", json.dumps({"topics": {"t": 4}, "events": joins}))])).to_pylist()
    assert [len(row["double_owners"]) for row in rows] == [0, 0, 1]
    assert rows[2]["double_owners"][0]["members"] == ["b", "a"]


def test_a_script_that_cannot_be_played_is_one_row_and_the_others_go_on():
    good = scripts(1)
    impossible = json.dumps({"topics": {}, "events": [{"event": "leave", "member": "x"}]})
    rows = settle(bucket([("bad", "{"), *good, ("late", impossible)])).to_pylist()
    told = {row["group_id"]: row["code"] for row in rows if row["code"] is not None}
    assert told == {"bad": "BAD_JSON", "late": "BAD_EVENT"}
    assert sum(row["group_id"] == "g0000" for row in rows) == EVENTS


def test_the_order_of_rows_is_no_matter_and_every_group_is_answered():
    rows = scripts(TOGETHER + 5)
    assert settle(bucket(rows)).equals(settle(bucket(rows[::-1])))
    assert len(set(settle(bucket(rows)).column("group_id").to_pylist())) == TOGETHER + 5


def test_an_empty_bucket_has_no_rows():
    assert len(settle(bucket([]))) == 0


def test_the_job_gives_the_same_rows(spark):
    rows = scripts(8)
    frame = spark.createDataFrame(rows, ["group_id", "script"])
    settled = simulate_fleet(frame, buckets=3)
    assert settled.schema == SETTLEMENTS
    found = {(row.group_id, row.event): (row.stable, len(row.rounds), len(row.calls)) for row in settled.collect()}
    expected = settle(bucket(rows)).to_pylist()
    assert found == {
        (row["group_id"], row["event"]): (row["stable"], len(row["rounds"]), len(row["calls"])) for row in expected
    }
