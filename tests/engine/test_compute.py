"""A bucket in, result rows out: the step per member, counts, rejected groups beside good ones, any order of rows."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.rebalance.step import Form
from groupledger.core.scenarios.solving import solve
from groupledger.engine.arrow_lists import _large
from groupledger.engine.bucket_rows import MEMBER_ROW
from groupledger.engine.buckets import bucket_count, compute
from groupledger.engine.group_arrays import Calculation
from groupledger.tables import columns as c
from tests.core.assignors import groups as generated
from tests.core.assignors.golden import gold
from tests.engine.bucket_rows import (
    AS_KAFKA,
    KIP,
    TOPIC,
    catalogue,
    computed,
    group_row,
    member_row,
    scenario_rows,
    table,
    topic_row,
    wire,
)

COOPERATIVE = "cooperative-sticky"


def pairs(cell):
    return [(entry["topic"], partition) for entry in cell for partition in entry["partitions"]]


def good(snapshot="good/1"):
    """A cooperative group that B joins: A owns t-0 to t-3."""
    before = snapshot.replace("/1", "/0")
    owned = [("t", partition) for partition in range(4)]
    return [
        group_row(snapshot, assignor=COOPERATIVE, previous_snapshot_id=before, generation=2, shared_topics=["t"]),
        member_row(snapshot, 0, "A", claimed=wire(owned), subscription_version=3, recorded=wire(owned[:2])),
        member_row(snapshot, 1, "B", subscription_version=3, recorded=[]),
        member_row(before, 0, "A", recorded=wire(owned)),
        topic_row(snapshot, "t", 4),
    ]


def one(rows, calculation=AS_KAFKA):
    """The only rebalance, and its members' rows by id."""
    result = computed(rows, calculation)
    (rebalance,) = result["rebalances"]
    return rebalance, {row[c.MEMBER_ID]: row for row in result["assignments"]}


def test_a_cooperative_step():
    rebalance, members = one(good())
    lists = (c.HELD, c.TARGET, c.ASSIGNED, c.ADDED, c.REVOKED, c.AWAITING, c.LOST)
    t = [[("t", partition) for partition in each] for each in ([0, 1, 2, 3], [0, 1], [2, 3])]
    assert [pairs(members["A"][name]) for name in lists] == [t[0], t[1], t[1], [], t[2], [], []]
    assert [pairs(members["B"][name]) for name in lists] == [[], t[2], [], [], [], t[2], []]
    expected = {
        c.OUTCOME: "ASSIGNED", c.VERDICT: "exact", c.PROTOCOL: "COOPERATIVE", c.MEMBERS: 2, c.PARTITIONS: 4, c.KEPT: 2,
        c.ADDED: 0, c.REVOKED: 2, c.LOST: 0, c.UNASSIGNED: 2, c.MOVES: 2, c.LEAST_MOVES: 2, c.LOAD_MIN: 2,
        c.LOAD_MAX: 2, c.FOLLOW_UP: True, c.GENERATION: 2, c.ROUND: 1, c.SCENARIO: "baseline",
    }  # fmt: skip
    assert {name: rebalance[name] for name in expected} == expected
    assert rebalance[c.UNASSIGNED_PARTITIONS] == [{"topic": "t", "partitions": [2, 3], "reason": "awaiting-revocation"}]


def test_an_eager_group_revokes_everything_first():
    rows = [row | {"claimed": None} for row in good()]
    rebalance, members = one(rows)
    assert (rebalance[c.PROTOCOL], rebalance[c.KEPT], rebalance[c.REVOKED], rebalance[c.ADDED]) == ("EAGER", 0, 4, 4)
    assert pairs(members["B"][c.AWAITING]) == []
    assert rebalance[c.FOLLOW_UP] is False


def test_sticky_user_data_is_a_memory_not_ownership():
    """KIP-54: members of `sticky` say what they had, after they have revoked it; nothing is withheld for them."""
    rows = [row | {"assignor": "sticky", "chosen": "sticky"} if row["row_kind"] == 0 else row for row in good()]
    rebalance, members = one(rows)
    assert rebalance[c.PROTOCOL] == "EAGER"
    assert len(pairs(members["B"][c.ASSIGNED])) == 2
    assert pairs(members["A"][c.TARGET]) == [("t", 0), ("t", 1)], "and yet the assignor keeps what it can"


@pytest.mark.parametrize(("chosen", "protocol"), [("cooperative-sticky", "COOPERATIVE"), ("range", "EAGER")])
def test_a_what_if_takes_what_members_held_as_their_claim(chosen, protocol):
    rows = [row | {"claimed": None} for row in good()]
    rows[0] |= {"assignor": "roundrobin", "chosen": chosen}
    rebalance, members = one(rows)
    assert (rebalance[c.PROTOCOL], rebalance[c.VERDICT]) == (protocol, "not-compared")
    assert pairs(members["A"][c.TARGET]) == [("t", 0), ("t", 1)]


def test_the_kip_gives_back_what_the_assignor_does_not_know():
    """A owns a partition of a topic that nobody subscribes to any more: the KIP gives it back, Kafka does not."""
    rows = good()
    rows[1] |= {"claimed": wire([("t", 0), ("gone", 7)])}
    rows[3] |= {"recorded": wire([("t", 0), ("gone", 7)])}
    assert ("gone", 7) in pairs(one(rows, KIP)[1]["A"][c.ASSIGNED])
    assert ("gone", 7) in pairs(one(rows)[1]["A"][c.REVOKED])


def test_partitions_that_no_longer_exist_are_lost():
    rows = good()
    rows[1] |= {"claimed": wire([("t", 0)])}
    rows[3] |= {"recorded": wire([("t", 0), ("t", 9)])}
    _, members = one(rows)
    assert (pairs(members["A"][c.LOST]), pairs(members["A"][c.REVOKED])) == ([("t", 9)], [])


def test_a_topic_made_again_under_another_id_is_another_topic():
    rows = good()
    rows[3] |= {"recorded": wire([("t", 0), ("t", 1)], {"t": "old"})}
    rows[4] |= {"topic_id": "new"}
    _, members = one(rows)
    assert pairs(members["A"][c.LOST]) == [("t", 0), ("t", 1)]
    assert pairs(members["A"][c.ADDED]) == pairs(members["A"][c.ASSIGNED]) != []


def test_a_static_member_holds_what_its_instance_held():
    rows = good()
    rows[1] |= {"group_instance_id": "i1", "member_id": "A-again"}
    rows[3] |= {"group_instance_id": "i1"}
    _, members = one(rows)
    assert len(pairs(members["A-again"][c.HELD])) == 4


def test_a_topic_without_metadata_is_unassigned_by_name():
    rows = good()
    rows[0] |= {"shared_topics": ["t", "nowhere"]}
    rebalance, _ = one(rows)
    assert {"topic": "nowhere", "partitions": [], "reason": "topic-unknown"} in rebalance[c.UNASSIGNED_PARTITIONS]
    assert rebalance[c.PARTITIONS] == 4


BAD = {
    "MEMBER_TWICE": [
        group_row("bad/1", assignor="range", shared_topics=["t"]),
        member_row("bad/1", 0, "A"),
        member_row("bad/1", 1, "A"),
        topic_row("bad/1", "t", 4),
    ],
    "NEGATIVE_PARTITION_COUNT": [
        group_row("bad/1", assignor="range", shared_topics=["t"]),
        member_row("bad/1", 0, "A"),
        topic_row("bad/1", "t", -3),
    ],
    "PARTITIONS_OVER_LIMIT": [
        group_row("bad/1", assignor="range", shared_topics=["t"]),
        member_row("bad/1", 0, "A"),
        topic_row("bad/1", "t", 2_000_000_000),
    ],
    "ID_OVER_LIMIT": [group_row("bad/1", assignor="range"), {**member_row("bad/1", 0, ""), "member_id": None}],
    "MEMBERS_OVER_LIMIT": [group_row("bad/1", fault_code="MEMBERS_OVER_LIMIT", fault_message="too many")],
    "NO_UNFILLED_MEMBER": [
        group_row("bad/1", assignor=COOPERATIVE, shared_topics=["t"]),
        member_row("bad/1", 0, "A", claimed=wire([("t", 2), ("t", 3)])),
        member_row("bad/1", 1, "B", claimed=wire([("t", 0), ("t", 1)])),
        topic_row("bad/1", "t", 2),
    ],
}


@pytest.mark.parametrize("code", BAD)
def test_a_bad_group_is_refused_and_its_neighbours_are_not(code):
    alone = computed(good())
    result = computed([*BAD[code], *good()])
    (refused,) = [row for row in result["rebalances"] if row[c.OUTCOME] == "REJECTED"]
    (quarantined,) = result["quarantine"]
    assert (refused[c.CODE], quarantined[c.CODE], quarantined[c.GROUP_ID]) == (code, code, "bad")
    assert refused[c.MESSAGE] == quarantined[c.MESSAGE]
    assert (quarantined["stage"], quarantined[c.SNAPSHOT_ID]) == ("assign", "bad/1")
    assert [row for row in result["rebalances"] if row is not refused] == alone["rebalances"]
    assert result["assignments"] == alone["assignments"]


@pytest.mark.parametrize(
    ("rows", "outcome", "partitions"),
    [
        ([group_row("e/1", assignor="range")], "EMPTY", 0),
        ([group_row("e/1", assignor=None, snapshot_kind="empty", chosen="")], "EMPTY", 0),
        ([group_row("e/1", assignor="range", shared_topics=[]), member_row("e/1", 0, "A")], "UNCHANGED", 0),
        ([group_row("e/1", assignor="sticky"), member_row("e/1", 0, "A", topics=[])], "UNCHANGED", 0),
    ],
    ids=["no members", "no assignor yet", "no topics", "own empty list"],
)
def test_groups_with_little_in_them(rows, outcome, partitions):
    (row,) = computed([*rows, *good()])["rebalances"][:1]
    assert (row[c.GROUP_ID], row[c.OUTCOME], row[c.PARTITIONS]) == ("e", outcome, partitions)


def test_other_protocol_types_are_recorded_and_not_judged():
    rebalance, _ = one(
        [group_row("k/1", protocol_type="connect", assignor="compatible", chosen=None), member_row("k/1", 0, "A")]
    )
    assert (rebalance[c.VERDICT], rebalance[c.ASSIGNOR]) == ("cannot-tell: other protocol type", "recorded")
    assert (rebalance[c.OUTCOME], rebalance[c.CODE]) == ("NOT_RECOMPUTED", "OTHER_PROTOCOL_TYPE")


def test_a_kip_848_group_steps_towards_its_target():
    rows = [
        group_row("m/1", group_type="consumer", protocol_type=None, chosen=None, previous_snapshot_id="m/0"),
        member_row("m/1", 0, "A", topics=["t"], recorded=wire([("t", 0)]), target=wire([("t", 0)])),
        member_row("m/1", 1, "B", topics=["t"], recorded=[], target=wire([("t", 1)])),
        member_row("m/0", 0, "A", recorded=wire([("t", 0), ("t", 1)])),
        topic_row("m/1", "t", 2),
    ]
    rebalance, members = one(rows)
    assert (rebalance[c.PROTOCOL], rebalance[c.FOLLOW_UP], rebalance[c.MOVES]) == ("COOPERATIVE", True, 1)
    assert pairs(members["A"][c.REVOKED]) == pairs(members["B"][c.AWAITING]) == [("t", 1)]


def test_a_record_that_breaks_the_rules_is_a_finding():
    rows = good()
    rows[1] |= {"recorded": wire([("t", 0), ("t", 1)])}
    rows[2] |= {"recorded": wire([("t", 1), ("t", 2)]), "topics": ["u"]}
    rows[1] |= {"topics": ["t"]}
    result = computed(rows)
    found = {row[c.CODE]: row for row in result["violations"]}
    assert set(found) == {"DOUBLE_ASSIGNED", "ASSIGNED_NOT_SUBSCRIBED", "HANDED_OVER"}
    said = "t 1-2: assigned to members that do not subscribe to the topic"
    assert found["ASSIGNED_NOT_SUBSCRIBED"][c.EVIDENCE] == said
    assert found["DOUBLE_ASSIGNED"][c.EVIDENCE] == "t 1: assigned to two members; expected one owner each"
    assert result["rebalances"][0][c.VERDICT] == "invalid"


def scenarios(name, count):
    return [
        (each["scenario"], each["result"])
        for each in gold(name)[:count]
        if not any(m["user_data"] for m in each["scenario"]["members"])
    ]


@pytest.mark.parametrize("profile", ["homog", "static", "racks", "chain"])
def test_strings_in_strings_out_as_kafka_answers(profile):
    """The gold of a real Kafka through Arrow: same lists inside each topic, and the derived step is Kafka's own."""
    gold = {scenario["id"]: result for scenario, result in scenarios(profile, 60)}
    rows = [row for scenario, result in scenarios(profile, 60) for row in scenario_rows(scenario, result["assignment"])]
    result = computed(rows)
    assert {row[c.VERDICT] for row in result["rebalances"]} == {"exact"}
    for row in result["assignments"]:
        assert sorted(pairs(row[c.ASSIGNED])) == sorted(
            map(tuple, gold[row[c.GROUP_ID]]["assignment"][row[c.MEMBER_ID]])
        )


@pytest.mark.parametrize("name", ["range", "roundrobin", COOPERATIVE])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_bucket_of_groups_is_answered_as_each_scenario_is(name, data):
    found = data.draw(st.lists(generated.scenarios(name), min_size=1, max_size=4))
    rows = []
    for number, scenario in enumerate(found):
        scenario["id"] = f"g{number}"
        for at, member in enumerate(scenario["members"]):
            member["instance_id"] = data.draw(st.sampled_from([None, f"static-{at}"]))
        group, *others = scenario_rows(scenario)
        group |= {"shared_topics": data.draw(st.sampled_from([None, scenario["members"][0]["topics"]]))}
        for row in others:
            if row["row_kind"] == MEMBER_ROW and row["topics"] == group["shared_topics"]:
                row |= {"topics": None}
        rows += [group, *others]
    answers = {
        (row[c.GROUP_ID], row[c.MEMBER_ID]): by_topic(pairs(row[c.ASSIGNED])) for row in computed(rows)["assignments"]
    }
    assert answers == {
        (scenario["id"], member): by_topic(map(tuple, mine))
        for scenario in found
        for member, mine in solve(scenario).get("assignment", {}).items()
    }


def by_topic(partitions):
    """Numbers by topic, in their order. Kafka's answer may name one twice, if a member claims it twice; rows do not."""
    found = {}
    for topic, number in dict.fromkeys(partitions):
        found.setdefault(topic, []).append(number)
    return found


def test_the_step_derived_from_claims_and_target_is_what_kafka_does():
    """Consecutive rebalances, members that do not contradict one another: Kafka's answer, and what the KIP gives back.

    What it gives back is unknown but owned: here, partitions that no longer exist.
    """
    known = [(one, result) for one, result in scenarios("chain", 400) if one["assignor"] == COOPERATIVE]
    rows = [row for scenario, _ in known for row in scenario_rows(scenario)]
    found = {
        (row[c.GROUP_ID], row[c.MEMBER_ID]): set(pairs(row[c.ASSIGNED])) for row in computed(rows, KIP)["assignments"]
    }
    withheld = given_back = 0
    for scenario, result in known:
        for member in scenario["members"]:
            expected = {(topic, partition) for topic, partition in result["assignment"][member["id"]]}
            gone = {(topic, at) for topic, at in member["owned"] if at >= scenario["topics"].get(topic, 0)}
            assert found[scenario["id"], member["id"]] == expected | gone
            given_back += len(gone)
        withheld += sum(scenario["topics"].values()) - sum(map(len, result["assignment"].values()))
    assert min(len(known), withheld, given_back) > 50


def test_the_order_of_rows_says_nothing():
    rows = [row for scenario, result in scenarios("chain", 20) for row in scenario_rows(scenario, result["assignment"])]
    straight = compute(table(rows), replace(AS_KAFKA, topics=catalogue(rows)))
    random.Random(7).shuffle(rows)  # noqa: S311 - a seeded shuffle, no secret
    assert compute(table(rows), replace(AS_KAFKA, topics=catalogue(rows))) == straight


def test_chunks_and_wide_offsets_say_nothing():
    rows = [*good("a/1"), *BAD["MEMBER_TWICE"], *good("b/1")]
    bucket, calculation = table(rows), replace(AS_KAFKA, topics=catalogue(rows))
    straight = compute(bucket, calculation)
    chunked = pa.concat_tables([bucket.slice(at, 1) for at in range(len(bucket))])
    wide = bucket.cast(pa.schema([field.with_type(_large(field.type)) for field in bucket.schema]))
    assert compute(chunked, calculation) == compute(wide, calculation) == straight


def test_an_empty_bucket_gives_nothing():
    assert [len(rows) for rows in compute(table([]), AS_KAFKA).values()] == [0] * 4


def test_a_row_of_no_kind_is_a_bug():
    rows = good()
    rows[0]["row_kind"] = 9
    with pytest.raises(AssertionError, match=r"expected \[0, 1, 2\]"):
        compute(table(rows), AS_KAFKA)


@pytest.mark.parametrize(
    ("groups", "cores", "buckets"), [(0, 2, 1), (10, 2, 1), (3_000, 2, 2), (100_000, 2, 26), (8_000, 200, 8)]
)
def test_buckets_are_neither_tiny_nor_idle(groups, cores, buckets):
    assert bucket_count(groups, cores) == buckets


def test_the_calculation_travels_light():
    import pickle

    assert len(pickle.dumps(Calculation("baseline", Form.KIP))) < 300


def test_a_claim_before_version_1_was_user_data():
    """ownedPartitions came with version 1 of the subscription: what version 0 claims it had, it has revoked."""
    rows = good()
    rows[1] |= {"subscription_version": 0}
    assert one(rows)[0][c.PROTOCOL] == "EAGER"


@pytest.mark.parametrize(
    ("change", "verdict"),
    [({"complete": False}, "cannot-tell: incomplete snapshot"), ({"snapshot_kind": "rewrite"}, "rewrite")],
)
def test_no_verdict_rests_on_a_cut_or_rewritten_snapshot(change, verdict):
    rows = good()
    rows[0] |= change
    assert one(rows)[0][c.VERDICT] == verdict


def test_without_a_record_nothing_is_compared():
    rows = [row | {"recorded": None} if row.get("snapshot_id") == "good/1" else row for row in good()]
    assert one(rows)[0][c.VERDICT] == "cannot-tell: nothing recorded"


def test_a_record_of_topics_that_no_listing_knows_is_not_judged():
    rows = [row for row in good() if row["row_kind"] != TOPIC]
    assert one(rows)[0][c.VERDICT] == "cannot-tell: no partition counts"


def test_a_what_if_does_not_keep_what_is_gone():
    """Held partitions of a topic that was made again, of one that shrank, of one not subscribed: nobody claims them."""
    rows = [row | {"claimed": None} for row in good()]
    rows[0] |= {"assignor": "range", "chosen": COOPERATIVE}
    rows[3] |= {"recorded": wire([("t", 3), ("t", 9), ("u", 0)]) + wire([("t", 2)], {"t": "old"})}
    rows[4] |= {"topic_id": "new"}
    _, members = one(rows)
    assert ("t", 3) in pairs(members["A"][c.ASSIGNED])
    assert pairs(members["A"][c.LOST]) == [("t", 9), ("t", 2)]
    assert {name: pairs(members["B"][name]) for name in (c.AWAITING, c.ASSIGNED)} == {
        c.AWAITING: [],
        c.ASSIGNED: [("t", 1), ("t", 2)],
    }
