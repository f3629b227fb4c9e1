"""Call a custom assignor for one group and read its answers into plain values, whatever it returns or raises.

`docs/guides/decide/write-an-assignor.md` lists the possible complaints. Answers are only read here;
`contract` judges them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from groupledger.core.custom.custom_group import Answer, Group, Member, TopicPartition
from groupledger.core.faults import RAISED

SortedPartitions = dict[str, tuple[TopicPartition, ...]]
"""Partitions by member, sorted by topic and number: the order of a custom assignor's lists has no meaning."""

WORDS_SHOWN = 200
MOST_WORDS = 1_000
MOST_ERROR_BYTES = 2_000
"""How much of the code's stderr is kept."""
MORE_THAN_THERE_IS = 10_000
"""Entries an answer may have beyond four times those of the group; a longer answer is abandoned."""
_ADDRESS = re.compile(r"0x[0-9A-Fa-f]{6,}")


class Unusable(Exception):
    """Says in words why something cannot be an assignor."""


class Complaint(NamedTuple):
    """One rule that an answer breaks."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for a group. If the function failed, or an answer breaks the contract, both plans are empty."""

    assigned: SortedPartitions
    target: SortedPartitions
    complaints: tuple[Complaint, ...] = ()


def call_all(name: str, function: Callable[[Group], Any], group: Group) -> Finding:
    """Call the function twice, and with the group in other orders; complain if answers differ."""
    found = _call(name, function, group)
    return found if found.complaints else replace(found, complaints=tuple(_changes(name, function, group, found)))


def call_twice(name: str, function: Callable[[Group], Any], group: Group, *, again: bool) -> Finding | None:
    """Do half of `call_all`: the group as it is, and in one other order (in another one for `again`).

    Returns None if there is anything to complain of: `call_all` then finds out what.
    """
    found = _call(name, function, group)
    other = list(_other_orders(group))[again]
    return None if found.complaints or _call(name, function, other) != found else found


def refused(code: str, message: str) -> Finding:
    """Return a finding without an answer, with the reason."""
    return Finding({}, {}, (Complaint(code, printable(message)),))


def printable(message: str) -> str:
    """Return a message that every table and terminal accepts: bounded, and without lone surrogates."""
    return message[:MOST_WORDS].encode("utf-8", "backslashreplace").decode()


def shown(text: str) -> str:
    """Return one line without memory addresses of this process."""
    return _ADDRESS.sub("0x..", " ".join(text[: 10 * WORDS_SHOWN].split()))[:WORDS_SHOWN]


def last_words(stderr: bytes | bytearray) -> str:
    """Return the end of the stderr output, as part of a sentence."""
    words = shown(stderr[-WORDS_SHOWN:].decode("utf-8", "replace"))
    return f"; at the end of its stderr: {words}" if words else ""


def error_text(error: BaseException) -> str:
    """Return class and message of an exception; even its message may run foreign code."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException as second:  # noqa: BLE001
        return f"{type(error).__name__}, whose message raised {type(second).__name__}"


def _call(name: str, function: Callable[[Group], Any], group: Group) -> Finding:
    try:
        answer = function(group)
    except MemoryError:
        raise
    except RAISED as error:  # foreign code may fail in any way, in one group
        return refused("ASSIGNOR_RAISED", f"{name} raised {shown(error_text(error))}; expected an answer for any group")
    most = MORE_THAN_THERE_IS + 4 * (sum(group.topics.values()) + len(group.members))
    try:
        both = answer if isinstance(answer, Answer) else Answer(answer, answer)
        return Finding(_plan(both.assigned, most), _plan(both.target, most))
    except MemoryError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        words = error_text(error).partition(": ")[2]
    except RAISED as error:  # reading the answer runs foreign code, too
        words = f"reading it raised {error_text(error)}"
    return refused(
        "ASSIGNOR_ANSWER_MALFORMED",
        f"{name} answered {shown(type(answer).__name__)}: {shown(words)}; "
        "expected partitions as (topic, number) by member id",
    )


def _plan(lists: Any, most: int) -> SortedPartitions:
    if not isinstance(lists, Mapping):
        raise TypeError(f"lists are a {type(lists).__name__}")
    plan: dict[str, list[TopicPartition]] = {}
    entries = 0
    for member_id in lists:
        own = plan.setdefault(_text(member_id), [])
        entries += 1
        for each in lists[member_id]:
            own.append(_partition(each))
            entries += 1
            if entries > most:
                raise ValueError(f"more than {most:,} entries, many more than the group has")
        if entries > most:
            raise ValueError(f"more than {most:,} members, many more than the group has")
    return {member_id: tuple(sorted(plan[member_id])) for member_id in sorted(plan) if plan[member_id]}


def _partition(pair: Any) -> TopicPartition:
    topic, number = pair
    if type(number) is not int:
        raise TypeError(f"a partition number is {number!r}")
    if not -(2**63) <= number < 2**63:
        raise ValueError("a partition number has more than 64 bits")
    return TopicPartition(_text(topic), number)


def _text(value: Any) -> str:
    """Return a plain str, also for an instance of a foreign subclass."""
    if not isinstance(value, str):
        raise TypeError(f"a name is {value!r}")
    return str.__str__(value)


def _changes(name: str, function: Callable[[Group], Any], group: Group, found: Finding) -> Iterator[Complaint]:
    """Complain if the same group, given again and in other orders, gets another answer."""
    if _call(name, function, group) != found:
        yield Complaint("ASSIGNOR_NOT_PURE", f"{name} gave two answers to the same group; expected the same each time")
        return
    if any(_call(name, function, other) != found for other in _other_orders(group)):
        yield Complaint(
            "ASSIGNOR_ORDER_DEPENDENT",
            f"{name} answers otherwise when members, topics or owned partitions are told in another order; "
            "expected the same: sort by name before every loop",
        )


def _other_orders(group: Group) -> Iterator[Group]:
    for members in (group.members[::-1], group.members[1::2] + group.members[::2]):
        yield Group(tuple(_backwards(member) for member in members), dict(reversed(list(group.topics.items()))))


def _backwards(member: Member) -> Member:
    return replace(member, topics=member.topics[::-1], owned=member.owned[::-1])
