"""Groups that go on from a recorded state: who holds what, which generation, what nobody has."""

from __future__ import annotations

import json

import pytest

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.comparison import compare, read_variants
from groupledger.core.protocol.consumer import Times
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.script_json import read_script, result_of, write_script
from groupledger.core.protocol.simulator import simulate


def partitions(*numbers, topic="t"):
    return tuple(TopicPartition(topic, number) for number in numbers)


def seated(name, *numbers, leads=False, claimed=None, **more):
    seat = e.RecordedSeat(f"{name}-1", partitions(*numbers), partitions(*(claimed or numbers)), 6, leads=leads)
    return e.Join(name, ("t",), seat=seat, **more)


def stuck(*events, **more):
    """Generation 7: m1 gave up t-2 and t-3 for m2, and the rebalance that would give them to it never came."""
    members = [seated("m1", 0, 1, leads=True, claimed=(0, 1, 2, 3)), seated("m2")]
    return Script({"t": 4}, [*members, *events], generation=7, **more)


def owned_by(settled, name):
    return [number for (_, number), owner in settled.owners.items() if owner == name]


def rounds_of(settled):
    return [
        (took.generation, {row.member: [each[1] for each in row.assigned] for row in took.members})
        for took in settled.rounds
    ]


def test_nothing_happens_before_the_first_event():
    *_, last = simulate(stuck())
    assert last.rounds == ()
    assert (owned_by(last, "m1"), owned_by(last, "m2"), last.unowned) == ([0, 1], [], partitions(2, 3))


def test_a_restart_gives_what_nobody_had_to_the_others():
    *_, last = simulate(stuck(e.Restart("m1")))
    assert rounds_of(last) == [
        (8, {"m2": [0, 1, 2, 3]}),
        (9, {"m2": [0, 1], "m1": []}),
        (10, {"m2": [0, 1], "m1": [2, 3]}),
    ]
    assert last.unowned == ()


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky"])
def test_an_eager_group_goes_on_too(assignor):
    members = [seated("m1", 0, 1, leads=True, assignors=(assignor,)), seated("m2", 2, 3, assignors=(assignor,))]
    join = e.Join("m3", ("t",), (assignor,))
    *before, last = simulate(Script({"t": 4}, [*members, join], generation=7))
    assert [each.rounds for each in before] == [(), ()]
    ((generation, given),) = rounds_of(last)
    assert (generation, sorted(number for some in given.values() for number in some)) == (8, [0, 1, 2, 3])
    if assignor == "sticky":  # each remembers what it was assigned
        assert set(given["m1"]) <= {0, 1}
        assert set(given["m2"]) <= {2, 3}


def test_a_clock_goes_on_from_the_same_state():
    _, start, wait, crash = simulate(stuck(e.Wait(at_ms=60_000), e.Crash("m1", at_ms=90_000), times=Times()))
    waited = [each.unavailable_ms for each in (start, wait)]
    assert waited == [dict.fromkeys(partitions(2, 3), ms) for ms in (60_000, 30_000)]
    assert (start.rounds, wait.rounds, wait.unowned) == ((), (), partitions(2, 3))
    assert rounds_of(crash) == [(8, {"m2": [0, 1, 2, 3]})]
    assert crash.rounds[0].started_ms == 90_000 + 45_000  # its last heartbeat, and its session


def test_a_recorded_member_reads_on_from_its_start():
    *_, last = simulate(stuck(e.Wait(at_ms=1), e.Wait(at_ms=10_000), times=Times(records_per_second=10)))
    assert last.timed.read.committed.keys() == set(partitions(0, 1))


def test_a_consumer_group_goes_on_at_its_epoch():
    kind = {"group_protocol": e.GroupProtocol.CONSUMER}
    script = Script({"t": 4}, [seated("m1", 0, 1, **kind), seated("m2", 2, 3, **kind), e.Leave("m2")], generation=7)
    first, second, last = simulate(script)
    assert [each.coordinated.epoch for each in (first, second, last)] == [7, 7, 8]
    assert (owned_by(second, "m1"), owned_by(second, "m2")) == ([0, 1], [2, 3])
    assert owned_by(last, "m1") == [0, 1, 2, 3]


def test_a_static_member_takes_back_what_it_was_assigned():
    members = [*stuck().events, seated("s", 4, 5, group_instance_id="s")]
    *_, last = simulate(Script({"t": 6}, [*members, e.Restart("s")], generation=7))
    assert last.rounds == ()
    assert owned_by(last, "s") == [4, 5]


def test_a_member_id_is_given_out_once():
    members = [e.Join("m", ("t",), seat=e.RecordedSeat("x-1")), e.Join("x", ("t",))]
    *_, last = simulate(Script({"t": 2}, members, generation=1))
    assert [row.member_id for row in last.rounds[-1].members] == ["x-1", "x-2"]


def test_moves_count_from_who_holds_what():
    assignors = ("range", "cooperative-sticky")
    (compared,) = compare([("stuck", stuck(e.Restart("m1")))], read_variants("as-written,consumer,share", assignors))
    written, consumer, share = compared.variants
    assert (written.cost.rounds, written.cost.moves, [each.event for each in written.events]) == (3, 4, ["restart m1"])
    assert (consumer.cost.moves, consumer.error) == (4, None)
    assert "holds partitions as they were recorded" in share.error


def test_seats_are_written_as_they_are_read():
    script = stuck(e.Restart("m1"))
    told = json.loads(json.dumps(write_script(script, "x")))
    told.pop("id")
    assert read_script(told) == script
    first = result_of("x", simulate(script), metrics=False)["events"][0]
    assert first["seat"]["assigned"] == [["t", 0], ["t", 1]]


@pytest.mark.parametrize(
    ("seat", "message"),
    [
        ([], "events.0.seat is []; expected an object"),
        ({}, "events.0.seat.member_id is nothing; expected a text"),
        ({"member_id": "a", "has": []}, "a key of events.0.seat is 'has'; expected one of member_id"),
        ({"member_id": "a", "assigned": [["t"]]}, "events.0.seat.assigned.0 is ['t']; expected [topic, partition]"),
        ({"member_id": "a", "assigned": [["t", -1]]}, "events.0.seat.assigned.0.1 is -1"),
        ({"member_id": "a", "leads": 1}, "events.0.seat.leads is 1; expected true or false"),
        ({"member_id": "a", "claimed_generation": "7"}, "events.0.seat.claimed_generation is '7'"),
    ],
)
def test_a_seat_that_is_none_is_named(seat, message):
    script = {"topics": {"t": 1}, "events": [{"event": "join", "member": "m", "topics": ["t"], "seat": seat}]}
    with pytest.raises(Fault) as caught:
        read_script(script)
    assert message in caught.value.message


def test_members_are_recorded_before_anything_happens_and_once():
    seat = {"event": "join", "topics": ["t"], "seat": {"member_id": "a", "leads": True}}
    cases = [
        ([{"event": "wait"}, {**seat, "member": "m"}], "recorded members before all other events"),
        ([{**seat, "member": "m"}, {**seat, "member": "n"}], "expected an id of its own"),
        (
            [{**seat, "member": "m"}, {**seat, "member": "n", "seat": {"member_id": "b", "leads": True}}],
            "seat.leads is 'a, b'; expected one leader",
        ),
    ]
    for events, message in cases:
        with pytest.raises(Fault) as caught:
            read_script({"topics": {"t": 1}, "events": events})
        assert message in caught.value.message
