"""Assign the tasks of a Streams group by Kafka's `sticky` task assignor (KIP-1071): stateful and stateless alike.

Active tasks stay with the member that has them, else go to one that has their state, as long as that member is below
its quota; the others go to the least loaded process, and there to its least loaded member. Standby tasks follow in the
same way, never on a process that has the task already. Processes and members of equal load take turns in the order of
Java's queues and maps, so that order is computed key by key.

Worked example: 4 tasks, A has all, B joins on another process -> each may have 2: A keeps 0 and 1, B gets 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.arrays.java_orders import LEAST_CAPACITY, hash_texts, rank_texts
from groupledger.core.assignors.server.java_collections import HashedKey, JavaHeap, JavaTable
from groupledger.core.assignors.server.orders import table_size
from groupledger.core.assignors.server.server_batch import find_walks
from groupledger.core.assignors.server.server_group import ServerGroup, ServerMember, encode, require

STICKY_TASKS = "sticky"
"""The one assignor that a Streams group has (`group.streams.assignors`)."""


def assign_tasks(group: TaskGroup) -> dict[str, MemberTasks]:
    """Return the new target of each member, in the order of `group.members`."""
    if not group.members:
        return {}
    work = _Work(group)
    work.assign_active()
    if group.standby_replicas:
        work.assign_standby()
    return {each.member_id: work.seats[each.member_id].target for each in group.members}


@dataclass(slots=True)
class _Seat:
    """A member, and what it is to get."""

    process: _Process
    active: list[Task] = field(default_factory=list)
    standby: list[Task] = field(default_factory=list)
    count: int = 0

    @property
    def target(self) -> MemberTasks:
        return MemberTasks(tuple(sorted(self.active)), tuple(sorted(self.standby)))


@dataclass(slots=True)
class _Process:
    """A process with its members in iteration order, and the tasks that one of them is to get."""

    seats: list[_Seat] = field(default_factory=list)
    tasks: set[Task] = field(default_factory=set)
    count: int = 0
    turns: JavaHeap[_Seat] | None = None  # members by load, until one is chosen for another reason

    @property
    def load(self) -> float:
        """Return the tasks per member."""
        return self.count / len(self.seats)

    def give(self, seat: _Seat, task: Task, *, active: bool) -> None:
        """Give a task to one of the members."""
        self.count += 1
        self.tasks.add(task)
        (seat.active if active else seat.standby).append(task)
        seat.count += 1

    def give_to(self, seat: _Seat, task: Task, *, active: bool) -> None:
        """Give a task to this member; the members' queue is rebuilt when it is needed again."""
        self.give(seat, task, active=active)
        self.turns = None

    def give_to_least_loaded(self, task: Task, *, active: bool) -> _Seat:
        """Give a task to the member with the fewest."""
        if self.turns is None:
            self.turns = JavaHeap(lambda seat: seat.count, self.seats)
        seat = self.turns.poll()
        self.give(seat, task, active=active)
        self.turns.add(seat)
        return seat


@dataclass(slots=True)
class _Quota:
    """How many tasks a member may have: of tasks and members that are left, once the full ones are taken out."""

    tasks: int
    members: int

    @property
    def each(self) -> int:
        """Return tasks per member, rounded up; counts below 0, which overfull members lead to, round towards 0."""
        if self.members == 0:
            return 0
        rounded_down = abs(self.tasks) // abs(self.members)
        if (self.tasks < 0) is not (self.members < 0):
            rounded_down = -rounded_down
        return rounded_down + (self.tasks > rounded_down * self.members)

    def count(self, seat: _Seat) -> None:
        """Take a member out that has exactly its quota now."""
        if seat.count == self.each:
            self.members -= 1
            self.tasks -= seat.count


class _Work:
    """One assignment under way."""

    def __init__(self, group: TaskGroup) -> None:
        """Read who has what."""
        self.group = group
        self.rank = {name: int(at) for name, at in _ranked(list(group.subtopologies))}
        tasks = [Task(name, at) for name, of in group.subtopologies.items() for at in range(of.tasks)]
        self.active_tasks = sorted(tasks, key=self._by_number)
        self.stateful = [each for each in self.active_tasks if group.subtopologies[each.subtopology].stateful]
        self.active_quota = _Quota(len(tasks), len(group.members))
        self.quota = _Quota(len(tasks) + len(self.stateful) * group.standby_replicas, len(group.members))
        order = _walk_members(group)
        self.processes = self._seat_all(order)
        self.had_active = {task: self.seats[each] for each in order for task in self._held(each).active}
        self.had_state = self._rank_states(order)

    def _by_number(self, task: Task) -> tuple[int, int]:
        return task.number, self.rank[task.subtopology]

    def _by_subtopology(self, task: Task) -> tuple[int, int]:
        return self.rank[task.subtopology], task.number

    def _held(self, member_id: str) -> MemberTasks:
        return self.members[member_id].held

    def _seat_all(self, order: Sequence[str]) -> list[_Process]:
        """Return the processes in iteration order, each with its members in iteration order."""
        self.members = {each.member_id: each for each in self.group.members}
        ids = [self.members[each].process_id for each in order]
        keys, found = _keys(ids), JavaTable(table_size(len(order)))
        members: dict[str, list[str]] = {}
        for member_id, process_id in zip(order, ids, strict=True):
            found.compute_if_absent(keys[process_id])
            members.setdefault(process_id, []).append(member_id)
        self.seats: dict[str, _Seat] = {}
        return [self._seat_process(members[process_id]) for process_id in found]

    def _seat_process(self, member_ids: Sequence[str]) -> _Process:
        process, keys, table = _Process(), _keys(member_ids), JavaTable(LEAST_CAPACITY)
        for each in member_ids:
            table.put(keys[each])
        for each in table:
            self.seats[each] = _Seat(process)
            process.seats.append(self.seats[each])
        return process

    def _rank_states(self, order: Sequence[str]) -> dict[Task, list[_Seat]]:
        """Return who has the state of each task: holders of a standby first, then those who reported offsets of it."""
        found: dict[Task, list[tuple[bool, int, _Seat]]] = {}
        for member_id in order:
            held, offsets = self._held(member_id).standby, self.members[member_id].offsets
            for task in (*held, *(each for each in offsets if each not in held)):
                found.setdefault(task, []).append((task not in held, -offsets.get(task, 0), self.seats[member_id]))
        return {task: [seat for *_, seat in sorted(some, key=lambda one: one[:2])] for task, some in found.items()}

    def assign_active(self) -> None:
        """Assign every active task."""
        left = [each for each in self.active_tasks if not self._keep_active(self.had_active.get(each), each)]
        left = [each for each in left if not self._keep_active(self._least_loaded(self.had_state.get(each, ())), each)]
        queue = JavaHeap(lambda process: process.load, self.processes)
        for task in sorted(left, key=self._by_subtopology):
            process = queue.poll()
            self._count_active(process.give_to_least_loaded(task, active=True))
            queue.add(process)

    def _keep_active(self, seat: _Seat | None, task: Task) -> bool:
        """Leave a task to a member that had it, if that one is below its quota."""
        if seat is None or seat.count >= self.active_quota.each:
            return False
        seat.process.give_to(seat, task, active=True)
        self._count_active(seat)
        return True

    def _count_active(self, seat: _Seat) -> None:
        self.active_quota.count(seat)
        self.quota.count(seat)

    def _least_loaded(self, seats: Iterable[_Seat], without: Task | None = None) -> _Seat | None:
        """Return the first of these, or a later one if both its process and itself have less than any chosen before.

        `without`: leave out processes that have this task.
        """
        chosen: _Seat | None = None
        for seat in seats:
            if without is not None and without in seat.process.tasks:
                continue
            if chosen is None or (seat.process.load < chosen.process.load and seat.count < chosen.count):
                chosen = seat
        return chosen

    def assign_standby(self) -> None:
        """Assign the standby tasks of every stateful one, as many as there are processes for."""
        missing = list[tuple[Task, int]]()
        for task in reversed(self.stateful):
            kept = 0
            while kept < self.group.standby_replicas and self._keep_standby(task):
                kept += 1
            missing.append((task, self.group.standby_replicas - kept))
        queue = JavaHeap(lambda process: process.load, self.processes)
        for task, replicas in sorted(missing, key=lambda each: self._by_subtopology(each[0]), reverse=True):
            for _ in range(replicas):
                if not self._give_standby(queue, task):
                    break

    def _keep_standby(self, task: Task) -> bool:
        """Give a standby task to the member that had it as an active one, or else to one that has its state."""
        seat = self.had_active.get(task)
        if seat is None or task in seat.process.tasks or seat.count >= self.quota.each:
            seat = self._least_loaded(self.had_state.get(task, ()), without=task)
        if seat is None or seat.count >= self.quota.each:
            return False
        seat.process.give_to(seat, task, active=False)
        self.quota.count(seat)
        return True

    def _give_standby(self, queue: JavaHeap[_Process], task: Task) -> bool:
        """Give a standby task to the least loaded process that does not have the task, if there is one."""
        polled = [queue.poll()]
        while task in polled[-1].tasks and len(queue):
            polled.append(queue.poll())
        found = task not in polled[-1].tasks
        if found:
            self.quota.count(polled[-1].give_to_least_loaded(task, active=False))
        for process in reversed(polled):
            queue.add(process)
        return found


def _walk_members(group: TaskGroup) -> list[str]:
    """Return the member ids in the assignor's iteration order, which is that of other coordinators' groups."""
    members = tuple(ServerMember(each.member_id, ()) for each in group.members)
    batch, _ = encode([ServerGroup(members, {}, group.changes, group.joining, homogeneous=True)])
    return [group.members[at].member_id for at in find_walks(batch)[1].members.tolist()]


def _ranked(texts: Sequence[str]) -> Iterable[tuple[str, int]]:
    return zip(texts, rank_texts(texts).tolist(), strict=True)


def _keys(texts: Sequence[str]) -> dict[str, HashedKey]:
    """Return the keys of texts in a Java table."""
    hashes = hash_texts(texts).tolist()
    return {text: HashedKey(hashed, rank, text) for (text, rank), hashed in zip(_ranked(texts), hashes, strict=True)}


# Represent a Streams group (KIP-1071) as a task assignor sees it: members of processes, and tasks to assign.


class Task(NamedTuple):
    """One task: Kafka writes it `subtopology_number`."""

    subtopology: str
    number: int


class SubtopologyTasks(NamedTuple):
    """How many tasks a subtopology has; stateful ones have a changelog, and so may have standby tasks."""

    tasks: int
    stateful: bool = False


class MemberTasks(NamedTuple):
    """Tasks of one member by role, each list sorted."""

    active: tuple[Task, ...] = ()
    standby: tuple[Task, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskMember:
    """A member before the assignment: one thread of a process. `held`: its current assignment, not its target.

    `offsets`: of tasks whose state is on its disk, the sum of changelog offsets that it reported.
    """

    member_id: str
    process_id: str
    held: MemberTasks = field(default_factory=MemberTasks)
    offsets: Mapping[Task, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """A group before its new assignment; `members`, `changes` and `joining` as in `ServerGroup`.

    Fault BAD_GROUP for a group that cannot exist.
    """

    members: tuple[TaskMember, ...]
    subtopologies: Mapping[str, SubtopologyTasks]
    standby_replicas: int = 0
    changes: tuple[int, ...] | None = None
    joining: str | None = None

    def __post_init__(self) -> None:
        """Check what the result could not report later."""
        require(self.standby_replicas >= 0, f"standby_replicas is {self.standby_replicas}", "0 or more")
        for name, of in self.subtopologies.items():
            require(of.tasks >= 0, f"subtopology {name!r} has {of.tasks} tasks", "0 or more")
