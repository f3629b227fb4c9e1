"""Simulated share groups (KIP-932): a real broker's group played from its story, and what such a group does."""

import json

import pytest

from groupledger.core.assignors.server.server_group import TopicId
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.comparison import compare, read_variants
from groupledger.core.protocol.consumer import Times
from groupledger.core.protocol.consumer_group.consumer_state import ConsumerGroupSettings
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.script_json import read_line, read_script, simulate_lines, write_script
from groupledger.core.protocol.simulator import simulate
from groupledger.core.wire.codec import uuid_bytes
from groupledger.core.wire.offsets_log import RecordKind
from groupledger.listener import RebalanceListener, rehearse
from tests.core.history.test_captured_group_types import lines, log
from tests.core.protocol.played import at_rest

TOPICS = {"payments": 2, "orders": 3}


def share(member, at_ms=0, topics=("payments",), **more):
    return e.Join(member, topics, group_protocol=e.GroupProtocol.SHARE, at_ms=at_ms, **more)


def play(*events, topics=TOPICS, **settings):
    return at_rest(simulate(Script(topics, events, consumer_group=ConsumerGroupSettings(**settings))))


def assigned(settlement):
    return {row.member: [tuple(each) for each in row.assigned] for row in settlement.coordinated.members}


def records(kind):
    """Of the captured share group: time since it began, fields of the key, and the value, tombstones left out."""
    rows = [(row.timestamp_ms, record) for row, record in log() if record.group_id == "fanout"]
    kept = [(at_ms, each) for at_ms, each in rows if each.key.kind is kind and each.value is not None]
    return [(at_ms - rows[0][0], each.key.fields, each.value) for at_ms, each in kept]


def printed(topic):
    """The id of a listed topic as Kafka prints it."""
    return topic["topic_id"].replace("/", "_").replace("+", "-")


def captured_script():
    """The first four steps of the story; later ones leave members alone."""
    known = {line["topic"]: line for line in lines("topics")}
    joined = records(RecordKind.SHARE_GROUP_MEMBER_METADATA)
    events = [share(value.client_id, at_ms, tuple(value.subscribed_topics)) for at_ms, _, value in joined]
    left_ms = next(at_ms for at_ms, _, value in records(RecordKind.SHARE_GROUP_METADATA) if value.epoch == 7)
    return Script(
        {name: known[name]["partitions"] for name in TOPICS},
        [*events, e.Leave("share-a", at_ms=left_ms)],
        member_ids={value.client_id: [key["member_id"]] for _, key, value in joined},
        topic_ids={name: [TopicId(uuid_bytes(printed(known[name])))] for name in TOPICS},
    )


def test_the_captured_group_has_its_epochs_and_its_targets():
    named = {printed(line): line["topic"] for line in lines("topics")}
    clients = {key["member_id"]: value.client_id for _, key, value in records(RecordKind.SHARE_GROUP_MEMBER_METADATA)}
    epochs = [value.epoch for _, _, value in records(RecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA)]
    settled = simulate(captured_script())
    targets = [row for each in settled for row in each.coordinated.targets]
    assert [row.epoch for row in targets] == [each for each in epochs if each <= 7] == [2, 3, 4, 5, 6, 7]
    last = {}
    for _, key, value in records(RecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT):
        if value.epoch <= 7:
            flat = [(named[topic.topic_id], each) for topic in value.assigned_topics for each in topic.partitions]
            last[clients[key["member_id"]]] = sorted(flat)
    del last["share-a"]
    assert assigned(settled[-1]) == last
    assert sorted({each for some in last.values() for each in some}) != []


def test_a_new_group_gets_its_first_partitions_with_its_second_heartbeat():
    (joined,) = play(share("a"))
    assert [(row.at_ms, row.epoch, len(row.assigned)) for row in joined.coordinated.heartbeats] == [
        (0, 2, 0),
        (5_000, 3, 2),
    ]
    assert joined.unavailable_ms == {("payments", 0): 5_000, ("payments", 1): 5_000}
    assert joined.calls == ()


def test_many_owners_of_a_partition_are_no_finding():
    settled = play(*(share(name, 10_000 * at) for at, name in enumerate("abc")))[-1]
    owners = [each for some in assigned(settled).values() for each in some]
    assert len(owners) == 4
    assert len(set(owners)) == 2
    assert settled.double_owners == ()
    assert settled.unowned == ()
    assert {each.member for each in settled.consumed} == {"a", "b", "c"}


def test_nobody_waits_for_anybody():
    settled = play(share("a"), share("b", 17_000))[-1]
    first, *_ = settled.coordinated.heartbeats
    assert (first.member, first.at_ms, first.state, len(first.assigned)) == ("b", 17_000, "STABLE", 1)
    assert settled.unavailable_ms == {}


def test_a_crashed_member_is_fenced_after_its_session_and_its_partitions_go_to_the_others():
    *_, crashed, waited = play(share("a"), share("b", 17_000), e.Crash("b", at_ms=61_000), e.Wait(at_ms=200_000))
    assert len(crashed.unowned) == 1
    assert waited.unowned == ()
    assert [row.member for row in waited.coordinated.members] == ["a"]


def test_one_that_stood_still_too_long_joins_again_without_a_call():
    events = [
        share("a"),
        share("b", 17_000),
        e.Pause("b", at_ms=30_000),
        e.Wait(at_ms=200_000),
        e.Resume("b", at_ms=200_001),
    ]
    settled = play(*events)[-1]
    assert "UNKNOWN_MEMBER_ID" in [row.error for row in settled.coordinated.heartbeats]
    assert settled.calls == ()
    assert settled.unowned == ()
    assert {len(each) for each in assigned(settled).values()} == {1}


def test_added_partitions_and_other_topics_come_with_the_heartbeats():
    events = [share("a"), e.SetPartitions("payments", 4, at_ms=20_000), e.Subscribe("a", ("orders",), at_ms=60_000)]
    _, grown, moved = play(*events)
    assert len(assigned(grown)["a"]) == 4
    assert {topic for topic, _ in assigned(moved)["a"]} == {"orders"}
    assert {each.partition.topic for each in moved.consumed if each.until_ms is None} == {"orders"}
    assert moved.unowned == ()


@pytest.mark.parametrize(
    ("events", "more", "complaint"),
    [
        ([share("a"), e.Join("b", ("orders",))], {}, "events.1.group_protocol is 'classic'; expected share"),
        ([share("a", group_instance_id="a")], {}, "events.0.group_instance_id is 'a'"),
        ([share("a", topic_regex="o.*")], {}, "events.0.topic_regex is 'o.*'"),
        ([share("a")], {"times": Times()}, "times is 'given'; expected none for a share group"),
    ],
)
def test_what_a_share_group_does_not_have_is_said(events, more, complaint):
    with pytest.raises(Fault) as told:
        simulate(Script(TOPICS, events, **more))
    assert told.value.code == "BAD_SCRIPT"
    assert complaint in told.value.message


def test_listeners_and_metrics_are_refused():
    class Silent(RebalanceListener):
        pass

    with pytest.raises(Fault, match="a listener is 'asked for'; expected a script without share consumers"):
        rehearse(Script(TOPICS, [share("a")]), Silent)
    (answer,) = simulate_lines([json.dumps(write_script(Script(TOPICS, [share("a")]), "x"))], metrics=True)
    assert "metrics is 'asked for'; expected a script without share consumers" in json.loads(answer)["error"]


def test_a_script_and_its_result_as_json():
    script = Script(TOPICS, [share("a")], consumer_group=ConsumerGroupSettings(heartbeat_interval_ms=3_000))
    told = write_script(script, "x")
    assert told["share_group"] == {"heartbeat_interval_ms": 3_000}
    assert read_script(told) == script
    (answer,) = simulate_lines([json.dumps(told)])
    assert json.loads(answer)["events"][0]["share_group"]["epoch"] == 3
    for key, value in (("consumer_group", {}), ("share_group", {"remote_assignor": "range"})):
        _, fault = read_line(json.dumps({**told, "share_group": {}, key: value}))
        assert fault.code == "BAD_SCRIPT"


def test_a_script_under_share_and_under_other_protocols():
    script = Script({"orders": 4}, [e.Join("a", ("orders",)), e.Join("b", ("orders",), at_ms=20_000)])
    variants = read_variants("share,consumer,range,share+heartbeat_interval_ms=1000,share+static", ["range"])
    ((_, found),) = [(each.id, each.variants) for each in compare([("x", script)], variants)]
    shared, consumer, classic, faster, static = found
    assert [each.error for each in (shared, consumer, classic, faster)] == [None] * 4
    assert shared.cost.unavailable_ms == 20_000
    assert faster.cost.unavailable_ms == 4_000
    assert consumer.cost.moves == 2
    assert (shared.cost.moves, shared.cost.revoked, shared.cost.lost) == (None, None, None)
    assert "expected none in a share group" in static.error
    back = compare([("x", Script(TOPICS, [share("a")]))], read_variants("consumer,range", ["range"]))[0].variants
    assert [each.error for each in back] == [None, None]


def test_a_heartbeat_without_news_is_answered_without_any():
    """a's of 10,000 ms, at which b joins: its target is made anew with b's second heartbeat."""
    _, joined = play(share("a"), share("b", 10_000))
    beats = [(row.at_ms, row.member) for row in joined.coordinated.heartbeats]
    assert beats == [(10_000, "b"), (15_000, "a")]


def test_a_topic_of_one_partition_is_initialized_too():
    (joined,) = play(share("a"), topics={"payments": 1})
    assert assigned(joined) == {"a": [("payments", 0)]}


def test_a_topic_that_was_left_is_given_up_before_a_new_target():
    """The next target is computed at 120 s."""
    events = share("a", topics=("payments", "orders")), e.Subscribe("a", ("orders",), at_ms=61_000)
    rows = play(*events, assignment_interval_ms=60_000)[-1].coordinated.heartbeats
    told = [(row.at_ms, row.epoch, sorted({topic for topic, _ in row.assigned})) for row in rows]
    assert told == [(65_000, 3, ["orders"]), (120_000, 4, ["orders"])]


def test_one_that_missed_its_answer_says_the_epoch_before_and_is_answered_again():
    *_, joined = play(share("a"), share("b", 100), e.MissAssignment("a", at_ms=8_999), share("c", 9_000))
    beats = [(row.at_ms, row.sent_epoch, row.epoch) for row in joined.coordinated.heartbeats if row.member == "a"]
    assert beats == [(15_000, 4, 5), (20_000, 4, 5)]
    assert {row.epoch for row in joined.coordinated.members} == {5}
