"""Share groups: every recorded pair of Kafka's own `simple` assignor, and what the assignor promises."""

from groupledger.core.assignors.server.server_group import ServerGroup, ServerMember, Topic, TopicId
from groupledger.core.assignors.server.simple import assign_simple
from groupledger.core.scenarios.solving import solve_server_group
from tests.core.assignors.golden import gold


def flat(order):
    return {
        member: sorted((topic, each) for topic, some in record for each in some) for member, record in order.items()
    }


def test_all_recorded_targets_are_equal_and_changed_ones_in_the_order_of_the_record():
    recorded = gold("server-simple")
    assert len(recorded) > 200
    assert {pair["result"]["path"] for pair in recorded} == {"homogeneous", "heterogeneous"}
    for pair in recorded:
        scenario, kafka = pair["scenario"], pair["result"]
        ours = solve_server_group(scenario)
        before = {
            each["id"]: sorted((topic, number) for topic, number in each["assigned"]) for each in scenario["members"]
        }
        changed = [member for member, target in flat(kafka["order"]).items() if target != before[member]]
        assert flat(ours["order"]) == flat(kafka["order"]), scenario["id"]
        assert [ours["order"][each] for each in changed] == [kafka["order"][each] for each in changed], scenario["id"]
        assert ours["path"] == kafka["path"]


def group(members, partitions, targets=()):
    topic = Topic(TopicId(bytes(16)), partitions)
    held = dict(targets)
    return ServerGroup(tuple(ServerMember(each, ("t",), held.get(each, ())) for each in members), {"t": topic})


def counts(targets):
    return sorted(sum(len(numbers) for _, numbers in record) for record in targets.values())


def test_every_partition_is_shared_by_as_many_members_as_it_takes():
    targets = assign_simple(group("abc", 2))
    assert counts(targets) == [1, 1, 2]
    owners = [number for record in targets.values() for _, numbers in record for number in numbers]
    assert sorted(owners) == [0, 0, 1, 1]


def test_members_keep_what_they_have():
    targets = assign_simple(group("ab", 4))
    assert assign_simple(group("ab", 4, targets.items())) == targets
    assert counts(assign_simple(group("abc", 4, targets.items()))) == [1, 1, 2]


def test_a_partition_whose_share_state_is_not_initialized_goes_to_nobody():
    assert counts(assign_simple(group("ab", 0))) == [0, 0]


def test_a_group_without_members_has_no_targets():
    assert assign_simple(group("", 4)) == {}
