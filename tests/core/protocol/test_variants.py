"""A script under another assignor, protocol or setting: what is changed about it, and what is refused."""

from __future__ import annotations

import pytest

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.comparison import changed, read_variants
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.consumer_group.consumer_state import ConsumerGroupSettings
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script

CLASSIC, CONSUMER = e.GroupProtocol.CLASSIC, e.GroupProtocol.CONSUMER
SLOW = MemberTimes(processing_ms=20, rebalance_timeout_ms=8_000)
JOINS = [e.Join("a", ("t",)), e.Join("b", ("t",), group_instance_id="b-1"), e.Leave("a", at_ms=70_000)]
TIMES = Times(MemberTimes(round_trip_ms=4), {"b": SLOW}, records_per_second=100)
PACE = Pace(callback_ms={Callback.REVOKED: 40})


def under(name, events=JOINS, times=None, **more):
    (variant,) = read_variants(name, ASSIGNORS)
    return changed(Script({"t": 4}, events, pace=PACE, times=times, **more), variant)


def joins_of(script):
    return [each for each in script.events if isinstance(each, e.Join)]


@pytest.mark.parametrize(
    ("name", "field", "values"),
    [
        ("range", "assignors", [("range",), ("range",)]),
        ("as-written", "assignors", [("cooperative-sticky",), ("cooperative-sticky",)]),
        ("static", "group_instance_id", ["a", "b-1"]),
        ("sticky+dynamic", "group_instance_id", [None, None]),
        ("consumer", "group_protocol", [CONSUMER, CONSUMER]),
        ("consumer+static", "group_instance_id", ["a", "b-1"]),
    ],
)
def test_members_are_as_the_variant_says(name, field, values):
    assert [getattr(each, field) for each in joins_of(under(name))] == values


def test_as_written_changes_nothing():
    for times in (None, TIMES):
        assert under("as-written", times=times) == Script({"t": 4}, JOINS, pace=PACE, times=times)


def test_a_group_of_the_consumer_protocol_becomes_a_classic_one():
    settings = ConsumerGroupSettings(heartbeat_interval_ms=1_000)
    joins = [e.Join("a", ("t",), group_protocol=CONSUMER, remote_assignor="range", rebalance_timeout_ms=5)]
    assert under("range", joins, consumer_group=settings) == Script(
        {"t": 4}, [e.Join("a", ("t",), ("range",))], pace=PACE
    )
    assert under("as-written", joins, consumer_group=settings).consumer_group == settings


def test_times_of_a_variant_are_those_of_all_members():
    times = under("range+processing_ms=7+records_per_second=9", times=TIMES).times
    assert times == Times(
        MemberTimes(round_trip_ms=4, processing_ms=7),
        {"b": MemberTimes(processing_ms=7, rebalance_timeout_ms=8_000)},
        records_per_second=9,
    )
    assert under("processing_ms=7").times == Times(MemberTimes(processing_ms=7))


def test_a_consumer_group_takes_what_it_can_of_a_scripts_times():
    """Heartbeats and sessions are the broker's, everything else is of its members."""
    script = under("consumer+heartbeat_interval_ms=1000+session_timeout_ms=30000+processing_ms=7", times=TIMES)
    assert script.times.each.processing_ms == script.times.of["b"].processing_ms == 7
    assert script.times.each.heartbeat_interval_ms == MemberTimes().heartbeat_interval_ms
    assert script.pace == PACE
    assert script.consumer_group == ConsumerGroupSettings(heartbeat_interval_ms=1_000, session_timeout_ms=30_000)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("rnage", "'rnage' of 'rnage' is no change; expected name=value, or one of as-written, consumer"),
        ("range+sticky", "'sticky' of 'range+sticky' is no change"),
        ("", "'' of '' is no change"),
        ("consumer+range", "has the client-side assignor range; expected none beside consumer"),
        ("range+speed=1", "'speed' of 'range+speed=1' is no setting; expected one of session_timeout_ms"),
        ("range,range", "'range' is asked for twice"),
        ("range+remote_assignor=uniform", "remote_assignor of 'range+remote_assignor=uniform' is no setting here"),
        ("consumer+processing_ms=x", "times.processing_ms is 'x'; expected a whole number"),
        ("range+processing_ms=x", "times.processing_ms is 'x'; expected a whole number"),
        ("consumer+remote_assignor=best", "consumer_group.remote_assignor is 'best'; expected one of range, uniform"),
    ],
)
def test_what_is_no_variant_is_refused(name, complaint):
    with pytest.raises(Fault) as refused:
        under(name)
    assert complaint in refused.value.message


@pytest.mark.parametrize("protocol", [CONSUMER, CLASSIC])
def test_an_expression_goes_along_into_either_protocol(protocol):
    joins = [e.Join("a", (), group_protocol=protocol, topic_regex="t.*")]
    for name, becomes in (("consumer", CONSUMER), ("range", CLASSIC)):
        (join,) = joins_of(under(name, joins))
        assert (join.group_protocol, join.topic_regex) == (becomes, "t.*")
