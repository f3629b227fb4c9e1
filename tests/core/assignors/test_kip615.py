"""KIP-615's stated guarantees, its refusal, and how its pseudo-code differs from the version that kafka-clients had."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.assignors import Status, assign
from groupledger.core.scenarios.form import encode
from groupledger.core.scenarios.solving import solve
from tests.core.assignors.golden import gold
from tests.examples import examples

NAME = "constrained-cooperative-sticky"


def scenario(topics, owned, generation=1, subscribed=None):
    members = [
        {
            "id": member,
            "topics": sorted(topics) if subscribed is None else subscribed[member],
            "owned": claims,
            "generation": generation[member] if isinstance(generation, dict) else generation,
        }
        for member, claims in owned.items()
    ]
    return {"assignor": NAME, "topics": topics, "members": members}


def answers(case):
    """Target and answer: {member: [(topic, partition), ..]} of each."""
    encoded = encode(case)
    result = assign(NAME, encoded.batch)
    pairs = []
    for start, topic, partition in (
        (result.target.start, result.target.topic, result.target.partition),
        (result.assigned.start, result.assigned.topic, result.assigned.partition),
    ):
        flat = list(zip([encoded.topics[each] for each in topic.tolist()], partition.tolist(), strict=True))
        pairs.append({m["id"]: flat[start[at] : start[at + 1]] for at, m in enumerate(case["members"])})
    return pairs


def t(*partitions):
    return [("t", partition) for partition in partitions]


@pytest.mark.parametrize(
    ("partitions", "owned", "target"),
    [
        pytest.param(
            7, {"a": [], "b": [], "c": []}, {"a": t(0, 1, 6), "b": t(2, 3), "c": t(4, 5)}, id="fresh: 3, 2, 2"
        ),
        pytest.param(2, {"c": [], "a": [], "b": []}, {"a": t(0), "b": t(1), "c": []}, id="fewer than members: by id"),
        pytest.param(4, {"a": t(0, 1, 2, 3), "b": []}, {"a": t(0, 1), "b": t(2, 3)}, id="one joins"),
        pytest.param(5, {"a": t(0, 1, 2), "b": t(3, 4)}, {"a": t(0, 1, 2), "b": t(3, 4)}, id="nothing changed"),
        pytest.param(5, {"a": t(0, 1), "b": t(2, 3, 4)}, {"a": t(0, 1), "b": t(2, 3, 4)}, id="the ceiling is kept"),
        pytest.param(
            7,
            {"a": t(0, 1, 2), "b": t(3, 4, 5), "c": t(6)},
            {"a": t(0, 1), "b": t(3, 4, 5), "c": t(6, 2)},
            id="a partition is stolen from the first above the floor",
        ),
        pytest.param(4, {"a": t(0, 1, 9), "b": []}, {"a": t(0, 1), "b": t(2, 3)}, id="a partition that is gone"),
    ],
)
def test_targets(partitions, owned, target):
    assert answers(scenario({"t": partitions}, owned))[0] == target


def test_new_partitions_are_dealt_across_topics_for_data_parallelism():
    target, _ = answers(scenario({"t0": 2, "t1": 2, "t2": 1}, {"a": []}))
    assert target["a"] == [("t0", 0), ("t1", 0), ("t2", 0), ("t0", 1), ("t1", 1)]


def test_partitions_in_transfer_are_left_out_until_they_are_given_back():
    target, answer = answers(scenario({"t": 4}, {"a": t(0, 1, 2, 3), "b": []}))
    assert target == {"a": t(0, 1), "b": t(2, 3)}
    assert answer == {"a": t(0, 1), "b": []}
    assert answers(scenario({"t": 4}, answer))[1] == target


def test_claims_of_an_older_generation_are_not_owned():
    """The zombie's claims count for nothing, but while it makes them nobody else gets its partitions."""
    case = scenario({"t": 4}, {"zombie": t(0, 1), "live": t(2, 3)}, generation={"zombie": 3, "live": 4})
    target, answer = answers(case)
    assert target == {"live": t(2, 3), "zombie": t(0, 1)}
    case = scenario({"t": 4}, {"zombie": t(1, 2, 3), "live": t(0, 3)}, generation={"zombie": 3, "live": 4})
    target, answer = answers(case)
    assert target == {"live": t(0, 3), "zombie": t(1, 2)}
    assert answer["live"] == t(0, 3)


@pytest.mark.parametrize("generation", [-1, 0, 1, 7])
def test_claims_of_one_generation_are_owned_whichever_it_is(generation):
    owned = {"a": t(2, 3), "b": t(0, 1)}
    assert answers(scenario({"t": 4}, owned, generation))[0] == owned


def test_claims_are_dated_by_the_subscription_whatever_the_user_data_say():
    """Both claim t-0 in generation 1, so that neither owns it (KIP-792)."""
    case = scenario({"t": 2}, {"a": t(0), "b": t(0)})
    dated = replace(encode(case).batch, claim_generation=np.array([1, 5], np.int32))
    assert assign(NAME, dated).target.partition.tolist() == [0, 1]


def test_a_group_without_members_has_no_lists():
    assert answers(scenario({"t": 4}, {})) == [{}, {}]


def test_groups_whose_subscriptions_differ_are_refused_with_the_kips_advice():
    case = scenario({"t": 2, "u": 2}, {"a": [], "b": []}, subscribed={"a": ["t"], "b": ["t", "u"]})
    assert "use cooperative-sticky instead (KIP-615)" in solve(case)["error"]
    case["members"][0]["topics"] = ["u", "t", "t"]
    assert len(solve(case)["assignment"]["a"]) == 2


def test_a_refused_group_has_empty_lists():
    mixed = encode(scenario({"t": 2, "u": 1}, {"a": [], "b": []}, subscribed={"a": ["t"], "b": ["u"]})).batch
    assert assign(NAME, mixed).status.tolist() == [Status.SUBSCRIPTIONS_DIFFER]
    assert assign(NAME, mixed).target.start.tolist() == [0, 0, 0]


GROUPS = st.tuples(
    st.dictionaries(st.sampled_from("tuvw"), st.integers(1, 7), min_size=1),
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True),
    st.randoms(use_true_random=False),
    st.booleans(),
)


def drawn(topics, members, draw, honest):
    """Claims as after any history; `honest`: each partition claimed once at most, and all of one generation."""
    owned: dict[str, list[tuple[str, int]]] = {member: [] for member in members}
    for topic, count in topics.items():
        for partition in range(count + (0 if honest else 2)):
            for member in draw.sample(members, draw.randint(0, 1 if honest else min(2, len(members)))):
                owned[member].append((topic, partition))
    return scenario(topics, owned, 1 if honest else {member: draw.randint(0, 2) for member in members})


@settings(max_examples=examples(100), deadline=None)
@given(GROUPS)
def test_what_the_kip_guarantees(group):
    case = drawn(*group)
    target, answer = answers(case)
    everything = sorted((topic, partition) for topic, count in case["topics"].items() for partition in range(count))
    assert sorted(pair for pairs in target.values() for pair in pairs) == everything
    sizes = [len(pairs) for pairs in target.values()]
    assert max(sizes) - min(sizes) <= 1
    claimed = {pair: {m["id"] for m in case["members"] if pair in m["owned"]} for pair in everything}
    for member, pairs in answer.items():
        assert set(pairs) <= set(target[member])
        assert all(claimed[pair] <= {member} or member in claimed[pair] for pair in pairs)
        assert all(claimed[pair] - {member} for pair in set(target[member]) - set(pairs))


@settings(max_examples=examples(100), deadline=None)
@given(GROUPS)
def test_the_second_round_is_the_last_and_the_third_moves_nothing(group):
    case = drawn(*group)
    _, first = answers(case)
    target, second = answers(scenario(case["topics"], first))
    assert {m: sorted(pairs) for m, pairs in second.items()} == {m: sorted(pairs) for m, pairs in target.items()}
    _, third = answers(scenario(case["topics"], second))
    assert {m: sorted(pairs) for m, pairs in third.items()} == {m: sorted(pairs) for m, pairs in second.items()}


@settings(max_examples=100, deadline=None)
@given(GROUPS)
def test_shuffled_members_and_claims_give_the_same_lists(group):
    case = drawn(*group)
    draw = group[2]
    members = [{**m, "owned": draw.sample(m["owned"], len(m["owned"]))} for m in case["members"]]
    assert answers({**case, "members": draw.sample(members, len(members))}) == answers(case)


def difference(case, first):
    """How our answer differs from the first version's; anything but these classes is a fault of ours."""
    ours = {member: set(map(tuple, pairs)) for member, pairs in solve(case)["assignment"].items()}
    theirs = {member: set(map(tuple, pairs)) for member, pairs in first["assignment"].items()}
    if ours == theirs:
        return "equal"
    owned = {m["id"]: set(map(tuple, m["owned"])) for m in case["members"]}
    kept = [{member: given[member] & owned[member] for member in owned} for given in (ours, theirs)]
    if kept[0] == kept[1]:
        return "the same is kept; new partitions are dealt in another order"
    if sum(map(len, kept[0].values())) == sum(map(len, kept[1].values())):
        return "as much is kept; another partition is stolen, or from another member"
    return f"{kept} differ"


@pytest.mark.parity
def test_every_difference_from_the_first_version_is_one_the_kips_words_allow():
    """It dealt new partitions in turns and by topic; it stole from members in hash order, their first partition."""
    classes = Counter(difference(pair["scenario"], pair["result"]) for pair in gold("kip615-first"))
    assert set(classes) == {
        "equal",
        "the same is kept; new partitions are dealt in another order",
        "as much is kept; another partition is stolen, or from another member",
    }
    assert classes["equal"] > 150


def test_compiled_and_plain_answer_alike(monkeypatch):
    cases = [pair["scenario"] for pair in gold("kip615-first")[:40]]
    plain = [answers(case) for case in cases]
    monkeypatch.setenv("GROUPLEDGER_KERNELS", "numba")
    assert [answers(case) for case in cases] == plain
    assert np.all([assign(NAME, encode(case).batch).status == 0 for case in cases])
