"""What part of a ledger a question is about: a period, clusters, groups by name or pattern."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from groupledger.answers.names import NO_RECORD, require_cluster, unknown_group
from groupledger.answers.queries import matching, of_groups, records
from groupledger.answers.reach import known
from groupledger.answers.spoken import numbered
from groupledger.core.faults import Fault
from groupledger.core.moments import EPOCH, iso, placed

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.queries import Query, Reader
    from groupledger.core.moments import Bound

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

    def of_groups(self, prefix: str) -> Query:
        """Require that columns name a cluster and a group that were asked for."""
        return of_groups(prefix, self.cluster, self.group)

    def where(self, prefix: str, column: str = "observed_at") -> Query:
        """Require the same, and that a column of moments lies in the period."""
        condition, values = self.of_groups(prefix)
        if self.since is not None:
            condition, values = f"{condition} AND {prefix}{column} >= :since", values | {"since": self.since}
        if self.until is not None:
            condition, values = f"{condition} AND {prefix}{column} < :until", values | {"until": self.until}
        return condition, values


def scope(reader: Reader, asked: RequestedScope) -> Scope:
    """Place what was asked in the ledger.

    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP; BAD_PERIOD where nothing can lie between the two bounds.
    """
    everywhere = Scope(asked.cluster, asked.group, None, None, None)
    newest = known(reader).newest
    if asked.cluster is not None:
        require_cluster(reader, asked.cluster)
    if asked.group is not None and not any_record(reader, everywhere):
        raise unknown_group(reader, asked.group, asked.cluster)
    since, until = (None if each is None else placed(each, newest or EPOCH) for each in (asked.since, asked.until))
    if since is not None and until is not None and since >= until:
        raise Fault("BAD_PERIOD", f"nothing lies between {iso(since)} and {iso(until)}: expected since < until")
    return Scope(asked.cluster, asked.group, since, until, newest)


def any_record(reader: Reader, within: Scope, which: str = "true") -> bool:
    """Return whether a group snapshot `t` lies in the scope for which this condition holds."""
    condition, values = within.where("t.")
    query = f"SELECT 1 AS found FROM current_group_snapshots t WHERE {condition} AND {which} LIMIT 1"
    return bool(records(reader, query, **values))


def why_empty(reader: Reader, within: Scope, otherwise: str = WITHOUT_MEMBERS, with_members: str = "") -> str:
    """Say why an answer over the scope is empty; `otherwise`: if records lie in it; `with_members`: if some have any.

    Without a record in the period, say how many the ledger has of these groups, and from when to when.
    """
    if with_members and any_record(reader, within, "t.members > 0"):
        return with_members
    if any_record(reader, within):
        return otherwise
    condition, values = within.of_groups("t.")
    bounds = "count(*) AS n, min(t.observed_at) AS first, max(t.observed_at) AS last"
    [row] = records(reader, f"SELECT {bounds} FROM current_group_snapshots t WHERE {condition}", **values)
    if not row["n"]:
        return NO_RECORD
    return f"no record lies in this period: the ledger has {row['n']:,}, from {iso(row['first'])} to {iso(row['last'])}"


def gaps(reader: Reader, within: Scope) -> tuple[str, ...]:
    """Say how much of the groups' history the log did not have; nothing where it had all of it.

    Gaps count whenever they were: changes in one may have lasted into the period.
    """
    condition, values = within.of_groups("t.")
    of_cluster, _ = matching("t.", cluster_id=within.cluster)
    group = "CASE WHEN t.group_id <> '' THEN concat(t.cluster_id, '/', t.group_id) END"
    [row] = records(
        reader,
        f"SELECT count(*) AS n, count(DISTINCT {group}) AS groups FROM ({GAPS}) t "
        f"WHERE ({condition}) OR ({of_cluster} AND t.group_id = '')",
        **values,
    )
    if not row["n"]:
        return ()
    whose = f" of {numbered(row['groups'], 'group')}" if row["groups"] else ""
    return (
        f"{numbered(row['n'], 'gap')} in the history{whose}: what lies in them is not counted; see show --coverage",
    )
