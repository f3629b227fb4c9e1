"""Groups that never settle: told from those that do by what decides the next round."""

from __future__ import annotations

import pytest

from groupledger.core.custom.custom_group import CustomAssignor, Protocol, cooperative_step
from groupledger.core.custom.custom_group import Group as CustomGroup
from groupledger.core.protocol import events as e
from groupledger.core.protocol.classic_group import Registered
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import Subscription
from groupledger.core.protocol.rounds import RoundsGroup
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import MOST_ROUNDS, Script, simulate
from groupledger.core.rebalance.step import Form
from tests.core.protocol.played import t

NAME = "custom"


def join(name):
    return e.Join(name, ("t",), (NAME,))


def played(assignor, *events, form=Form.KIP, topics=None):
    """By a custom assignor of cooperative members."""
    custom = {NAME: CustomAssignor(NAME, assignor, frozenset({Protocol.COOPERATIVE}), None)}
    return simulate(Script(topics or {"t": 4}, events, form), custom)


def restless(group: CustomGroup):
    """Even partitions move on while odd ones are given out, then the other way round: it never comes to rest."""
    ids = sorted(member.member_id for member in group.members)
    owner = {partition: ids.index(member.member_id) for member in group.members for partition in member.owned}
    odd = not any(number % 2 == 0 for _, number in owner)
    given = {member_id: [] for member_id in ids}
    for partition in group.partitions(ids[0]):
        moves = partition in owner and partition.partition % 2 == odd
        given[ids[(owner.get(partition, 0) + moves) % len(ids)]].append(partition)
    return cooperative_step(group, given)


def test_a_group_that_never_settles_is_found_and_its_cycle_shown():
    settled = played(restless, join("a"), join("b"))
    assert settled[0].stable
    assert not settled[1].stable
    first, last = settled[1].cycle
    alike = [
        {row.member: set(row.assigned) for row in settled[1].rounds[number - 1].members} for number in (first, last)
    ]
    assert alike[0] == alike[1]
    assert settled[1].cycle.length == last - first > 0
    assert len(settled[1].rounds) == last < MOST_ROUNDS


def counting_down(group: CustomGroup):
    """One member's partitions as the digits of a number: one less each round, so that something is always given up."""
    (member,) = group.members
    number = sum(1 << each.partition for each in member.owned) or 64
    return {member.member_id: [each for each in group.partitions(member.member_id) if number - 1 >> each.partition & 1]}


def test_a_group_that_neither_settles_nor_repeats_itself_is_given_up():
    events = join("a"), e.Subscribe("a", ("t",))
    begun, given_up = played(counting_down, *events, form=Form.AS_KAFKA, topics={"t": 6})
    assert (len(begun.rounds), begun.stable) == (1, True)
    assert (len(given_up.rounds), given_up.cycle, given_up.stable) == (50, None, False)
    assert given_up.failure == "not stable after 50 rounds, and no two of them alike"


CLAIMED = {
    "the same age": ((5, 5), (7, 7), True),
    "one older than the other": ((5, 7), (6, 9), True),
    "the other way round": ((5, 7), (7, 5), False),
    "no longer of one age": ((5, 5), (5, 7), False),
    "of no generation": ((None, 5), (5, 5), False),
}


@pytest.mark.parametrize(("before", "after", "alike"), CLAIMED.values(), ids=CLAIMED.keys())
def test_two_rounds_are_alike_where_claims_are_in_the_same_order_by_generation(before, after, alike):
    """An assignor compares generations (KIP-792), and cannot tell which they are."""
    assert (_claiming(*before).signature() == _claiming(*after).signature()) is alike


def _claiming(*generations):
    group = RoundsGroup(topics={"t": 4}, form=Form.KIP, pace=Pace())
    for at, generation in enumerate(generations):
        claim = Subscription(ByteCode.KIP_792, ("t",), t(at), generation)
        group.coordinator.seat(Registered(f"p{at}", f"m{at}", ("cooperative-sticky",), claim, None))
    return group
