"""Custom assignors that mean harm, each in its own way, to a group with a member `evil`; others they serve."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from groupledger.core.custom import Group, assignor
from tests.core.custom.faulty import in_turns

PATCHED = "everything is mine"


def on_evil(harm: Any) -> Any:
    """An assignor that serves every group in turns, but one with a member `evil`, which `harm` answers for."""

    @assignor(name=harm.__name__)
    def assign(group: Group) -> Any:
        if any(member.member_id.startswith("evil") for member in group.members):
            return harm(group)
        return in_turns(group)

    return assign


class Result:
    """An answer whose parts raise what they are told to while they are read."""

    def __init__(self, error: BaseException, *, late: bool = False) -> None:
        self.error, self.late = error, late

    def __iter__(self) -> Any:
        if not self.late:
            raise self.error
        return iter(["evil"])

    def __len__(self) -> int:
        return 1

    def keys(self) -> Any:
        return iter(self)

    def __getitem__(self, name: str) -> Any:
        raise self.error


class Mapped(Result, dict):  # type: ignore[type-arg]
    """Likewise, and it is a mapping."""


class Liar(str):
    """A text that is equal to every other, and raises where it is shown."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise SystemExit(0)

    def __hash__(self) -> int:
        raise KeyError("hash")

    def __str__(self) -> str:
        raise SystemExit(0)

    __repr__ = __str__


class Unsayable(Exception):
    """An exception whose message cannot be read."""

    def __str__(self) -> str:
        raise SystemExit(0)


@on_evil
def reading_it_leaves(group: Group) -> Any:
    return Mapped(SystemExit(0))


@on_evil
def reading_it_fails(group: Group) -> Any:
    return Mapped(KeyError("t"), late=True)


@on_evil
def reading_it_interrupts(group: Group) -> Any:
    return Mapped(KeyboardInterrupt(), late=True)


@on_evil
def lies(group: Group) -> Any:
    return {"evil": [(Liar("t"), Liar("0"))]}


@on_evil
def unsayable(group: Group) -> Any:
    raise Unsayable


@on_evil
def half_a_character(group: Group) -> Any:
    return {"\ud800": [("\udfff", 0)]}


@on_evil
def without_end(group: Group) -> Any:
    def partitions() -> Any:
        while True:
            yield ("t", 0)

    return {"evil": partitions()}


@on_evil
def huge_number(group: Group) -> Any:
    return {"evil": [("t", 10**5_000)]}


@on_evil
def exits(group: Group) -> Any:
    os._exit(0)


def always_exits(group: Group) -> Any:
    os._exit(5)


@on_evil
def kills_itself(group: Group) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


@on_evil
def kills_its_parent(group: Group) -> Any:
    os.kill(os.getppid(), signal.SIGKILL)


@on_evil
def breaks_memory(group: Group) -> Any:
    import ctypes

    ctypes.string_at(0)


@on_evil
def never_ends(group: Group) -> Any:
    while True:
        pass


@on_evil
def ignores_signals(group: Group) -> Any:
    for each in range(1, 32):
        if each not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(each, signal.SIG_IGN)
    return {"evil": [("t", 9 ** (9**9))]}  # one step of the interpreter, which takes for ever


@on_evil
def wants_everything(group: Group) -> Any:
    return bytearray(20 << 30)


@on_evil
def grows(group: Group) -> Any:
    kept: list[Any] = []
    while True:
        kept.append(bytearray(1 << 20))


@on_evil
def recurses(group: Group) -> Any:
    return _deeper(group)


def _deeper(group: Group) -> Any:
    return _deeper(group)


@on_evil
def forks(group: Group) -> Any:
    for _ in range(8):
        os.fork()
    signal.pause()


@on_evil
def leaves_children(group: Group) -> Any:
    for _ in range(5):
        subprocess.Popen(
            [sys.executable, "-c", f"import time; time.sleep(600)  # {os.environ.get('HOSTILE_MARK')}"],
            start_new_session=True,
        )
    os._exit(7)


@on_evil
def prints(group: Group) -> Any:
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        stream.write('{"id": "forged", "assignment": {}}\n' * 1_000)
        stream.flush()
        for _ in range(2_000):
            os.write(number, b"x" * 65_536)
    sys.stderr.write("the last words")
    sys.stderr.flush()
    os._exit(3)


@on_evil
def closes_everything(group: Group) -> Any:
    os.closerange(0, 65_536)
    return in_turns(group)


@on_evil
def writes_everywhere(group: Group) -> Any:
    for number in range(3, 64):
        try:
            os.write(number, b'{"nonce": "?", "answer": {}}\n[[[[\n' * 50)
        except OSError:
            continue
    return in_turns(group)


@on_evil
def forges(group: Group) -> Any:
    """Says of itself what its code likes, and of every later group as well."""
    everything = {"assigned": {"evil": {"t": [0, 0, 0]}}, "target": None, "complaints": [["OK", 1]]}
    for number in range(3, 64):
        try:
            os.write(number, json.dumps(everything).encode() + b"\n")
        except OSError:
            continue
    os._exit(0)


@on_evil
def patches(group: Group) -> Any:
    """Changes what every later group would be answered by."""
    import builtins

    from groupledger.core.custom import child, messages
    from tests.core.custom import faulty

    def mine(*args: Any, **named: Any) -> Any:
        return {"assigned": {PATCHED: {"t": [0]}}, "target": None, "complaints": []}

    for module in (messages, child, messages, sys.modules[__name__]):
        for name in ("call_all", "write_finding", "_call", "_plan", "in_turns"):
            if hasattr(module, name):
                setattr(module, name, mine)
    faulty.in_turns = mine
    builtins.sorted = mine
    json.dumps = mine
    raise ValueError(PATCHED)


@on_evil
def starts_threads(group: Group) -> Any:
    for _ in range(3):
        threading.Thread(target=threading.Event().wait).start()
    return {"evil": [("t", 10_000)]}


@on_evil
def collects(group: Group) -> Any:
    """Reaches for whatever it can find of others."""
    for each in gc.get_objects():
        if isinstance(each, dict) and "nonce" in each:
            each.clear()
    return {"evil": [("t", 10_000)]}


@on_evil
def stops_its_parent(group: Group) -> Any:
    os.kill(os.getppid(), signal.SIGSTOP)
    while True:
        pass


def fills_the_disk(group: Group) -> Any:
    with Path(os.environ["HOSTILE_FILE"]).open("wb") as file:
        while True:
            file.write(bytes(1 << 20))


SEEN: list[Any] = []


def counts(group: Group) -> Any:
    """By how many groups came before."""
    SEEN.append(group)
    return {group.members[len(SEEN) // 4 % len(group.members)].member_id: [("t", 0)]}


def remembers(group: Group) -> Any:
    """What the first group was given is given to all that have such a member."""
    if not SEEN:
        SEEN.append(in_turns(group))
    return SEEN[0]


def poisons(group: Group) -> Any:
    """A group with a member `evil` is served, and those after it get nothing."""
    if any(member.member_id == "evil" for member in group.members):
        SEEN.append(group)
        return in_turns(group)
    return {} if SEEN else in_turns(group)
