"""KIP-429, compatibility, upgrade path and metrics: the numbers are those of docs/contributing/kips.md."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.protocol import consumer as c
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import SUPPORTED, TABLE, ByteCode, protocol_of
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.metrics import GROUP, Window, of_simulation
from groupledger.core.protocol.rolling_migration import Bounce, Danger, GroupClient, one_bounce, rehearse, two_bounces
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script, simulate
from tests.core.protocol.played import COOPERATIVE, EAGER, calls_of, member, owners_of, t
from tests.kips.test_kip_429 import BOTH, ask, join, run


@pytest.mark.parametrize(
    ("assignor", "version", "protocols"),
    [
        ("range", 0, {EAGER}),
        ("roundrobin", 0, {EAGER}),
        ("sticky", 0, {EAGER}),
        ("cooperative-sticky", 0, {EAGER, COOPERATIVE}),
        ("stream", 4, {EAGER, COOPERATIVE}),
        ("constrained-cooperative-sticky", 0, {EAGER, COOPERATIVE}),
        ("librdkafka-cooperative-sticky", 1, {EAGER, COOPERATIVE}),
    ],
)
def test_kip_429_35_the_table_of_assignors(assignor, version, protocols):
    (row,) = (each for each in TABLE if each.assignor == assignor)
    assert (row.user_data_version, set(row.protocols)) == (version, protocols)


def test_kip_429_36_the_first_bounce_is_eager_and_keeps_the_old_assignor():
    settled = run(*(join(name, ("range",)) for name in "ab"), e.Leave("a"), join("a", BOTH))[-1]
    assert settled.rounds[0].assignor == "range"
    assert {each.protocol for each in settled.rounds[0].members} == {EAGER}


def test_kip_429_37_in_the_second_bounce_both_protocols_meet_and_cooperative_sticky_is_chosen():
    settled = run(*(join(name, BOTH) for name in "ab"), e.Leave("a"), join("a"))[-1]
    assert settled.rounds[0].assignor == "cooperative-sticky"
    assert {each.member: each.protocol for each in settled.rounds[0].members} == {"a": COOPERATIVE, "b": EAGER}


def test_kip_429_38_partitions_of_eager_members_move_at_once():
    """The eager member revoked everything, so nothing waits for it."""
    settled = run(join("b", BOTH), join("a"))[-1]
    assert len(settled.rounds) == 1
    assert {name: len(owned) for name, owned in owners_of(settled).items()} == {"a": 2, "b": 2}
    assert calls_of(settled, "b", 1)[0] == "onPartitionsRevoked t-0 t-1 t-2 t-3"


def test_kip_429_39_a_leader_on_old_byte_code_gives_away_what_is_still_owned():
    """The danger that the two bounces are for: it adjusts nothing, since it cannot read what is owned."""
    unsafe = ask({"a": (0, 1, 2, 3), "b": ()}, code=ByteCode.BEFORE_KIP_429)
    owners = {each: name for name in "ab" for each in unsafe.assigned[name]}
    assert unsafe.assigned == unsafe.target
    assert [each for each in t(0, 1, 2, 3) if owners[each] != "a"]


def test_kip_429_40_old_byte_code_follows_the_eager_protocol_and_sends_no_claims():
    assert protocol_of([SUPPORTED["stream"]], ByteCode.BEFORE_KIP_429) is EAGER
    sent = c.join(member(EAGER, owned=t(0), byte_code=ByteCode.BEFORE_KIP_429)).subscription
    assert (sent.version, sent.owned, sent.generation) == (0, (), None)


def clients(assignors, code=ByteCode.KIP_792):
    return [GroupClient(name, assignors, ("t",), byte_code=code) for name in "abc"]


def bounced(present, bounces):
    return rehearse(present, bounces, {"t": 6})


def test_kip_429_41_both_bounces_are_safe_member_by_member():
    present = clients(("range",), ByteCode.BEFORE_KIP_429)
    rehearsal = bounced(present, two_bounces(present, "cooperative-sticky"))
    assert [step.safe for step in rehearsal.steps] == [True] * 6


def test_kip_429_42_one_bounce_is_not_enough():
    rehearsal = bounced(clients(("range",)), one_bounce("cooperative-sticky"))
    assert rehearsal.first_unsafe.findings[0].danger is Danger.NO_COMMON_ASSIGNOR


def test_kip_429_43_streams_first_bounce_sets_upgrade_from_and_stays_eager():
    present = clients(("stream",), ByteCode.BEFORE_KIP_429)
    first = bounced(present, two_bounces(present, "stream")[:1])
    assert first.first_unsafe is None
    assert {each for step in first.steps for each in step.protocols.values()} == {EAGER}


STREAMS_SECOND = [Bounce("UPGRADE_FROM removed", ("stream",))]


def test_kip_429_44_streams_second_bounce_removes_it_and_both_protocols_are_safe_together():
    """As long as everyone is on the new byte code: one old member may come to lead, even if a new one leads now."""
    present = clients(("stream",), ByteCode.BEFORE_KIP_429)
    second = bounced(present, two_bounces(present, "stream")).steps[3:]
    assert [sorted(set(step.protocols.values())) for step in second] == [[COOPERATIVE, EAGER]] * 2 + [[COOPERATIVE]]
    assert all(step.safe for step in second)
    codes = {"b": ByteCode.KIP_792, "c": ByteCode.BEFORE_KIP_429, "a": ByteCode.KIP_792}
    early = [replace(client, byte_code=codes[client.member], upgrade_from=True) for client in present]
    (step,) = bounced(sorted(early, key=lambda each: list(codes).index(each.member)), STREAMS_SECOND).steps
    assert (step.leader, [each.danger for each in step.findings]) == ("a", [Danger.OLD_MEMBER_MAY_LEAD])


@pytest.mark.parametrize(("present", "to"), [("stream", "cooperative-sticky"), ("range", "stream")])
def test_kip_429_50_streams_keeps_its_assignor_and_nobody_else_has_it(present, to):
    """Said before the first member is bounced; from stream to stream is the one way."""
    group = clients((present,), ByteCode.BEFORE_KIP_429)
    (step,) = bounced(group, two_bounces(group, to)).steps
    assert (step.number, [each.danger for each in step.findings if each.danger is Danger.STREAMS_ASSIGNOR]) == (
        1,
        [Danger.STREAMS_ASSIGNOR],
    )


def test_kip_429_45_any_member_that_joins_again_is_a_rebalance_for_all():
    settled = run(join("a"), join("b"), e.Subscribe("b", ("t",)))[-1]
    assert {row.member for row in settled.rounds[0].members} == {"a", "b"}


METRICS = {
    "46 latencies of the listener's callbacks": {
        *(f"partitions-{what}-latency-{how}" for what in ("revoked", "assigned", "lost") for how in ("avg", "max")),
    },
    "47 rate and latency of rebalances": {
        *("rebalance-rate-per-hour", "rebalance-total", "rebalance-latency-avg", "rebalance-latency-max"),
        *("rebalance-latency-total", "failed-rebalance-rate-per-hour", "failed-rebalance-total"),
    },
    "48 seconds since the last one": {"last-rebalance-seconds-ago"},
}


ZOMBIE = e.Pause("b"), e.Expire("b"), e.Resume("b")


def measured(*events):
    """{(member, metric): value} of events, a minute apart; a round takes 100 ms, callbacks 20, 5 and 7."""
    pace = Pace(100, {Callback.REVOKED: 20, Callback.ASSIGNED: 5, Callback.LOST: 7})
    apart = [replace(event, at_ms=60_000 * number) for number, event in enumerate(events)]
    settled = simulate(Script({"t": 4}, apart, pace=pace))
    return {(row.member, row.name): row.value for row in of_simulation(settled, Window(0, 3_600_000))}


@pytest.mark.parametrize("names", METRICS.values(), ids=METRICS.keys())
def test_kip_429_46_to_48_the_metrics(names):
    values = measured(join("a"), join("b"), *ZOMBIE)
    assert {who for who, _ in values} == {GROUP, "a", "b"}
    assert all(values[GROUP, name] is not None for name in names)


LATENCIES = {
    "a newcomer: it takes 5": ([join("a")], "a", [105]),
    "cooperative, who revokes after SyncGroup": ([join("a"), join("b")], "a", [105, 125, 105]),
    "and who waits for it": ([join("a"), join("b")], "b", [105, 105]),
    "the group's last as long as their slowest member": ([join("a"), join("b")], GROUP, [105, 125, 105]),
    "eager, who revokes before JoinGroup": ([join("a", ("range",)), join("b", ("range",))], "a", [125, 125]),
    "the subscription changed: revoked before JoinGroup": ([join("a"), e.Subscribe("a", ("u",))], "a", [105, 125]),
    "who fell out, and calls lost before JoinGroup": ([join("a"), join("b"), *ZOMBIE], "b", [105, 105, 112, 105]),
    "and its group": ([join("a"), join("b"), *ZOMBIE], GROUP, [105, 125, 105, 105, 132, 105]),
}


@pytest.mark.parametrize(("events", "member", "took"), LATENCIES.values(), ids=LATENCIES.keys())
def test_kip_429_49_rebalance_latency_includes_the_callbacks(events, member, took):
    """All of the timeline's: step 0 (lost), step 1 (revoked, before JoinGroup), and those after SyncGroup."""
    values = measured(*events)
    assert values[member, "rebalance-total"] == len(took)
    assert values[member, "rebalance-latency-total"] == sum(took)
    assert values[member, "rebalance-latency-max"] == max(took)
    assert values[member, "rebalance-latency-avg"] == pytest.approx(sum(took) / len(took))
