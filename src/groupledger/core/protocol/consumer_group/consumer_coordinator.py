"""Which member a heartbeat speaks for, or the error that ends it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

from groupledger.core.assignors.server.orders import JOINED, LEFT, REWRITTEN
from groupledger.core.assignors.server.server_batch import ASSIGNORS
from groupledger.core.assignors.server.server_group import (
    ServerGroup,
    ServerMember,
    TopicId,
    TopicIdNumbers,
    is_homogeneous,
)
from groupledger.core.assignors.server.simple import SIMPLE
from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol.consumer_group.consumer_state import (
    LEFT_STATIC,
    ConsumerGroupSettings,
    GroupMember,
    HeartbeatRequest,
    HeartbeatResponse,
    MemberState,
    Refusal,
)
from groupledger.core.protocol.consumer_group.topics_and_targets import (
    ServerQuestion,
    TopicIdPartition,
    TopicIdPartitionSet,
    TopicTable,
    flat,
)
from groupledger.core.protocol.events import GroupProtocol
from groupledger.core.protocol.topic_patterns import matching

MayBeLate = Callable[[HeartbeatRequest, GroupMember], bool]


FoundMember = tuple[GroupMember, str | None]
"""The member that speaks, as it was, and the id of the one whose seat it takes."""


def fault_of(request: HeartbeatRequest) -> HeartbeatResponse | None:
    """Return the error of a request that is wrong for any member."""
    if request.remote_assignor is not None and request.remote_assignor not in ASSIGNORS:
        message = f"remote assignor is {request.remote_assignor!r}; expected one of {', '.join(ASSIGNORS)}"
        return HeartbeatResponse(request.epoch, error=Refusal.UNSUPPORTED_ASSIGNOR, message=message)
    try:
        re.compile(request.regex or "")
    except re.error as error:
        message = f"regular expression {request.regex!r} does not compile: {error}"
        return HeartbeatResponse(request.epoch, error=Refusal.INVALID_REGULAR_EXPRESSION, message=message)
    return None


def static_seat(members: Mapping[str, GroupMember], instance_id: str | None) -> GroupMember | None:
    """Find the seat of a static member by its instance id."""
    seated = (each for each in members.values() if each.group_instance_id == instance_id)
    return None if instance_id is None else next(seated, None)


def find_seat(
    request: HeartbeatRequest, members: Mapping[str, GroupMember], may_be_late: MayBeLate
) -> FoundMember | HeartbeatResponse:
    """Return the member that speaks; `may_be_late`: whether it may do so in its previous epoch.

    A known member's epoch has to be the one that it should have (0 always is, KAFKA-19233).
    """

    def refused(error: Refusal, message: str) -> HeartbeatResponse:
        return HeartbeatResponse(request.epoch, error=error, message=message)

    instance_id = request.group_instance_id
    member = members.get(request.member_id) if instance_id is None else static_seat(members, instance_id)
    if member is None and request.joins:
        return GroupMember(request.member_id, request.process), None
    if member is None:
        return refused(Refusal.UNKNOWN_MEMBER_ID, f"{request.member_id} is no member")
    if member.member_id == request.member_id:
        late = request.epoch == member.previous_epoch and may_be_late(request, member)
        if request.classic_assignors is None and request.epoch not in (0, member.epoch) and not late:
            message = f"{request.member_id} is in epoch {member.epoch}, not {request.epoch}"
            return refused(Refusal.FENCED_MEMBER_EPOCH, message)
        return member, None
    if request.epoch != 0:
        return refused(Refusal.FENCED_INSTANCE_ID, f"{instance_id} belongs to {member.member_id} now")
    both_consumers = request.classic_assignors is None and not member.uses_classic
    if both_consumers and member.epoch != LEFT_STATIC:
        message = f"{instance_id} is owned by {member.member_id}, which has not left"
        return refused(Refusal.UNRELEASED_INSTANCE_ID, message)
    copied = replace(member, member_id=request.member_id, process=request.process, epoch=0, previous_epoch=0)
    return copied, member.member_id


def updated(member: GroupMember, request: HeartbeatRequest) -> GroupMember:
    """Return the member with what its heartbeat states; the rest stays."""
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
        process_id=request.process_id or member.process_id,
    )


# What members of a consumer group subscribe to, names and regular expressions, as its coordinator resolves them.

LEAST_REFRESH_MS = 10_000
"""Between two resolutions of a group's expressions, however many topics are made meanwhile."""


@dataclass(slots=True)
class ResolvedExpressions:
    """Topics of each regular expression, as of the last resolution; a topic stays in it until the next one."""

    topics: dict[str, tuple[str, ...]] = field(default_factory=dict)
    resolved_ms: int | None = None
    created: int = 0  # topics that had been made by then

    def is_due(self, members: Iterable[GroupMember], created: int, now_ms: int, *, stable: bool) -> bool:
        """Whether to resolve: an expression is new, or topics were made, the group is stable and time has passed."""
        used = expressions(members)
        if not used <= self.topics.keys():
            return True
        return stable and self.is_stale(members, created) and now_ms >= self.next_ms

    def is_stale(self, members: Iterable[GroupMember], created: int) -> bool:
        """Whether topics were made since the last resolution of expressions that members use."""
        return created > self.created and bool(expressions(members))

    @property
    def next_ms(self) -> int:
        """When topics that were made may be looked for."""
        return 0 if self.resolved_ms is None else self.resolved_ms + LEAST_REFRESH_MS

    def resolve(self, members: Iterable[GroupMember], names: Iterable[str], created: int, now_ms: int) -> bool:
        """Match all topics there are; whether that changed anything."""
        there = tuple(sorted(names))
        found = {each: matching(each, there) for each in sorted(expressions(members))}
        changed = found != self.topics
        self.topics, self.resolved_ms, self.created = found, now_ms, created
        return changed


def expressions(members: Iterable[GroupMember]) -> set[str]:
    """Regular expressions that members subscribe by."""
    return {each.regex for each in members if each.regex}


def topics_of(member: GroupMember, resolved: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Names that a member subscribes to, those of its expression among them."""
    return tuple(sorted({*member.topics, *resolved.get(member.regex or "", ())}))


# The coordinator of a consumer group (KIP-848, "Group coordinator"), as in Kafka 4.4: epochs, targets, members.
#
# A heartbeat is handled in three parts: `begin` updates the member and bumps the group epoch, `install` takes a new
# target where one is due, `finish` moves that one member towards it. In between the assignor is asked, by the caller.
#
# Worked example: A holds t-0 and t-1. B's first heartbeat makes group epoch 3, its target t-1, and B waits in epoch 3
# for t-1. A's next heartbeat is answered to revoke t-1, the one after that states t-0; then B's next one is answered
# t-1.

FIRST_EPOCH = 1
"""Of a group before its first member is known: the first subscription makes it 2."""


@dataclass(slots=True)
class Turn:
    """A heartbeat in hand: the member before it and with what it says. `replaces`: the id of the one it takes over."""

    request: HeartbeatRequest
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

    def begin(self, request: HeartbeatRequest, now_ms: int) -> Turn | HeartbeatResponse:
        """Begin a heartbeat; return the error that ends it, if there is one."""
        found = fault_of(request) or find_seat(request, self.members, self._may_be_late)
        if isinstance(found, HeartbeatResponse):
            return found
        before, replaces = found
        member = updated(before, request)
        turn = Turn(
            request,
            before,
            member,
            (set(member.topics), member.regex or "") != (set(before.topics), before.regex or ""),
            replaces,
        )
        if self._moves_on(turn):
            self._bump(turn)
        elif self._topics_changed:
            self._topics_changed = False
            if self._metadata(turn) != self._seen_topics:
                self._bump(turn)
        return turn

    def _moves_on(self, turn: Turn) -> bool:
        """Whether what a member says moves the group on; a new expression does once it is resolved."""
        before, member = turn.before, turn.member
        known = member.regex is None or member.regex in self.resolved.topics
        return set(member.topics) != set(before.topics) or (turn.subscription_changed and known)

    def is_due(self, now_ms: int) -> bool:
        """Whether a heartbeat computes a new target: the group moved on, and the last one is old enough."""
        waits_ms = 0 if self.assigned_ms is None else self.assigned_ms + self.settings.assignment_interval_ms
        return self.epoch > self.assignment_epoch and now_ms >= waits_ms

    @property
    def timer_ms(self) -> int | None:
        """When the coordinator computes a target by itself, without a heartbeat."""
        return None

    def end_delay(self) -> bool:
        """Note that this time is reached; return whether a target is to be computed."""
        return False

    def question(self, turn: Turn | None) -> ServerQuestion:
        """Return the question to the server-side assignor in this heartbeat; None: in none."""
        members = self._members_in(turn)
        asked = Counter(each.remote_assignor for each in members if each.remote_assignor)
        most = max(asked.values(), default=0)
        assignor = min((each for each, count in asked.items() if count == most), default=self.settings.remote_assignor)
        return ServerQuestion(assignor, self._server_group(turn))

    def _server_group(self, turn: Turn | None) -> ServerGroup:
        members = self._members_in(turn)
        return ServerGroup(
            tuple(self._server_member(each, turn) for each in members),
            self.topics.living,
            changes=tuple(self.changes),
            joining=self._joining(turn),
            homogeneous=is_homogeneous((each.topics, each.regex) for each in members),
        )

    def _joining(self, turn: Turn | None) -> str | None:
        """Return the member that speaks, if it is not in the group's table yet."""
        return None if turn is None or turn.member.member_id in self.members else turn.member.member_id

    def install(self, targets: Mapping[str, TopicIdNumbers], now_ms: int) -> None:
        """Take new targets: those that changed, which are the ones that a record is written of."""
        self.targets |= {key: new for key, new in targets.items() if flat(new) != self.target(key)}
        self.assignment_epoch, self.assigned_ms = self.epoch, now_ms

    def finish(self, turn: Turn, now_ms: int) -> HeartbeatResponse:
        """Finish a heartbeat: move the member one step towards its target, and answer."""
        if turn.replaces is not None:
            self._replace(turn.replaces, turn.member.member_id)
        elif turn.member.member_id not in self.members:
            self.changes.append(JOINED)
        member = self._advance(turn)
        self.members[member.member_id] = member
        if self.changes[-1] != REWRITTEN:  # who joins is written twice: that it is there, and what it is assigned
            self.changes.append(REWRITTEN)
        self.heard_ms[member.member_id] = now_ms
        self._watch_revocation(turn.before, member, now_ms)
        answers_all = turn.request.epoch == 0 or self._says_all(turn.request)
        new = answers_all or dict(member.assigned) != dict(turn.before.assigned)
        return HeartbeatResponse(member.epoch, frozenset(member.assigned) if new else None)

    def _advance(self, turn: Turn) -> GroupMember:
        """One step of the member that speaks."""
        member = turn.member
        goal = self._goal(member)
        held_by_others = frozenset().union(
            *(each.held for key, each in self.members.items() if key != member.member_id)
        )
        changed = turn.subscription_changed
        return advance(member, goal, turn.request.owned, held_by_others, subscription_changed=changed)

    def _says_all(self, request: HeartbeatRequest) -> bool:
        """Whether everything was said, so that everything is answered."""
        return request.full

    def seat(self, member: GroupMember, held: Sequence[TopicIdPartition], now_ms: int) -> None:
        """Take a member into the current epoch that holds all of its target, which keeps this order."""
        topics, assigned = tuple(sorted(set(member.topics))), dict.fromkeys(sorted(held), self.epoch)
        self.members[member.member_id] = replace(
            member, topics=topics, epoch=self.epoch, previous_epoch=self.epoch, assigned=assigned
        )
        self.targets[member.member_id] = tuple(
            (topic_id, tuple(sorted(number for other, number in held if other == topic_id)))
            for topic_id in dict.fromkeys(topic_id for topic_id, _ in held)
        )
        self.heard_ms[member.member_id] = now_ms
        self.changes.append(JOINED)

    def seat_recorded(self, member: GroupMember, held: TopicIdPartitionSet, now_ms: int) -> None:
        """Take a recorded member; the group has seen the topics that exist."""
        self.seat(member, sorted(held), now_ms)
        self._seen_topics = self._metadata(None)

    def leave(self, member_id: str) -> None:
        """Remove a member for good, or since it is fenced: its partitions are free, and the group epoch rises."""
        del self.members[member_id]
        for found in (self.targets, self.heard_ms, self.revoking_since_ms, self.session_ms):
            found.pop(member_id, None)
        self.changes.append(LEFT)
        self._bump(None)
        if not self.members:
            self.assignment_epoch, self.assigned_ms = self.epoch, None

    def leave_for_now(self, member_id: str) -> None:
        """Keep the seat of a static member that closes, with all it was assigned, until its session ends."""
        member = self.members[member_id]
        self.members[member_id] = replace(
            member, epoch=LEFT_STATIC, previous_epoch=member.epoch, state=MemberState.STABLE, pending={}
        )
        self.revoking_since_ms.pop(member_id, None)

    @property
    def has_other_topics(self) -> bool:
        """Whether the topics that somebody subscribes to are others than at the last bump."""
        return self._topics_changed and self._metadata(None) != self._seen_topics

    def topics_changed(self) -> None:
        """Note that the cluster has other topics; the next heartbeat compares."""
        self._topics_changed = True

    def resolve_expressions(self, now_ms: int) -> None:
        """Resolve where that is due; the group moves on if the topics are others."""
        members = self.members.values()
        stable = self.epoch == self.assignment_epoch and all(
            each.state is MemberState.STABLE and each.epoch == self.epoch for each in members
        )
        due = self.resolved.is_due(members, self.topics.created, now_ms, stable=stable)
        if due and self.resolved.resolve(members, self.topics.living, self.topics.created, now_ms):
            self._bump(None)

    def deadline(self, member_id: str) -> int:
        """When a member that says nothing more is fenced."""
        session_ends_ms = self.heard_ms[member_id] + self.session_ms.get(member_id, self.settings.session_timeout_ms)
        if member_id not in self.revoking_since_ms:
            return session_ends_ms
        return min(session_ends_ms, self.revocation_ends_ms(member_id))

    def revocation_ends_ms(self, member_id: str) -> int:
        """When a member that has to give up partitions is fenced if it has not."""
        return self.revoking_since_ms[member_id] + self.members[member_id].rebalance_timeout_ms

    def subscribed_topics(self) -> set[str]:
        """All names that somebody subscribes to."""
        return {name for each in self.members.values() for name in topics_of(each, self.resolved.topics)}

    def target(self, member_id: str) -> TopicIdPartitionSet:
        """Return what a member is to get."""
        return flat(self.targets.get(member_id, ()))

    def missing(self, member: GroupMember) -> TopicIdPartitionSet:
        """Return what a member's target has and it was not assigned."""
        goal = self._goal(member)
        return frozenset(each for each in goal.target - member.assigned.keys() if each.topic_id in goal.subscribed)

    def holder(self, partition: TopicIdPartition) -> str | None:
        """Who holds a partition, or has not given it up."""
        return next((each.member_id for each in self.members.values() if partition in each.held), None)

    def blockers(self, member: GroupMember, partition: TopicIdPartition) -> set[str]:
        """Who has to give up something before a member gets this partition of its target."""
        holder = self.holder(partition)
        return set() if holder is None else {holder}

    def state_of(self, member: GroupMember) -> str:
        """Return the state of a member in the words of its protocol."""
        return member.state.value

    def named(self, partitions: Iterable[TopicIdPartition]) -> tuple[TopicPartition, ...]:
        """Return what the coordinator assigns, by name."""
        return self.topics.named(partitions)

    def standby(self, tasks: Iterable[TopicIdPartition]) -> tuple[TopicPartition, ...]:
        """Standby tasks among what the coordinator assigns, by name."""
        return ()

    def partitions(self, owned: Iterable[TopicIdPartition]) -> tuple[TopicPartition, ...]:
        """Partitions that a member reads which owns these."""
        return self.topics.named(owned)

    def living_partitions(self, owned: Iterable[TopicIdPartition]) -> tuple[TopicPartition, ...]:
        """Those of them that exist: none of a topic that is gone, be there another one of its name."""
        living = {topic.topic_id for topic in self.topics.living.values()}
        return self.topics.named(each for each in owned if each.topic_id in living)

    @property
    def status(self) -> str | None:
        """Why nothing can be assigned."""
        return None

    @property
    def reads_what_is_there(self) -> bool:
        """Whether members read what their assignment comes to now, and not what it came to when they took it."""
        return False

    def make_topics(self, now_ms: int) -> bool:
        """Whether topics were made since the last heartbeat."""
        return False

    def would_be_classic(self, without: str | None = None) -> bool:
        """Whether the group, without one member, has classic members alone, and may become classic again."""
        others = [each for member_id, each in self.members.items() if member_id != without]
        return self.settings.migration_policy.downgrades and bool(others) and all(each.uses_classic for each in others)

    def _may_be_late(self, request: HeartbeatRequest, member: GroupMember) -> bool:
        """Whether a member may speak in its previous epoch: it owns nothing that it was not assigned."""
        return request.owned is not None and request.owned <= member.assigned.keys()

    def _bump(self, turn: Turn | None) -> None:
        self.epoch += 1
        self._seen_topics = self._metadata(turn)

    def _metadata(self, turn: Turn | None) -> object:
        """Topics that somebody subscribes to, as the hash of the group's metadata distinguishes them."""
        names = sorted({name for each in self._members_in(turn) for name in topics_of(each, self.resolved.topics)})
        return tuple((name, self.topics.living[name]) for name in names if name in self.topics.living)

    def _members_in(self, turn: Turn | None) -> list[GroupMember]:
        """All members with the one that speaks as it is now, and without the one that it replaces."""
        if turn is None:
            return list(self.members.values())
        mine = turn.member.member_id
        others = {key: each for key, each in self.members.items() if key != turn.replaces}
        return list((others | {mine: turn.member}).values())

    def _server_member(self, member: GroupMember, turn: Turn | None) -> ServerMember:
        replaces = None if turn is None or member is not turn.member else turn.replaces
        of = member.member_id if replaces is None else replaces
        names = topics_of(member, self.resolved.topics)
        return ServerMember(member.member_id, names, self.targets.get(of, ()), member.group_instance_id)

    def _replace(self, old: str, new: str) -> None:
        """Give a static member a new id: it takes the place of a newcomer."""
        del self.members[old]
        if old in self.targets:
            target = self.targets.pop(old)
            self.targets.setdefault(new, target)
        for found in (self.heard_ms, self.revoking_since_ms, self.session_ms):
            found.pop(old, None)
        self.changes += [LEFT, JOINED]

    def _goal(self, member: GroupMember) -> Goal:
        subscribed = self.topics.ids(topics_of(member, self.resolved.topics))
        return Goal(self.assignment_epoch, self.target(member.member_id), subscribed)

    def _watch_revocation(self, before: GroupMember, member: GroupMember, now_ms: int) -> None:
        """Restart the rebalance timeout with each step that asks for a revocation."""
        if member.state is not MemberState.UNREVOKED_PARTITIONS or member.uses_classic:
            self.revoking_since_ms.pop(member.member_id, None)
        elif member != before or member.member_id not in self.revoking_since_ms:
            self.revoking_since_ms[member.member_id] = now_ms


# One step of a member towards its target (KIP-848, "Member state machine"): pure, as `rebalance.step` for clients.
#
# Worked example: A holds t-0 and t-1 in epoch 2 and is to hold t-0 in epoch 3. Its heartbeat states nothing: it stays
# in epoch 2 and has to revoke t-1. Its next one states t-0: it is in epoch 3, and t-1 is free.


class Goal(NamedTuple):
    """Where a member is to get: its target, the epoch of that, the topics that it subscribes to and that exist."""

    epoch: int
    target: TopicIdPartitionSet
    subscribed: frozenset[TopicId]


def advance(
    member: GroupMember,
    goal: Goal,
    stated: TopicIdPartitionSet | None,
    held_by_others: TopicIdPartitionSet,
    *,
    subscription_changed: bool = False,
) -> GroupMember:
    """Return the member after a heartbeat in which it stated what it owns (None: it stated nothing of it).

    A member that still owns what it has to revoke stays as it is; one that changed its subscription gives up the topics
    that it left even where its target is the same.
    """
    reconciled = member.state is MemberState.STABLE and member.epoch == goal.epoch
    waits = member.state is MemberState.UNREVOKED_PARTITIONS and still_owns(stated, member.pending)
    if not reconciled and not waits:
        return _next(member, goal, stated, held_by_others)
    return _without_left_topics(member, goal, stated) if subscription_changed else member


def _next(
    member: GroupMember, goal: Goal, stated: TopicIdPartitionSet | None, held_by_others: TopicIdPartitionSet
) -> GroupMember:
    """Revoke first; only then the target's epoch, and what is free of the target."""
    wanted = {each for each in goal.target if each.topic_id in goal.subscribed}
    kept = {each: epoch for each, epoch in member.assigned.items() if each in wanted}
    revoked = {each: epoch for each, epoch in member.assigned.items() if each not in wanted}
    if revoked and still_owns(stated, revoked):
        return moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, kept, revoked)
    missing = wanted - kept.keys()
    free = sorted(missing - held_by_others)
    state = MemberState.STABLE if len(free) == len(missing) else MemberState.UNRELEASED_PARTITIONS
    return moved(member, state, goal.epoch, {**kept, **dict.fromkeys(free, goal.epoch)}, {})


def _without_left_topics(member: GroupMember, goal: Goal, stated: TopicIdPartitionSet | None) -> GroupMember:
    """Keep the epoch; partitions of topics that it left are to be revoked, unless they are already."""
    left = {each: epoch for each, epoch in member.assigned.items() if each.topic_id not in goal.subscribed}
    if not left:
        return member
    kept = {each: epoch for each, epoch in member.assigned.items() if each not in left}
    pending = {**member.pending, **left}
    if still_owns(stated, pending):
        return moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, kept, pending)
    return moved(member, member.state, member.epoch, kept, member.pending)


def still_owns(stated: TopicIdPartitionSet | None, partitions: Mapping[TopicIdPartition, int]) -> bool:
    """Whether a member still has some of these, as far as its heartbeat says."""
    return stated is None or not stated.isdisjoint(partitions)


def moved(
    member: GroupMember,
    state: MemberState,
    epoch: int,
    assigned: Mapping[TopicIdPartition, int],
    pending: Mapping[TopicIdPartition, int],
) -> GroupMember:
    """Return the member after a step; the epoch before it is its previous one."""
    return replace(member, state=state, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, pending=pending)


# The coordinator of a share group (KIP-932), as in Kafka 4.4: members share partitions, and wait for nobody.
#
# A heartbeat takes a member to its target at once. A partition is assigned once its share state is initialized, which
# the first heartbeat that finds it starts, and of which the next one learns.
#
# Worked example: A joins a group that has t-0 and t-1, in epoch 2, and gets nothing. Its next heartbeat makes epoch 3
# and gets both. B's first one makes epoch 4 and gets one of them, and A has the other from its next heartbeat on.


@dataclass(slots=True)
class ShareGroup(ConsumerGroup):
    """One share group. `initialized`: how many partitions of a topic have a share state, the first ones of it."""

    initialized: dict[TopicId, int] = field(default_factory=dict)
    protocol: ClassVar[GroupProtocol] = GroupProtocol.SHARE
    _news: bool = False  # partitions were initialized since the last bump

    def begin(self, request: HeartbeatRequest, now_ms: int) -> Turn | HeartbeatResponse:
        """As in a consumer group; partitions that were initialized move the group on as well."""
        turn = ConsumerGroup.begin(self, request, now_ms)
        if isinstance(turn, Turn) and self._news and self.epoch == self.assignment_epoch:
            self._bump(turn)
        return turn

    def question(self, turn: Turn | None) -> ServerQuestion:
        """Ask for initialized partitions alone; they are news no longer."""
        group = self._server_group(turn)
        self._news = False
        topics = {
            name: replace(topic, partitions=min(self.initialized.get(topic.topic_id, 0), topic.partitions))
            for name, topic in self.topics.living.items()
        }
        return ServerQuestion(SIMPLE, replace(group, topics=topics))

    def finish(self, turn: Turn, now_ms: int) -> HeartbeatResponse:
        """As in a consumer group; then the share state of new partitions is initialized."""
        answer = ConsumerGroup.finish(self, turn, now_ms)
        for name in self.subscribed_topics() & self.topics.living.keys():
            topic = self.topics.living[name]
            if self.initialized.get(topic.topic_id, 0) < topic.partitions:
                self.initialized[topic.topic_id] = topic.partitions
                self._news = True
        return answer

    @property
    def has_other_topics(self) -> bool:
        """Whether the next heartbeat finds other topics, or partitions that it may assign now."""
        return self._news or self._topics_changed

    def _advance(self, turn: Turn) -> GroupMember:
        goal, member = self._goal(turn.member), turn.member
        if member.epoch == goal.epoch and not turn.subscription_changed:
            return member
        assigned = {each: goal.epoch for each in sorted(goal.target) if each.topic_id in goal.subscribed}
        previous = member.epoch if member.epoch != goal.epoch else member.previous_epoch
        return replace(
            member, epoch=goal.epoch, previous_epoch=previous, state=MemberState.STABLE, assigned=assigned, pending={}
        )

    def _says_all(self, request: HeartbeatRequest) -> bool:
        return request.topics is not None

    def _may_be_late(self, request: HeartbeatRequest, member: GroupMember) -> bool:
        return True
