"""A process that starts again under another name: in rounds, by a clock, and where the coordinator assigns."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.script_json import read_script, simulate_lines, write_script
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script, simulate

CLASSIC, CONSUMER, SHARE = e.GroupProtocol.CLASSIC, e.GroupProtocol.CONSUMER, e.GroupProtocol.SHARE
AT = 60_000
CLOCK = Times(MemberTimes(round_trip_ms=4, processing_ms=50))
DRIVERS = [(CLASSIC, None), (CLASSIC, CLOCK), (CONSUMER, None), (CONSUMER, CLOCK), (SHARE, None)]
RENAMED = e.RenameProcess("a", "b", at_ms=AT)


def members(protocol, names="ac", instance=None):
    """Processes over t that join at once, the first of them with an instance id."""
    first = {"group_instance_id": instance}
    return [e.Join(name, ("t",), group_protocol=protocol, **(first if name == "a" else {})) for name in names]


def played(*events, times=None, pace=None):
    return simulate(Script({"t": 4}, events, times=times, pace=pace or Pace()))


def listened(settled):
    """`(ms, member, callback, how many partitions)` of all listeners' calls."""
    calls = sorted(settled.calls, key=lambda each: (each.ended_ms, each.order))
    named = [(each, each.call.callback.value.removeprefix("onPartitions")) for each in calls]
    return [
        (each.ended_ms, each.member, name, len(each.call.partitions))
        for each, name in named
        if name in ("Revoked", "Assigned", "Lost")
    ]


@pytest.mark.parametrize(("protocol", "times"), DRIVERS)
def test_it_is_one_that_leaves_and_another_one_that_joins_at_once(protocol, times):
    group = members(protocol)
    renamed = played(*group, RENAMED, times=times)[-1]
    left = e.Leave("a", at_ms=AT, together=times is None)
    apart = played(*group, left, replace(group[0], member="b", at_ms=AT), times=times)
    assert renamed.owners == apart[-1].owners
    assert renamed.unowned == ()
    assert renamed.running == {"b": 1, "c": 1}
    assert renamed.rounds == apart[-1].rounds
    assert listened(renamed) == [each for one in apart[2:] for each in listened(one)]


@pytest.mark.parametrize(("protocol", "times"), DRIVERS[:-1])
def test_a_static_member_takes_its_place_and_nobody_rebalances(protocol, times):
    *_, before, renamed, back = played(
        *members(protocol, instance="i"), RENAMED, e.RenameProcess("b", "a", at_ms=2 * AT), times=times
    )
    names = {"a": "b", "c": "c"}
    assert renamed.owners == {each: names[owner] for each, owner in before.owners.items()}
    assert (renamed.rounds, {member for _, member, *_ in listened(renamed)}) == ((), {"a", "b"})
    assert back.owners == before.owners


@pytest.mark.parametrize(("protocol", "times"), DRIVERS)
@pytest.mark.parametrize(
    ("before", "event", "message"),
    [
        ([], e.RenameProcess("a", "c", at_ms=AT), "'c' has joined already; expected a new process"),
        ([], e.RenameProcess("a", "a", at_ms=AT), "'a' has joined already; expected a new process"),
        (
            [],
            e.RenameProcess("x", "b", at_ms=AT),
            "there is no process 'x' that runs; expected one of a, c",
        ),
        (
            [e.Leave("a", at_ms=9_000)],
            e.Restart("x", at_ms=AT),
            "there is no process 'x' to restart; expected one of a, c",
        ),
        (
            [e.Leave("a", at_ms=9_000)],
            RENAMED,
            "there is no process 'a' that runs; expected one of c",
        ),
        ([e.Pause("a", at_ms=9_000)], RENAMED, "'a' is"),
    ],
)
def test_what_cannot_be_is_refused(protocol, times, before, event, message):
    with pytest.raises(Fault) as refused:
        played(*members(protocol), *before, event, times=times)
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize(("protocol", "times"), DRIVERS)
def test_the_name_of_one_that_is_gone_is_free(protocol, times):
    settled = played(*members(protocol, "abc"), e.Leave("b", at_ms=9_000), RENAMED, times=times)
    assert settled[-1].running == {"b": 2, "c": 1}


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
def test_it_keeps_its_subscription_and_its_times(protocol):
    of = {"a": replace(CLOCK.each, round_trip_ms=400), "d": replace(CLOCK.each, round_trip_ms=40)}
    subscribed = e.Subscribe("a", ("u",), at_ms=30_000)
    script = Script({"t": 4, "u": 1}, [*members(protocol), subscribed, RENAMED], times=replace(CLOCK, of=of))
    renamed = simulate(script)[-1]
    assert renamed.owners[("u", 0)] == "b"
    stated = simulate(replace(script, times=replace(CLOCK, of=of | {"b": of["d"]})))[-1]
    began = [next(ms for ms, member, *_ in listened(each) if member == "b") for each in (stated, renamed)]
    assert began[0] + 100 < began[1]


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
def test_it_starts_once_its_callback_has_returned(protocol):
    pace = Pace(callback_ms={Callback.REVOKED: 2_000})
    late = e.RenameProcess("c", "b", at_ms=AT + 100)
    [*_, settled] = played(*members(protocol), RENAMED, times=CLOCK, pace=pace)
    assert min(ms for ms, member, *_ in listened(settled) if member == "b") >= AT + 2_000
    with pytest.raises(Fault, match="'b' has joined already"):
        played(*members(protocol), RENAMED, late, times=CLOCK, pace=pace)


def test_the_last_member_of_the_consumer_protocol_makes_the_group_a_classic_one_and_back():
    group = [*members(CONSUMER, "a"), *members(CLASSIC, "c")]
    renamed = played(*group, RENAMED)[-1]
    assert renamed.running == {"c": 1, "b": 1}
    assert {row.member for row in renamed.coordinated.members} == {"b", "c"}
    assert (len(renamed.rounds), renamed.unowned) == (1, ())
    assert sorted(renamed.owners.values()) == ["b", "b", "c", "c"]


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER, SHARE])
def test_all_that_restart_or_are_renamed_together_start_again(protocol):
    again = [e.Restart("a", together=True), e.RenameProcess("b", "d", together=True), e.Restart("c")]
    settled = played(*members(protocol, "abc"), *again)[-1]
    assert settled.running == {"a": 2, "d": 1, "c": 2}


def test_a_script_says_it_and_a_library_goes_with_its_process():
    led = e.Join("c", ("t",), ("sticky",))
    events = [led, replace(led, member="a", library="kafka-python"), RENAMED, e.Leave("c", at_ms=AT)]
    written = write_script(Script({"t": 4}, events), "g")
    assert written["events"][2] == {"event": "rename-process", "member": "a", "to": "b", "at_ms": AT}
    assert read_script(written).events == events
    [result] = map(json.loads, simulate_lines([json.dumps(written)]))
    assert result["events"][2]["to"] == "b"
    assert len(result["notes"]) == 1  # the sticky assignor of kafka-python's leader is not played
