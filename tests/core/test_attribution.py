"""Whose algorithm a recorded assignment was: by hand, and for every classic generation of the captures."""

from __future__ import annotations

from bisect import bisect_right

import pytest

from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.custom.custom_group import Group, Member, TopicPartition
from groupledger.core.rebalance import attribution as module
from groupledger.core.rebalance.attribution import RecordedRound, attribution, possible_views, recorded_round
from groupledger.core.rebalance.registry import Attributed
from tests.core.history.captured import catalog, every_group, folded, topic_changes
from tests.core.protocol.test_recorded_clients import writer


def happened(protocol, lists, writers=(), leader="a", topics=None):
    """Members a, b, .. that were given these numbers of topic t, and subscribe to it."""
    names = "abcdef"[: len(lists)]
    members = tuple(Member(name, tuple((topics or {}).get(name, ("t",)))) for name in names)
    given = {name: tuple(TopicPartition("t", n) for n in mine) for name, mine in zip(names, lists, strict=True)}
    return RecordedRound(protocol, leader, members, given, frozenset(writers))


@pytest.mark.parametrize(
    ("record", "agreement", "named", "not_named"),
    [
        pytest.param(
            happened("range", [[0, 1], [2, 3, 4]]),
            Attributed.EXACT,
            {"kafka-go-range"},
            {"java-range"},
            id="longer last",
        ),
        pytest.param(
            happened("range", [[0, 1, 2], [3, 4]]),
            Attributed.EXACT,
            {"java-range", "sarama-range", "librdkafka-range"},
            {"kafka-go-range"},
            id="all that give the same",
        ),
        pytest.param(
            happened("range", [[0, 1, 2], [3, 4]], {"librdkafka"}),
            Attributed.EXACT,
            {"librdkafka-range"},
            {"java-range", "sarama-range"},
            id="what the leader wrote narrows",
        ),
        pytest.param(
            happened("range", [[2, 1, 0], [3, 4]]), Attributed.EQUAL_SETS, {"java-range"}, set(), id="in another order"
        ),
        pytest.param(
            happened("range", [[0], [1, 2, 3, 4]]), Attributed.NO_KNOWN_ASSIGNOR, set(), {"java-range"}, id="nobody's"
        ),
        pytest.param(
            happened("RoundRobinAssigner", [[0, 2, 4], [1, 3]]),
            Attributed.EXACT,
            {"kafkajs-roundrobin"},
            set(),
            id="KafkaJS",
        ),
        pytest.param(
            happened("RoundRobinAssigner", [[], []], leader="b", topics={"b": ("u",)}),
            Attributed.EXACT,
            {"kafkajs-roundrobin"},
            set(),
            id="KafkaJS: the leader's topics alone",
        ),
        pytest.param(
            happened("rack-affinity", [[0, 4], [1, 2, 3]]),
            Attributed.PERHAPS,
            {"kafka-go-rack-affinity"},
            set(),
            id="a promise kept",
        ),
        pytest.param(
            happened("sticky", [[1, 3], [0, 2, 4]]),
            Attributed.PERHAPS,
            {"sarama-sticky"},
            {"franz-go-sticky", "kafka-python-sticky"},
            id="a promise counts only where not all answers could be tried",
        ),
        pytest.param(
            happened("rack-affinity", [[0], [1, 2, 3, 4]]), Attributed.NO_KNOWN_ASSIGNOR, set(), set(), id="and broken"
        ),
        pytest.param(happened("range", []), Attributed.NO_KNOWN_ASSIGNOR, set(), {"java-range"}, id="nobody there"),
        pytest.param(
            happened("mine", [[0, 1, 2, 3, 4]]), Attributed.NO_KNOWN_ASSIGNOR, set(), set(), id="no assignor we know"
        ),
    ],
)
def test_by_hand(record, agreement, named, not_named):
    found = attribution(record, [{"t": 5}])
    assert found.how is agreement
    assert named <= set(found.names)
    assert not not_named & set(found.names)


def test_the_view_that_explains_the_record_decides():
    record = happened("range", [[0, 1], [2]])
    assert attribution(record, [{"t": 5}]).how is Attributed.NO_KNOWN_ASSIGNOR
    assert attribution(record, [{"t": 5}, {}, {"t": 3}]).how is Attributed.EXACT


@pytest.mark.parametrize(
    ("protocol", "leaving_it_open"),
    [("range", {"librdkafka", "sarama", "kafka-go"}), ("roundrobin", {"sarama", "kafka-go"})],
)
def test_the_order_of_topics_counts_where_a_library_fixes_it(protocol, leaving_it_open):
    def exact(topics):
        given = {"a": tuple(TopicPartition(topic, 0) for topic in topics)}
        record = RecordedRound(protocol, "a", (Member("a", ("t", "u")),), given)
        found = attribution(record, [{"t": 1, "u": 1}])
        assert found.how is Attributed.EXACT
        return {name.removesuffix(f"-{protocol}") for name in found.names}

    assert exact("ut") == leaving_it_open
    assert exact("tu") > leaving_it_open | {"java", "kafka-python", "franz-go"}


def test_of_an_assignor_of_many_answers_as_many_are_tried_as_the_size_allows(monkeypatch):
    """The last of franz-go's answers: exact where all are tried, else perhaps."""
    topics = dict.fromkeys("tuv", 3)
    members = tuple(Member(name, tuple(topics)) for name in "ab")
    *_, last = CLIENT_ASSIGNORS["franz-go-sticky"].plans(Group(members, topics), "a")
    record = RecordedRound("sticky", "a", members, last.lists)
    found = attribution(record, [topics])
    assert (found.how, "franz-go-sticky" in found.names) == (Attributed.EXACT, True)
    monkeypatch.setattr(module, "MOST_WORK", 1)
    found = attribution(record, [topics])
    assert (found.how, "franz-go-sticky" in found.names) == (Attributed.PERHAPS, True)


def test_a_view_is_asked_about_once_and_only_where_the_record_is_possible():
    record = happened("range", [[0, 1], [2]])
    seen = [{"t": 5}, {"t": 2}, {"t": 5, "of": 1, "nobody": 2}, {"u": 3}, {"t": 3}]
    assert list(possible_views(record, seen)) == [{"t": 5}, {"t": 3}]


def views(capture, round_, at_ms):
    """The topics then, at the changes before and after, each with and without those of which nothing was recorded."""
    moments = sorted({change.valid_from for change in topic_changes(capture)})
    then = bisect_right(moments, 1_000 * at_ms)
    around = [at_ms, *(moments[at] // 1_000 + 1 for at in (then - 2, then, then - 1) if 0 <= at < len(moments))]
    topics = {topic for member in round_.members for topic in member.topics}
    given = {each.topic for mine in round_.recorded.values() for each in mine}
    for moment in around:
        states = {topic: catalog(capture).as_of(topic, moment) for topic in sorted(topics)}
        counts = {topic: state[1] for topic, state in states.items() if state is not None}
        yield counts
        yield {topic: count for topic, count in counts.items() if topic in given}


def captured(name):
    """(true library, attribution) of each classic generation of a log; not of rewrites in one generation."""
    for group in [group for log, group in every_group() if log == name]:
        rows = folded(name, group)
        before = None
        for snapshot in rows.group_snapshots:
            members = [row for row in rows.member_snapshots if row.snapshot_id == snapshot.snapshot_id]
            is_consumers = snapshot.group_type == "classic" and snapshot.protocol_type == "consumer"
            is_rewrite, before = snapshot.generation == before, snapshot.generation
            if is_consumers and not is_rewrite and any(row.recorded is not None for row in members):
                round_ = recorded_round(snapshot, members)
                leader = next((row for row in members if row.member_id == snapshot.leader), None)
                found = attribution(round_, views(name.split("/")[0], round_, snapshot.observed_at))
                yield writer(group, leader and leader.client_id), found, f"{group} {snapshot.generation}"


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("dev/offsets", 86),
        ("edge/offsets", 152),
        ("compacted/offsets-before", 22),
        ("compacted/offsets", 5),
        ("storm/offsets", 36),
    ],
)
def test_every_captured_generation_is_exactly_its_library_s(name, count):
    found = list(captured(name))
    assert [each for each in found if each[1].how is not Attributed.EXACT] == []
    assert [each for each in found if not any(other.startswith(each[0] or "") for other in each[1].names)] == []
    assert len(found) == count
