"""Answer a notebook's questions about one group of a ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from groupledger.notebook import replies
from groupledger.notebook.replies import Reply
from groupledger.notebook.times import bound_of, point_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupledger.answers.audit import Audit
    from groupledger.answers.differences import GroupDifference, ScenarioDifference
    from groupledger.answers.hand_overs import GroupHandOvers
    from groupledger.answers.tenures import PartitionTimeline
    from groupledger.answers.what_if import WhatIf
    from groupledger.core.protocol.migration import MigrationRehearsal
    from groupledger.notebook.ledger import Ledger
    from groupledger.notebook.times import When


@dataclass(frozen=True, slots=True)
@replies.say_known("timeline", "owners", "audit", "plan_migration", "what_if")
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
        from groupledger.answers.listings import history
        from groupledger.answers.states import BASELINE

        name, asked = scenario or BASELINE, scenario is not None
        return replies.listing_reply(history(self.ledger.reader, self.group_id, self.cluster, name, limit, asked=asked))

    def rebalance(self, generation: int | None = None) -> replies.RebalanceReply:
        """Return the rebalance that led to a generation or group epoch; default: the last one.

        Raises Fault("UNKNOWN_GENERATION").
        """
        from groupledger.answers.rebalance import MemberMove, rebalance
        from groupledger.cli.answers import tell_rebalance

        found = rebalance(self.ledger.reader, self.group_id, self.cluster, generation)
        rows = replies.rows(MemberMove, found.members, "added", "revoked")
        return replies.RebalanceReply(found, lambda output: tell_rebalance(output, found), rows)

    def explain(
        self,
        generation: int | None = None,
        *,
        incarnation: int | None = None,
        at: When | None = None,
        offset: int | None = None,
    ) -> replies.ExplanationReply:
        """Explain why a rebalance happened, and its effects. Its DataFrame has the partitions that moved.

        The one to a generation (of an incarnation; default: the last), the one in force at a time, or the one recorded
        at an offset. Raises Fault: UNKNOWN_GENERATION, NOT_KNOWN_YET, UNKNOWN_RECORD.
        """
        from groupledger.answers.causes import Moved
        from groupledger.answers.explanation import explain
        from groupledger.cli.explain import tell
        from groupledger.notebook.times import moment_of

        reader, moment = self.ledger.reader, moment_of(self.ledger.reader, at, self.cluster)
        which = {"incarnation": incarnation, "at": moment, "offset": offset}
        found = explain(reader, self.group_id, self.cluster, generation, **which)
        rows = replies.rows(Moved, found.moved)
        return replies.ExplanationReply(found, lambda output: tell(output, found, moment), rows)

    def timeline(self, since: When | None = None, until: When | None = None, limit: int = 50) -> replies.TimelineReply:
        """List what happened in the group, one line per rebalance."""
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
        from groupledger.answers.hand_overs import HandOver, group_hand_overs
        from groupledger.answers.scope import RequestedScope
        from groupledger.cli.hand_overs import tell

        asked = RequestedScope(self.cluster, self.group_id, bound_of(since), bound_of(until))
        found = group_hand_overs(self.ledger.reader, self.group_id, asked)
        return Reply(found, lambda output: tell(output, found, limit), replies.rows(HandOver, found.hand_overs))

    def diff(self, begin: When | int, end: When | int | None = None) -> Reply[GroupDifference]:
        """Compare two states, each a generation or a time; the second defaults to the last one.

        Raises Fault: UNKNOWN_GENERATION, NOT_KNOWN_YET, BAD_TIME, BAD_PERIOD.
        """
        from groupledger.answers.differences import difference
        from groupledger.answers.rebalance import MemberMove
        from groupledger.cli.diff import tell_states

        last = None if end is None else point_of(end)
        found = difference(self.ledger.reader, self.group_id, point_of(begin), last, self.cluster)
        rows = replies.rows(MemberMove, found.members, "added", "revoked")
        return Reply(found, lambda output: tell_states(output, found), rows)

    def diff_scenarios(self, one: str, other: str, generation: int | None = None) -> Reply[ScenarioDifference]:
        """Compare what two scenarios give the members at a generation; default: the last one.

        Raises Fault: UNKNOWN_GENERATION, UNKNOWN_SCENARIO, NO_RESULT.
        """
        from groupledger.answers.differences import scenario_difference
        from groupledger.answers.rebalance import MemberMove
        from groupledger.cli.diff import tell_scenarios

        found = scenario_difference(self.ledger.reader, self.group_id, (one, other), generation, self.cluster)
        rows = replies.rows(MemberMove, found.members, "added", "revoked")
        return Reply(found, lambda output: tell_scenarios(output, found), rows)

    def plan_migration(
        self,
        assignors: Sequence[str] = (),
        to: str = "cooperative-sticky",
        library: str | None = None,
    ) -> Reply[MigrationRehearsal]:
        """Rehearse the rolling bounces to another assignor (KIP-429) with the last members of the group.

        `assignors`: all that members list now, since the log has the chosen one alone. `library`: that of members of
        whom the log does not tell it. Raises Fault: as `answers.recorded_members`, ALREADY_THERE, UNKNOWN_ASSIGNOR.
        """
        from groupledger.answers.recorded_members import recorded_members
        from groupledger.cli.plan_migration import rehearsed, tell
        from groupledger.core.protocol.migration import BounceStep

        recorded, topics = recorded_members(self.ledger.reader, self.group_id, self.cluster, library)
        members = [replace(each, assignors=tuple(assignors)) if assignors else each for each in recorded.clients]
        found = rehearsed(members, topics, to)
        return Reply(found, lambda output: tell(output, found, members), replies.rows(BounceStep, found.steps, "safe"))

    def what_if(
        self,
        members: int = 0,
        without: Sequence[str] = (),
        assignor: str | None = None,
        generation: int | None = None,
    ) -> Reply[WhatIf]:
        """Compute a state (default: the last with members) with more or fewer members, or another assignor.

        Raises Fault: as `answers.what_if.what_if`.
        """
        from groupledger.answers.rebalance import MemberMove
        from groupledger.answers.what_if import what_if
        from groupledger.cli.what_if import tell_what_if

        group = self.ledger.reader, self.group_id, self.cluster
        found = what_if(*group, members=members, without=without, assignor=assignor, generation=generation)
        rows = replies.rows(MemberMove, found.members, "added", "revoked")
        return Reply(found, lambda output: tell_what_if(output, found), rows)
