"""Custom code that means harm: its own group is rejected with the reason, all others get what they would have got."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path, PosixPath

import pytest

from groupledger.core.custom import Group, Member, children, messages
from groupledger.core.custom.assignor_names import find
from groupledger.core.custom.contract import examine, examine_all
from groupledger.core.custom.custom_group import CustomLimits
from tests.core.custom.faulty import in_turns

HOSTILE = "tests.core.custom.hostile"
GOOD = [Group((Member(f"A{at}", ("t",)), Member("B", ("t",))), {"t": at}) for at in range(1, 4)]
EVIL = Group((Member("evil", ("t",)), Member("B", ("t",))), {"t": 4})
LIMITS = CustomLimits(seconds=30, memory_mb=512)
SHORT = CustomLimits(seconds=2, memory_mb=512)

HARM = {
    "reading_it_leaves": ("ASSIGNOR_ANSWER_MALFORMED", "reading it raised SystemExit: 0"),
    "reading_it_fails": ("ASSIGNOR_ANSWER_MALFORMED", "reading it raised KeyError: 't'"),
    "reading_it_interrupts": ("ASSIGNOR_RAISED", "raised KeyboardInterrupt"),
    "lies": ("ASSIGNOR_ANSWER_MALFORMED", "reading it raised SystemExit: 0"),
    "unsayable": ("ASSIGNOR_RAISED", "raised Unsayable, whose message raised SystemExit"),
    "half_a_character": ("ASSIGNOR_UNKNOWN_MEMBER", r"answered for '\ud800', who is not in the group"),
    "without_end": ("ASSIGNOR_ANSWER_MALFORMED", "more than 10,024 entries, many more than the group has"),
    "huge_number": ("ASSIGNOR_ANSWER_MALFORMED", "a partition number has more than 64 bits"),
    "exits": ("ASSIGNOR_DIED", "ended with status 0 without an answer"),
    "kills_itself": ("ASSIGNOR_DIED", "was ended by SIGKILL without an answer"),
    "kills_its_parent": ("ASSIGNOR_DIED", "ended with status -9"),
    "breaks_memory": ("ASSIGNOR_DIED", "was ended by SIGSEGV without an answer"),
    "never_ends": ("ASSIGNOR_TIMED_OUT", "took longer than 2 s; expected less, or raise limits.custom_seconds"),
    "ignores_signals": ("ASSIGNOR_TIMED_OUT", "took longer than 2 s"),
    "wants_everything": ("ASSIGNOR_OUT_OF_MEMORY", "needed more than 512 MB; expected less, or raise limits.custom_me"),
    "grows": ("ASSIGNOR_OUT_OF_MEMORY", "needed more than 512 MB"),
    "recurses": ("ASSIGNOR_RAISED", "raised RecursionError"),
    "forks": ("ASSIGNOR_DIED", "started more than 32 processes; expected a function that starts none"),
    "leaves_children": ("ASSIGNOR_DIED", "ended with status 7 without an answer"),
    "prints": (
        "ASSIGNOR_DIED",
        "ended with status 3 without an answer; expected one for any group; at the end of its stderr: ",
    ),
    "closes_everything": ("ASSIGNOR_DIED", "ended with status 1 without an answer"),
    "writes_everywhere": ("ASSIGNOR_DIED", "wrote something else than an answer"),
    "forges": ("ASSIGNOR_DIED", "wrote something else than an answer"),
    "patches": ("ASSIGNOR_DIED", "ended with status 1 without an answer"),
    "starts_threads": ("ASSIGNOR_UNKNOWN_PARTITION", "assigned t-10000, which does not exist"),
    "collects": ("ASSIGNOR_UNKNOWN_PARTITION", "assigned t-10000, which does not exist"),
}
SLOW = {"never_ends", "ignores_signals"}


def expected(group):
    return {member_id: tuple(partitions) for member_id, partitions in in_turns(group).items() if partitions}


@pytest.fixture
def mark(monkeypatch, tmp_path):
    """In the environment of every process that is started meanwhile."""
    monkeypatch.setenv("HOSTILE_MARK", str(tmp_path))
    monkeypatch.setenv("HOSTILE_FILE", str(tmp_path / "filled"))
    children.forget_all()
    yield str(tmp_path)
    children.forget_all()


class Ending(PosixPath):
    """A folder of /proc whose process ends while one looks into it."""

    def stat(self, *, follow_symlinks=True):
        found = super().stat(follow_symlinks=follow_symlinks)
        if self.name == "stat":
            raise ProcessLookupError(self)
        return found

    def read_text(self, encoding=None, errors=None):
        raise ProcessLookupError(self)


def test_a_process_that_ends_while_it_is_looked_at_is_none(monkeypatch, tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").touch()
    monkeypatch.setattr(messages, "_PROC", Ending(tmp_path))
    assert messages.descendants(1) == {}


def command_lines(text, of=1):
    """Of the descendants of a process, those that hold it."""
    lines = [Path(f"/proc/{pid}/cmdline") for pid in messages.descendants(of)]
    return [each for each in lines if each.exists() and text in each.read_text("utf-8", "replace")]


@pytest.mark.parametrize("name", HARM)
def test_whatever_it_does_its_own_group_alone_is_rejected(name, mark):
    code, says = HARM[name]
    custom = find(f"{HOSTILE}:{name}", SHORT if name in SLOW else LIMITS)
    found = examine_all(custom, [GOOD[0], EVIL, GOOD[1], EVIL, GOOD[2]])
    for at, group in ((0, GOOD[0]), (2, GOOD[1]), (4, GOOD[2])):
        assert found[at].complaints == ()
        assert found[at].assigned == found[at].target == expected(group)
    for at in (1, 3):
        assert found[at].complaints[0].code == code
        assert len(found[at].complaints) == 1 or name == "half_a_character"
        assert says in found[at].complaints[0].message
        assert found[at].assigned == found[at].target == {}
    assert found[1] == found[3]
    children.forget_all()
    assert command_lines(mark) == []
    assert command_lines("groupledger.core.custom.child", of=os.getpid()) == []


def test_a_process_that_is_stopped_is_replaced(monkeypatch):
    monkeypatch.setattr(children, "GRACE_SECONDS", 1)
    found = examine_all(find(f"{HOSTILE}:stops_its_parent", SHORT), [GOOD[0], EVIL, GOOD[1]])
    assert [each.complaints == () for each in found] == [True, False, True]
    assert found[1].complaints[0].code == "ASSIGNOR_TIMED_OUT"
    assert "did not answer within 3 s" in found[1].complaints[0].message


def test_no_more_is_asked_of_a_process_than_groups_that_fit_together():
    """A hundred groups, some of them evil: every one has its own answer, in its own place."""
    custom = find(f"{HOSTILE}:exits", LIMITS)
    groups = [EVIL if at in (3, 40, 41, 99) else GOOD[at % 3] for at in range(100)]
    found = examine_all(custom, groups)
    assert [bool(each.complaints) for each in found] == [group is EVIL for group in groups]
    assert all(each.assigned == expected(group) for each, group in zip(found, groups, strict=True) if group != EVIL)


@pytest.mark.parametrize("name", ["counts", "remembers", "poisons"])
def test_what_a_call_leaves_behind_does_not_reach_another_group(name):
    """In any order and any company each group gets what it gets alone."""
    custom = find(f"{HOSTILE}:{name}", LIMITS)
    groups = [*GOOD, EVIL, *(Group((Member(f"C{at}", ("t",)),), {"t": 2}) for at in range(40))]
    alone = [examine(custom, group) for group in groups]
    assert examine_all(custom, groups) == alone
    assert examine_all(custom, groups[::-1]) == alone[::-1]
    assert examine_all(custom, groups[2:7]) == alone[2:7]


def test_processes_end_with_the_one_that_started_them(mark):
    """It is killed in the middle of a call, and cannot see to them."""
    text = (
        "import os, threading, sys\n"
        "from groupledger.core.custom.assignor_names import find\n"
        "from groupledger.core.custom.contract import examine\n"
        "from tests.core.custom.test_children import EVIL\n"
        "threading.Timer(1.5, lambda: os.kill(os.getpid(), 9)).start()\n"
        "examine(find('tests.core.custom.hostile:never_ends'), EVIL)\n"
    )
    ran = subprocess.run([sys.executable, "-c", text, mark], check=False, timeout=60)
    assert ran.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 30
    while left := processes_with(mark):
        assert time.monotonic() < deadline, left


def processes_with(mark):
    """Processes whose environment has it: those of ours and all that they started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (
                f"HOSTILE_MARK={mark}".encode() in (process / "environ").read_bytes()
                and int(process.name) != os.getpid()
            ):
                found.append(process)
        except OSError:
            continue
    return found
