"""Answer a notebook's questions about a ledger and its groups.

ledger = groupledger.open("build/demo-ledger")
ledger.who("orders-4", at="2026-11-21T12:09Z")
ledger.group("payments").explain(7)
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from groupledger.answers import at_a_glance
from groupledger.answers.reader import LedgerReader, folder_of, is_object_store, store_settings
from groupledger.answers.scope import RequestedScope, moments, newest
from groupledger.core.faults import Fault
from groupledger.core.log.topic_partitions import topic_partition
from groupledger.core.moments import Bound, Point, bound, from_micros, micros, point
from groupledger.core.secrets import without_secrets
from groupledger.notebook import replies
from groupledger.notebook.replies import ListingReply, Reply, TableReply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from groupledger.answers.audit import Audit
    from groupledger.answers.changed_group import WhatIf
    from groupledger.answers.explanation import Explanation, GroupDifference, Rebalance, ScenarioDifference
    from groupledger.answers.joins import Joins, StaticMembers
    from groupledger.answers.migration import Migrations
    from groupledger.answers.owners import OwnershipAt, PartitionTimeline
    from groupledger.answers.queries import Reader, Value
    from groupledger.answers.readiness import ReadinessReport
    from groupledger.answers.recorded_history import GroupHandOvers
    from groupledger.answers.replayed import Replayed
    from groupledger.answers.skew import RackShares, Skews
    from groupledger.answers.storms import Stickinesses, Storms
    from groupledger.answers.timeline import Timeline
    from groupledger.answers.unowned import UnownedPartitions
    from groupledger.core.protocol.rolling_migration import MigrationRehearsal
    from groupledger.pipeline.frames import LedgerFrames


ROWS_SHOWN = 50
T = TypeVar("T")


@replies.in_python()
def open_ledger(
    location: str | os.PathLike[str] | None = None,
    *,
    catalog: str | None = None,
    spark: SparkSession | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Ledger:
    """Open a ledger: in a folder or on an object store without Spark; in a catalog or elsewhere with a session.

    `storage_options` are delta-rs's for S3, Azure or Google; without them, a session's `fs.s3a`, `fs.azure` or `fs.gs`
    settings count, then the environment. Without Spark, all answers are of the moment at which it is opened. Raises
    Fault: USAGE, LEDGER_MISSING, LEDGER_UNREADABLE, LEDGER_OLDER, LEDGER_NEWER, SPARK_NEEDED.
    """
    if (location is None) == (catalog is None):
        raise Fault("USAGE", "a ledger is at a location or in a catalog: expected one of the two")
    place = None if location is None else os.fspath(location)
    reader = None if place is None else _reader(place, spark, storage_options or {})
    if spark is None:
        if reader is None:
            where = f"in the catalog {catalog}" if place is None else f"at {place}"
            raise Fault("SPARK_NEEDED", f"a ledger {where} is read by Spark: give the session, spark=...")
        return Ledger(reader, None, place or "")
    from groupledger.pipeline.frames import LedgerFrames

    frames = LedgerFrames(spark, place, catalog=catalog)
    return Ledger(frames.reader if reader is None else reader, frames, place or f"catalog {catalog}")


def _reader(place: str, spark: SparkSession | None, given: Mapping[str, str]) -> LedgerReader | None:
    """Open a ledger with delta-rs; None where only Spark can, or where a session can and delta-rs fails to log in."""
    folder = folder_of(place)
    if folder is not None:
        return LedgerReader(folder)
    if not is_object_store(place):
        return None
    conf = {} if spark is None else {str(name): str(value) for name, value in dict(spark.conf.getAll).items()}
    settings = store_settings(place, conf, given)
    if settings.lacks is not None:
        return None
    try:
        return LedgerReader(place, settings.options)
    except Fault as fault:
        if fault.code != "LEDGER_UNREADABLE" or spark is None:
            raise
        return None


def ranking(report: str, about: str) -> Any:
    """Make a method of a ledger: the report of this name of a period, or of some groups."""

    def ask(
        self: Ledger,
        since: When | None = None,
        until: When | None = None,
        group: str | None = None,
        cluster: str | None = None,
        limit: int = 10,
    ) -> replies.PlottedReply[Any]:
        return self._ranked(report, asked_of(since, until, group, cluster), limit)

    ask.__doc__ = about
    return ask


class AskRanking(Protocol[T]):
    """A method that `ranking` makes."""

    def __call__(
        self,
        since: When | None = None,
        until: When | None = None,
        group: str | None = None,
        cluster: str | None = None,
        limit: int = 10,
    ) -> replies.PlottedReply[T]:
        """Answer about a period, or about some groups."""


@replies.questions("sql")
class Ledger:
    """An open ledger. Each method is a question; `reader` and `frames` give access to the tables."""

    def __init__(self, reader: Reader, frames: LedgerFrames | None, place: str = "") -> None:
        self.reader, self._frames, self._place = reader, frames, without_secrets(place)

    @property
    def frames(self) -> LedgerFrames:
        """Return tables and groups as Spark DataFrames. Raises Fault("SPARK_NEEDED") if opened without Spark."""
        if self._frames is None:
            raise Fault("SPARK_NEEDED", "a replay, or a DataFrame, needs a session: gl.open(location, spark=spark)")
        return self._frames

    def __repr__(self) -> str:
        """Say where the ledger is and what can be asked."""
        frames = "" if self._frames is None else ", with Spark"
        return f"Ledger of consumer groups at {self._place}{frames}: .groups(), .who(topic), .group(id); help(ledger)"

    def group(self, group_id: str, cluster: str | None = None) -> LedgerGroup:
        """Return a group by its id. The cluster is required if several clusters have such a group.

        Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP, AMBIGUOUS_GROUP.
        """
        from groupledger.answers.states import cluster_of

        return LedgerGroup(self, group_id, cluster_of(self.reader, group_id, cluster))

    def show(self, cluster: str | None = None, limit: int = 50) -> ListingReply:
        """Show the ledger at a glance: clusters, groups, runs. Its DataFrame has the groups."""
        found = at_a_glance.clusters(self.reader, limit), at_a_glance.groups(self.reader, limit, cluster)
        return replies.listing_reply(*found, at_a_glance.runs(self.reader, limit), main=1)

    def groups(self, cluster: str | None = None, limit: int = 1_000) -> ListingReply:
        """List the groups, one line each: last state, number of snapshots, number of gaps."""
        return replies.listing_reply(at_a_glance.groups(self.reader, limit, cluster))

    def findings(self, group: str | None = None, cluster: str | None = None, limit: int = 50) -> ListingReply:
        """List what `ingest` and `assign` found, errors first; `audit` judges, and groups by code."""
        return replies.listing_reply(at_a_glance.findings(self.reader, limit, cluster, group))

    def coverage(self, group: str | None = None, cluster: str | None = None, limit: int = 50) -> ListingReply:
        """List the gaps of the history."""
        return replies.listing_reply(at_a_glance.coverage(self.reader, limit, cluster, group))

    def quarantine(self, group: str | None = None, cluster: str | None = None, limit: int = 50) -> ListingReply:
        """List rejected input, with the reason."""
        return replies.listing_reply(at_a_glance.quarantine(self.reader, limit, cluster, group))

    def sql(self, query: str, /, **values: Value) -> TableReply:
        """Return the rows of a query over the views of what counts; `:name` in it takes the value of that name.

        Raises Fault: SQL_INVALID, LEDGER_UNREADABLE.
        """
        from groupledger.answers.queries import rows_of
        from groupledger.cli.sql import print_rows

        found = self.reader.query(query, **values)
        shown = rows_of(found, ROWS_SHOWN)
        names, left_off = found.schema.names, found.num_rows - len(shown)
        return replies.TableReply(found, lambda output, _: print_rows(output, names, shown, left_off))

    def who(
        self, partition: str, at: When | None = None, group: str | None = None, cluster: str | None = None
    ) -> Reply[OwnershipAt]:
        """Return who was assigned a partition (`orders-7`) at a time, in each group; default: now.

        Raises Fault: BAD_PARTITION, BAD_TIME, UNKNOWN_CLUSTER, UNKNOWN_GROUP, UNKNOWN_TOPIC.
        """
        from groupledger.answers.owners import ownership
        from groupledger.cli.who import print_ownership

        topic, number = topic_partition(partition)
        moment = moment_of(self.reader, at, cluster, group) or newest(self.reader, cluster, group)
        found = ownership(self.reader, topic, number, moment, cluster, group)
        return Reply(found, lambda output, found: print_ownership(output, found, ROWS_SHOWN), _holdings(found))

    def unowned(
        self,
        since: When | None = None,
        at: When | None = None,
        group: str | None = None,
        cluster: str | None = None,
        limit: int = 50,
    ) -> Reply[UnownedPartitions]:
        """List partitions of subscribed topics without an owner; `since`: without one since then, or longer."""
        from groupledger.answers.unowned import unowned_partitions
        from groupledger.cli.who import print_unowned

        moment = moment_of(self.reader, at, cluster, group) or newest(self.reader, cluster, group)
        found = unowned_partitions(self.reader, moment, bound_of(since), cluster, group, limit)
        return Reply(found, print_unowned)

    def timeline(
        self,
        group: str,
        since: When | None = None,
        until: When | None = None,
        cluster: str | None = None,
        limit: int = 50,
    ) -> replies.PlottedReply[Timeline]:
        """List the rebalances of the group, or of those that match (`payments-*`), a line each."""
        from groupledger.answers.timeline import timeline
        from groupledger.cli.history import print_group

        begin, end = (moment_of(self.reader, each, cluster, group) for each in (since, until))
        found = timeline(self.reader, group, cluster, begin, end, limit)
        return replies.PlottedReply(found, print_group)

    def owners(
        self,
        partition: str,
        since: When | None = None,
        until: When | None = None,
        group: str | None = None,
        cluster: str | None = None,
        limit: int = 50,
    ) -> Reply[PartitionTimeline]:
        """List the owners of a partition, one after another, in each group or those that match `group`."""
        from groupledger.answers.owners import partition_timeline
        from groupledger.cli.history import print_partition

        topic, number = topic_partition(partition)
        begin, end = (moment_of(self.reader, each, cluster, group) for each in (since, until))
        last = end or newest(self.reader, cluster, group)
        found = partition_timeline(self.reader, topic, number, last, begin, cluster, group, limit)
        return Reply(found, print_partition)

    def audit(
        self,
        since: When | None = None,
        until: When | None = None,
        group: str | None = None,
        cluster: str | None = None,
        joined: Sequence[str] = (),
        limit: int = 10,
    ) -> Reply[Audit]:
        """Judge every recorded rebalance. `joined`: topics whose partitions of one number belong to one member."""
        from groupledger.answers.audit import audit
        from groupledger.cli.judgements import print_audit

        found = audit(self.reader, asked_of(since, until, group, cluster), joined)
        where = f" --ledger {shlex.quote(self._place)}" if isinstance(self.reader, LedgerReader) else ""
        return Reply(found, lambda output, found: print_audit(output, found, limit, where))

    storms: AskRanking[Storms] = ranking(
        "storms", "Rank groups that rebalance often: how often within one hour, why, who."
    )

    def skew(
        self,
        since: When | None = None,
        until: When | None = None,
        group: str | None = None,
        cluster: str | None = None,
        limit: int = 10,
        weights: str | None = None,
    ) -> replies.PlottedReply[Skews]:
        """Rank groups whose members have unequal loads; `weights`: a file with the weights of partitions."""
        from groupledger.answers.skew import read_weights

        weighed = () if weights is None else (read_weights(weights),)
        return self._ranked("skew", asked_of(since, until, group, cluster), limit, *weighed)

    static_members: AskRanking[StaticMembers] = ranking(
        "static", "Rank static members by what their restarts moved; ids that two processes seem to share come first."
    )
    stickiness: AskRanking[Stickinesses] = ranking(
        "stickiness", "Compare how much groups moved with how little they could have moved."
    )
    racks: AskRanking[RackShares] = ranking(
        "rack", "Show how much members read in their own rack, where racks are known."
    )
    joins: AskRanking[Joins] = ranking("joins", "Rank groups whose members join and leave often, with those members.")
    migrations: AskRanking[Migrations] = ranking(
        "migration", "List groups that changed how they are assigned: how far they got, and what it moved."
    )

    def replay(
        self,
        assignor: str,
        since: When | None = None,
        until: When | None = None,
        group: str | None = None,
        cluster: str | None = None,
        limit: int = 20,
        mode: str | None = None,
    ) -> replies.PlottedReply[Replayed]:
        """Compare all recorded history with what it would have been under an assignor; needs a session of Spark.

        Nothing is written. Raises Fault: SPARK_NEEDED, UNKNOWN_ASSIGNOR, and as `answers.replayed.replayed`.
        """
        from groupledger.cli.replay import print_replayed
        from groupledger.config import parse
        from groupledger.pipeline.replays import replay, settings_of

        place = self.frames.location
        where = {"location": place.path} if place.catalog is None else {"catalog": place.catalog}
        given = {"cluster_id": "local", "ledger": where}
        both = [
            parse("", "replay", [f"{key}={value}" for key, value in settings.items() if value is not None], given)
            for settings in settings_of(assignor, None, mode)
        ]
        asked = asked_of(since, until, group, cluster)
        found = replay(self.frames.spark, self.reader, (both[0], both[1]), asked, limit)
        return replies.PlottedReply(found, print_replayed)

    def explain(
        self, group: str, generation: int | None = None, *, at: When | None = None, cluster: str | None = None
    ) -> replies.PlottedReply[Explanation]:
        """Explain a rebalance of a group: the one to a generation, or in force at a time; default: the last."""
        return self.group(group, cluster).explain(generation, at=at)

    def _ranked(self, report: str, asked: RequestedScope, limit: int, *more: Any) -> replies.PlottedReply[Any]:
        from groupledger.cli.report import REPORTS, print_report

        found = REPORTS[report].ask(self.reader, asked, limit, *more)
        return replies.PlottedReply(found, print_report)

    def readiness(
        self, group: str | None = None, cluster: str | None = None, since: When | None = "7d", limit: int = 20
    ) -> Reply[ReadinessReport]:
        """Judge which classic groups can go to KIP-848 while they run, what blocks the others, and what would move.

        `since`: from when on storms and changes of members are looked for.
        """
        from groupledger.answers.readiness import ready_for_consumer
        from groupledger.cli.judgements import print_readiness
        from groupledger.core.assignors.server.across_conversion import convert

        found = ready_for_consumer(self.reader, asked_of(since, None, group, cluster), limit, convert)
        return Reply(found, print_readiness)


def asked_of(since: When | None, until: When | None, group: str | None, cluster: str | None) -> RequestedScope:
    """Return the part of the ledger that a question is about."""
    return RequestedScope(cluster, group, bound_of(since), bound_of(until))


def _holdings(found: OwnershipAt) -> replies.ReplyRows:
    """Build one flat row per owner."""
    columns = ("cluster_id", "group_id", "topic_id", "member_id", "since", "until", "next_member_id", "generation",
               "snapshot_id", "client_id", "group_instance_id", "host", "covered")  # fmt: skip
    rows = []
    for each in found.holdings:
        member, last, following = each.member, each.last, each.next
        rows.append((
            each.cluster_id, each.group_id, each.topic_id, member and member.member_id, each.since,
            following and following.at, following and following.to_member_id, each.generation,
            last and last.snapshot_id, member and member.client_id, member and member.group_instance_id,
            member and member.host, each.covered,
        ))  # fmt: skip
    return replies.ReplyRows(columns, tuple(rows))


# Answer a notebook's questions about one group of a ledger.


@dataclass(frozen=True, slots=True)
@replies.questions("timeline", "owners", "audit", "plan_migration", "what_if")
class LedgerGroup:
    """A group of one cluster."""

    ledger: Ledger
    group_id: str
    cluster: str

    def __repr__(self) -> str:
        return f"LedgerGroup({self.group_id!r}, cluster={self.cluster!r})"

    def show(self, scenario: str | None = None, limit: int = 50) -> replies.ListingReply:
        """List the snapshots, the latest last, with the moves and the verdict of a scenario (default: baseline).

        Raises Fault("UNKNOWN_SCENARIO").
        """
        from groupledger.answers.states import BASELINE

        group, asked = (self.ledger.reader, self.group_id, self.cluster), scenario is not None
        return replies.listing_reply(at_a_glance.history(*group, scenario or BASELINE, limit, asked=asked))

    def rebalance(self, generation: int | None = None) -> replies.PlottedReply[Rebalance]:
        """Return the rebalance that led to a generation or group epoch; default: the last one.

        Raises Fault("UNKNOWN_GENERATION").
        """
        from groupledger.answers.explanation import rebalance
        from groupledger.cli.answers import print_rebalance

        found = rebalance(self.ledger.reader, self.group_id, self.cluster, generation)
        return replies.PlottedReply(found, print_rebalance)

    def explain(
        self,
        generation: int | None = None,
        *,
        incarnation: int | None = None,
        at: When | None = None,
        offset: int | None = None,
    ) -> replies.PlottedReply[Explanation]:
        """Explain the causes of a rebalance, and its effects. Its DataFrame has the partitions that moved.

        The one to a generation (of an incarnation; default: the last), the one in force at a time, or the one recorded
        at an offset. Raises Fault: UNKNOWN_GENERATION, NOT_KNOWN_YET, UNKNOWN_RECORD.
        """
        from groupledger.answers.explanation import explain
        from groupledger.cli.explain import print_explanation

        reader, moment = self.ledger.reader, moment_of(self.ledger.reader, at, self.cluster)
        which = {"incarnation": incarnation, "at": moment, "offset": offset}
        found = explain(reader, self.group_id, self.cluster, generation, **which)
        return replies.PlottedReply(found, lambda output, found: print_explanation(output, found, moment))

    def timeline(
        self, since: When | None = None, until: When | None = None, limit: int = 50
    ) -> replies.PlottedReply[Timeline]:
        """List the rebalances of the group, a line each."""
        return self.ledger.timeline(self.group_id, since, until, self.cluster, limit)

    def owners(
        self, partition: str, since: When | None = None, until: When | None = None, limit: int = 50
    ) -> Reply[PartitionTimeline]:
        """List the owners of a partition (`orders-7`), one after another."""
        return self.ledger.owners(partition, since, until, self.group_id, self.cluster, limit)

    def audit(self, since: When | None = None, until: When | None = None, joined: Sequence[str] = ()) -> Reply[Audit]:
        """Judge every recorded rebalance of the group."""
        return self.ledger.audit(since, until, self.group_id, self.cluster, joined)

    def hand_overs(
        self, since: When | None = None, until: When | None = None, limit: int = 20
    ) -> Reply[GroupHandOvers]:
        """Judge by the recorded offset commits how members gave partitions up, and where the next owners began.

        Raises Fault("NO_COMMITS").
        """
        from groupledger.answers.recorded_history import group_hand_overs
        from groupledger.cli.judgements import print_hand_overs

        asked = asked_of(since, until, self.group_id, self.cluster)
        found = group_hand_overs(self.ledger.reader, self.group_id, asked)
        return Reply(found, lambda output, found: print_hand_overs(output, found, limit))

    def diff(self, begin: When, end: When | None = None) -> Reply[GroupDifference]:
        """Compare two states, each a generation or a time; the second defaults to the last one.

        Raises Fault: UNKNOWN_GENERATION, NOT_KNOWN_YET, BAD_TIME, BAD_PERIOD.
        """
        from groupledger.answers.explanation import difference
        from groupledger.cli.history import print_states

        last = None if end is None else point_of(end)
        found = difference(self.ledger.reader, self.group_id, point_of(begin), last, self.cluster)
        return Reply(found, print_states)

    def diff_scenarios(self, one: str, other: str, generation: int | None = None) -> Reply[ScenarioDifference]:
        """Compare what two scenarios give the members at a generation; default: the last one.

        Raises Fault: UNKNOWN_GENERATION, UNKNOWN_SCENARIO, NO_RESULT.
        """
        from groupledger.answers.explanation import scenario_difference
        from groupledger.cli.history import print_scenarios

        found = scenario_difference(self.ledger.reader, self.group_id, (one, other), generation, self.cluster)
        return Reply(found, print_scenarios)

    def plan_migration(
        self, assignors: Sequence[str] = (), to: str = "cooperative-sticky", library: str | None = None
    ) -> Reply[MigrationRehearsal]:
        """Rehearse the rolling bounces to another assignor (KIP-429) with the last members of the group.

        `assignors`: all that members list now, since the log has the chosen one alone. `library`: that of members of
        whom the log does not tell it. Raises Fault: as `answers.recorded_history`, ALREADY_THERE, UNKNOWN_ASSIGNOR.
        """
        from groupledger.answers.recorded_history import recorded_members
        from groupledger.cli.plan_migration import print_rehearsal, rehearsed
        from groupledger.core.protocol.rolling_migration import BounceStep

        recorded, topics = recorded_members(self.ledger.reader, self.group_id, self.cluster, library)
        members = [replace(each, assignors=tuple(assignors)) if assignors else each for each in recorded.clients]
        found = rehearsed(members, topics, to)
        rows = replies.rows_of(BounceStep, found.steps, "safe")
        return Reply(found, lambda output, found: print_rehearsal(output, found, members), rows)

    def what_if(
        self,
        members: int = 0,
        without: Sequence[str] | str = (),
        assignor: str | None = None,
        generation: int | None = None,
        *,
        partitions: Mapping[str, str] | None = None,
        at: When | None = None,
    ) -> replies.PlottedReply[WhatIf]:
        """Compute a state (default: the last with members) with other members, partitions or another assignor.

        Raises Fault: as `answers.changed_group.what_if`.
        """
        from groupledger.answers.changed_group import what_if
        from groupledger.cli.what_if import print_what_if

        group = self.ledger.reader, self.group_id, self.cluster
        found = what_if(
            *group,
            members=members,
            without=without,
            partitions=partitions,
            assignor=assignor,
            generation=generation,
            at=moment_of(self.ledger.reader, at, self.cluster),
        )
        return replies.PlottedReply(found, print_what_if)


# Parse the times that a notebook passes.

When = str | int | datetime | timedelta
"""`24h` or a timedelta, back from now (up to when the ledger is known); ISO 8601; Unix seconds or milliseconds; or a
datetime.

What names no zone is in UTC.
"""


def bound_of(when: When | None) -> Bound | None:
    """Parse a time in UTC, or a duration. Raises Fault("BAD_TIME")."""
    return None if when is None else _parsed(when, bound)


def point_of(when: When) -> Point:
    """Parse the same, or a generation: a small number. Raises Fault("BAD_TIME")."""
    return _parsed(when, point)


def _parsed(when: When, parse: Callable[[str], tuple[T, bool]]) -> T | datetime | timedelta:
    if isinstance(when, datetime):  # as Python's own type, whatever pandas made of it
        return from_micros(micros(when if when.tzinfo is not None else when.replace(tzinfo=UTC)))
    return when if isinstance(when, timedelta) else parse(str(when))[0]


def moment_of(reader: Reader, when: When | None, cluster: str | None, group: str | None = None) -> datetime | None:
    """Return a time; a duration counts back from the newest one of the cluster, or of the group's, or of all."""
    [moment] = moments(reader, cluster, [bound_of(when)], group)
    return moment
