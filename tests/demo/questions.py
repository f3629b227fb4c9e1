"""Every question that a ledger answers, asked of the demonstration: function and arguments; the reader comes first.

A ledger in a folder is read by delta-rs, any other by Spark: the answers must be equal.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple

from groupledger.answers import at_a_glance, scope
from groupledger.answers.audit import audit
from groupledger.answers.changed_group import what_if
from groupledger.answers.explanation import difference, explain, rebalance, scenario_difference
from groupledger.answers.gauges import gauges
from groupledger.answers.group_owners import group_owners, hand_overs, overview, rebalances_over_time, sizes
from groupledger.answers.joins import joins, static_members
from groupledger.answers.migration import migrations
from groupledger.answers.owners import ownership, partition_timeline
from groupledger.answers.readiness import ready_for_consumer
from groupledger.answers.recorded_history import group_hand_overs, group_log, recorded_history, recorded_members
from groupledger.answers.replayed import replayed
from groupledger.answers.scope import RequestedScope, Scope
from groupledger.answers.skew import racks, skew
from groupledger.answers.storms import stickiness, storms
from groupledger.answers.timeline import timeline
from groupledger.answers.unowned import unowned_partitions, unowned_time
from groupledger.core.assignors.server.across_conversion import convert
from groupledger.core.moments import parse

REPLAYED = "replay-range"
"""A scenario of what `replay --assignor range` computes."""
AT, _ = parse("2026-11-21T12:09:00Z")
END, _ = parse("2026-11-21T13:53:27.872Z")
"""The newest record."""
EVERYTHING, JAVA, STALE = (
    Scope(cluster, group, None, None, AT)
    for cluster, group in ((None, None), ("dev", "java-*"), ("edge", "stale-java"))
)


class Question(NamedTuple):
    """A function of the answers, and what it is asked after the reader."""

    ask: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def of(self, reader: Any) -> Any:
        """The answer of a reader."""
        return self.ask(reader, *self.arguments, **self.options)

    def __str__(self) -> str:
        told = [self.ask.__name__, *(each for each in self.arguments if isinstance(each, str | int | datetime))]
        return " ".join(map(str, told))


def _asked(ask: Any, *arguments: Any, **options: Any) -> Question:
    return Question(ask, arguments, options)


QUESTIONS = (
    _asked(at_a_glance.clusters, 100),
    _asked(at_a_glance.groups, 100),
    _asked(at_a_glance.runs, 100),
    _asked(at_a_glance.findings, 200),
    _asked(at_a_glance.coverage, 100),
    _asked(at_a_glance.quarantine, 100),
    _asked(at_a_glance.history, "storm", None, "baseline", 100),
    _asked(rebalance, "java-cooperative-sticky", "dev", 4),
    _asked(rebalance, "new-java-uniform", "dev"),
    _asked(explain, "java-cooperative-sticky", "dev", 4),
    _asked(explain, "new-java-uniform", "dev", 6),
    _asked(explain, "storm"),
    _asked(ownership, "orders", 4, AT, "dev"),
    _asked(unowned_partitions, AT, None, "dev"),
    _asked(timeline, "new-*", "dev", AT),
    _asked(timeline, "stale-java"),
    _asked(partition_timeline, "orders", 4, END, AT, "dev"),
    _asked(difference, "java-cooperative-sticky", 3, AT, "dev"),
    _asked(scenario_difference, "java-sticky", ("baseline", REPLAYED), 3, "dev"),
    _asked(audit, RequestedScope(), ("orders", "payments")),
    _asked(audit, RequestedScope(since=timedelta(minutes=4))),
    _asked(storms, RequestedScope(), 30),
    _asked(skew, RequestedScope(), 30),
    _asked(skew, RequestedScope(), 30, {("orders", number): 2.0**number for number in range(7)}),
    _asked(static_members, RequestedScope(), 30),
    _asked(stickiness, RequestedScope(), 30),
    _asked(racks, RequestedScope(), 30),
    _asked(joins, RequestedScope(cluster="edge"), 100),
    _asked(migrations, RequestedScope(), 100),
    _asked(ready_for_consumer, RequestedScope(cluster="dev"), 100, convert),
    _asked(gauges, RequestedScope()),
    _asked(replayed, RequestedScope(cluster="dev"), "range", REPLAYED, 100),
    _asked(group_hand_overs, "java-range", RequestedScope()),
    _asked(group_hand_overs, "rc-new", RequestedScope(since=timedelta(minutes=10))),
    _asked(recorded_history, "java-range", "dev"),
    _asked(group_log, SimpleNamespace(cluster_id="dev", group_id="java-range", log_partition=2)),
    _asked(recorded_members, "java-cooperative-sticky"),
    _asked(what_if, "java-cooperative-sticky", "dev", members=2, generation=8),
    _asked(scope.newest),
    _asked(overview, EVERYTHING),
    _asked(rebalances_over_time, EVERYTHING, [("dev", "java-sticky"), ("edge", "rc-new")], "minute"),
    _asked(hand_overs, JAVA, "second", 2),
    _asked(group_owners, JAVA, 100, 1_000),
    _asked(sizes, JAVA, 100),
    _asked(unowned_time, STALE, 50),
)
