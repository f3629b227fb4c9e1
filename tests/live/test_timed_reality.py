"""The simulator's clock against real timeouts: session, rebalance and poll, of clients that die, stand still or hang.

The same happens, at the same times, to live clients on a Kafka broker and on paper. Compared are all calls, the order
of those of different processes, and that no timeout ends before its time, or long after it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from groupledger.core.protocol import events as e
from tests.live.broker import Broker
from tests.live.members import Settings
from tests.live.stage import SIMULATED
from tests.live.standstill import play_undisturbed
from tests.live.timed_stage import TimedConsumerStage, TimedStage
from tests.live.topics import Topics

CONSUMER = e.GroupProtocol.CONSUMER
SESSION_MS, MAX_POLL_MS = 6_000, 10_000
LONG_MS = 60_000
"""Of the timeout that a sequence is not about."""
DELAY_MS = 10_000


def story(name, join):
    """The events of a sequence, those in one list at once one after the other."""
    static = {each: {"group_instance_id": f"i-{each}"} for each in "abc"}
    return {
        "session": [[join("a")], [join("b")], [e.Crash("b")]],
        "zombie": [[join("a")], [join("b")], [e.Pause("b")], [e.Resume("b")]],
        "hang": [[join("a")], [join("b")], [e.Hang("b")], [e.Resume("b")]],
        "static-session": [[join("a", **static["a"])], [join("b", **static["b"])], [e.Leave("b")]],
        "static-hang": [[join("a", **static["a"])], [join("b", **static["b"])], [e.Hang("b")]],
        "join": [[join("a")], [join("b")], [e.Pause("b"), join("c")], [e.Resume("b")]],
        "sync": [[join("a", **static["a"])], [join("b", **static["b"])], [e.Leave("b"), join("c", **static["c"])]],
        "revoking": [[join("a")], [join("b")]],
        "delay": [[join("a"), join("b")], [e.Leave("a")], [e.Leave("b")], [join("c")]],
    }[name]


TIMES = {
    **dict.fromkeys(("session", "zombie", "static-session", "delay"), (SESSION_MS, LONG_MS)),
    "hang": (SESSION_MS, MAX_POLL_MS),
    "static-hang": (SESSION_MS, MAX_POLL_MS),
    "join": (LONG_MS, MAX_POLL_MS),
    "sync": (LONG_MS, MAX_POLL_MS),
    "revoking": (LONG_MS, MAX_POLL_MS),
}
"""`session.timeout.ms` and `max.poll.interval.ms`, which is the rebalance timeout too."""
REVOKING_MS = {"revoking": {"a": 2 * MAX_POLL_MS}}
"""How long a process takes over what is revoked."""
CLASSIC = [
    *(("java", assignor, name) for assignor in ("range", "cooperative-sticky") for name in TIMES if name != "delay"),
    *(("confluent-kafka", "range", name) for name in ("session", "zombie", "hang", "static-session")),
    *(("kafka-python", "range", name) for name in ("session", "zombie", "hang")),
]
"""Not there are librdkafka's `join` and `sync`, whose `max.poll.interval.ms` may not be shorter than its session."""
MODERN = [
    *(("java", name) for name in ("session", "zombie", "hang", "static-session", "static-hang", "revoking")),
    *(("confluent-kafka", name) for name in ("session", "zombie", "hang", "static-session")),
]


def perform(stage, name, join):
    """All of it; each process calls what the simulator says, when it says so."""
    stage.revoking_ms = REVOKING_MS.get(name, {})
    for events in story(name, join):
        stage.happen(*events)
        assert stage.differing() == set(), stage.explain()
    assert stage.untimely() == []


@pytest.mark.parametrize(("library", "assignor", "name"), CLASSIC)
def test_a_classic_group_calls_what_the_clock_says(library, assignor, name, stages, starter):
    session_ms, max_poll_ms = TIMES[name]

    def play(group):
        settings = Settings(*(stages, group, "", assignor, session_ms, None), max_poll_ms=max_poll_ms)
        join = partial(e.Join, topics=(group,), assignors=(assignor,), library=SIMULATED.get(library, library))
        with TimedStage(starter(library), settings, Topics(stages), {group: 4}) as stage:
            perform(stage, name, join)

    play_undisturbed(play, f"timed-{name}-{library}-{assignor}")


@pytest.mark.parametrize(("library", "name"), MODERN)
def test_a_consumer_group_calls_what_the_clock_says(library, name, stages, starter):
    _, max_poll_ms = TIMES[name]

    def play(group):
        settings = Settings(*(stages, group, "", "range", SESSION_MS, None), max_poll_ms=max_poll_ms)
        join = partial(e.Join, topics=(group,), group_protocol=CONSUMER)
        with TimedConsumerStage(starter(library), settings, Topics(stages), {group: 4}) as stage:
            perform(stage, name, join)

    play_undisturbed(play, f"timed-consumer-{name}-{library}")


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_classic_member_of_a_consumer_group_heartbeats_while_it_revokes(assignor, stages, starter):
    """It takes twice its session timeout over that, and loses nothing."""

    def play(group):
        settings = Settings(*(stages, group, "", assignor, SESSION_MS, None), max_poll_ms=LONG_MS)
        modern = partial(e.Join, topics=(group,), group_protocol=CONSUMER)
        with TimedConsumerStage(starter("java"), settings, Topics(stages), {group: 6}) as stage:
            stage.revoking_ms = {"a": 2 * SESSION_MS}
            for event in (modern("b"), e.Join("a", (group,), (assignor,)), modern("c")):
                stage.happen(event)
                assert stage.differing() == set(), stage.explain()
            assert stage.untimely() == []

    play_undisturbed(play, f"timed-both-{assignor}")


def test_an_empty_group_waits_for_those_who_come(tmp_path, starter):
    """`group.initial.rebalance.delay.ms`: both are in the first generation, and an empty group waits again."""
    (tmp_path / "broker").mkdir()
    broker = Broker(tmp_path / "broker", more=f"group.initial.rebalance.delay.ms={DELAY_MS}")
    try:
        broker.start()
        settings = Settings(broker.address, "timed-delay", "", "range", SESSION_MS, None, max_poll_ms=LONG_MS)

        def play(group):
            join = partial(e.Join, topics=(group,), assignors=("range",))
            told = replace(settings, group_id=group)
            with TimedStage(starter("java"), told, Topics(broker.address), {group: 4}) as stage:
                stage.initial_delay_ms = DELAY_MS
                perform(stage, "delay", join)

        play_undisturbed(play, "timed-delay")
    finally:
        broker.stop()
