"""Which groups an `assign` of the last snapshots has to compute: those that newer facts touch.

    stands = standing(of_scenario, settings, code, seen)    # the run whose results stand for all other groups
    given = touched_facts(past, stands.facts_as_of, judged=False)

All that the result of a group's last snapshot follows from is said of that group (its snapshots, their members, the
records of a KIP-848 group), of topics, or in the configuration. What an ingest says of a group stands under its
attempt: the group's snapshots, the mark in its head that it was folded again, its records. Where topics changed, any
group may have another result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from groupledger.pipeline.assign_input import Facts, coordinated, last_of_groups
from groupledger.pipeline.past import GROUP, Past
from groupledger.sinks import runs
from groupledger.sinks.current import refolded, took_snapshots
from groupledger.tables import (
    GROUP_HEADS,
    GROUP_SNAPSHOTS,
    LOG_RECORDS,
    MEMBER_SNAPSHOTS,
    QUARANTINE,
    TOPIC_SNAPSHOTS,
)
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, Row

    from groupledger.core.read_ranges import LogPlace, Range

MOST_SOUGHT = 10_000
"""Touched groups up to which the driver looks for the files that have their last states; beyond, all are read."""

_NAMES = f"{c.CLUSTER_ID} string, {c.GROUP_ID} string"
_IDS = f"{c.SNAPSHOT_ID} string"
_STATE = [*GROUP, c.SNAPSHOT_ID, c.PREVIOUS_SNAPSHOT_ID, c.ATTEMPT_ID]


class TouchedFacts(NamedTuple):
    """What is known of the touched groups. `groups`: how many there are; None: more than MOST_SOUGHT."""

    facts: Facts
    groups: int | None


def standing(of_scenario: Sequence[runs.Commit], settings: str, code: str, seen: runs.LedgerView) -> runs.Commit | None:
    """The run whose results stand wherever no newer fact touches them; None: every group is to be computed.

    It is the last one `of_scenario`, if that computed by the same settings and code (their digests), and if there are
    no newer facts, or since then no topic changed, nothing was redacted, and no rejection of a group was removed by
    retention.
    """
    last = of_scenario[-1] if of_scenario else None
    if last is None or last.facts_as_of is None or (last.config_digest, last.code_digest) != (settings, code):
        return None
    newer = list(_ingests(seen.commits, last.facts_as_of))
    rejecting = {commit.attempt_id for commit in of_scenario if commit.counts_out.get(QUARANTINE.name)}
    changed = any(commit.counts_out.get(TOPIC_SNAPSHOTS.name) for commit in newer) or any(
        runs.REDACTION in commit.guards or rejecting.intersection(commit.removed.get(QUARANTINE.name, ()))
        for commit in seen.commits
        if commit.sequence > last.sequence
    )
    return None if newer and changed else last


def touched_facts(past: Past, since: int, *, judged: bool) -> TouchedFacts:
    """The facts that the last results of touched groups follow from: at least these, and of no other group.

    `since` is the last commit whose facts the standing results know. `judged`: the records of KIP-848 groups are facts,
    too.
    """
    new = list(_ingests(past.commits, since))
    names = _names(past, new, judged=judged)
    if took_snapshots(past.commits):  # in which order snapshots of users' own tables come is known of all of them only
        return TouchedFacts(_of(past, names, judged=judged), None)
    snapshots = past.current(GROUP_SNAPSHOTS, [commit.attempt_id for commit in new])
    last = names.join(last_of_groups(snapshots).select(*_STATE), GROUP, "left")
    states = last.limit(MOST_SOUGHT + 1).collect()
    if len(states) > MOST_SOUGHT:
        return TouchedFacts(_of(past, names, judged=judged), None)
    return TouchedFacts(_sought(past, states, judged=judged), len(states))


def _ingests(commits: Iterable[runs.Commit], since: int) -> Iterator[runs.Commit]:
    return (commit for commit in commits if commit.kind == runs.INGEST and commit.sequence > since)


def _names(past: Past, new: Sequence[runs.Commit], *, judged: bool) -> DataFrame:
    """The groups of which these commits say something that a result may follow from."""
    attempts = [commit.attempt_id for commit in new]
    named = [past.rows(GROUP_SNAPSHOTS, *attempts)]
    again = [commit.attempt_id for commit in new if refolded(commit)]
    if again:  # the last snapshot of such a group may be gone, and an older one the last
        named.append(past.rows(GROUP_HEADS, *again).where(c.REFOLDED))
    if judged:
        named.append(coordinated(past.rows(LOG_RECORDS, *attempts)).where(F.col(c.GROUP_ID).isNotNull()))
    return reduce(lambda one, other: one.unionAll(other), (rows.select(*GROUP) for rows in named)).distinct()


def _of(past: Past, names: DataFrame, *, judged: bool) -> Facts:
    """All facts of these groups."""
    tables = (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, *((LOG_RECORDS,) if judged else ()))
    return Facts(*(past.current(table).join(names, GROUP, "left_semi") for table in tables))


def _sought(past: Past, states: Sequence[Row], *, judged: bool) -> Facts:
    """The last snapshot of each group, the members of the attempts that wrote it or the one before, and records.

    `states`: a row of _STATE for each group; without a snapshot where the new attempts have none of it.
    """
    names = _local(past, [row[:2] for row in states], _NAMES)
    found = [row for row in states if row[c.SNAPSHOT_ID] is not None]
    if len(found) < len(states):
        others = _local(past, [row[:2] for row in states if row[c.SNAPSHOT_ID] is None], _NAMES)
        older = past.current(GROUP_SNAPSHOTS).join(others, GROUP, "left_semi")
        found += last_of_groups(older).select(*_STATE).collect()
    attempts = {row[c.ATTEMPT_ID] for row in found}
    before = {row[c.PREVIOUS_SNAPSHOT_ID]: row[c.CLUSTER_ID] for row in found if row[c.PREVIOUS_SNAPSHOT_ID]}
    chosen = _local(past, [(row[c.SNAPSHOT_ID],) for row in found], _IDS)
    return Facts(
        past.current(GROUP_SNAPSHOTS, attempts).join(chosen, c.SNAPSHOT_ID, "left_semi"),
        past.current(MEMBER_SNAPSHOTS, attempts | _writers(past, before)),
        past.current(LOG_RECORDS).join(names, GROUP, "left_semi") if judged else None,
    )


def _writers(past: Past, snapshots: dict[str, str]) -> set[str]:
    """The attempts that wrote these snapshots; each with its cluster.

    A snapshot stands at the offset of a record, so most are of the attempt that read it, or of one that folded groups
    again. If another wrote it (the epoch of a KIP-848 group that the end of a read cut), all are looked through.
    """
    if not snapshots:
        return set()
    wanted = _local(past, [(snapshot,) for snapshot in snapshots], _IDS)

    def writers(attempts: set[str] | None) -> dict[str, str]:
        rows = past.current(GROUP_SNAPSHOTS, attempts).join(wanted, c.SNAPSHOT_ID, "left_semi")
        return dict(map(tuple, rows.select(c.SNAPSHOT_ID, c.ATTEMPT_ID).collect()))

    readers, refolds = _readers(past, snapshots), {each.attempt_id for each in past.commits if refolded(each)}
    found = {} if readers is None else writers(readers | refolds)
    if len(found) < len(snapshots):
        found = writers(None)
    return set(found.values())


def _readers(past: Past, snapshots: dict[str, str]) -> set[str] | None:
    """The attempts that read the records at which these snapshots stand; None: one does not say what it read."""
    reads = past.reads()
    if reads is None:
        return None
    offsets: defaultdict[LogPlace, list[int]] = defaultdict(list)
    for snapshot, cluster_id in snapshots.items():
        _, partition, offset = snapshot.rsplit("/", 2)
        offsets[cluster_id, int(partition)].append(int(offset))
    for found in offsets.values():
        found.sort()

    def holds_one(place: LogPlace, extent: Range) -> bool:
        at = bisect_left(offsets[place], extent[0])
        return at < len(offsets[place]) and offsets[place][at] <= extent[1]

    return {attempt for attempt, ranges in reads.items() if any(holds_one(*each) for each in ranges.items())}


def _local(past: Past, rows: list[tuple[str, ...]], schema: str) -> DataFrame:
    """A few rows of the driver's, for a join."""
    return F.broadcast(past.spark.createDataFrame(rows, schema))
