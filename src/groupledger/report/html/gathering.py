"""Query the ledger for what the pages show: for the index, and for one group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from groupledger.answers.audit import Audit, Found, audit
from groupledger.answers.causes import QUIET
from groupledger.answers.explanation import Rebalance, with_states
from groupledger.answers.gauges import GroupGauges, group_gauges
from groupledger.answers.group_owners import (
    Counted,
    GroupLine,
    GroupOwners,
    Size,
    group_owners,
    hand_overs,
    overview,
    rebalances_over_time,
    sizes,
    unit_of,
)
from groupledger.answers.queries import CLASSIC, CONSUMER, Reader, exactly
from groupledger.answers.scope import RequestedScope, Scope, known
from groupledger.answers.skew import Skew, Skews, skew
from groupledger.answers.states import Selection
from groupledger.answers.storms import Storms, storms
from groupledger.answers.timeline import Timeline, TimelineEntry, timeline
from groupledger.answers.unowned import UnownedTime, unowned_time
from groupledger.core.rebalance.findings import Severity
from groupledger.report.html.charts import MOST_ROWS

MOST_GROUPS = 5_000
"""Groups that the index lists."""
RANKED = 10
"""Groups of a ranking on the index."""
MOST_REBALANCES, FEWEST_REBALANCES, MOST_ENTRIES = 60, 10, 600_000
"""Rebalances on a page, and partitions in all of them that are compared: of a giant group there are fewer."""
MOST_PARTITIONS, MOST_CHANGES = 64, 20_000
"""Of a group whose partitions have a row each."""
MOST_RECORDS = 1_000
"""Records of a large group whose size is shown; states of any group of which it is asked what nobody had then."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The content of the index; `groups` are the worst first, `total` counts those left off; `known`: up to when."""

    audit: Audit
    gauges: tuple[GroupGauges, ...]
    storms: Storms
    skew: Skews
    groups: tuple[GroupLine, ...]
    total: int
    rebalances: tuple[Counted, ...]
    unit: str
    known: str
    ledger: str

    @property
    def scope(self) -> Scope:
        """Return the period and the groups that were asked for."""
        return self.audit.scope

    def found(self, line: GroupLine) -> tuple[Found, ...]:
        """Return the findings of one group."""
        return tuple(each for each in self.audit.found if (each.cluster_id, each.group_id) == line.key)


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """The content of a group's page.

    `owners.owners` is None for a large group: `hand_overs`, in blocks of `block` partitions, are in its place.
    `change` is the last rebalance of which the log shows a cause. `records` counts those of which there are no `sizes`,
    too. `load` is that of the last members; None if there were none.
    """

    line: GroupLine
    scope: Scope
    found: tuple[Found, ...]
    timeline: Timeline
    owners: GroupOwners
    sizes: tuple[Size, ...]
    records: int
    hand_overs: tuple[Counted, ...]
    block: int
    unit: str
    load: Skew | None
    unowned: UnownedTime
    change: Rebalance | None

    @property
    def last_peopled(self) -> TimelineEntry | None:
        """The last rebalance of the page after which the group had members."""
        return next((each for each in reversed(self.timeline.entries) if each.members), None)


def fleet(reader: Reader, asked: RequestedScope) -> Fleet:
    """Judge and rank everything that was asked for. Raises as `scope.scope`."""
    judged = audit(reader, asked)
    within = judged.scope
    lines = overview(reader, within)
    moments = [moment for line in lines for moment in (line.first, line.last)] or [within.end]
    unit = unit_of(max(moments) - min(moments))
    busiest = [line.key for line in lines[:MOST_ROWS]]
    return Fleet(
        audit=judged,
        gauges=group_gauges(reader, within),
        storms=storms(reader, asked, RANKED),
        skew=skew(reader, asked, RANKED),
        groups=worst_first(lines, judged.found)[:MOST_GROUPS],
        total=len(lines),
        rebalances=rebalances_over_time(reader, within, busiest, unit) if busiest else (),
        unit=unit,
        known=known(reader, within.cluster).text,
        ledger=reader.place,
    )


def worst_first(lines: Sequence[GroupLine], found: Sequence[Found]) -> tuple[GroupLine, ...]:
    """Order groups by most codes of errors, then of warnings, then by most records."""
    codes: Counter[tuple[Severity, tuple[str, str]]] = Counter(
        (each.severity, (each.cluster_id, each.group_id)) for each in found
    )

    def rank(line: GroupLine) -> tuple[int, int, int, str, str]:
        errors, warnings = (codes[severity, line.key] for severity in (Severity.ERROR, Severity.WARNING))
        return -errors, -warnings, -line.records, *line.key

    return tuple(sorted(lines, key=rank))


def group_facts(reader: Reader, within: Scope, line: GroupLine, found: tuple[Found, ...]) -> GroupFacts:
    """Query the ledger for one group."""
    name = exactly(line.group_id)
    of_group = Scope(line.cluster_id, name, within.since, within.until, within.known_up_to)
    owners = group_owners(reader, of_group, MOST_PARTITIONS, MOST_CHANGES)
    states = max(FEWEST_REBALANCES, min(MOST_RECORDS, MOST_ENTRIES // max(owners.partitions, 1)))
    limit = min(MOST_REBALANCES, states)
    of_sizes, records = sizes(reader, of_group, MOST_RECORDS) if owners.owners is None else ((), line.records)
    unit, block = unit_of(line.last - line.first), max(1, -(-owners.partitions // MOST_ROWS))
    last = within.until and within.until - timedelta(microseconds=1)  # a period excludes its end, a timeline has it
    history = timeline(reader, name, line.cluster_id, within.since, last, limit)
    entries = history.entries
    peopled = max((at for at, each in enumerate(entries) if each.members), default=len(entries))
    emptied = next((each.began_at for each in entries[peopled + 1 :]), None)
    ranked = skew(reader, RequestedScope(line.cluster_id, name, within.since, emptied or within.until), 1)
    return GroupFacts(
        line=line,
        scope=within,
        found=found,
        timeline=history,
        owners=owners,
        sizes=of_sizes,
        records=records,
        hand_overs=() if owners.owners is not None else hand_overs(reader, of_group, unit, block),
        block=block,
        unit=unit,
        load=ranked.groups[0] if ranked.groups else None,
        unowned=unowned_time(reader, of_group, states),
        change=_rebalance(reader, last_change(entries)),
    )


def last_change(entries: Sequence[TimelineEntry]) -> TimelineEntry | None:
    """Return the last rebalance of which the log shows a cause, else the last one."""
    caused = (each for each in reversed(entries) if any(cause.kind not in QUIET for cause in each.causes))
    return next(caused, entries[-1] if entries else None)


def _rebalance(reader: Reader, entry: TimelineEntry | None) -> Rebalance | None:
    """Return the rebalance with its members; None where nobody is assigned single partitions by a record of them."""
    if entry is None or entry.generation is None or entry.group_type not in (CLASSIC, CONSUMER):
        return None
    which = Selection(entry.generation, entry.incarnation)
    return with_states(reader, entry.group_id, entry.cluster_id, which)[0]
