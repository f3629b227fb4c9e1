"""The ways in which an event may go where a client's timing decides: each comes to rest, and each has its cause."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import OF_LIBRARY
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.step import Form
from tests.core.protocol.played import said
from tests.live.ways import fallen_in, leader_of, other_ways, ways_of

LIBRDKAFKA, KAFKA_PYTHON = "librdkafka", "kafka-python"
TOPICS = {"t": 4, "u": 3}


def join(name, library="java", *topics, assignor="cooperative-sticky"):
    return e.Join(name, topics or ("t",), (assignor,), library=library)


def others(*events, form=Form.AS_KAFKA):
    """The other ways of the last event."""
    script = Script(TOPICS, events, form)
    return ways_of(script, simulate(script))[-1]


def calls(way, name):
    return said(each.call for each in way.calls if each.member == name)


def test_a_syncgroup_that_comes_too_late_is_not_answered():
    newcomers, as_members = others(join("a"), join("b"))
    assert "SyncGroup of b" in newcomers.cause
    assert calls(newcomers, "b") == ["onPartitionsAssigned t-2 t-3"]
    assert "SyncGroup of a" in as_members.cause
    assert (as_members.rounds, calls(as_members, "a")[0]) == (3, "onPartitionsRevoked t-2 t-3")


def test_the_newcomer_and_another_member_may_be_late_at_once():
    found = {each.cause.split(" come")[0]: each for each in others(join("a"), join("b"), join("c"))}
    alone, both = found["the SyncGroup of c"], found["the SyncGroups of c and a"]
    assert calls(alone, "a") == ["onPartitionsAssigned", "onPartitionsAssigned"]
    assert calls(both, "a") == ["onPartitionsAssigned"]
    assert calls(both, "c") == calls(alone, "c") == ["onPartitionsAssigned t-3"]


def test_who_joins_again_since_its_session_ended_may_be_late_too():
    away = [join("a"), join("b"), e.Pause("b"), e.Expire("b")]
    found = others(*away, e.Resume("b"))
    assert [each.cause.split(" comes")[0] for each in found] == ["the SyncGroup of b", "the SyncGroup of a"]
    assert calls(found[0], "b") == ["onPartitionsLost t-2 t-3", "onPartitionsAssigned t-2 t-3"]
    assert others(*away[:3], e.Resume("b")) == []  # it is a member still


def test_nobody_is_late_where_no_rebalance_follows():
    assert others(join("a", assignor="range"), join("b", assignor="range")) == []
    assert others(join("a")) == []


def test_a_leader_may_not_know_a_topic_that_is_new_or_that_it_left():
    found = others(join("a"), join("b", "java", "t", "u"), e.Subscribe("a", ("u",)))
    causes = {each.cause for each in found}
    assert causes == {
        "the leader assigns before it has metadata of u, which is new to the subscription of a, and joins again "
        "when it has",
        "the leader assigns before it has metadata of t, which a no longer subscribes to, so that it forgot it, and "
        "joins again when it has",
    }
    forgot = [each for each in found if "forgot" in each.cause]
    assert len(forgot) == 2  # it learns of it again after one round, or after two
    assert calls(forgot[0], "b") != calls(forgot[1], "b")


def test_what_is_missed_is_no_event_of_its_own():
    before = [join("a"), join("b", "java", "t", "u")]
    told = [each for way in other_ways(before, e.Subscribe("a", ("u",))) for each in way.events]
    missed = [each for each in told if isinstance(each, e.MissTopic)]
    assert [each.topic for each in missed] == ["u", "u", "t", "t"]
    assert all(each.together for each in missed)
    more = list(other_ways(before, e.Subscribe("a", ("t", "u"))))
    assert len(more) == 2  # after one round, or after two; nothing was left


def test_what_librdkafka_knows_of_topics_decides_whether_it_loses_or_revokes():
    (known,) = others(join("a", LIBRDKAFKA), join("b", LIBRDKAFKA, "t", "u"), e.Subscribe("a", ("u",)))
    assert "has metadata of all topics" in known.cause
    assert calls(known, "a")[0].startswith("onPartitionsRevoked t-")


def test_members_of_librdkafka_learn_of_a_deleted_topic_before_or_after_they_are_called_back():
    """Both as seen on a broker: a member gets back what it owned of a topic that is gone, and loses it then."""
    both = [join(name, LIBRDKAFKA, "t", "u") for name in "ab"]
    found = others(*both, e.DeleteTopic("u"))
    stale = [each for each in found if "a is called back" in each.cause]
    seen = ["onPartitionsAssigned", "onPartitionsLost u-0 u-1 u-2", "onPartitionsAssigned t-0"]
    assert calls(stale[0], "a") == seen
    assert [each.rounds for each in stale[:2]] == [2, 3]
    assert {each.round for each in stale[1].calls} == {1, 2, 3}
    late = next(each for each in stale if calls(each, "a") == seen and "the SyncGroup of a" in each.cause)
    assert calls(late, "b") == ["onPartitionsRevoked t-0", *["onPartitionsAssigned"] * 3]  # one round more


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_member_of_librdkafka_may_have_all_join_once_more(assignor):
    (once_more,) = others(*(join(name, LIBRDKAFKA, assignor=assignor) for name in "ab"), e.SetPartitions("t", 6))
    assert once_more.rounds == 2
    assert "learn of topics one after the other" in once_more.cause


def test_the_first_member_of_kafka_python_does_not_wait_for_metadata():
    (unknown,) = others(join("a", KAFKA_PYTHON, assignor="range"))
    assert calls(unknown, "a") == [
        *("onPartitionsRevoked", "onPartitionsAssigned"),
        *("onPartitionsRevoked", "onPartitionsAssigned t-0 t-1 t-2 t-3"),
    ]


@pytest.mark.parametrize("clock", [False, True])
def test_kafka_python_loses_track_of_a_rebalance_that_outlasts_a_poll(clock):
    """Seen on a broker: A, which leads, revoked and took nothing; at the end of its session B got all."""
    members = [replace(join(name, KAFKA_PYTHON, assignor="range"), at_ms=at) for at, name in enumerate("ab")]
    events = [*members, e.SetPartitions("t", 6, at_ms=60_000)]
    script = Script(TOPICS, events, Form.AS_KAFKA, times=Times(MemberTimes(6_000)) if clock else None)
    (lost,) = ways_of(script, simulate(script))[-1]
    assert "a polls so shortly" in lost.cause
    assert "its metadata changed" in lost.cause
    assert calls(lost, "a") == ["onPartitionsRevoked t-0 t-1"]
    taken = "onPartitionsAssigned t-3 t-4 t-5"
    assert calls(lost, "b")[:2] == ["onPartitionsRevoked t-2 t-3", taken]
    assert calls(lost, "b")[-1] == "onPartitionsAssigned t-0 t-1 t-2 t-3 t-4 t-5"


def test_kafka_python_may_lose_track_after_it_subscribed_to_something_else():
    joins = [join(name, KAFKA_PYTHON, assignor="range") for name in "ab"]
    lost = [each for each in others(*joins, e.Subscribe("a", ("t", "u"))) if "its subscription changed" in each.cause]
    assert [calls(each, "a")[-1].split(" ")[0] for each in lost] == ["onPartitionsRevoked"]


def test_it_reads_on_what_it_does_not_know_it_lost():
    """Cooperative: what it owned is consumed twice once its session has ended."""
    members = [join(name, KAFKA_PYTHON) for name in "ab"]
    lost = simulate(Script(TOPICS, [*members, e.LoseAssignment("a"), join("c"), e.Expire("a")], Form.AS_KAFKA))[-1]
    assert {each.members for each in lost.double_owners} == {("a", "b"), ("a", "c")}


def test_a_consumer_group_loses_no_assignment():
    modern = replace(join("a"), group_protocol=e.GroupProtocol.CONSUMER)
    with pytest.raises(Fault, match="'a' cannot lose an assignment of a consumer group"):
        simulate(Script(TOPICS, [modern, e.LoseAssignment("a")]))


def test_a_consumer_group_has_one_way():
    modern = [replace(join(name), group_protocol=e.GroupProtocol.CONSUMER) for name in "ab"]
    assert list(other_ways(modern, e.Subscribe("a", ("u",)))) == []
    assert list(other_ways(modern[:1], modern[1])) == []


def test_what_happens_with_the_next_event_has_its_ways_there():
    assert list(other_ways([join("a")], replace(join("b"), together=True))) == []


LIBRARIES = ("java", *OF_LIBRARY)


def drawn(seed):
    """Members of one library, or of several, that come, go and subscribe; topics that grow and are deleted."""
    random = Random(seed)  # noqa: S311
    libraries = random.choice([*((each,) for each in LIBRARIES), LIBRARIES])
    assignor = random.choice(("range", "cooperative-sticky"))
    there, events, counts = [], [], dict(TOPICS)
    for number in range(8):
        kinds = ["join", *(["leave", "subscribe", "subscribe", "grow", "delete"] if there else [])]
        kind = random.choice(kinds)
        topics = random.choice((("t",), ("u",), ("t", "u")))
        if kind == "join":
            there.append(f"m{number}")
            events.append(join(there[-1], random.choice(libraries), *topics, assignor=assignor))
        elif kind == "leave":
            events.append(e.Leave(there.pop(random.randrange(len(there)))))
        elif kind == "subscribe":
            events.append(e.Subscribe(random.choice(there), topics))
        elif kind == "grow":
            topic = random.choice("tu")
            counts[topic] = max(counts.get(topic, 0), random.randint(5, 9))
            events.append(e.SetPartitions(topic, counts[topic]))
        elif counts:
            events.append(e.DeleteTopic(random.choice(sorted(counts))))
            del counts[events[-1].topic]
    return Script(TOPICS, events, Form.AS_KAFKA)


def test_every_way_comes_to_rest_and_no_partition_has_two_owners_but_where_it_says_so():
    ways = 0
    for seed in range(60):
        script = drawn(seed)
        events = list(script.events)
        for at, event in enumerate(events):
            leader = leader_of(simulate(replace(script, events=events[:at])))
            for way in other_ways(events[:at], event, leader):
                loses = "loses track" in way.cause
                led_up = way.events[: [type(each) for each in way.events].index(type(event))]
                assert all(each.together for each in led_up), (seed, at, way.cause)
                if loses and isinstance(event, e.SetPartitions | e.DeleteTopic):
                    continue  # where nobody subscribes to the topic there is no round, and no session that ends
                *_, last = simulate(replace(script, events=[*events[:at], *way.events]))
                assert last.stable, (seed, at, way.cause)
                assert last.double_owners == () or loses, (seed, at, way.cause)
                ways += 1
    assert ways > 250


def test_a_way_that_cannot_be_is_none():
    """Nobody subscribes to the topic, so the leader does not join, and its session does not end."""
    assert others(join("a", KAFKA_PYTHON), e.SetPartitions("u", 6)) == []


def test_ways_in_which_all_are_called_alike_are_told_once():
    events = [*(join(name, LIBRDKAFKA) for name in "ab"), e.DeleteTopic("t")]
    assert len(list(other_ways(events[:-1], events[-1]))) == 21
    assert len(others(*events)) == 7


@pytest.mark.parametrize(
    ("library", "assignor", "topics", "asks"),
    [
        (LIBRDKAFKA, "cooperative-sticky", ("u",), True),
        (LIBRDKAFKA, "cooperative-sticky", ("t", "u"), False),  # leaves nothing
        (LIBRDKAFKA, "cooperative-sticky", (), False),  # needs nothing new
        (LIBRDKAFKA, "range", ("u",), False),
        ("java", "cooperative-sticky", ("u",), False),
    ],
)
def test_librdkafka_alone_waits_for_metadata_before_it_leaves_a_topic_for_a_new_one(library, assignor, topics, asks):
    members = [join(name, library, assignor=assignor) for name in "ab"]
    found = others(*members, e.Subscribe("a", topics))
    assert any("has metadata of all topics" in each.cause for each in found) == asks


def test_one_that_fell_out_may_be_late_when_it_joins_again():
    """Seen on a broker: a took too long over t-2 and t-3, lost the rest, and was given both back by the follow-up."""
    joins = [replace(join(name), at_ms=at_ms) for name, at_ms in (("a", 0), ("b", 60_000))]
    times, pace = Times(MemberTimes(rebalance_timeout_ms=20_000)), Pace(callback_ms={Callback.REVOKED: 30_000})
    fallen = fallen_in(simulate(Script({"t": 4}, joins, Form.AS_KAFKA, pace, times=times))[-1])
    assert fallen["a"] == 1  # the generation in which it was to revoke
    found = [way for way in other_ways(joins[:1], joins[1], clock=True, fallen={"a": 1}) if "fell out" in way.cause]
    assert [way.events for way in found] == [
        (replace(joins[1], together=True), e.MissAssignment("a", 1, at_ms=60_000)),
    ]
    eager = [replace(each, assignors=("range",)) for each in joins]
    assert [way for way in other_ways(eager[:1], eager[1], fallen={"a": 1}) if "fell out" in way.cause] == []


def test_what_a_member_subscribes_to_anew_is_new_to_its_last_subscription():
    """Its metadata comes after one assignment or two; Java knows of no topic that it left."""
    before = join("a"), join("b"), e.Subscribe("a", ("u",))
    ways = list(other_ways(before, e.Subscribe("a", ("t", "u")), "a"))
    missed = [(each.topic, each.rounds) for way in ways for each in way.events if isinstance(each, e.MissTopic)]
    assert missed == [("t", 1), ("t", 2)]
    assert len(ways) == 2


def test_an_eager_group_without_a_topic_that_is_new_to_it_assigns_once_more():
    before = join("a", assignor="range"), join("b", assignor="range")
    ways = other_ways(before, e.Subscribe("a", ("t", "u")), "a")
    assert [(each.topic, each.rounds) for way in ways for each in way.events if isinstance(each, e.MissTopic)] == [
        ("u", 1)
    ]
