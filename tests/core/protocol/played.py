"""What tests of the protocol say and read: partitions of `t` by number, calls as text."""

from __future__ import annotations

from groupledger.core.custom.custom_group import Protocol, TopicPartition
from groupledger.core.protocol.consumer import Callback, Consumer, Memory
from groupledger.core.rebalance.step import Form

EAGER, COOPERATIVE = Protocol.EAGER, Protocol.COOPERATIVE


def t(*numbers, topic="t"):
    """Partitions of a topic."""
    return tuple(TopicPartition(topic, number) for number in numbers)


def member(protocol=COOPERATIVE, owned=(), generation=4, form=Form.KIP, **more):
    """A consumer of `t` in the middle of its life."""
    told = {"topics": ("t",), "view": {"t": 8}, "member_id": "m-1", "memory": Memory(tuple(owned), generation)}
    return Consumer(protocol, form=form, owned=frozenset(owned), generation=generation, **(told | more))


def at_rest(settled):
    """The settlements of a group that came to rest after each event."""
    assert [each.failure for each in settled] == [None] * len(settled)
    return settled


def said(calls):
    """`["onPartitionsRevoked t-0 t-1", ..]` of calls, without what is no partition."""
    return [" ".join([each.callback, *(f"{topic}-{number}" for topic, number in each.partitions)]) for each in calls]


def listener_calls(settlement, name=None):
    """The calls of one member's listener (of all, without a name) in one event."""
    wanted = (Callback.LOST, Callback.REVOKED, Callback.ASSIGNED)
    mine = [each.call for each in settlement.calls if name in (None, each.member)]
    return said(each for each in mine if each.callback in wanted)


def calls_of(settlement, name, round_number):
    """All calls of one member in one round."""
    return said(each.call for each in settlement.calls if each.member == name and each.round == round_number)


def owners_of(settlement):
    """{member: partitions} after an event."""
    found = {}
    for (topic, number), name in settlement.owners.items():
        found.setdefault(name, []).append(f"{topic}-{number}")
    return found
