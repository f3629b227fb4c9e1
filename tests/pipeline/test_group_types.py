"""A share group, a Streams group and an online upgrade, from a real broker's log to the answers."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from groupledger.answers.owners import ownership
from groupledger.answers.reader import LedgerReader
from groupledger.config import AssignSettings, Config, LedgerSettings, SourceSettings
from groupledger.core.moments import from_millis
from groupledger.pipeline.assign import DONE, assign
from groupledger.sinks.current import current
from groupledger.tables import MEMBER_SNAPSHOTS, REBALANCES, VIOLATIONS
from groupledger.tables import columns as c
from tests.core.history.test_captured_group_types import log
from tests.pipeline.ledgers import invocation

pytestmark = pytest.mark.spark

DATA = Path(__file__).parents[1] / "data" / "groups"


@pytest.mark.long
def test_they_are_recorded_judged_as_far_as_may_be_and_answered_for(spark, workspace):
    sources = [
        SourceSettings(kind="offsets-jsonl", path=str(DATA / "offsets.jsonl.gz")),
        SourceSettings(kind="topics-jsonl", path=str(DATA / "topics.jsonl.gz")),
    ]
    found = workspace.ingest(*sources)
    assert found.quarantined == 0

    settings = AssignSettings(scenario="baseline", assignor="recorded", snapshots="every")
    config = Config(cluster_id="edge", ledger=LedgerSettings(location=workspace.location.path), assign=settings)
    summary = assign(spark, config, invocation())
    assert (summary.verdict, summary.quarantined, summary.outcomes.get("REJECTED", 0)) == (DONE, 0, 0)
    rows = current(spark, workspace.location, REBALANCES).collect()
    peopled = {(row[c.GROUP_ID], row[c.VERDICT], row[c.OUTCOME]) for row in rows if row[c.MEMBERS]}
    assert {each for each in peopled if each[0] != "upgrade"} == {
        ("fanout", "cannot-tell: a share group", "NOT_RECOMPUTED"),
        ("totals", "cannot-tell: a streams group", "NOT_RECOMPUTED"),
    }
    assert {verdict for group, verdict, _ in peopled if group == "upgrade"} == {
        "exact",
        "carried-over",
    }
    assert current(spark, workspace.location, VIOLATIONS).count() == 0

    streams = current(spark, workspace.location, MEMBER_SNAPSHOTS).where("group_id = 'totals' AND offset = 59")
    standby = streams.selectExpr("explode(tasks) task").where("task.role = 'standby' AND task.state = 'assigned'")
    assert sorted(tuple(row[0]) for row in standby.collect()) == [
        ("standby", "assigned", "1", [0, 1]),
        ("standby", "assigned", "1", [2]),
    ]

    moment = from_millis(next(row.timestamp_ms for row, _ in log() if row.offset == 31)) + timedelta(milliseconds=1)
    answer = ownership(LedgerReader(workspace.location.path), "payments", 0, moment)
    told = [(each.group_id, each.member.client_id, each.shared) for each in answer.holdings if each.member]
    assert sorted(told) == [
        ("fanout", "share-b", True),
        ("fanout", "share-c", True),
    ]
