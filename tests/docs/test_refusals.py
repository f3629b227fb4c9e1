"""What pages show of requests that are refused: each command after `$` in a block of text, and all that it prints."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.cli.options import DEMO_LEDGER
from tests.docs.demo_ledger import unpack
from tests.pages import blocks

DOCS = Path(__file__).parents[2] / "docs"
PROMPT = "$ groupledger "
SHOWN = [
    pytest.param(block, id=f"{path.stem}-{number}")
    for path in sorted(DOCS.rglob("*.md"))
    for number, block in enumerate(blocks(path.read_text(encoding="utf-8"), "text"))
    if block.startswith(PROMPT)
]


@pytest.mark.parametrize("block", SHOWN)
def test_a_refusal_is_shown_as_it_is_printed(tmp_path, monkeypatch, block):
    monkeypatch.chdir(tmp_path)
    Path(DEMO_LEDGER).parent.mkdir()
    unpack(Path(DEMO_LEDGER).parent)
    assert "".join(map(as_shown, block.splitlines())) == block


def as_shown(line):
    """A command with what it prints; nothing for a line that is none."""
    if not line.startswith(PROMPT):
        return ""
    ran = CliRunner().invoke(main, shlex.split(line.removeprefix(PROMPT)))
    assert ran.exit_code, f"{line}: not refused"
    return f"{line}\n{ran.output}"


def test_some_are_shown():
    assert SHOWN
