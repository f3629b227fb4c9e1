"""Causes, members and partitions in the few words that a line of a table has room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.core.rebalance.registry import DEFAULT_ASSIGNOR
from groupledger.core.text import common_start, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from groupledger.answers.causes import Cause, Moved
    from groupledger.answers.queries import NamedPartition

NOBODY = "(nobody)"
SERVER_DEFAULT = f"{DEFAULT_ASSIGNOR} (server default)"
"""The assignor of a KIP-848 group whose members name none: the first of the broker's group.consumer.assignors."""
LEAST_START = 4
MOST_NAMED = 2
"""Members or topics of one cause that a line names; more are counted."""

_WORDS = {  # by the value of a CauseKind: its module is imported for an answer only
    "member-joined": "{} joined",
    "member-gone": "{} gone",
    "member-restarted": "{} restarted or took over",
    "member-replaced": "{} took an instance id over",
    "subscription-changed": "{} subscribed anew",
    "rack-changed": "{} changed racks",
    "assignor-changed": "assignor now {}",
    "topic-appeared": "{} assigned, not before",
    "topic-deleted": "{} deleted",
    "partitions-added": "partitions added to {}",
    "topic-made-again": "{} made again",
    "group-born": "first record",
    "group-emptied": "last members gone",
    "group-deleted": "group deleted",
    "converted": "converted to {} group",
    "follow-up": "follow-up round",
    "coordinator-moved": "coordinator moved",
    "not-shown": "no difference",
}

OF_MEMBERS = frozenset(
    ("member-joined", "member-gone", "member-restarted", "member-replaced", "subscription-changed", "rack-changed")
)
"""Causes that are about a member."""
OF_TOPICS = frozenset(("topic-appeared", "topic-deleted", "partitions-added", "topic-made-again"))
"""Causes that are about a topic."""


def assignor_of(group_type: str, assignor: str | None, members: int) -> str | None:
    """Return the assignor of a state for a column: `uniform (server default)` if the members of a group name none."""
    return SERVER_DEFAULT if assignor is None and group_type == "consumer" and members > 0 else assignor


def in_short(causes: Iterable[Cause], names: Mapping[str, str]) -> str:
    """Format as `m3-895c joined; partitions added to payments; perhaps audit deleted`; members by the names given."""
    by_kind: dict[tuple[str, bool], list[str]] = {}
    for cause in causes:
        by_kind.setdefault((cause.kind, cause.possible), []).append(names.get(cause.about or "", cause.about or ""))
    return "; ".join(
        f"{'perhaps ' if possible else ''}{_WORDS[kind].format(_few(kind, about))}"
        for (kind, possible), about in by_kind.items()
    )


MOST_OF_A_KIND, MOST_IN_A_LINE = 10, 5
"""Causes of one kind that have a line each; those of more that a line names."""


def cause_lines(causes: Iterable[Cause]) -> Iterator[str]:
    """Yield a line per cause; many members of one kind are one line."""
    by_kind: dict[tuple[str, bool], list[Cause]] = {}
    for each in causes:
        by_kind.setdefault((each.kind, each.possible), []).append(each)
    for some in by_kind.values():
        if len(some) <= MOST_OF_A_KIND:
            yield from (f"- {cause.what}" for cause in some)
            continue
        names = shortened(cause.about or "" for cause in some)
        first = ", ".join(names[cause.about or ""] for cause in some[:MOST_IN_A_LINE])
        yield f"- {in_short(some, {})}: {first}, ... (--json has all)"


def _few(kind: str, names: list[str]) -> str:
    """Join the names, or count them; topics are called that, since `topic 3` would be the name of one."""
    of_topics = kind in OF_TOPICS
    if len(names) > MOST_NAMED:
        return numbered(len(names), "topic") if of_topics else f"{len(names):,}"
    named = ", ".join(names)
    return f"topic{'s' if len(names) > 1 else ''} {named}" if of_topics and kind != "partitions-added" else named


def numbered(of: int, what: str) -> str:
    """Format as `1 group`, `2,000 groups`."""
    return f"{of:,} {what}" if of == 1 else f"{of:,} {what}s"


def shortened_names(names: Iterable[str]) -> tuple[dict[str, str], str]:
    """Shorten names as far as they remain different, and return what all of them begin with, which is left out.

    A beginning of few letters stays: without it `i-2` would be `2`.
    """
    short = shortened(names)
    start = common_start(short.values())
    if len(start) < LEAST_START:
        return short, ""
    return {name: text.removeprefix(start) for name, text in short.items()}, start


def spans(places: Iterable[NamedPartition]) -> str:
    """Format (orders, 0), (orders, 1), (orders, 3), (audit, 2) as `audit:2 orders:0-1,3`, and nothing as `-`."""
    numbers: dict[str, list[int]] = {}
    for topic, number in sorted(places):
        numbers.setdefault(topic, []).append(number)
    return " ".join(f"{topic}:{_runs(found)}" for topic, found in numbers.items()) or "-"


OF_PAIRS = ("from", "to", "partitions", "which")
"""The columns of what moved from one member to another."""


def pairs(moved: Iterable[Moved]) -> dict[tuple[str, str], list[NamedPartition]]:
    """Gather the partitions that moved by the two members."""
    found: dict[tuple[str, str], list[NamedPartition]] = {}
    for each in moved:
        pair = each.from_member_id or NOBODY, each.to_member_id or NOBODY
        found.setdefault(pair, []).append((each.topic, each.partition))
    return found


def _runs(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
