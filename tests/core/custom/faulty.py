"""Custom assignors that keep the contract, and one for each way not to."""

from __future__ import annotations

from itertools import count

from groupledger.core.custom import Answer, Group, Protocol, TopicPartition, assignor, cooperative_step

COOPERATIVE = [Protocol.COOPERATIVE]
CALLS = count()
NOT_CALLABLE = 3


@assignor(name="in-turns")
def in_turns(group: Group):
    """Every partition of every topic, in turns over its subscribers."""
    lists: dict[str, list[tuple[str, int]]] = {}
    for topic, partitions in sorted(group.topics.items()):
        able = sorted(member.member_id for member in group.members if topic in member.topics)
        for number in range(partitions):
            lists.setdefault(able[number % len(able)], []).append((topic, number))
    return lists


@assignor(name="in-turns-in-steps", supported_protocols=[Protocol.EAGER, Protocol.COOPERATIVE])
def in_turns_in_steps(group: Group):
    return cooperative_step(group, in_turns(group))


@assignor(supported_protocols=COOPERATIVE)
def in_turns_without_stale_claims(group: Group):
    return cooperative_step(group, in_turns(group), set_stale_aside=True)


@assignor(supported_protocols=COOPERATIVE)
def in_turns_without_one_stale_claim(group: Group):
    """Of what stale members claim it gives the partitions with even numbers at once, and holds back the others."""
    careful, bold = (cooperative_step(group, in_turns(group), set_stale_aside=aside) for aside in (False, True))
    given = {
        member_id: [each for each in partitions if each in careful.assigned[member_id] or each[1] % 2 == 0]
        for member_id, partitions in bold.assigned.items()
    }
    return Answer(given, bold.target)


in_turns_at_once = assignor(supported_protocols=COOPERATIVE)(lambda group: in_turns(group))


def raises(group: Group):
    raise KeyError(f"no weight for {group.members[0].member_id}")


def leaves(group: Group):
    raise SystemExit(3)


def nothing(group: Group):
    return None


def flat(group: Group):
    return {group.members[0].member_id: "t-0"}


def not_a_number(group: Group):
    return {group.members[0].member_id: [("t", True)]}


def stranger(group: Group):
    return {**in_turns(group), "nobody": [("t", 0)]}


def beyond(group: Group):
    return {min(member.member_id for member in group.members): [("t", 10_000)]}


def everything_to_everyone(group: Group):
    return {member.member_id: list(group.partitions(member.member_id)) for member in group.members}


def twice_to_the_same(group: Group):
    first = min(member.member_id for member in group.members)
    return {first: [("t", 0), ("t", 0)]}


def whatever_to_the_last(group: Group):
    last = max(member.member_id for member in group.members)
    return {last: [TopicPartition(topic, 0) for topic in group.topics]}


def by_calls(group: Group):
    """Keeps state between calls."""
    able = sorted(member.member_id for member in group.members)
    return {able[next(CALLS) % len(able)]: [("t", 0)]}


def first_in_line(group: Group):
    """Depends on the order of members."""
    return {group.members[0].member_id: [("t", 0)]}


@assignor(supported_protocols=COOPERATIVE)
def off_target(group: Group):
    target = in_turns(group)
    return Answer(dict(sorted(target.items())[:1]), target)


def changes_the_group(group: Group):
    group.topics.update(t=1)  # type: ignore[attr-defined]  # what it is about
    return {}


off_protocol = assignor()(lambda group: in_turns(group))
off_protocol.__dict__["supported_protocols"] = ("LAZY",)
