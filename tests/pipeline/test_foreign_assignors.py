"""Groups whose assignor is not one of ours, from the log to the results: recorded as any other, and no wrong input."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from groupledger.config import AssignSettings, Config, LedgerSettings
from groupledger.core.arrays.java_orders import hash_texts
from groupledger.pipeline.assign import DONE, assign
from groupledger.sinks.current import current
from groupledger.tables import MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES, QUARANTINE, REBALANCES
from groupledger.tables import columns as c
from tests.core.history.records import CLICKS, Log, member
from tests.pipeline.ledgers import invocation

pytestmark = pytest.mark.spark

GROUPS = {"js": ("RoundRobinAssigner", "consumer"), "workers": ("sessioned", "connect"), "plain": ("range", "consumer")}


def lines():
    """Three groups of two members, of which the second joins later, each in the log partition that Kafka gives it."""
    for group, (protocol, kind) in GROUPS.items():
        log = Log(group)
        log.classic(1, [member("A", {"clicks": (0, 1)})], protocol=protocol, kind=kind)
        both = [member("A", {"clicks": (0,)}), member("B", {"clicks": (1,)})]
        log.classic(2, both, protocol=protocol, kind=kind)
        partition = abs(int(hash_texts([group])[0])) % 50
        for row in log.rows:
            data = {"key": b64encode(row.key or b"").decode(), "value": b64encode(row.value or b"").decode()}
            yield json.dumps({"partition": partition, "offset": row.offset, "timestamp": 1_000, **data})


@pytest.mark.long
def test_they_are_recorded_and_not_rejected(spark, workspace):
    found = workspace.ingest(
        workspace.source("offsets.jsonl", [*lines()]),
        workspace.source(
            "topics.jsonl", [f'{{"ts": 1, "topic": "clicks", "topic_id": "{CLICKS}", "partitions": 2}}'], "topics-jsonl"
        ),
    )
    assert found.quarantined == 0
    for scenario, assignor, stands in (("baseline", "recorded", 4), ("what-if", "range", 2)):
        settings = AssignSettings(scenario=scenario, assignor=assignor, snapshots="every")
        config = Config(cluster_id="edge", ledger=LedgerSettings(location=workspace.location.path), assign=settings)
        summary = assign(spark, config, invocation())
        assert (summary.verdict, summary.quarantined, summary.groups_in) == (DONE, 0, 6)
        assert summary.outcomes["NOT_RECOMPUTED"] == stands
    rows = {
        (row[c.SCENARIO], row[c.GROUP_ID], row[c.GENERATION]): row
        for row in current(spark, workspace.location, REBALANCES).collect()
    }
    js = rows["baseline", "js", 2]
    assert (js[c.VERDICT], js[c.MOVES]) == ("cannot-tell: Kafka has no assignor of this name", 1)
    assert (rows["what-if", "js", 2][c.OUTCOME], rows["what-if", "js", 2][c.ASSIGNOR]) == ("ASSIGNED", "range")
    assert rows["baseline", "workers", 2][c.VERDICT] == "cannot-tell: other protocol type"
    members = current(spark, workspace.location, MEMBER_SNAPSHOTS).where("group_id = 'workers'").collect()
    assert [row[c.RECORDED] for row in members] == [None] * 3
    changes = current(spark, workspace.location, OWNERSHIP_CHANGES).groupBy(c.GROUP_ID).count().collect()
    counts = {row[c.GROUP_ID]: row["count"] for row in changes}
    assert counts["js"] == counts["plain"] > 0
    assert "workers" not in counts
    assert current(spark, workspace.location, QUARANTINE).count() == 0
