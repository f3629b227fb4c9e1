"""Change a group's members and partitions: the rules that `what-if` of one group and the grid of all share."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from groupledger.core.faults import Fault
from groupledger.core.log.topic_partitions import MOST

T = TypeVar("T")

SERVER = "server-"
"""What the names of coordinators' assignors begin with."""
NEW = "new-"
"""What the ids of members that join begin with."""
MORE_PARTITIONS = r"x[1-9]\d{0,3}|\+[1-9]\d{0,5}"
"""A change of a topic's partitions: `x2` twice as many (to x9999), `+3` three more (to +999999)."""


def new_ids(number: int, taken: Collection[str]) -> list[str]:
    """Return `new-1`, `new-2`, ...; where a member of the group has such an id, with hyphens behind it."""
    found: list[str] = []
    for at in range(1, number + 1):
        name = f"{NEW}{at}"
        while name in taken:
            name += "-"
        found.append(name)
    return found


def in_turn(members: Sequence[T], number: int) -> list[T]:
    """Return whom each of so many new members is like: one of the group's in turn, in the order of the record."""
    return [members[at % len(members)] for at in range(number)]


def count_after(topic: str, change: object, count: int) -> int:
    """Return the partitions of a topic that had `count`, after a change of the form MORE_PARTITIONS."""
    if not isinstance(change, str) or re.fullmatch(MORE_PARTITIONS, change) is None:
        expected = "expected '+3' (three more) or 'x2' (twice as many), up to +999999 and x9999"
        raise Fault("BAD_PARTITIONS", f"partitions of {topic} is {change!r}; {expected}")
    number = int(change[1:])
    return min(count * number if change[0] == "x" else count + number, MOST)


def scenario(
    assignor: str,
    topics: Mapping[str, tuple[str | None, int]],
    members: Iterable[Mapping[str, Any]],
    racks: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the group as `core.scenarios.solving` takes it; a coordinator starts from the targets that it gave last.

    `topics`: id and partitions by name. `members`: rows of facts with their topics, user data in base64. `racks`: by
    topic; None: no member has one. Raises Fault: TOPIC_NOT_LISTED for a topic without an id, if a coordinator assigns.
    """
    serverside = assignor.startswith(SERVER)
    unnamed = next((topic for topic, (topic_id, _) in sorted(topics.items()) if serverside and topic_id is None), None)
    if unnamed is not None:
        raise Fault("TOPIC_NOT_LISTED", f"no topic listing has the id of {unnamed}, by which {assignor} goes")
    found = []
    for row in members:
        subscribed = {topic: topics[topic] for topic in sorted(row["topics"]) if topic in topics}
        wire = row["recorded"] if not serverside or row["target"] is None else row["target"]
        own = [each for each in wire or () if each["topic"] in subscribed]
        own = [each for each in own if each["topic_id"] in (None, subscribed[each["topic"]][0])]
        pairs = sorted({(each["topic"], number) for each in own for number in each["partitions"]})
        has = [[topic, number] for topic, number in pairs if number < topics[topic][1]]
        member = {"id": row["member_id"], "instance_id": row["group_instance_id"], "topics": list(subscribed)}
        member["rack"] = None if racks is None else row["rack_id"]
        claim = {"owned": has, "generation": None if wire is None else 0, "user_data": row.get("user_data")}
        found.append(member | ({"assigned": has} if serverside else claim))
    counts = {t: {"id": each[0], "partitions": each[1]} if serverside else each[1] for t, each in topics.items()}
    return {"id": None, "assignor": assignor, "topics": counts, "members": found, "racks": racks or None}
