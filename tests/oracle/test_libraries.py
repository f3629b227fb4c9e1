"""The comparison with the client libraries, with our own answers in their place: what counts, and that one shows."""

from __future__ import annotations

import asyncio
import base64
from itertools import islice

import pytest

from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.rebalance.attribution import MOST_WORK
from groupledger.core.scenarios.form import group_of
from groupledger.core.wire.consumer_protocol import ConsumerProtocolAssignment, decode_subscription, encode_assignment
from tests.oracle.libraries import coordinator
from tests.oracle.libraries.comparison import Outcome, compare
from tests.oracle.libraries.groups import asked, groups

GROUPS = 16
BY_CHANCE = {"sarama-sticky", "sarama-cooperative-sticky", "kafka-go-rack-affinity"}
COMPUTED = sorted(set(CLIENT_ASSIGNORS) - BY_CHANCE)


def drawn(name, count=GROUPS):
    return list(groups(CLIENT_ASSIGNORS[name], 7, count))


def ours(scenario):
    """Our first answer as a program would print it."""
    plan = next(iter(CLIENT_ASSIGNORS[scenario["assignor"]].plans(group_of(scenario), scenario["leader"])))
    if plan.failure is not None:
        return {"error": plan.failure}
    return {"lists": {member_id: [list(pair) for pair in mine] for member_id, mine in plan.lists.items()}}


def outcomes(name, answered):
    return {compare(CLIENT_ASSIGNORS[name], each, answered(each), MOST_WORK) for each in drawn(name)}


def without_a_partition(scenario):
    answer = ours(scenario)
    lists = answer.get("lists", {})
    holder = next((member_id for member_id, mine in lists.items() if mine), None)
    return {"lists": lists | {holder: lists[holder][1:]}} if holder else {"error": "none of ours"}


@pytest.mark.parametrize("name", COMPUTED)
def test_our_own_answer_is_equal_and_one_partition_less_differs(name):
    assert outcomes(name, ours) == {Outcome.LISTS}
    assert Outcome.DIFFERING in outcomes(name, without_a_partition)
    assert Outcome.LISTS not in outcomes(name, without_a_partition)


@pytest.mark.parametrize("name", COMPUTED)
def test_another_order_differs(name):
    def turned(scenario):
        lists = {member_id: mine[::-1] for member_id, mine in ours(scenario).get("lists", {}).items()}
        return {"lists": lists}

    assert Outcome.DIFFERING in outcomes(name, turned)


@pytest.mark.parametrize("name", sorted(BY_CHANCE))
def test_what_is_left_to_chance_is_held_against_the_promise(name):
    everything_to_one = {each["id"]: _to_the_first(each) for each in drawn(name)}
    assert Outcome.DIFFERING in outcomes(name, lambda scenario: everything_to_one[scenario["id"]])
    nothing_to_share = [each for each in drawn(name) if not each["members"][1:]]
    assert all(compare(CLIENT_ASSIGNORS[name], each, _to_the_first(each), 1) for each in nothing_to_share)


def _to_the_first(scenario):
    group = group_of(scenario)
    lists = {member.member_id: [] for member in group.members}
    first = scenario["leader"]
    lists[first] = [[topic, number] for topic, number in group.partitions(first)]
    return {"lists": lists}


def test_a_library_that_dies_is_counted_as_such_unless_ours_says_so():
    (scenario,) = drawn("librdkafka-cooperative-sticky", 1)
    candidate = CLIENT_ASSIGNORS[scenario["assignor"]]
    assert compare(candidate, scenario, {"crash": "signal 11"}, MOST_WORK) is Outcome.DIED
    nobody = scenario | {"members": [member | {"topics": []} for member in scenario["members"]]}
    assert compare(candidate, nobody, {"crash": "signal 11"}, MOST_WORK) is Outcome.LISTS


@pytest.mark.parametrize("name", sorted(CLIENT_ASSIGNORS))
def test_groups_are_the_same_for_a_seed_and_what_is_asked_says_all_of_a_scenario(name):
    found = drawn(name)
    assert list(islice(groups(CLIENT_ASSIGNORS[name], 7, GROUPS), 5)) == found[:5]
    assert found != list(groups(CLIENT_ASSIGNORS[name], 8, GROUPS))
    for scenario in found:
        told = asked(scenario, CLIENT_ASSIGNORS[name].protocol)["members"]
        sent = [decode_subscription(base64.b64decode(each["subscription"])) for each in told]
        assert [list(each.topics) for each in sent] == [each["topics"] for each in scenario["members"]]
        owned = [[[topic, number] for topic, mine in each.owned for number in mine] for each in sent]
        assert owned == [each["owned"] for each in scenario["members"]]


def test_chains_of_a_library_that_remembers_carry_claims():
    for name in ("kafka-python-sticky", "librdkafka-cooperative-sticky", "sarama-cooperative-sticky"):
        claims = [len(base64.b64decode(each["user_data"] or "")) for told in drawn(name) for each in told["members"]]
        owned = [each["owned"] for told in drawn(name) for each in told["members"]]
        assert max(claims) > 50 or any(owned)


def request(key, version, client, body=b""):
    """A request's bytes behind its length."""
    head = coordinator._HEADER.write
    out = bytearray()
    head((key, version, 7, client), out)
    return len(out + body).to_bytes(4, "big") + out + body


def written(wire, value):
    out = bytearray()
    wire.write(value, out)
    return bytes(out)


async def exchanged(asked_groups, requests):
    """The responses of a coordinator, in order, without their length and correlation id."""
    served = coordinator.Coordinator(asked_groups)
    server = await asyncio.start_server(served.serve, coordinator.HOST, 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    responses = []
    for each in requests:
        writer.write(each)
        size = int.from_bytes(await reader.readexactly(4), "big")
        responses.append((await reader.readexactly(size))[4:])
    writer.close()
    await writer.wait_closed()
    server.close()
    return served, responses


def test_the_coordinator_names_a_leader_and_keeps_what_it_gives():
    (scenario,) = drawn("librdkafka-range", 1)
    group = asked(scenario, "range")
    given = ours(scenario)["lists"]
    sent = [
        (
            member_id,
            encode_assignment(ConsumerProtocolAssignment(0, tuple((topic, (number,)) for topic, number in mine))),
        )
        for member_id, mine in given.items()
    ]
    names = sorted(scenario["topics"])
    metadata = written(coordinator._REQUESTS[coordinator.METADATA], ([*names, "gone"], 0))
    sync = written(coordinator._REQUESTS[coordinator.SYNC_GROUP], ("g", 1, "m", None, sent))
    requests = [
        request(coordinator.JOIN_GROUP, 5, "leader-0"),
        request(coordinator.METADATA, 4, "leader-0", metadata),
        request(coordinator.SYNC_GROUP, 3, "leader-0", sync),
    ]
    served, (joined, topics, synced) = asyncio.run(exchanged([group], requests))
    _, _, _, protocol, leader, mine, members = coordinator._RESPONSES[coordinator.JOIN_GROUP].read(joined, 0)[0]
    assert (protocol, leader, mine) == ("range", scenario["leader"], scenario["leader"])
    assert [member[0] for member in members] == [member["id"] for member in scenario["members"]]
    told = coordinator._RESPONSES[coordinator.METADATA].read(topics, 0)[0][4]
    known = {name: len(partitions) for error, name, _, partitions in told if not error}
    assert known == group["topics"]
    assert coordinator._RESPONSES[coordinator.SYNC_GROUP].read(synced, 0)[0][1] == coordinator.REBALANCE_IN_PROGRESS
    assert served.results == [{"lists": given}]
    assert served.done.is_set()


def test_a_leader_that_joins_again_without_a_word_has_failed():
    one, two = (asked(each, "range") for each in drawn("librdkafka-range", 2))
    joins = [request(coordinator.JOIN_GROUP, 5, "leader-0")] * 2
    served, _ = asyncio.run(exchanged([one, two], joins))
    assert served.results == [{"error": "no members"}, None]
