"""What part of a ledger a question is about, refused if the ledger never heard of it; and up to when it is known."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar

from groupledger.answers.queries import Reader, alike, is_pattern, literal, matching, of_groups, one_of, records
from groupledger.answers.spoken import numbered
from groupledger.core.faults import Fault, resembling
from groupledger.core.log.lines import OFFSET_COMMIT_LEFT_OUT
from groupledger.core.log.read_plan import KNOWN, KnownUpTo, known_in, together
from groupledger.core.moments import EPOCH, Bound, iso, placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


T = TypeVar("T")
MOST_NAMED, EXAMPLES = 10, 3
NO_RECORD = "the ledger holds no record of a group yet: run `groupledger ingest` first"
_INGEST = "/ingest"
"""What the guard of an ingest from a cluster ends with."""


def require_names(reader: Reader, cluster: str | None, group: str | None) -> None:
    """Raise a fault if the ledger does not know one of them; asked if an answer is empty, to find typing errors.

    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP.
    """
    require_cluster(reader, cluster)
    if group is not None and not any_record(reader, Scope(cluster, group, None, None, None)):
        raise unknown_group(reader, group, cluster)


def require_cluster(reader: Reader, cluster: str | None) -> None:
    """Raise Fault("UNKNOWN_CLUSTER") for a cluster, if one is named, nothing was ever ingested of."""
    if cluster is None:
        return
    read = records(reader, "SELECT guards FROM current_runs")
    known = {guard.removesuffix(_INGEST) for row in read for guard in row["guards"] if guard.endswith(_INGEST)}
    known |= {row["cluster_id"] for row in records(reader, "SELECT DISTINCT cluster_id FROM current_group_snapshots")}
    if cluster not in known:
        hint = _known(cluster, sorted(known), "cluster")
        raise Fault("UNKNOWN_CLUSTER", f"no cluster {cluster!r} in this ledger; {hint}")


def require_scenario(reader: Reader, scenario: str) -> None:
    """Raise Fault("UNKNOWN_SCENARIO") for a name no results stand under."""
    rows = records(reader, "SELECT DISTINCT scenario FROM current_rebalances ORDER BY scenario")
    known = [row["scenario"] for row in rows]
    if scenario not in known:
        hint = _known(scenario, known, "scenario", "assign")
        raise Fault("UNKNOWN_SCENARIO", f"no scenario {scenario!r} in this ledger; {hint}")


def unknown_group(reader: Reader, group: str, cluster: str | None) -> Fault:
    """Name the groups the ledger knows that look alike; an unknown cluster is reported instead, if it is one.

    Of a pattern that matches groups, where the question is of one group, it names those. Of a group whose input was
    rejected, so that it has no state, it says so: GROUP_QUARANTINED; of one that only committed offsets:
    GROUP_WITHOUT_MEMBERS.
    """
    require_cluster(reader, cluster)
    query = (
        f"SELECT group_id, {alike('group_id', group)} AS matches FROM current_group_snapshots "
        f"WHERE {matching('', cluster_id=cluster)} GROUP BY group_id ORDER BY group_id"
    )
    found = records(reader, query)
    matches, known = [row["group_id"] for row in found if row["matches"]], [row["group_id"] for row in found]
    if is_pattern(group) and matches:
        others = f" and {len(matches) - MOST_NAMED:,} more" if len(matches) > MOST_NAMED else ""
        text = f"the pattern {group!r} matches {', '.join(matches[:MOST_NAMED])}{others}: name one"
        return Fault("UNKNOWN_GROUP", f"this is answered for one group; {text}")
    without_state = _rejected(reader, group, cluster) or _of_commits(reader, group, cluster)
    if without_state is not None:
        return without_state
    hint = ". Groups that only commit offsets are not kept here (a source's `offset_commits: true` keeps them)"
    hint = hint if commits_left_out(reader, cluster) else ""
    return Fault("UNKNOWN_GROUP", f"no group {group!r} in {_where(cluster)}; {_known(group, known, 'group')}{hint}")


def _rejected(reader: Reader, group: str, cluster: str | None) -> Fault | None:
    """Return the fault of a group of which the ledger has rejected input alone; None: it has none."""
    condition = of_groups("q.", cluster, group)
    query = (
        "SELECT q.cluster_id, q.group_id, q.code, q.message, q.log_partition, q.offset FROM current_quarantine q "
        f"WHERE {condition} ORDER BY q.cluster_id, q.log_partition, q.offset, q.code, q.message"
    )
    for first in (found := records(reader, query))[:1]:
        is_log = first["log_partition"] is not None
        place = f"partition {first['log_partition']}, offset {first['offset']}, " if is_log else ""
        others = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
        text = f"group {first['group_id']!r} has no state in this ledger: its input is in quarantine"
        all_of_it = f"`groupledger show --quarantine --group {group}` lists it"
        return Fault("GROUP_QUARANTINED", f"{text} ({place}{first['code']}: {first['message']}{others}); {all_of_it}")
    return None


def _of_commits(reader: Reader, group: str, cluster: str | None) -> Fault | None:
    """Return the fault of a group whose records are offset commits alone; None: they are not, or there is none."""
    condition = of_groups("t.", cluster, group)
    query = (
        "SELECT t.group_id, count(*) AS n, count(CASE WHEN t.key < X'0002' THEN 1 END) AS commits, "  # by record type
        "min(t.timestamp) AS begins, max(t.timestamp) AS ends "
        f"FROM current_log_records t WHERE {condition} GROUP BY t.group_id ORDER BY t.group_id"
    )
    for row in records(reader, query):
        if row["commits"] == row["n"]:
            text = (
                f"group {row['group_id']!r} has no members in this ledger: it only committed offsets ({row['n']:,} "
                f"records from {iso(row['begins'])} to {iso(row['ends'])}), as consumers do that assign partitions "
                "themselves, or a group whose own records are not there"
            )
            return Fault("GROUP_WITHOUT_MEMBERS", text)
    return None


def commits_left_out(reader: Reader, cluster: str | None = None) -> int:
    """Return how many offset commits of a cluster, or of all, were read and not kept."""
    counted = f"{cluster or ''}/unused.{OFFSET_COMMIT_LEFT_OUT}"
    runs = records(reader, "SELECT t.counts_in FROM current_runs t WHERE t.kind = 'ingest'")
    counts = [each for row in runs for each in (row["counts_in"] or {}).items()]
    return sum(number for name, number in counts if (name == counted if cluster else name.endswith(counted)))


def require_topics(reader: Reader, topics: Iterable[str], cluster: str | None) -> None:
    """Raise Fault("UNKNOWN_TOPIC") for a topic that no listing names and no group ever had."""
    for topic in topics:
        condition = matching("t.", topic=topic, cluster_id=cluster)
        queries = (
            f"SELECT 1 AS found FROM {view} t WHERE {condition} LIMIT 1"
            for view in ("current_topic_snapshots", "current_ownership_changes")
        )
        if not any(records(reader, query) for query in queries):
            raise unknown_topic(reader, topic, cluster)


def unknown_topic(reader: Reader, topic: str, cluster: str | None) -> Fault:
    """Name the topics the ledger knows that look alike; an unknown cluster is reported instead, if it is one."""
    require_cluster(reader, cluster)
    condition = matching("", cluster_id=cluster)
    known: set[str] = set()
    for view in ("current_topic_snapshots", "current_ownership_changes"):
        query = f"SELECT DISTINCT topic FROM {view} WHERE topic IS NOT NULL AND {condition}"
        known |= {row["topic"] for row in records(reader, query)}
    return Fault("UNKNOWN_TOPIC", f"no topic {topic!r} in {_where(cluster)}; {_known(topic, sorted(known), 'topic')}")


def _where(cluster: str | None) -> str:
    return "this ledger" if cluster is None else f"cluster {cluster!r}"


def _known(name: str, known: list[str], kind: str, job: str = "ingest") -> str:
    """Name what is like this one and say how many more there are; else name all, or of many the first."""
    if not known:
        return f"it holds no {kind}: run `groupledger {job}` first"
    near = resembling(name, known, EXAMPLES)
    count = f"{len(known):,} known"
    listed = ": `groupledger show` lists them" if kind in ("cluster", "group") else ""
    if near and len(near) < len(known):
        return f"did you mean {', '.join(near)}? ({count}{listed})"
    if len(known) <= MOST_NAMED:
        return f"known: {', '.join(known)}"
    return f"{count}, such as {', '.join(known[:EXAMPLES])}{listed}"


# From when and up to when a ledger knows its clusters: the one definition of "now" for every answer.
#
# "Now" is up to when the log was read, not the newest state of a group: a group that changes nothing writes no record.

_WRITTEN = "FROM group_snapshots t"
_COMMITTED = f"{_WRITTEN} JOIN current_runs r ON r.attempt_id = t.attempt_id"
"""Of committed runs, superseded ones too, which were read as well."""
_KEEPING = f"t.kind IN ('ingest', 'nothing-new') AND t.inputs LIKE '%\"{KNOWN}\":%'"
_LAST_RUNS = 40
"""Runs that are looked at: each keeps what is known of all clusters, but ingests may overtake one another."""


class Basis(StrEnum):
    """What a moment up to which a cluster is known rests on."""

    LOG_END = "log-end"
    NEWEST_RECORD = "newest-record"
    PART_READ = "part-read"
    GROUP_RECORDS = "group-records"


_ON = {
    Basis.LOG_END: "",
    Basis.NEWEST_RECORD: ", the newest record read",
    Basis.PART_READ: ", where an ingest stopped before the end of the log (max_records)",
    Basis.GROUP_RECORDS: ", the newest group record (older ledger)",
}


@dataclass(frozen=True, slots=True)
class Reach:
    """Up to when a cluster is known, and by what.

    `log-end`: an ingest that began then read its log to the end. `newest-record`: sources that cannot say that they
    reached the end had no newer one. `part-read`: of the log partitions that were not read to the end, the newest
    record of the one that was read least far. `group-records`: of ingests of earlier releases the newest record of a
    group is all that is left. `newest_record`: the time of the newest one of any kind, where that was kept.
    """

    cluster_id: str
    up_to: datetime
    newest_record: datetime | None
    basis: Basis

    @property
    def text(self) -> str:
        """The moment in words."""
        return f"{iso(self.up_to)}{_ON[self.basis]}"


@dataclass(frozen=True, slots=True)
class Known:
    """Up to when clusters are known. `kept`: as their ingests kept it; else as their groups' records have it."""

    clusters: Mapping[str, KnownUpTo]
    kept: bool

    @property
    def newest(self) -> datetime | None:
        """The newest moment of any of them; None where nothing is known of any."""
        return max((each.up_to for each in self.reaches), default=None)

    @property
    def reaches(self) -> tuple[Reach, ...]:
        """The same by cluster, in order of their names."""
        return tuple(
            Reach(cluster, each.up_to, each.newest, self._basis(each))
            for cluster, each in sorted(self.clusters.items())
            if each.up_to is not None
        )

    def of(self, cluster: str, last: datetime) -> datetime:
        """Return up to when a group of the cluster is known, whose last record is of that time."""
        return max(filter(None, (last, self.clusters.get(cluster, KnownUpTo()).up_to)))

    @property
    def text(self) -> str:
        """Say it for a person, in the one wording that every answer uses."""
        found = self.reaches
        if not found:
            return NO_RECORD
        if len({each.text for each in found}) == 1:
            return f"known up to {found[0].text}"
        if len({each.basis for each in found}) == 1:
            moments = ", ".join(f"{iso(each.up_to)} ({each.cluster_id})" for each in found)
            return f"known up to {moments}{_ON[found[0].basis]}"
        return "known up to " + "; ".join(f"{iso(each.up_to)} ({each.cluster_id}){_ON[each.basis]}" for each in found)

    def _basis(self, of: KnownUpTo) -> Basis:
        if not self.kept:
            return Basis.GROUP_RECORDS
        if of.is_behind:
            return Basis.PART_READ
        return Basis.NEWEST_RECORD if of.end is None else Basis.LOG_END


def known(reader: Reader, cluster: str | None = None, group: str | None = None) -> Known:
    """Return up to when the cluster, or each of the ledger, is known; nothing if no record of a group was committed.

    With a `group`, or a pattern of some, those of the clusters that have one; where none has, of all.
    """
    if group is not None and cluster is None:
        condition = of_groups("t.", None, group)
        query = f"SELECT DISTINCT t.cluster_id FROM current_group_snapshots t WHERE {condition}"
        found, having = known(reader), {row["cluster_id"] for row in records(reader, query)}
        return Known({name: each for name, each in found.clusters.items() if not having or name in having}, found.kept)
    condition = matching("t.", cluster_id=cluster)
    if not records(reader, f"SELECT 1 AS found {_COMMITTED} WHERE {condition} LIMIT 1"):
        return Known({}, kept=True)
    kept = {name: each for name, each in _kept(reader).items() if each.up_to is not None}
    if cluster in kept or (cluster is None and kept):
        return Known({name: each for name, each in kept.items() if cluster in (None, name)}, kept=True)
    ends = recorded_spans(reader, [] if cluster is None else [cluster])
    return Known({name: KnownUpTo(last) for name, (_, last) in ends.items()}, kept=False)


def known_for(reader: Reader, answer: object, cluster: str | None) -> Known:
    """Return up to when the cluster of an answer is known, if it is about one, or else the one that was asked for.

    An answer that names none is about the cluster of the groups that it was asked about.
    """
    named = set(_clusters(answer))
    group = getattr(getattr(answer, "scope", answer), "group", None)
    if not named and isinstance(group, str):
        return known(reader, cluster, group)
    return known(reader, named.pop() if len(named) == 1 else cluster)


def _clusters(answer: object) -> Iterator[str]:
    """Return the clusters that an answer names: itself, in its entries, or in a column of its listings."""
    parts = next((getattr(answer, name) for name in ("holdings", "entries", "spans") if hasattr(answer, name)), ())
    for each in (*parts, getattr(answer, "rebalance", answer)):
        if hasattr(each, "cluster_id"):
            yield each.cluster_id
    for listing in answer if isinstance(answer, list | tuple) else ():
        if "cluster_id" in listing.columns:
            yield from (row[listing.columns.index("cluster_id")] for row in listing.rows)


def _kept(reader: Reader) -> dict[str, KnownUpTo]:
    """Read what the last runs keep of each cluster."""
    [row] = records(reader, f"SELECT max(t.sequence) AS newest FROM current_runs t WHERE {_KEEPING}")
    if row["newest"] is None:
        return {}
    last = f"t.sequence > {row['newest'] - _LAST_RUNS} AND {_KEEPING}"
    rows = records(reader, f"SELECT t.inputs FROM current_runs t WHERE {last}")
    return together(known_in(json.loads(each["inputs"])) for each in rows)


def reaches(reader: Reader, clusters: list[str]) -> dict[str, tuple[datetime, datetime]]:
    """Return for these clusters, or each, the time of a group's first record, and up to when it is known; by name."""
    up_to = {each.cluster_id: each.up_to for each in known(reader).reaches}
    return {name: (begins, up_to.get(name, last)) for name, (begins, last) in recorded_spans(reader, clusters).items()}


def recorded_spans(reader: Reader, clusters: list[str]) -> dict[str, tuple[datetime, datetime]]:
    """Return for these clusters, or each, the times of the first and the last record of a group's state; by name.

    Looked for in all that was written: to ask of each row whether its run was committed takes longer than all the rest.
    That is asked of the outermost ones alone, and of the others where it is not so.
    """
    among = one_of("t.cluster_id", clusters) if clusters else "true"
    written = _reaches(reader, f"{_WRITTEN} WHERE {among}")
    if not written:
        return {}
    begins, ends = zip(*written.values(), strict=True)
    outermost = f"(t.observed_at <= {literal(max(begins))} OR t.observed_at >= {literal(min(ends))})"
    if _reaches(reader, f"{_COMMITTED} WHERE {among} AND {outermost}") == written:
        return written
    return _reaches(reader, f"{_COMMITTED} WHERE {among}")


def _reaches(reader: Reader, rows: str) -> dict[str, tuple[datetime, datetime]]:
    query = (
        f"SELECT t.cluster_id, min(t.observed_at) AS begins, max(t.observed_at) AS ends {rows} "
        "GROUP BY t.cluster_id ORDER BY t.cluster_id"
    )
    return {row["cluster_id"]: (row["begins"], row["ends"]) for row in records(reader, query)}


def not_known_after(cluster: str, ends: datetime) -> str:
    """Say that a question is about a time of which the ledger knows nothing yet."""
    return f"cluster {cluster} is known up to {iso(ends)}: what was later is not known"


def newest(reader: Reader, cluster: str | None = None, group: str | None = None) -> datetime:
    """Return up to when a cluster, or a group's, or any, is known. Raises Fault: UNKNOWN_CLUSTER, EMPTY_LEDGER."""
    found = known(reader, cluster, group).newest
    if found is not None:
        return found
    require_cluster(reader, cluster)
    raise Fault("EMPTY_LEDGER", NO_RECORD)


def moments(
    reader: Reader, cluster: str | None, asked: Iterable[Bound | None], group: str | None = None
) -> list[datetime | None]:
    """Return moments as they are; a length of time is that long before "now" of the cluster, or the group's, or all."""
    bounds = list(asked)
    if not any(isinstance(each, timedelta) for each in bounds):
        return [each for each in bounds if not isinstance(each, timedelta)]
    latest = newest(reader, cluster, group)
    return [None if each is None else placed(each, latest) for each in bounds]


WITHOUT_MEMBERS = "no record of this period is of a group with members"
GAPS = "SELECT t.* FROM current_coverage t WHERE t.kind <> 'target-epochs-skipped' OR t.to_value IS NULL"
"""What the log lacks. Group epochs without a target are no gap where a later epoch got one."""


@dataclass(frozen=True, slots=True)
class RequestedScope:
    """What a person asked for. None asks for nothing; in a group's name `*` stands for any text, `?` for a letter."""

    cluster: str | None = None
    group: str | None = None
    since: Bound | None = None
    until: Bound | None = None


@dataclass(frozen=True, slots=True)
class Ranking(Generic[T]):
    """Groups in an order, a row of this `kind` for each; `total` counts those left off, `notes` say what limits it."""

    kind: type[T]
    scope: Scope
    groups: tuple[T, ...]
    total: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """What was asked for, with moments in place of lengths of time; `known_up_to` is "now" for the ledger.

    A period has its first moment and not its last one; without a last one it reaches to the end of what is known.
    """

    cluster: str | None
    group: str | None
    since: datetime | None
    until: datetime | None
    known_up_to: datetime | None

    @property
    def from_the_beginning(self) -> Scope:
        """The same, with all that lies before the period: there states began that last into it."""
        return replace(self, since=None)

    @property
    def end(self) -> datetime:
        """Where the period ends: states that are still so there are measured up to it."""
        known_up_to = self.known_up_to or EPOCH
        return known_up_to if self.until is None else min(self.until, known_up_to)

    def of_groups(self, prefix: str) -> str:
        """Require that columns name a cluster and a group that were asked for."""
        return of_groups(prefix, self.cluster, self.group)

    def where(self, prefix: str, column: str = "observed_at") -> str:
        """Require the same, and that a column of moments lies in the period."""
        condition = self.of_groups(prefix)
        if self.since is not None:
            condition += f" AND {prefix}{column} >= {literal(self.since)}"
        if self.until is not None:
            condition += f" AND {prefix}{column} < {literal(self.until)}"
        return condition


def scope(reader: Reader, asked: RequestedScope) -> Scope:
    """Place what was asked in the ledger.

    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP; BAD_PERIOD where nothing can lie between the two bounds.
    """
    everywhere = Scope(asked.cluster, asked.group, None, None, None)
    require_cluster(reader, asked.cluster)
    newest = known(reader, asked.cluster, asked.group).newest
    if asked.group is not None and not any_record(reader, everywhere):
        raise unknown_group(reader, asked.group, asked.cluster)
    since, until = (None if each is None else placed(each, newest or EPOCH) for each in (asked.since, asked.until))
    if since is not None and until is not None and since >= until:
        raise Fault("BAD_PERIOD", f"nothing lies between {iso(since)} and {iso(until)}: expected since < until")
    return Scope(asked.cluster, asked.group, since, until, newest)


def any_record(reader: Reader, within: Scope, which: str = "true") -> bool:
    """Return whether a group snapshot `t` lies in the scope for which this condition holds."""
    condition = f"{within.where('t.')} AND {which}"
    return bool(records(reader, f"SELECT 1 AS found FROM current_group_snapshots t WHERE {condition} LIMIT 1"))


def why_empty(reader: Reader, within: Scope, otherwise: str = WITHOUT_MEMBERS, with_members: str = "") -> str:
    """Say why an answer over the scope is empty; `otherwise`: if records lie in it; `with_members`: if some have any.

    Without a record in the period, say how many the ledger has of these groups, and from when to when.
    """
    if with_members and any_record(reader, within, "t.members > 0"):
        return with_members
    if any_record(reader, within):
        return otherwise
    condition = within.of_groups("t.")
    bounds = "count(*) AS n, min(t.observed_at) AS first, max(t.observed_at) AS last"
    [row] = records(reader, f"SELECT {bounds} FROM current_group_snapshots t WHERE {condition}")
    if not row["n"]:
        return NO_RECORD
    return f"no record lies in this period: the ledger has {row['n']:,}, from {iso(row['first'])} to {iso(row['last'])}"


def limits(reader: Reader, within: Scope, found: object, **why: str) -> tuple[str, ...]:
    """Say why an answer is empty if nothing was `found`, and, of a period with records, what the log did not have."""
    reasons = () if found else (why_empty(reader, within, **why),)
    return reasons + (gaps(reader, within) if found or any_record(reader, within) else ())


def gaps(reader: Reader, within: Scope) -> tuple[str, ...]:
    """Say how much of the groups' history the log did not have; nothing where it had all of it.

    Gaps count whenever they were: changes in one may have lasted into the period.
    """
    condition = within.of_groups("t.")
    of_cluster = matching("t.", cluster_id=within.cluster)
    group = "CASE WHEN t.group_id <> '' THEN concat(t.cluster_id, '/', t.group_id) END"
    [row] = records(
        reader,
        f"SELECT count(*) AS n, count(DISTINCT {group}) AS groups FROM ({GAPS}) t "
        f"WHERE ({condition}) OR ({of_cluster} AND t.group_id = '')",
    )
    if not row["n"]:
        return ()
    whose = f" of {numbered(row['groups'], 'group')}" if row["groups"] else ""
    return (
        f"{numbered(row['n'], 'gap')} in the history{whose}: what lies in them is not counted; see show --coverage",
    )
