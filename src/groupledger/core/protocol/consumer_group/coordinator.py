"""The coordinator of a consumer group (KIP-848, "Group coordinator"), as in Kafka 4.4: epochs, targets, members.

A heartbeat is handled in three parts: `begin` updates the member and bumps the group epoch, `install` takes a new
target where one is due, `finish` moves that one member towards it. In between the assignor is asked, by the caller.

Worked example: A holds t-0 and t-1. B's first heartbeat makes group epoch 3, its target t-1, and B waits in epoch 3 for
t-1. A's next heartbeat is told to revoke t-1, the one after that states t-0; then B's next one is answered t-1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from groupledger.core.assignors.server.assign import ASSIGNORS
from groupledger.core.assignors.server.group import ServerGroup, ServerMember, TopicIdNumbers
from groupledger.core.protocol.consumer_group.group_member import LEFT_STATIC, GroupMember, MemberState
from groupledger.core.protocol.consumer_group.heartbeat import Answer, Refusal, Request
from groupledger.core.protocol.consumer_group.reconciliation import Goal, advance
from groupledger.core.protocol.consumer_group.settings import ConsumerGroupSettings
from groupledger.core.protocol.consumer_group.subscriptions import (
    ResolvedExpressions,
    is_homogeneous,
    topics_of,
)
from groupledger.core.protocol.consumer_group.targets import ServerQuestion
from groupledger.core.protocol.consumer_group.topic_table import IdPartitions, TopicIdPartition, TopicTable
from groupledger.core.protocol.events import GroupProtocol

FIRST_EPOCH = 1
"""Of a group before its first member is known: the first subscription makes it 2."""


@dataclass(slots=True)
class Turn:
    """A heartbeat in hand: the member before it and with what it says. `replaces`: the id of the one it takes over."""

    request: Request
    before: GroupMember
    member: GroupMember
    subscription_changed: bool
    replaces: str | None = None


@dataclass(slots=True)
class ConsumerGroup:
    """One group. `members` in the order in which they joined; `targets` by member id, in the order of their records.

    `assignment_epoch` is the group epoch of the targets, `assigned_ms` when they were computed. `changes`: members that
    came (1) and went (-1), see `ServerGroup`. `heard_ms`: the last heartbeat of each member that renewed its session.
    """

    settings: ConsumerGroupSettings
    topics: TopicTable
    members: dict[str, GroupMember] = field(default_factory=dict)
    targets: dict[str, TopicIdNumbers] = field(default_factory=dict)
    epoch: int = FIRST_EPOCH
    assignment_epoch: int = FIRST_EPOCH
    assigned_ms: int | None = None
    changes: list[int] = field(default_factory=list)
    resolved: ResolvedExpressions = field(default_factory=ResolvedExpressions)
    heard_ms: dict[str, int] = field(default_factory=dict)
    revoking_since_ms: dict[str, int] = field(default_factory=dict)
    session_ms: dict[str, int] = field(default_factory=dict)  # of classic members, which bring their own
    protocol: ClassVar[GroupProtocol] = GroupProtocol.CONSUMER
    _seen_topics: object = None  # metadata of subscribed topics, at the last bump
    _topics_changed: bool = False

    def begin(self, request: Request) -> Turn | Answer:
        """The first part of a heartbeat, or the error that ends it."""
        fault = self._fault(request)
        if fault is not None:
            return fault
        found = self._find(request)
        if isinstance(found, Answer):
            return found
        before, replaces = found
        member = _updated(before, request)
        regex_changed = (member.regex or "") != (before.regex or "")
        names_changed = set(member.topics) != set(before.topics)
        turn = Turn(request, before, member, names_changed or regex_changed, replaces)
        known = member.regex is None or member.regex in self.resolved.topics
        if names_changed or (regex_changed and known):
            self._bump(turn)
        elif self._topics_changed:
            self._topics_changed = False
            if self._metadata(turn) != self._seen_topics:
                self._bump(turn)
        return turn

    def is_due(self, now_ms: int) -> bool:
        """Whether a heartbeat computes a new target: the group moved on, and the last one is old enough."""
        waits_ms = 0 if self.assigned_ms is None else self.assigned_ms + self.settings.assignment_interval_ms
        return self.epoch > self.assignment_epoch and now_ms >= waits_ms

    def question(self, turn: Turn) -> ServerQuestion:
        """What the server-side assignor is asked in this heartbeat."""
        members = self._members_in(turn)
        asked = Counter(each.remote_assignor for each in members if each.remote_assignor)
        most = max(asked.values(), default=0)
        assignor = min((each for each, count in asked.items() if count == most), default=self.settings.remote_assignor)
        group = ServerGroup(
            tuple(self._server_member(each, turn) for each in members),
            self.topics.living,
            changes=tuple(self.changes),
            joining=None if turn.member.member_id in self.members else turn.member.member_id,
            homogeneous=is_homogeneous(members),
        )
        return ServerQuestion(assignor, group)

    def install(self, targets: dict[str, TopicIdNumbers], now_ms: int) -> dict[str, TopicIdNumbers]:
        """Take new targets; gives those that changed, which are the ones that a record is written of."""
        changed = {
            member_id: target
            for member_id, target in targets.items()
            if _flat(target) != _flat(self.targets.get(member_id, ()))
        }
        self.targets.update(changed)
        self.assignment_epoch, self.assigned_ms = self.epoch, now_ms
        return changed

    def finish(self, turn: Turn, now_ms: int) -> Answer:
        """The last part: one step of the member towards its target, and the answer."""
        if turn.replaces is not None:
            self._replace(turn.replaces, turn.member.member_id)
        elif turn.member.member_id not in self.members:
            self.changes.append(1)
        member = self._advance(turn)
        self.members[member.member_id] = member
        self.heard_ms[member.member_id] = now_ms
        self._watch_revocation(turn.before, member, now_ms)
        answers_all = turn.request.epoch == 0 or self._says_all(turn.request)
        new = answers_all or dict(member.assigned) != dict(turn.before.assigned)
        return Answer(member.epoch, frozenset(member.assigned) if new else None)

    def _advance(self, turn: Turn) -> GroupMember:
        """One step of the member that speaks."""
        member = turn.member
        goal, held_by_others = self._goal(member), self._held_by_others(member)
        changed = turn.subscription_changed
        return advance(member, goal, turn.request.owned, held_by_others, subscription_changed=changed)

    def _says_all(self, request: Request) -> bool:
        """Whether everything was said, so that everything is answered."""
        return request.full

    def leave(self, member_id: str) -> None:
        """A member is gone for good, or fenced: its partitions are free, and the group moves on."""
        if self.members.pop(member_id, None) is None:
            return
        for told in (self.targets, self.heard_ms, self.revoking_since_ms, self.session_ms):
            told.pop(member_id, None)
        self.changes.append(-1)
        self._bump(None)
        if not self.members:
            self.assignment_epoch, self.assigned_ms = self.epoch, None

    def leave_for_now(self, member_id: str) -> None:
        """A static member closes: its seat waits for it until its session ends, with all it was assigned."""
        member = self.members[member_id]
        kept = dict.fromkeys(member.assigned, 0)
        self.members[member_id] = replace(
            member, epoch=LEFT_STATIC, previous_epoch=member.epoch, state=MemberState.STABLE, assigned=kept, pending={}
        )
        self.revoking_since_ms.pop(member_id, None)

    @property
    def has_other_topics(self) -> bool:
        """Whether the topics that somebody subscribes to are others than at the last bump."""
        return self._topics_changed and self._metadata(None) != self._seen_topics

    def topics_changed(self) -> None:
        """The cluster has other topics; the next heartbeat compares."""
        self._topics_changed = True

    def resolve_expressions(self, now_ms: int) -> bool:
        """Resolve where that is due; the group moves on if the topics are others."""
        members = self.members.values()
        stable = self.epoch == self.assignment_epoch and all(
            each.state is MemberState.STABLE and each.epoch == self.epoch for each in members
        )
        if not self.resolved.is_due(members, self.topics.created, now_ms, stable=stable):
            return False
        changed = self.resolved.resolve(members, self.topics.living, self.topics.created, now_ms)
        if changed:
            self._bump(None)
        return changed

    def deadline(self, member_id: str) -> int:
        """When a member that says nothing more is fenced."""
        session_ends_ms = self.heard_ms[member_id] + self._session_ms(member_id)
        if member_id not in self.revoking_since_ms:
            return session_ends_ms
        return min(session_ends_ms, self.revocation_ends_ms(member_id))

    def revocation_ends_ms(self, member_id: str) -> int:
        """When a member that has to give up partitions is fenced if it has not."""
        return self.revoking_since_ms[member_id] + self.members[member_id].rebalance_timeout_ms

    def static_member(self, group_instance_id: str | None) -> GroupMember | None:
        """The member with this instance id."""
        found = (each for each in self.members.values() if each.group_instance_id == group_instance_id)
        return None if group_instance_id is None else next(found, None)

    def subscribed_topics(self) -> set[str]:
        """All names that somebody subscribes to."""
        return {name for each in self.members.values() for name in topics_of(each, self.resolved.topics)}

    def target(self, member_id: str) -> IdPartitions:
        """What a member is to get."""
        return _flat(self.targets.get(member_id, ()))

    def missing(self, member: GroupMember) -> IdPartitions:
        """What a member's target has and it was not assigned."""
        goal = self._goal(member)
        return frozenset(each for each in goal.target - member.assigned.keys() if each.topic_id in goal.subscribed)

    def holder(self, partition: TopicIdPartition) -> str | None:
        """Who holds a partition, or has not given it up."""
        return next((each.member_id for each in self.members.values() if partition in each.held), None)

    def would_be_classic(self, without: str | None = None) -> bool:
        """Whether the group, without one member, has classic members alone, and may become classic again."""
        others = [each for member_id, each in self.members.items() if member_id != without]
        return self.settings.migration_policy.downgrades and bool(others) and all(each.uses_classic for each in others)

    def _fault(self, request: Request) -> Answer | None:
        """What is wrong with a request whoever sends it."""
        if request.remote_assignor is not None and request.remote_assignor not in ASSIGNORS:
            message = f"remote assignor is {request.remote_assignor!r}; expected one of {', '.join(ASSIGNORS)}"
            return Answer(request.epoch, error=Refusal.UNSUPPORTED_ASSIGNOR, message=message)
        try:
            re.compile(request.regex or "")
        except re.error as error:
            message = f"regular expression {request.regex!r} does not compile: {error}"
            return Answer(request.epoch, error=Refusal.INVALID_REGULAR_EXPRESSION, message=message)
        return None

    def _find(self, request: Request) -> tuple[GroupMember, str | None] | Answer:
        """The member that speaks, as it was, and the id of the one whose seat it takes; or the error."""
        if request.group_instance_id is not None:
            return self._find_static(request)
        member = self.members.get(request.member_id)
        if member is None and request.joins:
            return _newcomer(request), None
        return self._checked(request, member)

    def _find_static(self, request: Request) -> tuple[GroupMember, str | None] | Answer:
        member = self.static_member(request.group_instance_id)
        if member is None and request.joins:
            return _newcomer(request), None
        if member is None or member.member_id == request.member_id:
            return self._checked(request, member)
        if not request.joins:
            message = f"{request.group_instance_id} belongs to {member.member_id} now"
            return Answer(request.epoch, error=Refusal.FENCED_INSTANCE_ID, message=message)
        both_consumers = request.classic_assignors is None and not member.uses_classic
        if both_consumers and member.epoch != LEFT_STATIC:
            message = f"{request.group_instance_id} is owned by {member.member_id}, which has not left"
            return Answer(request.epoch, error=Refusal.UNRELEASED_INSTANCE_ID, message=message)
        copied = replace(member, member_id=request.member_id, process=request.process, epoch=0, previous_epoch=0)
        return copied, member.member_id

    def _checked(self, request: Request, member: GroupMember | None) -> tuple[GroupMember, str | None] | Answer:
        """A known member, unless its epoch is not the one it should have (0 always is, KAFKA-19233)."""
        if member is None:
            message = f"{request.member_id} is no member"
            return Answer(request.epoch, error=Refusal.UNKNOWN_MEMBER_ID, message=message)
        late = request.epoch == member.previous_epoch and self._may_be_late(request, member)
        if request.classic_assignors is None and request.epoch not in (0, member.epoch) and not late:
            message = f"{request.member_id} is in epoch {member.epoch}, not {request.epoch}"
            return Answer(request.epoch, error=Refusal.FENCED_MEMBER_EPOCH, message=message)
        return member, None

    def _may_be_late(self, request: Request, member: GroupMember) -> bool:
        """Whether a member may speak in its previous epoch: it owns nothing that it was not assigned."""
        return request.owned is not None and request.owned <= member.assigned.keys()

    def _bump(self, turn: Turn | None) -> None:
        self.epoch += 1
        self._seen_topics = self._metadata(turn)

    def _metadata(self, turn: Turn | None) -> object:
        """Topics that somebody subscribes to, as the hash of the group's metadata tells them apart."""
        members = list(self.members.values()) if turn is None else self._members_in(turn)
        names = sorted({name for each in members for name in topics_of(each, self.resolved.topics)})
        return tuple((name, self.topics.living[name]) for name in names if name in self.topics.living)

    def _members_in(self, turn: Turn) -> list[GroupMember]:
        """All members with the one that speaks as it is now, and without the one that it replaces."""
        mine = turn.member.member_id
        others = {key: each for key, each in self.members.items() if key != turn.replaces}
        return list((others | {mine: turn.member}).values())

    def _server_member(self, member: GroupMember, turn: Turn) -> ServerMember:
        of = turn.replaces if turn.replaces is not None and member is turn.member else member.member_id
        names = topics_of(member, self.resolved.topics)
        return ServerMember(member.member_id, names, self.targets.get(of, ()), member.group_instance_id)

    def _replace(self, old: str, new: str) -> None:
        """A static member under a new id: it stands where newcomers stand."""
        del self.members[old]
        if old in self.targets:
            target = self.targets.pop(old)
            self.targets.setdefault(new, target)
        for told in (self.heard_ms, self.revoking_since_ms, self.session_ms):
            told.pop(old, None)
        self.changes += [-1, 1]

    def _goal(self, member: GroupMember) -> Goal:
        subscribed = self.topics.ids(topics_of(member, self.resolved.topics))
        return Goal(self.assignment_epoch, self.target(member.member_id), subscribed)

    def _held_by_others(self, member: GroupMember) -> IdPartitions:
        held = (each.held for key, each in self.members.items() if key != member.member_id)
        return frozenset().union(*held)

    def _watch_revocation(self, before: GroupMember, member: GroupMember, now_ms: int) -> None:
        """The rebalance time-out begins anew with each step that asks for a revocation."""
        if member.state is not MemberState.UNREVOKED_PARTITIONS or member.uses_classic:
            self.revoking_since_ms.pop(member.member_id, None)
        elif member != before or member.member_id not in self.revoking_since_ms:
            self.revoking_since_ms[member.member_id] = now_ms

    def _session_ms(self, member_id: str) -> int:
        return self.session_ms.get(member_id, self.settings.session_timeout_ms)


def _newcomer(request: Request) -> GroupMember:
    return GroupMember(request.member_id, request.process)


def _updated(member: GroupMember, request: Request) -> GroupMember:
    """The member with what its heartbeat says; what is not said stays."""
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        process=request.process,
        group_instance_id=request.group_instance_id,
        topics=member.topics if request.topics is None else tuple(sorted(set(request.topics))),
        regex=member.regex if request.regex is None else request.regex or None,
        remote_assignor=request.remote_assignor or member.remote_assignor,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms is None else timeout_ms,
        classic_assignors=request.classic_assignors,
    )


def _flat(target: Iterable[tuple[object, Iterable[int]]]) -> IdPartitions:
    return frozenset(TopicIdPartition(topic_id, number) for topic_id, numbers in target for number in numbers)  # type: ignore[arg-type]
