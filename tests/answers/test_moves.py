"""Count moves: each number of docs/concepts/moves.md from the owners in the log, and the same in every answer."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from groupledger.answers.audit import SAME
from groupledger.answers.explanation import explain
from groupledger.answers.gauges import gauges
from groupledger.answers.queries import records
from groupledger.answers.reader import LedgerReader
from groupledger.answers.replayed import RECORDED, replayed
from groupledger.answers.scope import RequestedScope
from groupledger.answers.storms import stickiness
from groupledger.answers.timeline import timeline
from groupledger.core.history.fold_rows import MemberSnapshotRow
from groupledger.core.rebalance.step import Form
from groupledger.engine.group_arrays import Calculation
from groupledger.report.html.charts import moves_of
from groupledger.tables import columns as c
from tests.answers.captured import TABLES, fact_rows, topic_rows
from tests.answers.ledgers import write
from tests.core.history.captured import folded, log_of, topic_changes
from tests.engine.bucket_rows import computed
from tests.engine.captured_rows import captured_groups, rows_of
from tests.engine.test_numbers_of_records import records_of, same

CAPTURE, CLUSTER = "dev", "eu-1"
EVERYTHING = RequestedScope(CLUSTER, None, None, None)
MANY = 1_000


class Counted(NamedTuple):
    """The numbers of one classic group, from its owners before and after each record."""

    changed: int  # partitions with another owner, nobody included
    given: int  # to a member that did not have them
    gained: int  # to another member than the last that had them, or to a first one
    moves: int  # from a member that stayed to another, in the rebalances that are summed
    least: int


def identity(member):
    return member.group_instance_id or member.member_id


def owners(members, name=identity):
    """Partition -> who has it. No partition of this capture has two owners."""
    return {
        (topic, number): name(each)
        for each in members
        for _, topic, numbers in each.recorded or ()
        for number in numbers
    }


def counted(group: str, results) -> Counted:
    """Count what the log says; of the results only the least moves, and which rebalances are summed."""
    facts = folded(log_of(CAPTURE), group)
    said = records_of(facts)
    last: dict[tuple[str, int], str] = {}
    before: list[MemberSnapshotRow] = []
    changed = given = gained = moves = least = 0
    for snapshot in facts.group_snapshots:
        after = [each for each in facts.member_snapshots if each.snapshot_id == snapshot.snapshot_id]
        had, has = owners(before), owners(after)
        changed += sum(had.get(place) != has.get(place) for place in had.keys() | has.keys())
        had_id, has_id = (owners(each, lambda member: member.member_id) for each in (before, after))
        given += sum(had_id.get(place) != member for place, member in has_id.items())
        if after and snapshot.snapshot_kind == "generation":
            gained += sum(last.get(place) != member for place, member in has.items())
        last |= has
        row, record = results[snapshot.snapshot_id], said[snapshot.snapshot_id]
        if row[c.VERDICT] in SAME and row[c.LEAST_MOVES_CERTAINTY] == "exact":
            owner = {each[1:]: (each[0], topic_id) for each, topic_id in record.before.items()}
            goes = [(owner[each[1:]], each[0], topic_id) for each, topic_id in record.goal.items() if each[1:] in owner]
            moves += sum(one != other and same(was, now) for (one, was), other, now in goes)
            moves += len(record.withheld & owner.keys())
            least += row[c.LEAST_MOVES]
        before = after
    return Counted(changed, given, gained, moves, least)


@pytest.fixture(scope="module")
def results():
    """Rows of `rebalances`, of what happened and of the recorded assignor, by scenario and snapshot id."""
    rows = [row for group in captured_groups(CAPTURE) for row in rows_of(CAPTURE, group)]
    happened = computed([row | {"chosen": None} for row in rows], Calculation(RECORDED, Form.AS_KAFKA))["rebalances"]
    return {
        scenario: {row[c.SNAPSHOT_ID]: row | {c.CLUSTER_ID: CLUSTER} for row in of_scenario}
        for scenario, of_scenario in (("baseline", computed(rows)["rebalances"]), (RECORDED, happened))
    }


@pytest.fixture(scope="module")
def ledger(results, tmp_path_factory):
    """The capture with its results, as `ingest` and `assign` would write it."""
    tables = {name: [] for name in TABLES}
    for group in captured_groups(CAPTURE):
        facts = folded(log_of(CAPTURE), group)
        for name in TABLES:
            tables[name] += fact_rows(getattr(facts, name))
    computed_rows = [row for of_scenario in results.values() for row in of_scenario.values()]
    listed = topic_rows(CLUSTER, topic_changes(CAPTURE))
    place = tmp_path_factory.mktemp("ledger")
    return LedgerReader(write(place, **tables, rebalances=computed_rows, topic_snapshots=list(listed)))


@pytest.fixture(scope="module")
def expected(results):
    """Classic group -> its numbers."""
    groups = {row[c.GROUP_ID] for row in results["baseline"].values() if row[c.GROUP_TYPE] == "classic"}
    return {group: counted(group, results["baseline"]) for group in sorted(groups)}


def test_java_range_is_the_worked_example(expected):
    assert expected["java-range"] == Counted(changed=47, given=30, gained=30, moves=11, least=14)


def test_changed_is_what_timelines_and_pages_tell(ledger, expected):
    found, drawn = {}, {}
    for group in expected:
        entries = timeline(ledger, group, CLUSTER, limit=MANY).entries
        found[group] = sum(len(entry.moved) for entry in entries)
        drawn[group] = sum(map(sum, moves_of(entries)))
    assert found == {group: each.changed for group, each in expected.items()}
    taken = {group: found[group] - drawn[group] for group in found}  # given up first and taken then: one move on a page
    assert taken["java-range"] == 0 < taken["java-cooperative-sticky"]
    assert all(0 <= 2 * number <= found[group] for group, number in taken.items())


def test_given_is_what_openmetrics_tells(ledger, expected):
    found = {each.group_id: each.given for each in gauges(ledger, EVERYTHING).groups if each.group_id in expected}
    assert found == {group: each.given for group, each in expected.items()}


def test_gained_is_what_a_replay_tells(ledger, expected):
    groups = replayed(ledger, EVERYTHING, "sticky", "baseline", MANY).groups
    found = {each.group_id: each.happened.gained for each in groups if not each.refused}
    assert len(found) > 10
    assert found == {group: expected[group].gained for group in found}


def test_moves_and_least_are_the_same_in_reports_monitoring_and_sql(ledger, expected):
    summed = {}
    for each in stickiness(ledger, EVERYTHING, MANY).groups:
        moves, least = summed.get(each.group_id, (0, 0))
        summed[each.group_id] = moves + each.moves, least + each.least
        assert each.moves == each.least + each.excess - each.below
    told = {each.group_id: (each.moves, each.least_moves) for each in gauges(ledger, EVERYTHING).groups}
    query = (
        "SELECT group_id, cast(sum(moves) AS BIGINT) AS moves, cast(sum(least_moves) AS BIGINT) AS least "
        "FROM current_rebalances WHERE scenario = 'baseline' AND round = 1 AND group_type = 'classic' AND members > 0 "
        f"AND verdict IN {SAME} AND least_moves_certainty = 'exact' GROUP BY group_id"
    )
    by_query = {row["group_id"]: (row["moves"], row["least"]) for row in records(ledger, query)}
    assert len(by_query) > 10
    assert by_query == {group: (expected[group].moves, expected[group].least) for group in by_query}
    assert {group: summed[group] for group in by_query} == {group: told[group] for group in by_query} == by_query


def test_moves_of_one_rebalance_are_what_an_explanation_tells(ledger, results):
    for group in ("java-range", "java-cooperative-sticky"):
        for row in results["baseline"].values():
            if row[c.GROUP_ID] == group and row[c.MEMBERS]:
                told = explain(ledger, group, CLUSTER, row[c.GENERATION]).rebalance
                assert told.compared is not None
                assert told.compared.moves == row[c.MOVES]
