"""Long work says what it does: a moving line on a terminal, a line a step elsewhere, nothing for what is quick."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest

from groupledger.cli import output
from groupledger.cli.output import Output


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("as_json", [False, True])
def test_a_step_that_lasts_is_a_line_and_a_quick_one_is_none(monkeypatch, capsys, as_json):
    monkeypatch.setattr(output, "PATIENCE", 0.2)
    with Output(as_json=as_json).status("opening the sources") as doing:
        doing("folding 12 new records into facts")
        time.sleep(0.5)
        doing("committing")
    time.sleep(0.3)
    assert capsys.readouterr().err == "folding 12 new records into facts ...\n"


def test_pages_are_one_stage(monkeypatch, capsys):
    monkeypatch.setattr(output, "PATIENCE", 0.05)
    with Output(as_json=False).status("reading") as doing:
        for number in (1, 2):
            doing(f"page {number} of 2: g-{number}")
            time.sleep(0.2)
    assert capsys.readouterr().err == "page 1 of 2: g-1 ...\n"


def test_a_step_that_fails_leaves_no_line_behind(monkeypatch, capsys):
    monkeypatch.setattr(output, "PATIENCE", 0.1)
    with pytest.raises(ValueError, match="broken"), Output(as_json=False).status("reading"):
        raise ValueError("broken")
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_the_step_its_time_and_sparks_tasks(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(output, "_spark_tasks", lambda: "3 of 16 tasks")
    monkeypatch.setenv("COLUMNS", "100")
    with Output(as_json=False).status("reading [/red] the ledger") as doing:
        time.sleep(0.4)
        doing("computing\x1b[31m baseline")
        time.sleep(0.4)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    assert "reading [/red] the ledger 0:00:00 3 of 16 tasks" in shown
    assert "baseline 0:00:00" in shown
    assert "\x1b[31m" not in terminal.getvalue()
