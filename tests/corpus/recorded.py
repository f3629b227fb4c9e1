"""Histories that a real broker wrote: each is all records of one group of a capture, as they are.

The labels were written by hand, from what was done when (`story.jsonl.gz` of the capture) and from the records' bytes.
The fewest moves behind EXCESS_MOVES were counted by going through all balances.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass

from groupledger.core.wire.offsets_log import decode_key
from tests.core.history.captured import topics_of
from tests.core.wire.captured import lines
from tests.corpus.history import History, Label, Line

CAUSES = {
    "b": "group-born",
    "e": "group-emptied",
    "x": "group-deleted",
    "+": "member-joined",
    "-": "member-gone",
    "~": "member-restarted",
    "s": "subscription-changed",
    "a": "assignor-changed",
    "A": "topic-appeared",
    "D": "topic-deleted",
    "M": "topic-made-again",
    "P": "partitions-added",
    "f": "follow-up",
    "n": "not-shown",
}
DELETED = "x"
"""In place of a generation: the tombstones of the group."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A group of a capture; `causes`: `2:+~` is what led to generation 2. `found`: code, records, generation."""

    capture: str
    group: str
    what: str
    causes: str
    found: tuple[tuple[str, int, int, str | None], ...] = ()


_JOINS = "Members join, one reads other topics, partitions are added, members go"
_STATIC = "Static members restart, one with another subscription; two processes have one id; a session ends; all leave"
STORM = " ".join(f"{number}:n" for number in range(7, 36))
INFO = "info"

RECORDED = (
    Recorded("dev", "java-range", _JOINS, "0:b 1:+ 2:+ 3:+ 4:s 5:P 6:- 7:e"),
    Recorded("dev", "java-roundrobin", _JOINS, "0:b 1:+ 2:+ 3:n 4:+ 5:s 6:P 7:- 8:- 9:n 10:e"),
    Recorded(
        *("dev", "java-sticky", _JOINS, "0:b 1:+ 2:+ 3:+ 4:s 5:P 6:- 7:- 8:n 9:e"),
        (("EXCESS_MOVES", 1, 3, None),),
    ),
    Recorded(
        *("dev", "java-cooperative-sticky", _JOINS, "0:b 1:+ 2:+ 3:f 4:+ 5:f 6:s 7:P 8:f 9:- 10:- 11:e"),
        (("EXCESS_MOVES", 1, 4, None),),
    ),
    Recorded("dev", "rdk-range", _JOINS, "0:b 1:+ 2:+ 3:+ 4:s 5:P 6:- 7:- 8:e"),
    Recorded("dev", "rdk-roundrobin", _JOINS, "0:b 1:+ 2:+ 3:+ 4:s 5:P 6:-"),
    Recorded(
        *("dev", "rdk-cooperative-sticky", _JOINS, "0:b 1:+ 2:+ 3:f 4:+ 5:f 6:s 7:P 8:f 9:- 10:- 11:e"),
        (("EXCESS_MOVES", 1, 4, None), ("REPEATED_TOPIC", 2, 8, None)),
    ),
    Recorded("dev", "kpy-range", _JOINS, "0:b 1:+ 2:+ 3:+ 4:P 5:- 6:- 7:e"),
    Recorded("dev", "kpy-roundrobin", _JOINS, "0:b 1:+ 2:n 3:n 4:n 5:+ 6:+ 7:P 8:- 9:- 10:n 11:e"),
    Recorded("dev", "kpy-sticky", _JOINS, "0:b 1:+ 2:+ 3:+ 4:P 5:- 6:- 7:e"),
    Recorded("dev", "kpy-cooperative-sticky", _JOINS, "0:b 1:+ 2:+ 3:f 4:+ 5:f 6:P 7:- 8:- 9:e"),
    Recorded("dev", "new-java-uniform", _JOINS, "2:b 3:+ 4:+ 5:s 6:P 7:- 8:- 9:e"),
    Recorded("dev", "new-rdk-uniform", _JOINS, "2:b 3:+ 4:+ 5:s 6:P 7:- 8:- 9:e"),
    Recorded(
        *("edge", "st-java-range", _STATIC, "0:b 1:+ 2:+~~~s 3:n~ 4:- 5:+ 6:e"),
        (("NOT_SUBSCRIBED", 1, 2, None),),
    ),
    Recorded(
        *("edge", "st-rdk-range", _STATIC, "0:b 1:+ 2:+~~~s~ 3:- 4:+ 5:e"),
        (("NOT_SUBSCRIBED", 2, 2, None),),
    ),
    Recorded(
        *("edge", "st-java-coop", _STATIC, "0:b 1:+ 2:+ 3:f~~~s~ 4:- 5:+ 6:f 7:e"),
        (("CLAIM_DIFFERS", 4, 3, INFO),),
    ),
    Recorded(
        *("edge", "st-rdk-coop", _STATIC, "0:b 1:+ 2:+ 3:f~~~s~ 4:- 5:+ 6:f 7:e"),
        (("CLAIM_DIFFERS", 4, 3, INFO), ("REPEATED_TOPIC", 1, 4, None)),
    ),
    Recorded(
        *("edge", "stale-java", "A stopped member misses an assignment and comes back with the claim of before"),
        "0:b 1:+ 2:+ 3:f 4:+ 5:+ 6:f 7:f 8:- 9:- 10:- 11:e x:x",
        (("UNOWNED", 3, 4, None), ("STALE_CLAIM", 2, 6, None)),
    ),
    Recorded(
        *("edge", "stale-rdk", "A stopped librdkafka member misses an assignment and comes back with its old claim"),
        "0:b 1:+ 2:+ 3:f 4:+ 5:+ 6:f 7:e x:x",
        (("UNOWNED", 2, 4, None), ("STALE_CLAIM", 1, 5, None)),
    ),
    Recorded(
        *("edge", "mute-java", "The leader is stopped between joining and assigning: a generation is never recorded"),
        "0:b 1:+ 2:+ 3:f 5:++ 6:f 7:-- 8:- 9:e",
    ),
    Recorded(
        *("edge", "mute-rdk", "A librdkafka leader is stopped between joining and assigning"),
        "0:b 1:+ 2:+ 3:f 5:++ 6:f 7:--- 8:e",
        (("REPEATED_TOPIC", 1, 7, None),),
    ),
    Recorded(
        *("edge", "zo-java", "A member is stopped beyond its session, and goes on as a newcomer"),
        "0:b 1:+ 2:+ 3:f 4:- 5:+ 6:f 7:+ 8:f 9:- 10:- 11:e x:x",
    ),
    Recorded(
        *("edge", "zo-rdk", "A librdkafka member is stopped beyond its session, and goes on as a newcomer"),
        "0:b 1:+ 2:+ 3:f 4:- 5:+ 6:f 7:+ 8:f 9:-- 10:e x:x",
        (("REPEATED_TOPIC", 2, 9, None),),
    ),
    Recorded(
        *("edge", "up-range-first", "From range to cooperative-sticky in two bounces; members list range first"),
        "0:b 1:+ 2:++ 3:- 4:+ 5:- 6:+ 7:- 8:+ 9:- 10:+a 11:- 12:+ 13:f 14:+- 15:- 16:- 17:e x:x",
        (("CLAIM_DIFFERS", 4, 13, INFO),),
    ),
    Recorded(
        *("edge", "up-coop-first", "The same, members list cooperative-sticky first"),
        "0:b 2:++ 3:+ 4:- 5:+ 6:- 7:+ 8:-a 9:+ 10:- 11:+ 12:- 13:+ 14:f 15:- 16:+ 17:f 18:- 19:- 20:e x:x",
        (("CLAIM_DIFFERS", 7, 14, INFO),),
    ),
    Recorded("edge", "gr-java", "Partitions are added", "0:b 1:++ 2:P 3:- 4:e x:x"),
    Recorded(
        "edge",
        "gr-rdk",
        "Partitions are added; a librdkafka member joins once more",
        "0:b 1:+ 2:+ 3:f 4:P 5:n 6:- 7:e x:x",
    ),
    Recorded("edge", "gr-new", "Partitions of a KIP-848 group are added", "2:b 3:+ 4:P 5:- 6:e x:x"),
    Recorded("edge", "del-java", "The group is deleted, and comes back", "0:bb 1:++ 2:+e 3:- 4:e x:x"),
    Recorded("edge", "del-rdk", "The group is deleted, and comes back", "0:bb 1:++ 2:+e 3:f 4:e x:xx"),
    Recorded(
        "edge", "del-to-new", "The group is deleted, and comes back as a KIP-848 group", "0:b 1:+ 2:+b 3:-e 4:e x:xx"
    ),
    Recorded("edge", "empty-again", "All members go, and one comes back", "0:b 1:+ 2:+ 3:- 4:e 5:+ 6:e"),
    Recorded("edge", "expire", "The broker removes the empty group, which comes back", "0:bb 1:++ 2:+e 3:- 4:e x:xx"),
    Recorded(
        *("edge", "rc-java", "Topics are deleted and made again, after a while and at once"),
        "0:b 1:+ 2:+ 3:D 4:A 5:M 6:M 7:- 8:e",
    ),
    Recorded(
        *("edge", "rc-rdk-re", "The same, under a regular expression"),
        "0:b 1:+ 2:+ 3:ssD 4:ssM 5:MM 6:- 7:e",
    ),
    Recorded("edge", "tx-classic", "One member commits in transactions", "0:b 1:+ 2:e"),
    Recorded(
        *("storm", "storm", "A librdkafka leader names a topic twice for a franz-go member: nobody comes to rest"),
        f"0:b 1:+ 2:+ 3:f 4:+ 5:f 6:- {STORM} 36:- 37:e",
        (
            ("EXCESS_MOVES", 1, 4, None),
            ("NEVER_SETTLES", 29, 7, None),
            ("REPEATED_TOPIC", 30, 35, None),
            ("CLAIM_DIFFERS", 30, 36, None),
        ),
    ),
)


def recorded() -> Iterator[History]:
    """Each of them with its label."""
    for each in RECORDED:
        records = [line for line in lines(f"{each.capture}/offsets") if _is_of(line, each.group)]
        what = f"{each.what} (capture {each.capture}, group {each.group})"
        listings = list(lines(topics_of(each.capture)))
        yield History(f"{each.capture}/{each.group}", what, "recorded", records, listings, _label(each))


def _is_of(line: Line, group: str) -> bool:
    return decode_key(b64decode(line["key"])).group_id == group


def _label(each: Recorded) -> Label:
    label = Label()
    for entry in each.causes.split():
        number, _, letters = entry.partition(":")
        label.cause(None if number == DELETED else int(number), *(CAUSES[letter] for letter in letters))
    for code, records, generation, severity in each.found:
        label.find(code, generation, records, severity)
    return label
