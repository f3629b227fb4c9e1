"""Mode `safe`: two rounds are enough where Kafka's own answers take a third, and only groups in question are played."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from groupledger.core.arrays.batch import GroupBatch
from groupledger.core.arrays.ragged import MemberAssignments
from groupledger.core.assignors import ASSIGNORS, Path, assign
from groupledger.core.assignors.answer import AssignmentBatch
from groupledger.core.assignors.safe import (
    PLAYED,
    assign_safely,
    offer_less_until_stable,
    rejoined,
    settle_in_two_rounds,
    withhold_claimed,
)
from groupledger.core.scenarios.form import encode
from groupledger.core.scenarios.solving import solve
from tests.core.assignors.groups import scenarios

PLAYING = ("cooperative-sticky", "librdkafka-cooperative-sticky")
COUNTED = {  # what the numbers of a batch count, by its fields
    "member_start": "member_hash",
    "topic_start": "topic_hash",
    "claim_start": "claim_topic",
    "subscription_start": "subscription_topic",
}


def member(name, topics, *owned, generation=0):
    return {"id": name, "topics": topics, "owned": [list(each) for each in owned], "generation": generation}


THIRD_ROUND = {
    "id": "anew",
    "assignor": "cooperative-sticky",
    "topics": {"orders": 6, "payments": 1, "clicks": 6, "BBBB": 1},
    "members": [
        member("A", ["BBBB"]),
        member("B", ["orders"]),
        member("a", ["payments"]),
        member("AA", ["clicks", "orders", "payments"]),
        member("AB", ["clicks"], ("orders", 0)),
        member("b", ["BBBB", "clicks", "orders"]),
    ],
}
"""orders-0 waits for AB. Kafka deals it anew in the second round, to AA, which gives clicks-2 up for it."""


def rounds(scenario, mode):
    """What members own after each round, until one changes nothing."""
    found = []
    while not found or len(found) < 2 or found[-1] != found[-2]:
        lists = solve(scenario, mode=mode)["assignment"]
        found.append({name: sorted(map(tuple, each)) for name, each in lists.items()})
        members = [each | {"owned": lists[each["id"]], "generation": 9} for each in scenario["members"]]
        scenario = scenario | {"members": members}
    return found[:-1]


@pytest.mark.parametrize("assignor", PLAYING)
def test_kafka_takes_a_third_round_and_safe_two(assignor):
    scenario = THIRD_ROUND | {"assignor": assignor}
    _, second, third = rounds(scenario, "as-kafka")
    assert ("orders", 0) in second["AA"]
    assert ("clicks", 2) in third["AB"]
    first, last = rounds(scenario, "safe")
    assert all(set(first[name]) <= set(last[name]) for name in first)
    assert [each for name in last for each in set(last[name]) - set(first[name])] == [("orders", 0)]


def pairs(start, topic, partition):
    """The lists of a batch's members as sets."""
    flat = list(zip(topic.tolist(), partition.tolist(), strict=True))
    return [set(flat[first:last]) for first, last in pairwise(start.tolist())]


def owned_by(batch):
    return pairs(batch.claim_start, batch.claim_topic, batch.claim_partition)


def target_of(answer):
    return pairs(answer.target.start, answer.target.topic, answer.target.partition)


def assigned_in(answer):
    return pairs(answer.assigned.start, answer.assigned.topic, answer.assigned.partition)


def require_no_early_hand_over(batch, answer):
    owned = owned_by(batch)
    for at, (mine, target) in enumerate(zip(assigned_in(answer), target_of(answer), strict=True)):
        assert mine <= target
        assert not (mine - owned[at]) & set().union(*owned[:at], *owned[at + 1 :])


def played_to_the_end(assignor, batch, answer):
    return settle_in_two_rounds(assignor, batch, answer, played=PLAYED)


@pytest.mark.parametrize("way", [settle_in_two_rounds, played_to_the_end, offer_less_until_stable])
@pytest.mark.parametrize("assignor", PLAYING)
def test_a_group_keeps_its_target_whichever_way_it_was_found(assignor, way):
    ours = ASSIGNORS[assignor]

    @settings(max_examples=60, deadline=None)
    @given(scenarios(assignor))
    @example(THIRD_ROUND)
    def keeps_its_target(scenario):
        batch = encode(scenario).batch
        answer = way(ours, batch, assign_safely(ours, batch, cooperative=True))
        require_no_early_hand_over(batch, answer)
        if answer.path[0] != Path.CONSTRAINED:
            again = rejoined(batch, answer.assigned)
            second = way(ours, again, assign_safely(ours, again, cooperative=True))
            assert assigned_in(second) == target_of(second) == target_of(answer)

    keeps_its_target()


def test_less_is_given_only_of_what_would_be_taken_again():
    ours = ASSIGNORS["cooperative-sticky"]
    batch = encode(THIRD_ROUND).batch
    first = assign_safely(ours, batch, cooperative=True)
    less = [
        before - after
        for before, after in zip(
            assigned_in(first), assigned_in(offer_less_until_stable(ours, batch, first)), strict=True
        )
    ]
    names = encode(THIRD_ROUND).topics
    assert [(names[topic], number) for each in less for topic, number in each] == [("clicks", 2)]


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        ([[(1, 0)], []], [[], [(0, 0)]], [False]),  # as many steps from the first entry, but of another member
        ([[(0, 1)], []], [[(1, 0)], []], [False]),  # of another topic
        ([[], [(0, 0)]], [[(1, 0)], []], [False]),
        ([[(1, 0)], []], [[(0, 1)], []], [False]),
        ([[(0, 0)], [(2, 3)]], [[], [(1, 1), (2, 3)]], [False, True]),
        ([[(2, 3)], [(0, 0)]], [[], [(0, 0)]], [False, True]),
        ([[], []], [[(4, 4)], []], []),
        ([[(0, -1), (0, 2**31 - 1)], []], [[(0, -1)], [(0, -(2**31))]], [True, False]),  # claimed, and nowhere
    ],
)
def test_entries_within_other_lists_are_those_of_the_same_member(mine, theirs, expected):
    assert lists_of(mine).within(lists_of(theirs)).tolist() == expected


def test_lists_are_replaced_member_by_member_also_by_none():
    before = lists_of([[(0, 0), (0, 1)], [], [(1, 1)], []])
    after = before.replaced(np.array([1, 2]), lists_of([[(2, 2)], []]))
    assert pairs(after.start, after.topic, after.partition) == [{(0, 0), (0, 1)}, {(2, 2)}, set(), set()]


def contrary(batch):
    """Two partitions: the one that `a` owns goes to `b` and the other to `a`, which is to have both if it has none."""
    leaves = set(batch.claim_partition.tolist()[:1])
    partition = np.array([*({0, 1} - leaves), *leaves], np.int32)
    lists = MemberAssignments(np.array([0, 2 - len(leaves), 2]), np.zeros(2, np.int32), partition)
    return withhold_claimed(batch, AssignmentBatch(lists, lists, np.zeros(1, np.int32), np.array([Path.GENERAL])))


def test_an_assignor_that_never_settles_is_asked_so_often_and_then_gives_less():
    asked = []

    def seen(batch):
        asked.append(len(batch.claim_topic))
        return contrary(batch)

    members = [member("a", ["t"], ("t", 0), ("t", 1)), member("b", ["t"])]
    batch = encode({"id": "never", "assignor": PLAYING[0], "topics": {"t": 2}, "members": members}).batch
    answer = settle_in_two_rounds(seen, batch, contrary(batch))
    assert asked == [1] * 8 + [1, 0]  # eight targets tried, then less given twice
    assert assigned_in(answer) == [set(), set()]
    assert target_of(answer) == [{(0, 0), (0, 1)}, set()]


def lists_of(lists):
    flat = np.array([pair for each in lists for pair in each], np.int32).reshape(-1, 2)
    return MemberAssignments(np.cumsum([0, *map(len, lists)]), flat[:, 0], flat[:, 1])


def together(batches):
    """Batches without racks as one."""
    columns = {f.name: [getattr(batch, f.name) for batch in batches] for f in fields(GroupBatch)}
    columns = {name: parts for name, parts in columns.items() if parts[0] is not None}
    for name, counted in COUNTED.items():
        before = np.cumsum([0, *(len(part) for part in columns[counted])])
        ends = [part[1:] + shift for part, shift in zip(columns[name], before, strict=False)]
        columns[name] = [np.zeros(1, np.int64), *ends]
    before = np.cumsum([0, *(len(batch.subscription_start) - 1 for batch in batches)])
    moved = [part + shift for part, shift in zip(columns["member_subscription"], before, strict=False)]
    columns["member_subscription"] = moved
    return GroupBatch(**{name: np.concatenate(parts) for name, parts in columns.items()})


@pytest.mark.parametrize("assignor", PLAYING)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_groups_of_a_batch_are_answered_as_each_alone(assignor, data):
    found = [*data.draw(st.lists(scenarios(assignor), min_size=1, max_size=5)), THIRD_ROUND]
    batches = [encode(scenario).batch for scenario in data.draw(st.permutations(found))]
    alone = [assign(assignor, batch, mode="safe") for batch in batches]
    answer = assign(assignor, together(batches), mode="safe")
    assert target_of(answer) == [each for one in alone for each in target_of(one)]
    assert assigned_in(answer) == [each for one in alone for each in assigned_in(one)]
    assert answer.path.tolist() == [int(one.path[0]) for one in alone]


def test_only_groups_that_wait_and_are_not_constrained_are_played():
    waiting = THIRD_ROUND["members"]
    alike = [member("a", ["orders"], *(("orders", at) for at in range(6))), member("b", ["orders"])]
    settled = [member("a", ["orders"]), member("b", ["orders", "clicks"])]
    batch = together([encode(THIRD_ROUND | {"members": each}).batch for each in (settled, waiting, alike)])
    played = []

    def seen(part):
        played.append(part.members)
        return ASSIGNORS["cooperative-sticky"](part)

    first = assign_safely(ASSIGNORS["cooperative-sticky"], batch, cooperative=True)
    assert settle_in_two_rounds(seen, batch, first).status.tolist() == [0, 0, 0]
    assert set(played) == {len(waiting)}
    calm = together([encode(THIRD_ROUND | {"members": each}).batch for each in (settled, alike)])
    first = assign_safely(ASSIGNORS["cooperative-sticky"], calm, cooperative=True)
    assert first.path.tolist() == [Path.GENERAL, Path.CONSTRAINED]
    assert len(first.assigned.topic) < len(first.target.topic)
    assert settle_in_two_rounds(refuse, calm, first) is first


def refuse(part):
    raise AssertionError(part.groups)
