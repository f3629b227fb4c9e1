"""Encode the messages between this process and the one that runs custom code: JSON of plain values, read strictly.

What comes back is untrusted: any unexpected form raises ValueError, and nothing else.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import time
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from groupledger.core.custom.custom_group import Answer, Group, Member, TopicPartition
from groupledger.core.faults import RAISED

T = TypeVar("T")

CALL_CODES = frozenset(
    {
        "ASSIGNOR_RAISED",
        "ASSIGNOR_ANSWER_MALFORMED",
        "ASSIGNOR_NOT_PURE",
        "ASSIGNOR_ORDER_DEPENDENT",
        "ASSIGNOR_OUT_OF_MEMORY",
        "ASSIGNOR_TIMED_OUT",
        "ASSIGNOR_DIED",
    }
)
"""Complaints that the other process may make; the rest of the contract is checked here."""
READ = 1 << 16
"""Bytes of one read or write of a pipe."""


def dumped(value: Any) -> bytes:
    """Encode plain values as ASCII."""
    return json.dumps(value, separators=(",", ":")).encode()


def line(message: dict[str, Any]) -> bytes:
    """Encode one message as one line."""
    return dumped(message) + b"\n"


def parsed(text: bytes) -> dict[str, Any]:
    """Return the message of a line; ValueError if it is none."""
    try:
        return _exactly(dict, json.loads(text), "a message")
    except RecursionError as error:
        raise ValueError("brackets too deep") from error


def keep_end(source: int, kept: bytearray) -> bool:
    """Add what can be read from a descriptor that does not block, and keep its end; False once it is closed."""
    try:
        some = os.read(source, READ)
    except BlockingIOError:
        return True
    kept += some
    del kept[:-MOST_ERROR_BYTES]
    return len(some) > 0


def write_group(group: Group) -> dict[str, Any]:
    """Convert the group to plain values."""
    return {"members": [_write_member(each) for each in group.members], "topics": dict(group.topics)}


def _write_member(member: Member) -> list[Any]:
    data = None if member.user_data is None else b64encode(member.user_data).decode()
    place = (member.generation, member.group_instance_id, member.rack, data)
    return [member.member_id, member.topics, member.owned, *place]


def read_group(message: dict[str, Any]) -> Group:
    """Read a group written by `write_group`."""
    return Group(tuple(map(_read_member, message["members"])), message["topics"])


def _read_member(written: list[Any]) -> Member:
    member_id, topics, owned, generation, instance, rack, data = written
    partitions = tuple(TopicPartition(*each) for each in owned)
    user_data = None if data is None else b64decode(data)
    return Member(member_id, tuple(topics), partitions, generation, instance, rack, user_data)


def write_finding(found: Finding) -> dict[str, Any]:
    """Convert a finding to plain values, topic by topic; a target equal to the assignment is written once."""
    assigned = _write_plan(found.assigned)
    target = None if found.target == found.assigned else _write_plan(found.target)
    return {"assigned": assigned, "target": target, "complaints": found.complaints}


def _write_plan(plan: SortedPartitions) -> dict[str, dict[str, list[int]]]:
    return {
        member_id: {
            topic: [each.partition for each in some] for topic, some in groupby(partitions, attrgetter("topic"))
        }
        for member_id, partitions in plan.items()
    }


def read_findings(message: Any, groups: int) -> list[Finding]:
    """Read one finding per group; ValueError for anything else."""
    if len(_exactly(list, message, "a list")) != groups:
        raise ValueError(f"{len(message)} answers for {groups} groups")
    return [_read_finding(_exactly(dict, each, "an object")) for each in message]


def _read_finding(message: dict[str, Any]) -> Finding:
    complaints = _exactly(list, message.get("complaints"), "a list")
    if message.keys() != {"assigned", "target", "complaints"}:
        raise ValueError("an answer has other fields")
    assigned = _read_plan(message["assigned"])
    target = assigned if message["target"] is None else _read_plan(message["target"])
    return Finding(assigned, target, tuple(map(_complaint, complaints)))


def _complaint(message: Any) -> Complaint:
    code, words = _exactly(list, message, "a list")
    if type(code) is not str or code not in CALL_CODES or type(words) is not str:
        raise ValueError("a complaint of no known code")
    return Complaint(code, printable(words))


def _read_plan(message: Any) -> SortedPartitions:
    plan = {}
    for member_id in sorted(_exactly(dict, message, "an object")):
        lists = _exactly(dict, message[member_id], "an object")
        pairs = ((topic, each) for topic in lists for each in _exactly(list, lists[topic], "a list"))
        own = [TopicPartition(topic, _exactly(int, each, "a partition number")) for topic, each in pairs]
        if own:
            plan[member_id] = tuple(sorted(own))
    return plan


def _exactly(kind: type[T], value: Any, what: str) -> T:
    """Return a value of this very type; ValueError for any other."""
    if type(value) is not kind:
        raise ValueError(f"{what} is a {type(value).__name__}")
    found: T = value
    return found


# Find and kill a process's descendants; on Linux by /proc, elsewhere by process group only.

_C = ctypes.CDLL(None)
_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_ENDED = ("Z", "X")
_MOST_SWEEPS, _PAUSE = 500, 0.002
"""A process that cannot be killed now (it waits for a disk) is left to the kernel after a second."""
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # of Linux's prctl(2)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parents end, so that none is missed."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """Have this process killed when its parent ends."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError, OSError):  # not Linux
        _C.prctl(option, value, 0, 0, 0)


def descendants(root: int) -> dict[int, int]:
    """Map the process ids of running descendants to their memory in bytes."""
    children: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for process in _PROC.glob("[0-9]*"):  # not "*/stat": whether that exists cannot be asked of a process that ends
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            # pid (name, any text) state parent ..: after the last bracket, the 22nd value counts resident pages
            values = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if values[0] not in _ENDED:
                children[int(values[1])].append((int(process.name), int(values[21]) * _PAGE))
    found: dict[int, int] = {}
    new = [root]
    while new:
        some = [each for parent in new for each in children.pop(parent, [])]
        found |= dict(some)
        new = [pid for pid, _ in some]
    return found


def end_all(root: int) -> None:
    """Kill what a process has started, including what starts meanwhile; the process itself continues."""
    for _ in range(_MOST_SWEEPS):
        if not (left := descendants(root)):
            return
        for pid in left:
            kill(pid)
        time.sleep(_PAUSE)


def reap() -> bool:
    """Reap all children that have ended; return whether others still run."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def kill(pid: int) -> None:
    """Send SIGKILL to a process and, if it leads one, to its group."""
    signal_group(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to all processes of the group that a process leads, at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


# Call a custom assignor for one group and read its answers into plain values, whatever it returns or raises.
#
# `docs/guides/decide/write-an-assignor.md` lists the possible complaints. Answers are only read here;
# `contract` judges them.

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
