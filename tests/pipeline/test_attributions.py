"""Whose algorithm every captured record was, as the ledger has it: of the log before its cleaner came, and after."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from groupledger.answers.queries import records
from groupledger.answers.reader import LedgerReader
from groupledger.config import parse
from groupledger.pipeline.assign import assign
from groupledger.pipeline.invocation import Invocation
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, TOPIC_SNAPSHOTS
from tests.engine.captured_rows import BEFORE_COMPACTION, CAPTURES
from tests.pipeline.captured_facts import group_rows, member_rows, topic_rows, write

pytestmark = pytest.mark.spark


def ledger_of_classic_groups(spark, location):
    """Write into an empty ledger the captures' facts but for KIP-848 groups, each capture its own cluster."""
    captures = (*CAPTURES, BEFORE_COMPACTION)
    groups = [row for name in captures for row in group_rows(name) if row["group_type"] == "classic"]
    classic = {row["snapshot_id"] for row in groups}
    rows = {
        GROUP_SNAPSHOTS: groups,
        MEMBER_SNAPSHOTS: [row for name in captures for row in member_rows(name) if row["snapshot_id"] in classic],
        TOPIC_SNAPSHOTS: [row for name in captures for row in topic_rows(name)],
    }
    write(spark, location, rows, "facts")


@pytest.mark.long
def test_all_301_captured_generations_that_are_no_rewrites_are_exact_under_some_name(spark, new_ledger, tmp_path):
    path = str(tmp_path / "ledger")
    ledger_of_classic_groups(spark, new_ledger(path))
    settings = f"cluster_id: any\nledger: {{location: {path}}}\nassign: {{snapshots: every}}"
    now = datetime(2026, 11, 21, tzinfo=UTC)
    invocation = Invocation(attempt_id="attempt", now=lambda: now, seconds=time.perf_counter)
    assign(spark, parse(settings, "test"), invocation)
    counted = records(
        LedgerReader(path),
        "SELECT attribution, cardinality(attributed_to) > 0 AS named, count(*) AS n FROM current_rebalances "
        "WHERE outcome <> 'EMPTY' GROUP BY 1, 2 ORDER BY 1",
    )
    assert [tuple(row.values()) for row in counted] == [
        ("exact", True, 301),
        ("not-applicable: rewrite", None, 17),
    ]
