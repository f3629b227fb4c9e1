"""The example: lag is shared, owners keep what is fair, and the contract holds on random groups."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from examples.lag_weighted import TOLERATED, lag_records, user_data
from groupledger.core.custom import Group, Member, TopicPartition
from groupledger.core.custom.assignor_names import find
from groupledger.core.custom.contract import examine

CUSTOM = find("examples.lag_weighted:assign")


def lists(plan):
    return {name: [f"{each.topic}-{each.partition}" for each in partitions] for name, partitions in plan.items()}


def group(lags, *owned):
    """Members A, B, .. that own these partitions of `t`; A reports the lags."""
    members = [
        Member(name, ("t",), tuple(TopicPartition("t", each) for each in mine), 3)
        for name, mine in zip("ABC", owned, strict=False)
    ]
    told = user_data({"t": dict(enumerate(lags))})
    return Group((replace(members[0], user_data=told), *members[1:]), {"t": len(lags)})


@pytest.mark.parametrize(
    ("told", "target", "assigned"),
    [
        (group([6, 3, 2, 1], [], []), {"A": ["t-0"], "B": ["t-1", "t-2", "t-3"]}, None),
        (group([5, 5, 5, 5], [2, 3], [0, 1]), {"A": ["t-2", "t-3"], "B": ["t-0", "t-1"]}, None),
        (
            group([9, 1, 1, 1], [0, 1], [2, 3]),
            {"A": ["t-0"], "B": ["t-1", "t-2", "t-3"]},
            {"A": ["t-0"], "B": ["t-2", "t-3"]},
        ),
    ],
)
def test_lag_is_shared_and_owners_keep_what_is_fair(told, target, assigned):
    found = examine(CUSTOM, told)
    assert found.complaints == ()
    assert lists(found.target) == target
    assert lists(found.assigned) == (assigned or target)


def test_the_greatest_reported_lag_counts_and_silence_is_one_record():
    one, other = user_data({"t": {0: 5}, "gone": {0: 9}}), user_data({"t": {0: 7, 9: 1}})
    told = Group((Member("A", ("t",), user_data=one), Member("B", ("t",), user_data=other)), {"t": 2})
    assert lag_records(told) == {("t", 0): 7, ("t", 1): 1}


def random_group(seed):
    rng = random.Random(seed)  # noqa: S311
    topics = {f"t{at}": rng.randint(0, 6) for at in range(rng.randint(1, 4))}
    every = [TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)]
    members = []
    for at in range(rng.randint(1, 6)):
        owned = tuple(rng.sample(every, rng.randint(0, len(every))))
        lags = {each.topic: {each.partition: rng.randint(0, 500)} for each in owned}
        chosen = tuple(rng.sample(sorted(topics), rng.randint(1, len(topics))))
        members.append(Member(f"m{at}", chosen, owned, rng.randint(1, 3), user_data=user_data(lags)))
    return Group(tuple(members), topics)


def test_the_contract_holds_on_random_groups():
    for seed in range(300):
        told = random_group(seed)
        subscribed = {topic for member in told.members for topic in member.topics}
        told = Group(told.members, {topic: n for topic, n in told.topics.items() if topic in subscribed})
        found = examine(CUSTOM, told)
        assert found.complaints == (), seed
        given = sorted(each for partitions in found.target.values() for each in partitions)
        assert given == sorted(lag_records(told)), seed


def test_a_balanced_group_stays_as_it_is():
    balanced = 0
    for seed in range(100):
        rng = random.Random(seed)  # noqa: S311
        lags = [rng.randint(1, 50) for _ in range(12)]
        first = examine(CUSTOM, group(lags, [], [], [])).target
        load = {name: sum(lags[each.partition] for each in partitions) for name, partitions in first.items()}
        if max(load.values()) > TOLERATED * sum(lags) / 3:
            continue
        balanced += 1
        settled = group(lags, *([each.partition for each in first[name]] for name in "ABC"))
        assert examine(CUSTOM, settled).assigned == examine(CUSTOM, group(lags, [], [], [])).assigned, seed
    assert balanced > 90
