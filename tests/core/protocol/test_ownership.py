"""Two processes that consume one partition at the same time: found in every settlement, with the time it took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.settlement import DoubleOwner, Pace
from groupledger.core.protocol.simulated_group import LiveOwnership
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.step import Form
from tests.core.protocol.drawn import script
from tests.core.protocol.played import t

OLD = ByteCode.BEFORE_KIP_429
PACE = Pace(round_ms=100, callback_ms={Callback.REVOKED: 40, Callback.ASSIGNED: 10})


def join(name, code=ByteCode.KIP_792, at_ms=0):
    return e.Join(name, ("t",), byte_code=code, at_ms=at_ms)


OLD_LEADER = [join("a", OLD), join("b"), join("c", OLD, at_ms=5_000)]


def doubles(*events, form=Form.KIP, topics=None):
    return simulate(Script(topics or {"t": 4}, events, form, PACE))[-1].double_owners


def test_a_leader_on_old_byte_code_makes_double_owners():
    """b keeps two while a is given one of them: from a's onPartitionsAssigned until b's onPartitionsRevoked is done."""
    settled = simulate(Script({"t": 4}, OLD_LEADER, pace=PACE))[-1]
    (double,) = settled.double_owners
    assert settled.stable
    assert double.members == ("b", "a")
    assert settled.owners[double.partition] == "a"
    took = settled.rounds[0]
    kept = {row.member: row.owned for row in took.members}
    assert double.partition in kept["b"]
    assert (double.since_ms, double.until_ms) == (took.started_ms + 150, took.started_ms + 180)  # 40 + 100 + 10


def test_eager_members_and_a_leader_that_reads_what_is_owned_make_none():
    assert doubles(join("a"), join("b"), join("c")) == ()
    assert doubles(*(join(name, OLD) for name in "abc")) == ()


def test_who_stands_still_or_fell_out_consumes_nothing():
    zombie = [join("a"), join("b"), e.Pause("b"), e.Expire("b"), e.Resume("b")]
    assert [each.double_owners for each in simulate(Script({"t": 4}, zombie))] == [()] * 5


def test_one_that_lasts_is_told_again_until_it_ends():
    ownership = LiveOwnership()
    ownership.begin_step(answering=True)
    ownership.take("b", t(0, 1), 10)
    ownership.take("c", t(1), 30)
    assert ownership.take_double_owners() == (DoubleOwner(t(1)[0], ("b", "c"), 30, None),)
    assert ownership.take_double_owners() == (DoubleOwner(t(1)[0], ("b", "c"), 30, None),)
    ownership.begin_step()
    ownership.give_up("b", t(1), 9_000)
    assert ownership.take_double_owners() == (DoubleOwner(t(1)[0], ("b", "c"), 30, 9_000),)
    assert ownership.take_double_owners() == ()


STEPS = {
    "given up in the same answers, before or after": (True, True, 1),
    "given up before anybody was assigned": (False, True, 0),
    "fenced by the one that takes it": (False, False, 0),
}


@pytest.mark.parametrize("gives_first", [True, False])
@pytest.mark.parametrize(("given_up_in_answers", "next_step", "found"), STEPS.values(), ids=STEPS.keys())
def test_what_happens_in_one_millisecond_is_ordered_by_steps(given_up_in_answers, next_step, found, gives_first):
    ownership = LiveOwnership()
    ownership.take("a", t(0), 0)
    ownership.begin_step(answering=given_up_in_answers)
    actions = [lambda: ownership.give_up("a", t(0), 0), lambda: ownership.take("b", t(0), 0)]
    if given_up_in_answers:
        for act in actions if gives_first else actions[::-1]:
            act()
    else:
        actions[0]()
        if next_step:
            ownership.begin_step(answering=True)
        actions[1]()
    assert len(ownership.take_double_owners()) == found


def test_three_owners_are_three_pairs():
    ownership = LiveOwnership()
    for step, name in enumerate("abc"):
        ownership.begin_step()
        ownership.take(name, t(0), step)
    pairs = [(each.members, each.since_ms) for each in ownership.take_double_owners()]
    assert pairs == [(("a", "b"), 1), (("a", "c"), 2), (("b", "c"), 2)]


def shared_in(took):
    """What is given twice in a generation, or to somebody while another keeps it: seen from the rounds alone."""
    has = [(each, row.member) for row in took.members for each in {*row.owned, *(row.assigned if row.answered else ())}]
    owners = {}
    for each, name in has:
        owners.setdefault(each, set()).add(name)
    return {each for each, names in owners.items() if len(names) > 1}


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(each, marks=pytest.mark.long) for each in range(10, 40))])
def test_random_groups_of_the_kip_have_none_and_those_of_kafka_the_ones_that_their_rounds_show(seed):
    assert [each for settled in simulate(script(seed, 30)) for each in settled.double_owners] == []
    for settled in simulate(script(seed, 30, Form.AS_KAFKA)):
        shown = set().union(*map(shared_in, settled.rounds))
        existing = {each for each in shown if each[1] < settled.topics.get(each[0], 0)}
        assert existing <= {each.partition for each in settled.double_owners}


def test_the_time_is_that_of_the_events():
    late = [replace(each, at_ms=each.at_ms + 1_000) for each in OLD_LEADER]
    (first,), (second,) = doubles(*OLD_LEADER), doubles(*late)
    assert (second.since_ms - first.since_ms, second.until_ms - first.until_ms) == (1_000, 1_000)
