"""The picture of a terminal that the README shows: `python -m tests.docs.terminal` writes docs/terminal.svg.

The commands run on the demo's ledger in a terminal of 96 columns; rich draws what they print.
"""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from groupledger.cli.options import DEMO_LEDGER
from tests.docs.demo_ledger import unpack

PICTURE = Path(__file__).parents[2] / "docs" / "terminal.svg"
WIDTH = 96
COMMANDS = (
    f"who orders-4 'java-*' --at 2026-11-21T12:09Z --ledger {DEMO_LEDGER}",
    f"explain java-cooperative-sticky --generation 4 --ledger {DEMO_LEDGER}",
)
_FONTS = CONSOLE_SVG_FORMAT[
    CONSOLE_SVG_FORMAT.index("    @font-face") : CONSOLE_SVG_FORMAT.index("    .{unique_id}-matrix")
]
_OWN_FONTS = CONSOLE_SVG_FORMAT.replace(_FONTS, "").replace("Fira Code, monospace", "ui-monospace, monospace")
"""rich's form without the fonts that it would fetch from the network."""


def drawn() -> str:
    """Return the picture of the commands and what they print."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / DEMO_LEDGER
        place.parent.mkdir(parents=True)
        unpack(place.parent)
        for number, command in enumerate(COMMANDS):
            console.print(Text(f"{chr(10) * bool(number)}$ groupledger {command}", style="bold green"), soft_wrap=True)
            console.print(Text.from_ansi(_printed(command, folder)), soft_wrap=True)
    svg = console.export_svg(title="groupledger", code_format=_OWN_FONTS, unique_id="terminal")
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


def _printed(command: str, folder: str) -> str:
    """Run a command on a terminal of its own, and return all that it prints there."""
    ours, its = pty.openpty()
    environment = {
        **os.environ,
        "COLUMNS": str(WIDTH),
        "TERM": "xterm-256color",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    words = f"exec {sys.executable} -m groupledger {command}"
    running = subprocess.Popen(words, shell=True, cwd=folder, stdout=its, stderr=subprocess.DEVNULL, env=environment)  # noqa: S602
    os.close(its)
    printed = b""
    while chunk := _read(ours):
        printed += chunk
    os.close(ours)
    assert running.wait() == 0, printed.decode()
    return printed.decode().replace("\r\n", "\n").strip("\n")


def _read(terminal: int) -> bytes:
    """Return what comes next; nothing once the command has closed the terminal, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
