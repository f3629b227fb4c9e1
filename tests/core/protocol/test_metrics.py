"""KIP-429's metrics from a simulation with a pace, and from a captured group: known numbers, and honest gaps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, Times
from groupledger.core.protocol.metrics import GROUP, NO_DURATIONS, NO_FAILURES, Window, of_history, of_simulation, whole
from groupledger.core.protocol.recorded import recorded_calls
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.step import Form
from tests.core.history.captured import folded

NAMES = {
    *(f"partitions-{what}-latency-{how}" for what in ("revoked", "assigned", "lost") for how in ("avg", "max")),
    *(f"rebalance-latency-{how}" for how in ("avg", "max", "total")),
    *(f"{kind}rebalance-{what}" for kind in ("", "failed-") for what in ("rate-per-hour", "total")),
    "last-rebalance-seconds-ago",
}
PACE = Pace(round_ms=100, callback_ms={Callback.REVOKED: 40, Callback.ASSIGNED: 10})
A, B, C = (e.Join(name, ("t",), at_ms=at) for name, at in (("a", 0), ("b", 60_000), ("c", 120_000)))


CONSUMER = e.GroupProtocol.CONSUMER
HALF_AN_HOUR = Window(0, 1_800_000)


def test_a_window_has_its_first_moment_and_not_its_end():
    assert [HALF_AN_HOUR.has(moment_ms) for moment_ms in (-1, 0, 1_799_999, 1_800_000)] == [False, True, True, False]


def simulated(*events, window=HALF_AN_HOUR):
    rows = of_simulation(simulate(Script({"t": 4}, events, pace=PACE)), window)
    return {(row.member, row.name): row for row in rows}


def test_every_metric_of_the_kip_is_there_for_each_member_and_the_group():
    metrics = simulated(A, B)
    assert {name for _, name in metrics} == NAMES
    assert {member for member, _ in metrics} == {GROUP, "a", "b"}
    assert all((row.value is None) == bool(row.reason) for row in metrics.values())


@pytest.mark.parametrize(
    ("member", "name", "value"),
    [
        ("a", "rebalance-total", 3),
        ("b", "rebalance-total", 2),
        (GROUP, "rebalance-total", 3),
        (GROUP, "rebalance-latency-total", 110 + 150 + 110),
        ("a", "rebalance-rate-per-hour", 6.0),
        ("a", "rebalance-latency-max", 150),  # 100 for the round, 40 to revoke, 10 to take
        ("a", "rebalance-latency-total", 110 + 150 + 110),
        ("b", "rebalance-latency-avg", 110.0),
        ("a", "partitions-revoked-latency-avg", 40.0),
        ("a", "partitions-assigned-latency-max", 10),
        ("b", "partitions-revoked-latency-avg", None),
        ("a", "failed-rebalance-total", 0),
        ("a", "last-rebalance-seconds-ago", (1_800_000 - 60_260) / 1_000),
    ],
)
def test_values_of_a_simulation(member, name, value):
    assert simulated(A, B)[member, name].value == (value if value is None else pytest.approx(value))


def test_a_rebalance_takes_what_is_called_lost_before_it_too():
    """b comes back at 300 s and hears for 30 ms that all is lost; a round of 100 ms and a call of 10 ms follow."""
    pace = replace(PACE, callback_ms={**PACE.callback_ms, Callback.LOST: 30})
    away = [e.Pause("b", at_ms=100_000), e.Expire("b", at_ms=200_000), e.Resume("b", at_ms=300_000)]
    settled = simulate(Script({"t": 4}, [A, B, *away], pace=pace))
    rows = of_simulation(settled, Window(300_000, 400_000))
    assert {row.name: row.value for row in rows if row.member == "b"}["rebalance-latency-total"] == (30 + 110) + 110


def test_what_one_revokes_before_it_is_gone_is_no_part_of_the_rebalance_in_which_it_is_back():
    away = [e.Leave("b", at_ms=100_000, together=True), replace(B, at_ms=100_000)]
    rows = of_simulation(simulate(Script({"t": 4}, [A, B, *away], pace=PACE)), Window(100_000, 200_000))
    assert {row.name: row.value for row in rows if row.member == "b"}["rebalance-latency-total"] == 100 + 10


def test_a_missed_assignment_is_a_failed_rebalance():
    metrics = simulated(A, B, e.MissAssignment("b", at_ms=100_000), C)
    assert metrics["b", "failed-rebalance-total"].value == 1
    assert metrics["a", "failed-rebalance-total"].value == 0
    assert metrics["b", "failed-rebalance-rate-per-hour"].value == 2.0


def test_only_what_ends_inside_the_window_counts():
    metrics = simulated(A, B, window=Window(50_000, 60_200))
    assert metrics["a", "rebalance-total"].value == 1
    assert metrics["b", "partitions-assigned-latency-max"].value == 10
    late = simulated(A, replace(B, at_ms=0), window=Window(50_000, 60_000))
    assert late["a", "last-rebalance-seconds-ago"].reason == "no rebalance in the window"


def test_a_rate_is_of_the_length_of_the_window_wherever_it_begins():
    assert Window(50_000, 1_850_000).rate_per_hour(3) == 6.0


def test_history_knows_when_and_how_often_and_says_what_it_cannot_know():
    rows = folded("dev/offsets", "java-cooperative-sticky")
    times = [row.observed_at for row in rows.group_snapshots]
    window = Window(min(times), max(times) + 1)
    calls = list(recorded_calls(rows.group_snapshots, rows.member_snapshots))
    metrics = {(row.member, row.name): row for row in of_history(calls, window)}
    peopled = [row for row in rows.group_snapshots if row.members > 0]
    assert {name for _, name in metrics} == NAMES
    assert metrics[GROUP, "rebalance-total"].value == len(peopled)
    of_members = sum(row.value or 0 for (who, name), row in metrics.items() if name == "rebalance-total" and who)
    assert of_members == sum(row.members for row in peopled)
    assert metrics[GROUP, "rebalance-latency-avg"] == (GROUP, "rebalance-latency-avg", None, NO_DURATIONS)
    assert metrics[GROUP, "partitions-lost-latency-max"].reason == NO_DURATIONS
    assert metrics[GROUP, "failed-rebalance-total"].reason == NO_FAILURES


def test_a_rebalance_of_the_consumer_protocol_is_an_assignment_that_a_member_takes():
    """b comes at 10 s; a, whose heartbeats are at 0.2 s and 5 s later each, gives up two and takes nothing: 50 ms."""
    joins = [replace(A, group_protocol=CONSUMER), replace(B, at_ms=10_000, group_protocol=CONSUMER)]
    metrics = simulated(*joins, e.Crash("b", at_ms=60_000))
    assert [metrics[name, "rebalance-total"].value for name in ("a", "b", GROUP)] == [2, 2, 4]
    assert metrics["a", "rebalance-latency-max"].value == 40 + 10
    assert metrics["b", "rebalance-latency-max"].value == 10
    assert metrics["a", "partitions-revoked-latency-max"].value == 40
    assert metrics["a", "failed-rebalance-total"].value == 0


def test_who_is_fenced_before_it_has_taken_its_assignment_has_failed():
    """a takes a minute to give up two partitions, and may take five seconds."""
    slow = Pace(callback_ms={Callback.REVOKED: 60_000})
    joins = [replace(each, group_protocol=CONSUMER, rebalance_timeout_ms=5_000) for each in (A, B)]
    settled = simulate(Script({"t": 4}, joins, pace=slow))
    metrics = {(row.member, row.name): row.value for row in of_simulation(settled, HALF_AN_HOUR)}
    of_members = [metrics[name, "failed-rebalance-total"] for name in "ab"]
    assert of_members[0] > 0
    assert metrics[GROUP, "failed-rebalance-total"] == sum(filter(None, of_members))


def test_who_is_fenced_after_it_has_taken_its_assignment_has_failed_in_nothing():
    joins = [replace(each, group_protocol=CONSUMER) for each in (A, B)]
    metrics = simulated(*joins, e.Pause("b", at_ms=100_000), e.Wait(at_ms=200_000), e.Resume("b", at_ms=300_000))
    assert metrics["b", "rebalance-total"].value == 4
    assert metrics["b", "failed-rebalance-total"].value == 0


def test_with_a_clock_a_rebalance_of_a_member_takes_from_its_first_callback_to_its_last():
    """a hears of b by its heartbeat at 102 s, and revokes then; b has waited since 100 s (latency: 2 s and 700 ms)."""
    pace = Pace(callback_ms={Callback.REVOKED: 500, Callback.ASSIGNED: 200})
    joins = [e.Join("a", ("t",), ("range",)), e.Join("b", ("t",), ("range",), at_ms=100_000)]
    script = Script({"t": 4}, joins, Form.AS_KAFKA, pace, times=Times(initial_rebalance_delay_ms=0))
    settled = simulate(script)
    found = {(each.member, each.name): each.value for each in of_simulation(settled, whole(settled))}
    assert found["a", "rebalance-total"] == 2
    assert found["a", "rebalance-latency-max"] == 500 + 200
    assert found["b", "rebalance-latency-max"] == found[GROUP, "rebalance-latency-max"] == 2_000 + 500 + 200
    assert found["a", "partitions-revoked-latency-max"] == 500
    assert found["a", "failed-rebalance-total"] == 0
    assert found[None, "last-rebalance-seconds-ago"] == 0.001


def test_with_a_clock_a_rebalance_begins_with_what_is_called_lost():
    """b comes back at 300 s, and a revokes at its heartbeat 80 ms later, for 40 ms; then both take what they get."""
    pace = Pace(callback_ms={Callback.REVOKED: 40, Callback.ASSIGNED: 10, Callback.LOST: 30})
    joins = [e.Join("a", ("t",), ("range",)), e.Join("b", ("t",), ("range",), at_ms=100_000)]
    away = [e.Pause("b", at_ms=200_000), e.Resume("b", at_ms=300_000)]
    script = Script({"t": 4}, [*joins, *away], Form.AS_KAFKA, pace, times=Times(initial_rebalance_delay_ms=0))
    (last,) = simulate(script)[-1].rounds
    assert {each.member: (each.started_ms, each.ended_ms) for each in last.members} == {
        "a": (300_080, 300_130),
        "b": (300_000, 300_130),
    }
