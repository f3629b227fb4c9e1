"""Of results and facts only what no reader sees any more is ever due."""

from datetime import timedelta

import pytest

from groupledger.config import RetentionSettings
from groupledger.config.settings import RETAINED
from groupledger.pipeline.past import due
from groupledger.sinks import attempts, ledger_tables
from groupledger.tables import BY_NAME, GROUP_HEADS, RUNS, TABLES
from tests.sinks.test_current import MOMENT, place

assert place, "the ledger of attempts that supersede one another"
RETIRED = ("log_records", "quarantine", "assignments", "rebalances", "group_snapshots")
QUARANTINED = {"assign-1", "assign-2", "assign-two", "assign-what-if", "ingest-1", "late", "next", "other-group"}

UNSEEN = {"assignments": ["assign-gone"], "rebalances": ["assign-gone"], "group_snapshots": ["moved-1"]}
"""What is about a group as it was before its log partition was found to be another one."""


@pytest.mark.long
@pytest.mark.spark
def test_an_attempt_s_rows_are_due_once_they_are_old_and_none_is_seen(spark, place):
    stored, seen = ledger_tables.stored(spark, place), attempts.read_commits(spark, place)
    settings = [RetentionSettings(table=name, days=3) for name in RETIRED]
    assert due(spark, place, settings, stored, seen, MOMENT + timedelta(days=2)) == {}
    found = due(spark, place, settings, stored, seen, MOMENT + timedelta(days=4))
    assert set(found.pop("quarantine")) >= QUARANTINED
    assert found == UNSEEN
    hidden = [commit for commit in seen.commits if commit.attempt_id != "assign-1"]
    newest = attempts.LedgerView(tuple(hidden))
    found = due(spark, place, settings[2:4], stored, newest, MOMENT + timedelta(days=4))
    assert found == {name: ["assign-1", "assign-gone"] for name in RETIRED[2:4]}, "no reader sees a row of them"


def test_every_table_may_be_retained_but_those_all_else_rests_on():
    known = {table.name for table in TABLES}
    assert set(RETAINED) <= known
    assert {RUNS.name, GROUP_HEADS.name}.isdisjoint(RETAINED)
    assert all(name in BY_NAME for name in RETIRED)
