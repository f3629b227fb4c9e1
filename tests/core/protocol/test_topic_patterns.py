"""Members that subscribe by a regular expression: classic ones resolve it themselves; bad ones are refused."""

from __future__ import annotations

import time

import pytest

from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.protocol.topic_patterns import LONGEST_NAME, MOST_WAYS, matching, most_ways
from groupledger.core.rebalance.step import Form
from tests.core.protocol.played import at_rest

CONSUMER = e.GroupProtocol.CONSUMER
TOPICS = {"orders-eu": 2, "orders-us": 2, "clicks": 2}


def by_pattern(name, pattern="orders-.*", **more):
    return e.Join(name, (), topic_regex=pattern, **more)


def play(*events, topics=TOPICS, form=Form.KIP, times=None):
    return at_rest(simulate(Script(topics, list(events), form, times=times)))


def owned(settled, member):
    """Partitions of each topic that a member owns afterwards."""
    mine = sorted(each for each, name in settled.owners.items() if name == member)
    return {topic: [number for other, number in mine if other == topic] for topic, _ in mine}


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_classic_member_subscribes_to_what_its_pattern_matches(assignor):
    settled = play(by_pattern("a", assignors=(assignor,)), e.Join("b", ("clicks",), (assignor,)))[-1]
    assert owned(settled, "a") == {"orders-eu": [0, 1], "orders-us": [0, 1]}
    assert owned(settled, "b") == {"clicks": [0, 1]}
    (user_data, *_) = [
        each for each in settled.calls if each.call.callback is Callback.USER_DATA and each.member == "a"
    ]
    assert user_data.call.topics == ("orders-eu", "orders-us")


def test_the_whole_name_has_to_match():
    assert owned(play(by_pattern("a", "orders"))[0], "a") == {}
    assert owned(play(by_pattern("a", "orders|click"), topics={"orders": 1, "clicks": 1})[0], "a") == {"orders": [0]}


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_topic_that_appears_and_matches_makes_the_member_join_again_whoever_leads(assignor):
    """b is no leader: a classic client compares what it joined with to what it subscribes to now."""
    joins = [e.Join("a", ("clicks",), (assignor,)), by_pattern("b", assignors=(assignor,))]
    *_, appeared, other = play(*joins, e.SetPartitions("orders-jp", 1), e.SetPartitions("payments", 1))
    assert owned(appeared, "b") == {"orders-eu": [0, 1], "orders-jp": [0], "orders-us": [0, 1]}
    assert len(appeared.rounds) > 0
    assert (other.rounds, other.calls) == ((), ())


@pytest.mark.parametrize(("form", "callback"), [(Form.KIP, Callback.LOST), (Form.AS_KAFKA, Callback.REVOKED)])
def test_a_topic_that_vanishes_leaves_the_subscription(form, callback):
    *_, gone = play(e.Join("a", ("clicks",)), by_pattern("b"), e.DeleteTopic("orders-eu"), form=form)
    assert owned(gone, "b") == {"orders-us": [0, 1]}
    assert [(each.member, each.call.partitions) for each in gone.calls if each.call.callback is callback] == [
        ("b", (("orders-eu", 0), ("orders-eu", 1)))
    ]
    assert (gone.unowned, len(gone.rounds)) == ((), 1)


def test_a_member_with_stale_metadata_joins_again_when_they_are_fresh():
    """Until `metadata.max.age.ms` is over: `freeze-metadata` and `refresh-metadata` say when."""
    events = [by_pattern("a"), e.FreezeMetadata("a"), e.SetPartitions("orders-jp", 1), e.RefreshMetadata("a")]
    *_, frozen, fresh = play(*events)
    assert (frozen.rounds, "orders-jp" in owned(frozen, "a")) == ((), False)
    assert (len(fresh.rounds), owned(fresh, "a")["orders-jp"]) == (1, [0])


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("clock", [None, Times()])
@pytest.mark.parametrize(("library", "again"), [("java", 0), ("kafka-python", 0), ("librdkafka", 1)])
def test_a_member_that_has_not_heard_of_a_topic_fetches_metadata_before_it_joins(form, clock, library, again):
    """a and c join since a topic appeared that matches; b joins with them, and for it (KAFKA-7126)."""
    joins = [by_pattern(name, assignors=("range",), library=library, together=name != "c") for name in "abc"]
    late = [e.FreezeMetadata("b", at_ms=60_000), e.SetPartitions("orders-jp", 3, at_ms=60_000)]
    *_, appeared, heard = play(*joins, *late, e.RefreshMetadata("b", at_ms=120_000), form=form, times=clock)
    again = again if form is Form.AS_KAFKA else 0
    assert (len(appeared.rounds), len(heard.rounds)) == (1, again)
    assert owned(heard, "b")["orders-jp"] == [1]
    assert ("orders-jp" in owned(appeared, "b")) != bool(again)


def test_with_a_clock_it_notices_when_it_polls():
    """It works for two seconds at a time, and has been since 3,000 ms."""
    times = Times(MemberTimes(processing_ms=2_000))
    *_, appeared = play(by_pattern("a"), e.SetPartitions("orders-jp", 1, at_ms=60_500), times=times)
    assert owned(appeared, "a")["orders-jp"] == [0]
    assert min(each.started_ms for each in appeared.calls) == 61_000


def test_what_matches_while_it_joins_is_joined_for_afterwards():
    """The topic is made while JoinGroup is on its way."""
    times = Times(MemberTimes(round_trip_ms=400))
    settled = play(by_pattern("a"), e.SetPartitions("orders-jp", 1, at_ms=100), times=times)
    assert owned(settled[-1], "a")["orders-jp"] == [0]


def test_after_a_restart_it_subscribes_by_the_pattern_again_or_by_the_names_that_it_had_last():
    *_, again = play(by_pattern("a"), e.Crash("a"), e.SetPartitions("orders-jp", 1), e.Restart("a"))
    assert set(owned(again, "a")) == {"orders-eu", "orders-jp", "orders-us"}
    *_, named = play(by_pattern("a"), e.Subscribe("a", ("clicks",)), e.Restart("a"), e.SetPartitions("orders-jp", 1))
    assert owned(named, "a") == {"clicks": [0, 1]}


@pytest.mark.parametrize("protocol", [CONSUMER, e.GroupProtocol.CLASSIC])
def test_in_a_group_of_both_protocols_each_resolves_its_own(protocol):
    """A classic member beside one of the consumer protocol; each keeps its pattern until it subscribes by name."""
    joins = [e.Join("b", ("clicks",), group_protocol=CONSUMER), by_pattern("a", group_protocol=protocol)]
    later = [e.SetPartitions("orders-jp", 1, at_ms=60_000), e.Wait(at_ms=120_000)]
    assert set(owned(play(*joins, *later)[-1], "a")) == {"orders-eu", "orders-jp", "orders-us"}
    *_, gone = play(*joins, *later, e.DeleteTopic("orders-eu", at_ms=130_000), e.Wait(at_ms=190_000))
    assert set(owned(gone, "a")) == {"orders-jp", "orders-us"}
    named = [e.Subscribe("a", ("clicks",), at_ms=20_000), e.Restart("a", at_ms=30_000), e.Wait(at_ms=90_000)]
    assert set(owned(play(*joins, *named)[-1], "a")) == {"clicks"}


@pytest.mark.parametrize(
    ("join", "message"),
    [
        (
            by_pattern("a", "orders-["),
            r"'a' subscribes by the regular expression 'orders-\[', which does not compile: ",
        ),
        (by_pattern("a", "x" * 1_001), f"expression '{'x' * 80}', of 1,001 characters; expected at most 1,000"),
        (by_pattern("a", "(a+)+b"), "can match in too many ways to try all; expected at most three of"),
        (by_pattern("a", "(a+)+b", group_protocol=CONSUMER), "can match in too many ways to try all"),
        (e.Join("a", ("t",), topic_regex="u.*"), r"and by name \(t\); expected one of both in the classic protocol"),
    ],
)
def test_a_bad_pattern_is_refused(join, message):
    with pytest.raises(Fault, match=message):
        play(join)


def test_of_a_long_bad_pattern_the_first_80_characters_are_told():
    with pytest.raises(Fault) as raised:
        play(by_pattern("a", "(" + "x" * 100))
    assert f"'({'x' * 79}'" in raised.value.message


def test_the_longest_pattern_is_taken():
    assert [each.owners for each in play(by_pattern("a", "x" * 1_000))] == [{}]


@pytest.mark.parametrize(
    ("pattern", "ways"),
    [
        ("orders", 1),
        ("a|b|c", 3),
        ("(a|b)x?c", 4),
        (".*", 250),  # a name has up to 249 characters
        ("[*+?]{2}", 1),
        (r"\*\.\{3\}", 1),
        ("a{2,4}", 3),
        ("(?:a|b){3}", 8),
        ("(?!tmp)x", 1),
        ("a{b", 1),
        (".*{}", 250),
        ("[]a+]x", 1),
    ],
)
def test_ways_are_counted(pattern, ways):
    assert most_ways(pattern) == ways


@pytest.mark.parametrize(
    "pattern", ["(a+)+", "(a|a)*", "(a?){40}a{40}", ".*.*.*.*x", ".*.*.*.*(x)", "a?" * 40, "(a|a)" * 40, "(a|a){00040}"]
)
def test_what_could_hang_has_too_many(pattern):
    assert most_ways(pattern) > MOST_WAYS


@pytest.mark.parametrize(
    "pattern", ["(orders|payments)-.*", r"[a-z.]+\.v[0-9]+(-dlq)?", ".*-eu-.*-v[0-9]", "(?!tmp-).*"]
)
def test_what_people_write_is_quick(pattern):
    assert most_ways(pattern) <= MOST_WAYS
    began = time.process_time()
    assert matching(pattern, ("a" * LONGEST_NAME + "!",)) in ((), ("a" * LONGEST_NAME + "!",))
    assert time.process_time() - began < 5
