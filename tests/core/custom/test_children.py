"""Custom code that means harm: its own group is rejected with the reason, all others get what they would have got."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from groupledger.core.custom import Group, Member, children, descendants
from groupledger.core.custom.contract import examine_all
from groupledger.core.custom.limits import CustomLimits
from groupledger.core.custom.naming import find
from tests.core.custom.faulty import in_turns

HOSTILE = "tests.core.custom.hostile"
GOOD = [Group((Member(f"A{at}", ("t",)), Member("B", ("t",))), {"t": at}) for at in range(1, 4)]
EVIL = Group((Member("evil", ("t",)), Member("B", ("t",))), {"t": 4})
LIMITS = CustomLimits(seconds=3, memory_mb=512)
SHORT = CustomLimits(seconds=1, memory_mb=512)

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
    "never_ends": ("ASSIGNOR_TIMED_OUT", "took longer than 1 s; expected less, or raise limits.custom_seconds"),
    "ignores_signals": ("ASSIGNOR_TIMED_OUT", "took longer than 1 s"),
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


def command_lines(text, of=1):
    """Of the descendants of a process, those that hold it."""
    lines = [Path(f"/proc/{pid}/cmdline") for pid in descendants.descendants(of)]
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
