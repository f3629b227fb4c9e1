"""`make parity`, its last part: which answers of custom cooperative assignors Kafka's own leader accepts.

    python -m tests.oracle.validation --groups 2000 --seed 1

Asks kafka-clients 4.4.0 (`ConsumerCoordinator.validateCooperativeAssignment`) and our contract about drawn answers
without a claim that is out of date: both must say the same. Then about answers that set such a claim aside: KIP-792
lets an assignor do so, and Kafka's leader, which reads no generation there, refuses it (decision 0119). Exits with 1
where either is not so.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from groupledger.core.custom import Group, Member, Protocol, TopicPartition
from groupledger.core.custom.contract import examine
from groupledger.core.custom.custom_group import Answer, CustomAssignor, claimants, is_handed_over
from tests.oracle.live import HERE, Oracle

VALIDATION = HERE / "ValidationOracle.java"
PARTITIONS = 6
Lists = dict[str, list[TopicPartition]]


def groups(seed: int, count: int, *, stale: bool) -> Iterator[tuple[Group, Lists]]:
    """Groups of two to five members that own some partitions, and an answer for each; `stale`: the first is behind."""
    for number in range(count):
        draw = random.Random(f"{seed}-{number}-{stale}")  # noqa: S311 seeded on purpose, nothing secret
        names = [f"m{at}" for at in range(draw.randint(2, 5))]
        owned, given = (_dealt(draw, names) for _ in range(2))
        if stale:
            owned[names[0]] = [TopicPartition("t", 0)]
            for name in names[1:]:
                owned[name] = given[name] = [each for each in owned[name] if each.partition != 0]
            given = {**given, names[0]: [], names[1]: [*given[names[1]], TopicPartition("t", 0)]}
        generations = dict.fromkeys(names, 5) | ({names[0]: 4} if stale else {})
        members = tuple(Member(name, ("t",), tuple(owned[name]), generations[name]) for name in names)
        yield Group(members, {"t": PARTITIONS}), given


def _dealt(draw: random.Random, names: list[str]) -> Lists:
    """Each partition to one member or to none."""
    lists: Lists = {name: [] for name in names}
    for number in range(PARTITIONS):
        if draw.random() < 0.8:
            lists[draw.choice(names)].append(TopicPartition("t", number))
    return lists


def ours(group: Group, given: Lists) -> bool:
    """Whether our contract finds no hand-over in the answer."""
    answer = Answer(given, given)
    custom = CustomAssignor("drawn", lambda _: answer, frozenset({Protocol.COOPERATIVE}), None)
    return "ASSIGNOR_HANDED_OVER" not in {each.code for each in examine(custom, group).complaints}


def asked(group: Group, given: Lists, number: int) -> dict[str, Any]:
    """The question to Kafka's leader."""
    owned = {member.member_id: [list(each) for each in member.owned] for member in group.members}
    return {"id": number, "owned": owned, "assigned": {name: [list(each) for each in given[name]] for name in given}}


def compare(seed: int, count: int, oracle: Oracle) -> Counter[str]:
    """Count what agrees, and what does not."""
    found: Counter[str] = Counter()
    for number, (group, given) in enumerate(groups(seed, count, stale=False)):
        kafka = oracle.ask(asked(group, given, number))["valid"]
        found["equal" if kafka == ours(group, given) else "differing"] += 1
    for number, (group, given) in enumerate(groups(seed, count, stale=True)):
        owners = claimants(group)
        early = any(is_handed_over(owners, name, each) for name, partitions in given.items() for each in partitions)
        kafka = oracle.ask(asked(group, given, number))["valid"]
        as_decided = early and not kafka and ours(group, given)
        found["stale: accepted by us alone" if as_decided else "stale: not as decided"] += 1
    return found


def main() -> int:
    """Compare, print the counts; 1 where anything is not as decided."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with Oracle(VALIDATION) as oracle:
        found = compare(options.seed, options.groups, oracle)
    for name, count in sorted(found.items()):
        print(f"{name:<30} {count:>9,}")  # noqa: T201 the command's answer
    return 1 if found["differing"] or found["stale: not as decided"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
