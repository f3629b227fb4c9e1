"""`sticky` and `cooperative-sticky` of franz-go 1.22, an algorithm of its own, for each order of topics it may take.

Claims are kept, free partitions go to the least loaded, then the group is evened out: by `even_out` if subscriptions
are equal, by `steal` and `bring_home` otherwise. Racks (an option there) are not modelled.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.assignors.clients.client_plan import (
    Choices,
    LeaderPlan,
    PossiblePlans,
    known_topics,
    most_runs,
    static_first,
)
from groupledger.core.custom.custom_group import Group, Member, TopicPartition
from groupledger.core.wire.consumer_protocol import STICKY, UserDataForm, decode_user_data


def franz_go_sticky(group: Group, leader: str | None) -> PossiblePlans:
    """Assign with claims from user data."""
    return PossiblePlans(lambda choices: _balanced(group, False, choices), most_runs(group))


def franz_go_cooperative_sticky(group: Group, leader: str | None) -> PossiblePlans:
    """Assign with claims from ownedPartitions if they have a generation, else from user data; withhold hand-overs."""
    return PossiblePlans(lambda choices: _held_back(group, _balanced(group, True, choices)), most_runs(group))


def _balanced(group: Group, cooperative: bool, choices: Choices) -> LeaderPlan:
    """Balance the group; topics and partitions of each member are sorted."""
    seats = seats_of(group, cooperative, choices)
    if seats.partitions:
        alike = seats.alike
        hand_out(seats)
        if alike:
            even_out(seats)
        else:
            steal(seats)
            bring_home(seats)
    lists = {
        member.member_id: tuple(sorted(seats.partitions[each] for each in held))
        for member, held in zip(seats.members, seats.held, strict=True)
    }
    return LeaderPlan(lists)


def _held_back(group: Group, plan: LeaderPlan) -> LeaderPlan:
    """Return the plan without partitions that one member loses and another gains.

    A claim of a lower generation than another member's counts as losing the partition, not as having it.
    """
    owned = {member.member_id: frozenset(member.owned) for member in group.members}
    generations = {member.member_id: -1 if member.generation is None else member.generation for member in group.members}
    latest: dict[TopicPartition, int] = {}
    for member_id, partitions in owned.items():
        for each in partitions:
            latest[each] = max(latest.get(each, -1), generations[member_id])
    lost = {each for member_id, mine in owned.items() for each in mine - set(plan.lists.get(member_id, ()))}

    def has(member_id: str, each: TopicPartition) -> bool:
        return each in owned[member_id] and generations[member_id] >= latest[each]

    lists = {
        member_id: tuple(each for each in partitions if each not in lost or has(member_id, each))
        for member_id, partitions in plan.lists.items()
    }
    return LeaderPlan(lists)


# Even out a group as franz-go does: free partitions to the least loaded, then from the most loaded to the least.


@dataclass(slots=True)
class Levels:
    """Members by the number of partitions they hold, in the order in which they reached that number."""

    at: dict[int, list[int]] = field(default_factory=dict)

    @property
    def least(self) -> int:
        """Return the lowest level with a member."""
        return min(self.at)

    @property
    def most(self) -> int:
        """Return the highest level with a member."""
        return max(self.at)

    def add(self, member: int, level: int) -> None:
        """Add a member to a level."""
        self.at.setdefault(level, []).append(member)

    def remove(self, member: int, level: int) -> None:
        """Remove a member from its level: the last of the level fills its place; an empty level is deleted."""
        members = self.at[level]
        if member in members:
            place, last = members.index(member), members.pop()
            if last != member:
                members[place] = last
        if not members:
            del self.at[level]


def levels_of(seats: Seats) -> Levels:
    """Return all members on their levels."""
    levels = Levels()
    for member, held in enumerate(seats.held):
        levels.add(member, len(held))
    return levels


def hand_out(seats: Seats) -> None:
    """Give each free partition to the least loaded subscriber; a heap decides between equals.

    The heap is rebuilt for each topic, or built once if subscriptions are equal.
    """
    heap: list[int] = []
    heap_topic = NOBODY
    for partition in list(_free(seats)):
        topic = seats.topic_of[partition]
        if not seats.takers[topic]:
            continue
        if heap_topic == NOBODY or (topic != heap_topic and not seats.alike):
            heap_topic, heap = topic, list(seats.takers[topic])
            for place in reversed(range(len(heap) // 2)):
                _sink(heap, place, seats.held)
        seats.give(partition, heap[0])
        _sink(heap, 0, seats.held)


def _free(seats: Seats) -> Iterator[int]:
    return (partition for partition, owner in enumerate(seats.owner) if owner == NOBODY)


def _sink(heap: list[int], place: int, held: Sequence[Sequence[int]]) -> None:
    """Swap a member with the lighter of its two children, the left one if equal, while the child is lighter."""
    while True:
        below = [child for child in (2 * place + 1, 2 * place + 2) if child < len(heap)]
        if not below:
            return
        child = min(below, key=lambda at: len(held[heap[at]]))
        if len(held[heap[place]]) <= len(held[heap[child]]):
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


def even_out(seats: Seats) -> None:
    """With equal subscriptions, pair members of the highest level with those of the lowest until the group is even.

    The more loaded member gives its highest partition number, over all topics.
    """
    levels = levels_of(seats)
    for held in seats.held:
        if len(held) > levels.least + 1:
            held.sort(key=lambda each: (seats.partitions[each].partition, seats.partitions[each].topic))
    while levels.most > levels.least + 1:
        low, high = levels.least, levels.most
        takers, givers = levels.at[low], levels.at[high]
        pairs = min(len(takers), len(givers))
        for taker, giver in zip(takers[:pairs], givers[:pairs], strict=True):
            seats.give(seats.held[giver].pop(), taker)
        up, down = takers[:pairs], givers[:pairs]
        del takers[:pairs], givers[:pairs]
        for level in (low, high):
            if not levels.at[level]:
                del levels.at[level]
        for member in up:
            levels.add(member, low + 1)
        for member in down:
            levels.add(member, high - 1)


# franz-go's last step if subscriptions differ: exchange partitions in cycles until most are back with their owners.
#
# By then it is settled how many partitions each member holds, except that members one level apart may swap loads.
# Topics with the same subscribers form one class. A cycle goes from class to member (which takes one) and from member
# to class (which gives one up); a level joins members above it that give with members below it that take. A cycle pays
# if it leaves more partitions with their previous owners. This is Bellman and Ford's search for negative cycles, whose
# order of visits decides which of several equally good cycles is taken.

NEVER = 1 << 62
"""The price of giving up a partition that is not held."""


@dataclass(slots=True)
class Cell:
    """How many partitions of a class a member holds, and how many it held before."""

    kind: int  # the class
    member: int
    held: int = 0
    came_with: int = 0

    @property
    def gain(self) -> int:
        """Return the price of one more: a move, unless the member takes back what it had."""
        return int(self.held >= self.came_with)

    @property
    def loss(self) -> int:
        """Return the price of one fewer: minus a move, if the last one came by a move."""
        return NEVER if self.held == 0 else -int(self.held > self.came_with)

    def room(self, change: int) -> int:
        """Return how many steps in this direction have the same price."""
        if change > 0:
            return self.came_with - self.held if self.held < self.came_with else NEVER
        return self.held - self.came_with if self.held > self.came_with else self.held


class Edge(NamedTuple):
    """How a node was reached: from which node, and through which cell (None: a level)."""

    node: int
    cell: Cell | None


@dataclass(slots=True)
class Rings:
    """Search for cycles. Nodes: classes, then members, then the levels of members."""

    cells: list[Cell]
    kinds: int
    loads: list[int]

    def find(self) -> list[list[tuple[Cell | None, int]]]:
        """Return disjoint cycles that pay, as cells with +1 or -1, or None for a level; none: nothing to improve."""
        levels = self._levels()
        nodes = self.kinds + len(self.loads) + len(levels)
        price = [0] * nodes
        via: list[Edge | None] = [None] * nodes
        for _ in range(nodes):
            if not self._relax(levels, price, via):
                return []
            starts = _on_rings(via)
            if starts:
                return [self._ring(start, via) for start in starts]
        return []

    def _levels(self) -> dict[int, int]:
        """Return a node for each load above 0, in order of the members."""
        loads = dict.fromkeys(load for load in self.loads if load > 0)
        return {load: self.kinds + len(self.loads) + at for at, load in enumerate(loads)}

    def _relax(self, levels: dict[int, int], price: list[int], via: list[Edge | None]) -> bool:
        moved = False

        def reach(source: int, to: int, cost: int, cell: Cell | None) -> None:
            nonlocal moved
            if price[source] + cost < price[to]:
                price[to], via[to], moved = price[source] + cost, Edge(source, cell), True

        for cell in self.cells:
            reach(cell.kind, self.kinds + cell.member, cell.gain, cell)
            reach(self.kinds + cell.member, cell.kind, cell.loss, cell)
        for member, load in enumerate(self.loads):
            if load + 1 in levels:
                reach(self.kinds + member, levels[load + 1], 0, None)
            if load > 0:
                reach(levels[load], self.kinds + member, 0, None)
        return moved

    def _ring(self, start: int, via: list[Edge | None]) -> list[tuple[Cell | None, int]]:
        ring: list[tuple[Cell | None, int]] = []
        node = start
        while not ring or node != start:
            edge = via[node]
            assert edge is not None, "a ring has no end"
            ring.append((edge.cell, 1 if node >= self.kinds else -1))
            node = edge.node
        return ring

    def turn(self, ring: list[tuple[Cell | None, int]]) -> None:
        """Move as many partitions around the cycle as have the same price; one, if loads change."""
        cells = [(cell, change) for cell, change in ring if cell is not None]
        count = 1 if len(cells) < len(ring) else min(cell.room(change) for cell, change in cells)
        for cell, change in cells:
            cell.held += change * count
            self.loads[cell.member] += change * count


def _on_rings(via: list[Edge | None]) -> list[int]:
    """Return one node of each cycle among the edges by which nodes were reached."""
    seen: dict[int, int] = {}
    starts = []
    for start in range(len(via)):
        node: int | None = start
        while node is not None and node not in seen:
            seen[node] = start
            edge = via[node]
            node = None if edge is None else edge.node
            if node is not None and seen.get(node) == start:
                starts.append(node)
                break
    return starts


def bring_home(seats: Seats) -> None:
    """Rearrange who holds which partitions."""
    kind_of = _kinds(seats)
    cells = _cells(seats, kind_of)
    loads = [0] * len(seats.members)
    for cell in cells:
        loads[cell.member] += cell.held
    rings = Rings(cells, max(kind_of, default=NOBODY) + 1, loads)
    turned = False
    while found := rings.find():
        turned = True
        for ring in found:
            rings.turn(ring)
    if turned or any(NOBODY != had != now for now, had in zip(seats.owner, seats.came_with, strict=True)):
        _rewrite(seats, kind_of, cells)


def _kinds(seats: Seats) -> list[int]:
    """Return the class of each topic, numbered in order of the topics."""
    classes: dict[tuple[int, ...], int] = {}
    return [classes.setdefault(tuple(takers), len(classes)) for takers in seats.takers]


def _cells(seats: Seats, kind_of: list[int]) -> list[Cell]:
    """Return cells by member, then class, without classes that have no partitions."""
    cells: dict[tuple[int, int], Cell] = {}
    for member in range(len(seats.members)):
        kinds = {kind for kind, takers in zip(kind_of, seats.takers, strict=True) if member in takers}
        cells |= {(member, kind): Cell(kind, member) for kind in sorted(kinds)}
    filled = set()
    for partition, owner in enumerate(seats.owner):
        kind = kind_of[seats.topic_of[partition]]
        for member, column in ((owner, "held"), (seats.came_with[partition], "came_with")):
            cell = cells.get((member, kind))
            if cell is not None:
                setattr(cell, column, getattr(cell, column) + 1)
                filled.add(kind)
    return [cell for cell in cells.values() if cell.kind in filled]


def _rewrite(seats: Seats, kind_of: list[int], cells: list[Cell]) -> None:
    """Deal all partitions again by the counts: first every member takes back what it held before."""
    need = {(cell.member, cell.kind): cell.held for cell in cells}
    everything = [partition for held in seats.held for partition in held]
    seats.held = [[] for _ in seats.members]
    piles: dict[int, list[int]] = {}
    for partition in everything:
        home = seats.came_with[partition], kind_of[seats.topic_of[partition]]
        if need.get(home, 0) > 0:
            need[home] -= 1
            seats.give(partition, home[0])
        else:
            piles.setdefault(home[1], []).append(partition)
    for (member, kind), count in need.items():
        for partition in piles.get(kind, [])[:count]:
            seats.give(partition, member)
        piles[kind] = piles.get(kind, [])[count:]


# Number one group as franz-go's sticky balancers do: members by instance and member id, partitions by topic.
#
# Topics are numbered in the order of a Go map, which varies between calls. Here that order is a choice.

NOBODY = -1


@dataclass(slots=True)
class Seats:
    """Members and partitions as numbers; `held` lists are in the library's order, in which it looks partitions up."""

    members: list[Member]
    partitions: list[TopicPartition]
    topic_of: list[int]  # of each partition
    takers: list[list[int]]  # of each topic, its subscribers
    held: list[list[int]]
    owner: list[int]  # of each partition, NOBODY if free
    came_with: list[int]  # of each partition, its previous owner
    stale: dict[int, int] = field(default_factory=dict)  # partition -> its claimant in an older generation

    @property
    def alike(self) -> bool:
        """Return whether every member subscribes to every topic."""
        return all(len(takers) == len(self.members) for takers in self.takers)

    def give(self, partition: int, to: int) -> None:
        """Hand out a free partition."""
        self.held[to].append(partition)
        self.owner[partition] = to

    def take(self, partition: int, holder: int) -> None:
        """Take a partition from a list: the last of the list fills its place."""
        mine = self.held[holder]
        last = mine.pop()
        if last != partition:
            mine[mine.index(partition)] = last


def seats_of(group: Group, cooperative: bool, choices: Choices) -> Seats:
    """Return the group with the claims that its members may keep."""
    members = sorted(group.members, key=static_first)
    topics = choices.order(sorted(known_topics(group)))
    partitions = [TopicPartition(topic, number) for topic in topics for number in range(group.topics[topic])]
    place = {topic: at for at, topic in enumerate(topics)}
    takers = [[at for at, member in enumerate(members) if topic in member.topics] for topic in topics]
    nobody = [NOBODY] * len(partitions)
    topic_of = [place[topic] for topic, _ in partitions]
    seats = Seats(members, partitions, topic_of, takers, [[] for _ in members], nobody, list(nobody))
    for partition, claimants in enumerate(_claimants(seats, cooperative)):
        if claimants and claimants[0] in takers[topic_of[partition]]:
            seats.give(partition, claimants[0])
        if len(claimants) > 1:
            seats.stale[partition] = claimants[1]
    _return_to_stale(seats, choices)
    seats.came_with = list(seats.owner)
    return seats


def _claimants(seats: Seats, cooperative: bool) -> list[list[int]]:
    """Return each partition's claimant of the highest generation, then that of the next one or of the same."""
    number = {partition: at for at, partition in enumerate(seats.partitions)}
    latest: list[list[tuple[int, int]]] = [[] for _ in seats.partitions]
    for at, member in enumerate(seats.members):
        claimed, generation = _claim(member, cooperative)
        for each in claimed:
            known = latest[number[each]] if each in number else []
            if not known or generation > known[0][0]:
                known.insert(0, (generation, at))
            elif len(known) == 1 or generation > known[1][0]:
                known.insert(1, (generation, at))
            del known[2:]
    return [[at for _, at in known] for known in latest]


def _claim(member: Member, cooperative: bool) -> tuple[list[TopicPartition], int]:
    """Return a member's claims and their generation; 0 if not stated. Truncated bytes claim nothing."""
    if cooperative and member.generation is not None:
        return list(member.owned), member.generation
    sent = decode_user_data(member.user_data, STICKY)
    if not sent.states_owned or sent.form is UserDataForm.PREFIXED_OWNED_GENERATION:
        return [], 0
    if sent.form is UserDataForm.OWNED and sent.leftover:
        return [], 0
    owned = [TopicPartition(topic, number) for topic, numbers in sent.owned for number in numbers]
    return owned, max(sent.generation or 0, 0)


def _return_to_stale(seats: Seats, choices: Choices) -> None:
    """Give a partition back to the older claimant if no member may keep it, or if its owner has two more."""
    stale = [each for each, claimant in seats.stale.items() if claimant in seats.takers[seats.topic_of[each]]]
    for partition in choices.order(stale):
        claimant, owner = seats.stale[partition], seats.owner[partition]
        if owner == NOBODY:
            seats.give(partition, claimant)
        elif len(seats.held[claimant]) + 1 < len(seats.held[owner]):
            seats.take(partition, owner)
            seats.give(partition, claimant)


# Even out a group with different subscriptions as franz-go does: take a partition through a chain of members.
#
# A wants what B holds, B wants what C holds, and C has two more than A: C gives to B, and B to A.


class Theft(NamedTuple):
    """One partition of a chain, from its owner to the member that wants it."""

    source: int
    to: int
    partition: int


@dataclass(slots=True)
class Market:
    """Which partitions of each topic each member holds: owners in the order in which they first held one."""

    seats: Seats
    offers: list[dict[int, list[int]]]  # topic -> owner -> partitions

    def trade(self, step: Theft) -> None:
        """Move a partition; the last of its owner's list fills its place."""
        seats, offers = self.seats, self.offers[self.seats.topic_of[step.partition]]
        mine = offers[step.source]
        last = mine.pop()
        if last != step.partition:
            mine[mine.index(step.partition)] = last
        offers.setdefault(step.to, []).append(step.partition)
        seats.take(step.partition, step.source)
        seats.give(step.partition, step.to)

    def chain(self, member: int) -> list[Theft]:
        """Return the steps to a member with two more, the most loaded first; none if this one can get no more."""
        seats = self.seats
        base = len(seats.held[member])
        reached: dict[int, Theft | None] = {member: None}
        heap = [(-base, 0, member)]
        while heap:
            load, distance, current = heapq.heappop(heap)
            if -load > base + 1:
                return self._back(current, reached)
            for topic, takers in enumerate(seats.takers):
                if current not in takers:
                    continue
                for owner, partitions in self.offers[topic].items():
                    if partitions and owner not in reached:
                        reached[owner] = Theft(owner, current, partitions[0])
                        heapq.heappush(heap, (-len(seats.held[owner]), distance + 1, owner))
        return []

    def _back(self, last: int, reached: dict[int, Theft | None]) -> list[Theft]:
        steps: list[Theft] = []
        step = reached[last]
        while step is not None:
            steps.append(step)
            step = reached[step.to]
        return steps


def market_of(seats: Seats) -> Market:
    """Return everything that is held."""
    offers: list[dict[int, list[int]]] = [{} for _ in seats.takers]
    for partition, owner in enumerate(seats.owner):
        if owner >= 0:
            offers[seats.topic_of[partition]].setdefault(owner, []).append(partition)
    return Market(seats, offers)


def steal(seats: Seats) -> None:
    """Let members of the lowest level take what they can; a member that can take nothing is out from then on."""
    market, levels = market_of(seats), levels_of(seats)
    while len(levels.at) > 1 and levels.most > levels.least + 1:
        low, high = levels.least, levels.most
        members, richest = levels.at[low], levels.at[high]
        while members and richest:
            steps = market.chain(members[0])
            if not steps:
                levels.remove(members[0], low)
            for step in steps:
                before = len(seats.held[step.source]), len(seats.held[step.to])
                market.trade(step)
                levels.remove(step.source, before[0])
                levels.add(step.source, before[0] - 1)
                levels.remove(step.to, before[1])
                levels.add(step.to, before[1] + 1)
