"""Scripts and results as JSON: what comes back, what is refused and where."""

from __future__ import annotations

import json

import pytest

from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.consumer_group.consumer_state import ConsumerGroupSettings, MigrationPolicy
from groupledger.core.protocol.script_json import (
    EVENTS,
    TOGETHER,
    read_script,
    settlement_json,
    simulate_lines,
    write_script,
)
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.step import Form
from tests.core.protocol.drawn import script

JOIN = {"event": "join", "member": "a", "topics": ["t"]}


@pytest.mark.parametrize("seed", range(10))
def test_a_script_comes_back(seed):
    drawn = script(seed, 30, Form.AS_KAFKA)
    again = read_script(json.loads(json.dumps(write_script(drawn, "g"))))
    assert (again.topics, again.events, again.form) == (drawn.topics, drawn.events, drawn.form)


def test_the_settings_of_a_consumer_group_come_back():
    settings = ConsumerGroupSettings(session_timeout_ms=9_000, migration_policy=MigrationPolicy.UPGRADE)
    members = [e.Join("a", (), group_protocol=e.GroupProtocol.CONSUMER, topic_regex="t.*", remote_assignor="range")]
    asked = Script({"t": 2}, members, consumer_group=settings)
    written = write_script(asked, "g")
    assert written["consumer_group"] == {"session_timeout_ms": 9_000, "migration_policy": "upgrade"}
    assert read_script(json.loads(json.dumps(written))) == asked


def test_a_setting_of_a_consumer_group_is_at_most_kafkas_largest_int():
    asked = write_script(Script({}, []), "g")
    told = {"session_timeout_ms": 2**31 - 1}
    assert read_script({**asked, "consumer_group": told}).consumer_group.session_timeout_ms == 2**31 - 1
    with pytest.raises(Fault, match="_timeout_ms is 2147483648; expected a whole number from 1 to 2,147,483,647"):
        read_script({**asked, "consumer_group": {"session_timeout_ms": 2**31}})


def test_every_event_has_a_name():
    assert set(EVENTS) == {
        *("join", "leave", "crash", "pause", "resume", "expire", "restart", "subscribe", "set-partitions"),
        *("hang", "cut-off", "wait", "rename-process"),
        *("delete-topic", "freeze-metadata", "refresh-metadata", "miss-assignment", "miss-topic", "lose-assignment"),
    }


def test_results_are_those_of_the_simulator_line_by_line():
    scripts = [script(seed, 6) for seed in range(3)]
    lines = [json.dumps(write_script(each, f"g{at}")) for at, each in enumerate(scripts)]
    results = [json.loads(line) for line in simulate_lines(lines)]
    assert [each["id"] for each in results] == ["g0", "g1", "g2"]
    assert [each["events"] for each in results] == [[plain(one) for one in simulate(each)] for each in scripts]


def plain(settled):
    return json.loads(json.dumps(settlement_json(settled)))


def test_more_lines_than_are_played_together_keep_their_order():
    line = json.dumps({"topics": {"t": 1}, "events": []})
    numbered = [line.replace("{", f'{{"id": {at}, ', 1) for at in range(TOGETHER + 3)]
    assert [json.loads(each)["id"] for each in simulate_lines(numbered)] == list(range(TOGETHER + 3))


def test_fields_of_a_join():
    told_so = {**JOIN, "assignors": ["range"], "group_instance_id": "i", "byte_code": "KIP_429", "upgrade_from": True}
    found = read_script({"topics": {}, "events": [{**told_so, "at_ms": 7}]}).events
    assert found == [e.Join("a", ("t",), ("range",), "i", ByteCode.KIP_429, True, at_ms=7)]


def test_who_subscribes_by_an_expression_need_not_say_topics():
    member = {"event": "join", "member": "a", "group_protocol": "consumer"}
    (join,) = read_script({"topics": {"t": 1}, "events": [{**member, "topic_regex": "t.*"}]}).events
    assert join == e.Join("a", (), group_protocol=e.GroupProtocol.CONSUMER, topic_regex="t.*")
    with pytest.raises(Fault, match=r"events\.0\.topics is nothing; expected a value"):
        read_script({"topics": {"t": 1}, "events": [member]})


def test_a_pace_is_read():
    found = read_script({"topics": {}, "events": [], "pace": {"round_ms": 3, "onPartitionsRevoked": 4}})
    assert found.pace == Pace(3, {Callback.REVOKED: 4})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"topics": None}, "topics is nothing; expected an object of partition counts"),
        ({"topics": {"t": -1}}, "topics.t is -1; expected a whole number from 0"),
        ({"events": {}}, "events is {}; expected a list"),
        ({"form": "best"}, "form is 'best'; expected one of kip, as-kafka"),
        ({"pace": {"x": 1}}, "pace is 'x'; expected one of assign"),
        ({"pace": []}, "pace is []; expected an object of milliseconds"),
        ({"pace": {"round_ms": -1}}, "pace.round_ms is -1; expected a whole number from 0"),
        (
            {"events": [{**JOIN, "at_ms": 2**53 + 1}]},
            "events.0.at_ms is 9007199254740993; expected a whole number from 0",
        ),
        ({"form": []}, "form is []; expected one of kip"),
        ({"form": None}, "form is nothing; expected one of kip"),
        ({"times": None}, "times is nothing; expected an object of milliseconds"),
        ({"pace": None}, "pace is nothing; expected an object of milliseconds"),
        ({"generation": None}, "generation is nothing; expected a whole number from 0"),
        ({"consumer_group": None}, "consumer_group is nothing; expected an object"),
        (
            {"events": [{**JOIN, "at_ms": 5}, {"event": "leave", "member": "a"}, {"event": "wait", "at_ms": 4}]},
            "events.2.at_ms is 4; expected a whole number from 5, the time of an event before it",
        ),
        ({"consumer_group": []}, "consumer_group is []; expected an object"),
        ({"consumer_group": {"x": 1}}, "consumer_group is 'x'; expected one of heartbeat_interval_ms"),
        (
            {"consumer_group": {"session_timeout_ms": 0}},
            "consumer_group.session_timeout_ms is 0; expected a whole number",
        ),
        ({"consumer_group": {"remote_assignor": "best"}}, "consumer_group.remote_assignor is 'best'; expected one of"),
        ({"events": [{"event": {}}]}, "events.0.event is {}; expected one of join"),
        ({"events": [{**JOIN, "byte_code": []}]}, "events.0.byte_code is []; expected one of BEFORE_KIP_429"),
        ({"events": [1]}, "events.0 is 1; expected an object"),
        ({"events": [{"event": "dance"}]}, "events.0.event is 'dance'; expected one of join"),
        ({"events": [{"event": "leave"}]}, "events.0.member is nothing; expected a value"),
        ({"events": [{**JOIN, "colour": 1}]}, "a key of events.0 is 'colour'; expected one of client, at_ms"),
        ({"events": [JOIN, {**JOIN, "together": True}]}, "events.1.together is True; expected false: no event comes"),
        ({"events": [{**JOIN, "topics": "t"}]}, "events.0.topics is 't'; expected a list of texts"),
        ({"events": [{**JOIN, "member": 1}]}, "events.0.member is 1; expected a text"),
        ({"events": [{**JOIN, "member": ""}]}, "events.0.member is ''; expected a text that is not empty"),
        (
            {"tims": {}},
            "a key is 'tims'; expected one of id, topics, form, generation, pace, times, events, consumer_group,",
        ),
        ({"events": [{**JOIN, "group_instance_id": 1}]}, "events.0.group_instance_id is 1; expected a text"),
        ({"form": "x" * 99}, f"form is '{'x' * 79}; expected one of"),
        ({"events": [{**JOIN, "byte_code": "2.4"}]}, "events.0.byte_code is '2.4'; expected one of BEFORE_KIP_429"),
        ({"events": [{**JOIN, "upgrade_from": 1}]}, "events.0.upgrade_from is 1; expected true or false"),
        ({"events": [{"event": "set-partitions", "topic": "t", "partitions": 10**9}]}, "events.0.partitions is"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(changed, message):
    found = {"topics": {"t": 1}, "events": [], **changed}
    with pytest.raises(Fault) as raised:
        read_script(found)
    assert raised.value.code == "BAD_SCRIPT"
    assert raised.value.message.startswith(message)


def test_a_bad_line_is_an_error_and_the_others_go_on():
    good = json.dumps({"id": "good", "topics": {"t": 2}, "events": [JOIN]})
    bad = json.dumps({"id": "bad", "topics": {}, "events": [{"event": "leave", "member": "x"}]})
    results = [json.loads(line) for line in simulate_lines(["{", bad, good, "[]"])]
    assert [each.get("line") for each in results] == [1, 2, None, 4]
    assert results[1]["error"] == "BAD_EVENT: there is no process 'x' that runs; none is known"
    assert results[2]["events"][0]["rounds"][0]["members"][0]["assigned"] == [["t", 0], ["t", 1]]


def test_a_topic_has_a_hundred_thousand_partitions_at_the_most():
    asked = write_script(Script({}, []), "g")
    assert read_script({**asked, "topics": {"t": 100_000}}).topics == {"t": 100_000}
    with pytest.raises(Fault, match="is 100001; expected a whole number from 0 to 100,000"):
        read_script({**asked, "topics": {"t": 100_001}})


@pytest.mark.parametrize("pace", [Pace(3), Pace(3, {Callback.REVOKED: 4}), Pace(0, {Callback.REVOKED: 4})])
def test_a_pace_comes_back(pace):
    written = write_script(Script({}, [], pace=pace), "g")
    assert written["pace"].get("round_ms", 0) == pace.round_ms
    assert read_script(written).pace == pace
    assert "pace" not in write_script(Script({}, []), "g")


def test_times_are_at_most_kafkas_largest_int():
    asked, told = write_script(Script({}, []), "g"), "expected a whole number from 0 to 2,147,483,647"
    for most in (2**31 - 1, 2**31):
        join, pace = {**JOIN, "rebalance_timeout_ms": most}, {"round_ms": most}
        for key, value, of in (("events", [join], "events.0.rebalance_timeout_ms"), ("pace", pace, "pace.round_ms")):
            if most < 2**31:
                assert read_script({**asked, key: value})
            else:
                with pytest.raises(Fault, match=f"{of} is 2147483648; {told}"):
                    read_script({**asked, key: value})
