"""Simulated Streams groups (KIP-1071): a real broker's group played from its story, and what such a group does."""

import json

import pytest

from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.comparison import compare, read_variants
from groupledger.core.protocol.consumer import Times
from groupledger.core.protocol.consumer_group.consumer_state import StreamsGroupSettings, SubtopologyTopics, configure
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.script_json import read_line, read_script, simulate_lines, write_script
from groupledger.core.protocol.simulator import simulate
from groupledger.listener import RebalanceListener, rehearse
from tests.core.protocol.captured_streams_group import (
    captured_script,
    recorded_currents,
    recorded_epochs,
    recorded_targets,
)
from tests.core.protocol.played import at_rest

ONE = {"0": SubtopologyTopics(("orders",))}
STATEFUL = {"0": SubtopologyTopics(("orders",), state_changelog_topics=("counts",))}
TOPICS = {"orders": 4}


def test_the_captured_group_has_its_epochs_its_targets_and_its_assignments():
    settled = simulate(captured_script())
    assert [each.failure for each in settled] == [None] * 4
    assert [each.coordinated.epoch for each in settled] == [3, 4, 5, 6]
    assert recorded_epochs() == [2, 3, 4, 5, 6]
    targets = [row for each in settled for row in each.coordinated.targets]
    standby = {(row.epoch, name): tasks for row in targets for name, tasks in row.standby}
    played = [(row.epoch, {name: (tasks, standby[row.epoch, name]) for name, tasks in row.targets}) for row in targets]
    assert played == recorded_targets()[:-1]
    assert recorded_targets()[-1] == (6, {}), "the group is empty: no target is computed"
    assert currents(settled) == changes(recorded_currents())
    assert len(recorded_currents()) - len(changes(recorded_currents())) == 1


def currents(settled):
    """What a coordinator would write: a row where the member is not as its last row left it."""
    rows = (row for each in settled for row in each.coordinated.heartbeats)
    return changes((row.member, row.epoch, row.state, row.assigned, row.pending, row.standby) for row in rows)


def changes(rows):
    """Rows that say something new of their member; the log has one more, with another previous epoch."""
    found, last = [], {}
    for row in rows:
        if last.get(row[0]) != row:
            found.append(row)
        last[row[0]] = row
    return found


def thread(member, at_ms=0, process=None, **more):
    return e.Join(member, group_protocol=e.GroupProtocol.STREAMS, process_id=process, at_ms=at_ms, **more)


def script(*events, topics=TOPICS, topology=ONE, **settings):
    return Script(topics, events, consumer_group=StreamsGroupSettings(topology=topology, **settings))


def play(*events, **more):
    return at_rest(simulate(script(*events, **more)))


def tasks(settlement, role="assigned"):
    return {row.member: [number for _, number in getattr(row, role)] for row in settlement.coordinated.members}


def test_a_heartbeat_at_the_end_of_the_delay_brings_the_target():
    (joined,) = play(thread("a"), initial_rebalance_delay_ms=5_000)
    assert [(row.at_ms, row.epoch) for row in joined.coordinated.heartbeats][-1] == (5_000, 2)
    assert tasks(joined) == {"a": list(range(TOPICS["orders"]))}


def test_the_first_target_comes_after_the_delay_and_members_get_it_with_their_next_heartbeat():
    *_, joined = play(thread("a", together=True), thread("b", 1_000))
    assert [(row.at_ms, row.epoch) for row in joined.coordinated.targets] == [(3_000, 3)]
    assert [(row.member, row.at_ms, row.epoch, len(row.assigned)) for row in joined.coordinated.heartbeats] == [
        ("a", 0, 1, 0),
        ("a", 0, 1, 0),
        ("b", 1_000, 1, 0),
        ("b", 1_000, 1, 0),
        ("a", 5_000, 3, 2),
        ("a", 5_000, 3, 2),
        ("b", 6_000, 3, 2),
        ("b", 6_000, 3, 2),
    ]


def test_without_a_delay_the_first_heartbeat_gets_all():
    (joined,) = play(thread("a"), initial_rebalance_delay_ms=0)
    assert [(row.at_ms, row.epoch) for row in joined.coordinated.targets] == [(0, 2)]
    assert tasks(joined) == {"a": [0, 1, 2, 3]}
    assert joined.unavailable_ms == {}


def test_a_task_is_revoked_before_it_is_handed_over():
    _, joined = play(thread("a"), thread("b", 20_000))
    rows = [(row.at_ms, row.member, row.state, len(row.assigned)) for row in joined.coordinated.heartbeats]
    assert rows == [
        (20_000, "b", "UNRELEASED_TASKS", 0),
        (20_000, "b", "UNRELEASED_TASKS", 0),
        (25_000, "a", "UNREVOKED_TASKS", 2),
        (25_000, "a", "STABLE", 2),
        (30_000, "b", "STABLE", 2),
        (30_000, "b", "STABLE", 2),
    ]
    assert joined.unavailable_ms == {("orders", 2): 5_000, ("orders", 3): 5_000}
    assert joined.double_owners == ()


def test_threads_of_one_process_have_no_standby_tasks_of_one_another():
    *_, same = play(thread("a", process="p"), thread("b", 20_000, "p"), topology=STATEFUL, num_standby_replicas=1)
    assert tasks(same, "standby") == {"a": [], "b": []}
    *_, other = play(thread("a", process="p"), thread("b", 20_000, "q"), topology=STATEFUL, num_standby_replicas=1)
    assert tasks(other) == {"a": [0, 1], "b": [2, 3]}
    assert tasks(other, "standby") == {"a": [2, 3], "b": [0, 1]}
    *_, none = play(thread("a", process="p"), thread("b", 20_000, "q"), topology=STATEFUL)
    assert tasks(none, "standby") == {"a": [], "b": []}


def test_a_crash_makes_the_standby_take_over_after_the_session():
    events = thread("a"), thread("b", 20_000), e.Crash("b", at_ms=60_000), e.Wait(at_ms=200_000)
    *_, crashed, waited = play(*events, topology=STATEFUL, num_standby_replicas=1)
    assert crashed.unowned == (("orders", 2), ("orders", 3))
    assert waited.unowned == ()
    assert tasks(waited) == {"a": [0, 1, 2, 3]}
    assert tasks(waited, "standby") == {"a": []}


def test_a_static_thread_that_comes_back_has_what_it_had():
    static = thread("b", 20_000, group_instance_id="i-b")
    *_, before, away, back = play(
        thread("a"), static, e.Leave("b", at_ms=60_000), e.Restart("b", at_ms=70_000), topology=ONE
    )
    assert tasks(before) == tasks(back)
    assert [row.epoch for row in away.coordinated.members] == [3, -2]
    assert back.coordinated.epoch == before.coordinated.epoch
    assert back.coordinated.targets == ()


def test_a_static_thread_of_another_process_moves_the_group_on():
    """Kafka bumps the epoch where the process is another one: its state is elsewhere."""
    first = thread("b", 20_000, "p1", group_instance_id="i-b")
    second = thread("c", 70_000, "p2", group_instance_id="i-b")
    *_, before, _, back = play(thread("a"), first, e.Leave("b", at_ms=60_000), second)
    assert back.coordinated.epoch == before.coordinated.epoch + 1


def test_one_that_stood_still_too_long_loses_its_tasks_and_joins_again():
    events = thread("a"), thread("b", 20_000), e.Pause("b", at_ms=60_000), e.Wait(at_ms=200_000)
    *_, resumed = play(*events, e.Resume("b", at_ms=200_001))
    assert "UNKNOWN_MEMBER_ID" in [row.error for row in resumed.coordinated.heartbeats]
    assert next(call.call.callback.value for call in resumed.calls if call.member == "b") == "onPartitionsLost"
    assert tasks(resumed) == {"a": [0, 1], "b": [2, 3]}


def test_a_task_reads_what_its_topics_grow_by_from_its_next_heartbeat_on():
    both = {"0": SubtopologyTopics(("orders", "clicks"))}
    events = thread("a"), e.SetPartitions("clicks", 3, at_ms=62_000), e.Wait(at_ms=120_000)
    _, grown, waited = play(*events, topics={"orders": 4, "clicks": 2}, topology=both)
    assert tasks(grown) == {"a": [0, 1, 2, 3]}
    assert grown.unavailable_ms == {("clicks", 2): 3_000}
    assert waited.unavailable_ms == {}
    assert ("clicks", 2, "a", 65_000) in spans(waited)


def spans(settlement):
    return [(*each.partition, each.member, each.since_ms) for each in settlement.consumed]


def test_without_a_source_topic_nobody_has_a_task():
    both = {"0": SubtopologyTopics(("orders",)), "1": SubtopologyTopics(("clicks",))}
    events = thread("a"), e.DeleteTopic("clicks", at_ms=60_000), e.SetPartitions("clicks", 1, at_ms=90_000)
    before, gone, again = play(*events, topics={"orders": 2, "clicks": 2}, topology=both)
    assert before.unowned == ()
    assert (tasks(gone), gone.unowned) == ({"a": []}, (("orders", 0), ("orders", 1)))
    assert gone.coordinated.status == "MISSING_SOURCE_TOPICS: clicks"
    assert (before.coordinated.status, again.coordinated.status) == (None, None)
    assert again.unowned == ()
    assert again.owners == {("clicks", 0): "a", ("orders", 0): "a", ("orders", 1): "a"}


def test_a_stateful_subtopology_whose_topic_grows_does_not_fit_its_changelog():
    """As in Kafka: the changelog has the old number of partitions (INCORRECTLY_PARTITIONED_TOPICS)."""
    *_, grown = play(thread("a"), e.SetPartitions("orders", 6, at_ms=60_000), topology=STATEFUL)
    assert grown.topics == {"orders": 6, "counts": 4}
    assert tasks(grown) == {"a": []}
    told = "INCORRECTLY_PARTITIONED_TOPICS: counts has 4 partitions, expected 6"
    assert grown.coordinated.status == told
    *_, grown = play(thread("a"), e.SetPartitions("orders", 6, at_ms=60_000), topology=ONE)
    assert tasks(grown) == {"a": [0, 1, 2, 3, 4, 5]}


@pytest.mark.parametrize(
    ("topology", "counts", "tasks_of", "missing"),
    [
        (ONE, {"orders": 3}, {"0": 3}, {}),
        (ONE, {}, {}, {}),
        (STATEFUL, {"orders": 3}, {"0": 3}, {"counts": 3}),
        (STATEFUL, {"orders": 3, "counts": 3}, {"0": 3}, {}),
        (STATEFUL, {"orders": 3, "counts": 2}, {}, {}),
        ({"0": SubtopologyTopics(("orders", "clicks"))}, {"orders": 3, "clicks": 5}, {"0": 5}, {}),
    ],
)
def test_what_a_topology_comes_to(topology, counts, tasks_of, missing):
    found = configure(topology, counts)
    assert {name: of.tasks for name, of in found.tasks.items()} == tasks_of
    assert (found.missing, found.ready) == (missing, bool(tasks_of) and not missing)


def test_repartition_topics_have_what_they_ask_for_or_what_their_writers_have():
    chain = {
        "0": SubtopologyTopics(("orders",), {}, ("by-user",)),
        "1": SubtopologyTopics((), {"by-user": 0}, ("by-day",)),
        "2": SubtopologyTopics((), {"by-day": 0}),
    }
    assert configure(chain, {"orders": 3}).missing == {"by-day": 3, "by-user": 3}
    chain["1"] = SubtopologyTopics((), {"by-user": 7}, ("by-day",))
    found = configure(chain, {"orders": 3})
    assert found.missing == {"by-day": 7, "by-user": 7}
    assert [of.tasks for of in found.tasks.values()] == [3, 7, 7]


LOOP = {"0": SubtopologyTopics((), {"a": 0}, ("a",))}


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        (script(thread("a"), topology={}), "streams_group.topology is nothing; expected subtopologies by id"),
        (Script(TOPICS, [thread("a")]), "streams_group.topology is nothing; expected subtopologies by id"),
        (script(thread("a"), topology={"0": SubtopologyTopics()}), "streams_group.topology.0 is 'without a topic"),
        (
            script(thread("a"), topology=LOOP),
            "repartition_source_topics is 'a'; expected one that a subtopology writes",
        ),
        (
            script(thread("a"), topology=ONE | {"1": SubtopologyTopics(("orders",))}),
            "expected a topic of its own: subtopology 0 has this one",
        ),
        (script(thread("a"), e.Join("b", ("orders",))), "events.1.group_protocol is 'classic'; expected streams"),
        (script(e.Join("b", ("orders",)), thread("a")), "events.0.group_protocol is 'classic'; expected streams"),
        (
            script(thread("a", topics=("orders",))),
            "events.0.topics is ['orders']; expected nothing: members of Streams",
        ),
        (script(thread("a", topic_regex="o.*")), "events.0.topic_regex is 'o.*'"),
        (
            script(thread("a"), topology={"0": SubtopologyTopics(("o.*",))}),
            "streams_group.topology.0 is 'o.*'; expected the name of a topic",
        ),
        (script(thread("a", remote_assignor="range")), "events.0.remote_assignor is 'range'"),
        (
            Script(TOPICS, [e.Join("a", ("orders",), process_id="p")]),
            "events.0.process_id is 'p'; expected none outside a Streams group",
        ),
        (
            Script(TOPICS, [thread("a")], times=Times(), consumer_group=StreamsGroupSettings(topology=ONE)),
            "times is 'given'; expected none for a Streams group",
        ),
    ],
)
def test_what_a_streams_group_does_not_have_is_said(told, complaint):
    with pytest.raises(Fault) as raised:
        simulate(told)
    assert raised.value.code == "BAD_SCRIPT"
    assert complaint in raised.value.message


def test_a_member_cannot_subscribe():
    with pytest.raises(Fault, match="'a' cannot subscribe: the topology names the topics of a Streams group"):
        play(thread("a"), e.Subscribe("a", ("orders",)))
    with pytest.raises(Fault, match="is a member of a streams group, where the broker assigns"):
        play(thread("a"), e.FreezeMetadata("a"))


LINE = {
    "id": "x",
    "topics": {"orders": 4},
    "streams_group": {"topology": {"0": {"source_topics": ["orders"]}}},
    "events": [{"event": "join", "member": "a", "group_protocol": "streams"}],
}


@pytest.mark.parametrize(
    ("group", "complaint"),
    [
        (None, "streams_group is nothing; expected an object"),
        ({"topology": []}, "streams_group.topology is []; expected an object of subtopologies by id"),
        ({"topology": {"0": "orders"}}, "streams_group.topology.0 is 'orders'; expected an object of topics"),
        ({"topology": {"0": {"topics": []}}}, "streams_group.topology.0 is 'topics'; expected one of source_topics"),
        ({"topology": {"0": {"source_topics": "orders"}}}, "source_topics is 'orders'; expected a list of topics"),
        ({"topology": {"0": {"source_topics": ["a", "a"]}}}, "source_topics is ['a', 'a']; expected each topic once"),
        ({"topology": {"0": {"repartition_source_topics": {"r": -1}}}}, "repartition_source_topics.r is -1"),
        ({"num_standby_replicas": -1}, "streams_group.num_standby_replicas is -1; expected a whole number from 0"),
        ({"num_standby_replicas": 2**15}, "is 32768; expected a whole number from 0 to 32,767"),
        ({"heartbeat_interval_ms": 0}, "streams_group.heartbeat_interval_ms is 0"),
        ({"remote_assignor": "range"}, "streams_group is 'remote_assignor'; expected one of heartbeat_interval_ms"),
    ],
)
def test_wrong_settings_are_said(group, complaint):
    _, fault = read_line(json.dumps({**LINE, "streams_group": group}))
    assert fault.code == "BAD_SCRIPT"
    assert complaint in fault.message


def test_repartition_topics_that_are_listed_have_the_partitions_of_their_writers():
    told = {
        "0": {"source_topics": ["orders"], "repartition_sink_topics": ["by-user"]},
        "1": {"repartition_source_topics": ["by-user"]},
    }
    *_, joined = simulate(read_script({**LINE, "streams_group": {"topology": told}}))
    assert joined.topics == {"orders": 4, "by-user": 4}


def test_settings_of_another_kind_of_group_are_said():
    _, fault = read_line(json.dumps({**LINE, "consumer_group": {}}))
    assert "consumer_group is {}; expected streams_group, of its members" in fault.message
    _, fault = read_line(json.dumps({**LINE, "events": [{"event": "join", "member": "a", "group_protocol": "stream"}]}))
    assert "events.0.group_protocol is 'stream'; expected one of classic, consumer, share, streams" in fault.message
    _, fault = read_line(json.dumps({**LINE, "events": [{"event": "join", "member": "a", "topics": ["orders"]}]}))
    assert "expected consumer_group, of its members" in fault.message


def test_listeners_and_metrics_are_refused():
    class Silent(RebalanceListener):
        pass

    with pytest.raises(Fault, match="a listener is 'asked for'; expected a script without members of Streams groups"):
        rehearse(script(thread("a")), Silent)
    (answer,) = simulate_lines([json.dumps(LINE)], metrics=True)
    assert "metrics is 'asked for'" in json.loads(answer)["error"]


def test_a_script_and_its_result_as_json():
    topology = {
        "0": SubtopologyTopics(("orders",), {}, ("by-user", "by-day")),
        "1": SubtopologyTopics((), {"by-user": 0, "by-day": 3}, (), ("counts",)),
    }
    whole = script(thread("a", process="p"), topology=topology, num_standby_replicas=1, heartbeat_interval_ms=3_000)
    told = write_script(whole, "x")
    assert read_script(told) == Script(TOPICS, list(whole.events), consumer_group=whole.consumer_group)
    (answer,) = simulate_lines([json.dumps(told)])
    (event,) = json.loads(answer)["events"]
    (member,) = event["streams_group"]["members"]
    assert (member["process_id"], member["protocol"], len(member["target"])) == ("p", "streams", 8)
    assert member["standby"] == member["standby_target"] == []
    assert event["streams_group"]["targets"][-1]["standby"] == {"a": []}
    assert event["streams_group"]["status"] is None


def test_a_script_under_streams_and_under_other_protocols():
    plain = Script(TOPICS, [e.Join("a", ("orders",)), e.Join("b", ("orders",), at_ms=20_000)])
    asked = "streams,consumer,cooperative-sticky,share,streams+static,streams+initial_rebalance_delay_ms=0"
    variants = read_variants(asked, ["cooperative-sticky"])
    found = compare([("x", plain)], variants)[0].variants
    assert [each.error for each in found] == [None] * 6
    streams, consumer, *_, at_once = found
    assert (streams.cost.moves, streams.cost.revoked) == (consumer.cost.moves, consumer.cost.revoked) == (2, 2)
    assert (streams.cost.unavailable_ms, at_once.cost.unavailable_ms) == (4 * 5_000 + 2 * 5_000, 2 * 5_000)
    back = compare([("x", script(thread("a"), thread("b", 20_000, "p")))], variants)[0].variants
    assert [each.error for each in back] == [None] * 6
    assert back[1].cost == consumer.cost


def test_a_variant_that_a_streams_group_cannot_be_is_said():
    streams = script(thread("a"))
    ((_, found),) = [
        (each.id, each.variants)
        for each in compare([("x", streams)], read_variants("streams+remote_assignor=range", []))
    ]
    assert "remote_assignor of 'streams+remote_assignor=range' is no setting here" in found[0].error


def test_no_target_is_computed_for_a_group_that_is_empty_when_the_delay_is_over():
    settled = play(thread("a", together=True), e.Leave("a", at_ms=1_000), e.Wait(at_ms=60_000))
    assert [row for each in settled for row in each.coordinated.targets] == []
