"""`sticky` and `cooperative-sticky` of franz-go 1.22, an algorithm of its own, for each order of topics it may take.

Claims are kept, free partitions go to the least loaded, then the group is evened out: by `levels` if subscriptions
are equal, by `stealing` and `rotations` otherwise. Racks (an option there) are not modelled.
"""

from __future__ import annotations

from groupledger.core.assignors.clients.choices import Choices, PossiblePlans, most_runs
from groupledger.core.assignors.clients.franz_go.levels import even_out, hand_out
from groupledger.core.assignors.clients.franz_go.rotations import bring_home
from groupledger.core.assignors.clients.franz_go.seats import Seats, seats_of
from groupledger.core.assignors.clients.franz_go.stealing import steal
from groupledger.core.assignors.clients.plan import LeaderPlan
from groupledger.core.custom.group import Group, TopicPartition


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
        _balance(seats)
    lists = {
        member.member_id: tuple(sorted(seats.partitions[each] for each in held))
        for member, held in zip(seats.members, seats.held, strict=True)
    }
    return LeaderPlan(lists)


def _balance(seats: Seats) -> None:
    alike = seats.alike
    hand_out(seats)
    if alike:
        even_out(seats)
    else:
        steal(seats)
        bring_home(seats)


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
