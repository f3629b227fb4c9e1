"""What the coordinator's assignors promise, on seeded chains of rebalances, and how they fail."""

import json
from contextlib import nullcontext

import numpy as np
import pytest

from groupledger.core.arrays.batch import NONE
from groupledger.core.assignors.server.server_batch import _offenders, assign, failure, written
from groupledger.core.assignors.server.server_group import ServerGroup, ServerMember, Topic, TopicId, encode
from groupledger.core.assignors.server.uniform import CurrentTargets
from groupledger.core.faults import Fault
from groupledger.core.scenarios.solving import read, solve_lines, solve_server_group
from groupledger.core.scenarios.solving import solve as solve_any

from .scenarios import chains

ONE, TWO = TopicId(bytes(15) + b"\1"), TopicId(bytes(15) + b"\2")


def held(record):
    return sorted((topic, partition) for topic, partitions in record for partition in partitions)


@pytest.fixture(scope="module")
def solved():
    return [(scenario, solve_server_group(scenario)) for scenario in chains(seed=3, groups=60, rounds=4)]


def test_each_partition_of_a_subscribed_topic_has_one_owner_who_subscribes(solved):
    for scenario, result in solved:
        subscribed = {member["id"]: set(member["topics"]) for member in scenario["members"]}
        wanted = sorted(
            (name, partition)
            for name, fact in scenario["topics"].items()
            if any(name in topics for topics in subscribed.values())
            for partition in range(fact["partitions"])
        )
        assert sorted(tuple(pair) for each in result["assignment"].values() for pair in each) == wanted
        for member, pairs in result["assignment"].items():
            assert {topic for topic, _ in pairs} <= subscribed[member]


def test_homogeneous_counts_differ_by_one_at_most(solved):
    counted = 0
    for scenario, result in solved:
        if scenario["assignor"] == "server-uniform" and result["path"] == "homogeneous":
            sizes = [len(pairs) for pairs in result["assignment"].values()]
            assert max(sizes) - min(sizes) <= 1
            counted += 1
    assert counted > 50


def test_nothing_moves_when_nothing_changed(solved):
    """Homogeneous groups only: Kafka's heterogeneous balancing may stop unfinished after 16 rounds."""
    alike = [(scenario, result) for scenario, result in solved if result["path"] == "homogeneous"]
    assert len(alike) > 50
    for scenario, result in alike:
        again = [{**member, "assigned": result["assignment"][member["id"]]} for member in scenario["members"]]
        second = solve_server_group({**scenario, "members": again})
        assert second["assignment"] == result["assignment"]


def test_batches_are_only_batches(solved):
    """A group's answer does not depend on what stands beside it."""
    some = [(scenario, result) for scenario, result in solved if scenario["assignor"] == "server-uniform"][:40]
    batch, names = encode([read(scenario) for scenario, _ in some])
    result = assign("uniform", batch)
    for group, (_, alone) in enumerate(some):
        records = written(batch, names, result, group)
        assert {member: [[t, p] for t, p in record] for member, record in records.items()} == alone["order"]


def group(*members, partitions=3):
    return ServerGroup(members, {"t": Topic(ONE, partitions), "u": Topic(TWO, partitions)})


@pytest.mark.parametrize("name", ["range", "uniform"])
def test_a_group_without_members_or_topics_is_answered(name):
    lone = ServerMember("m", ("nowhere",), ((ONE, (0, 1)),))
    batch, names = encode([ServerGroup((), {}), ServerGroup((lone,), {})])
    result = assign(name, batch)
    assert written(batch, names, result, 0) == {}
    assert written(batch, names, result, 1) == {"m": []}


@pytest.mark.parametrize("held", [((ONE, (0, 7)),), ((TWO, (7,)),)])
def test_a_target_beyond_the_count_fails_as_in_kafka_where_subscriptions_differ(held):
    """The second is the very first entry of the batch, and not of its first topic."""
    batch, _ = encode([group(ServerMember("a", ("t", "u"), held), ServerMember("b", ("t",)))])
    batch = batch._replace(topic_partitions=np.array([3, 3 if held[0][0] == ONE else 4], np.int32))
    result = assign("uniform", batch)
    count = 3 if held[0][0] == ONE else 4
    assert failure(batch, result, 0) == f"ArrayIndexOutOfBoundsException: Index 7 out of bounds for length {count}"
    assert result.assigned.start.tolist() == [0, 0, 0]


def test_targets_beyond_the_counts_leave_no_room_where_subscriptions_are_equal():
    ghost = ServerMember("a", ("t",), ((ONE, (3, 4, 5)),))
    fine = group(ServerMember("a", ("t",)))
    batch, names = encode([fine, group(ghost), fine])
    result = assign("uniform", batch)
    assert failure(batch, result, 1) == "PartitionAssignorException: Partitions were left unassigned"
    for index in (0, 2):
        assert failure(batch, result, index) is None
        assert held(written(batch, names, result, index)["a"]) == [("t", 0), ("t", 1), ("t", 2)]


SOUND = {
    "id": "s",
    "assignor": "server-uniform",
    "topics": {"t": {"id": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": 2}},
    "members": [{"id": "m", "instance_id": None, "rack": None, "topics": ["t"], "assigned": [["t", 0]]}],
}


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (
            {"topics": {"t": {"id": "short", "partitions": 1}}},
            "topics.t.id is 'short'; expected a topic id: 22 characters",
        ),
        ({"topics": {"t": {"id": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": -1}}}, "topics.t is -1; expected"),
        ({"topics": {"t": 3}}, "topics.t is 3; expected an object"),
        ({"members": None}, "members is nothing; expected a list"),
        ({"members": [{"id": "m", "topics": "t"}]}, "members.0.topics is 't'; expected a list"),
        (
            {"members": [{"id": "m", "topics": ["t"], "assigned": [["never", 0]]}]},
            "members.0.assigned is 'never'; expected a name",
        ),
        ({"members": [{"id": "m", "topics": ["t"], "assigned": ["t", 0]}]}, "members.0.assigned is 't'; expected"),
        ({"members": [{"id": "m", "topics": ["t"], "assigned": [["t", -1]]}]}, "holds partition -1; expected >= 0"),
        ({"members": [{"id": "m", "topics": ["t"], "assigned": [["t", 1]] * 2}]}, "holds a partition twice"),
        ({"subscription_type": "mixed"}, "subscription_type is 'mixed'; expected one of"),
        ({"joining": "nobody"}, "joining is 'nobody'; expected a member's id"),
        *(
            (
                {"assignor": assignor, "subscription_type": "homogeneous", "deleted": deleted}
                | {"members": [{"id": "a", "topics": one}, {"id": "b", "topics": other}]},
                "members of a homogeneous group name different topics; expected the same ones",
            )
            for assignor in ("server-range", "server-uniform", "server-simple")
            for deleted in ({}, {"d": "AAAAAAAAAAAAAAAAAAAAAg"})
            for one, other in ((["t"], ["d"]), (["d"], ["t"]), (["t"], []))
        ),
    ],
)
def test_a_broken_scenario_says_what_is_wrong(broken, complaint):
    with pytest.raises(Fault) as caught:
        solve_any(SOUND | broken)
    assert complaint in caught.value.message


def test_solve_takes_server_scenarios_beside_clients():
    lines = [json.dumps(SOUND), "{", json.dumps(SOUND | {"members": None})]
    answers = [json.loads(line) for line in solve_lines(lines)]
    assert answers[0] == {
        "id": "s",
        "assignment": {"m": [["t", 0], ["t", 1]]},
        "order": {"m": [["t", [0, 1]]]},
        "path": "homogeneous",
    }
    assert [answer.get("line") for answer in answers] == [None, 2, 3]


@pytest.mark.parametrize("kind", ["homogeneous", "heterogeneous"])
def test_how_a_coordinator_saw_the_group_may_be_told(kind):
    """It keeps that by counting, and may be behind: then the topics that members name do not say it."""
    assert solve_any(SOUND | {"subscription_type": kind})["path"] == kind


def test_an_unknown_assignor_is_a_key_error():
    with pytest.raises(KeyError):
        assign("sticky", encode([])[0])


def test_a_target_of_a_partition_beyond_32_bits_is_refused():
    topic_id = TopicId(bytes(16))
    for partition, known in ((2**31 - 1, True), (2**31, False)):
        with nullcontext() if known else pytest.raises(Fault, match=f"holds partition {partition}; expected"):
            ServerGroup((ServerMember("m", ("t",), ((topic_id, (partition,)),)),), {"t": Topic(topic_id, 1)})


def test_the_offender_is_told_wherever_it_stands():
    owned = CurrentTargets(np.array([4, 5], np.int32), np.array([7, 8], np.int32))
    assert [each.tolist() for each in _offenders(owned, np.array([0, NONE, 1]))] == [[4, NONE, 5], [7, NONE, 8]]
