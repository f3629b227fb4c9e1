"""The examples of the documentation's pages: which there are, and what they print.

`python -m tests.docs.examples docs/PAGE.md ...` writes what the commands of a page print into it.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from groupledger.cli import main as groupledger
from groupledger.cli.options import DEMO_LEDGER
from tests.docs.demo_ledger import unpack

WIDTH = "80"
FILES = {"csv": "--weights", "yaml": "--grid", "json": "--table"}
"""A block in one of these languages is the file that the next command names behind the option."""
SCRIPTS = (".jsonl", ".yaml")
"""What `simulate` reads: the last block of that language before the first command that names it."""
_COMMAND = re.compile(r"^ {4}groupledger (?P<words>[^\n]*?)(?: {2,}#[^\n]*)?$", re.MULTILINE)
_OUTPUT = re.compile(r"\n\n```\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """A command of a page, the text that the page shows below it (None: none), and where in the page that is."""

    words: tuple[str, ...]
    text: str | None
    span: tuple[int, int]

    @property
    def line(self):
        """The command as a person types it."""
        return shlex.join(self.words)


def examples(page):
    """All commands that stand on lines of their own, in order."""
    for found in _COMMAND.finditer(page):
        below = _OUTPUT.match(page, found.end())
        text, span = (below["text"], below.span("text")) if below else (None, (found.end(), found.end()))
        yield Example(tuple(shlex.split(found["words"])), text, span)


def blocks_of_no_command(page):
    """Blocks without a language that stand under no command: nobody can tell what printed them."""
    shown = {example.span for example in examples(page)}
    plain = [found for found in _BLOCK.finditer(page) if not found["language"]]
    return [found["text"].splitlines()[0] for found in plain if found.span("text") not in shown]


def files_of(page):
    """Name -> content of the files that commands of the page name, each in a block before the command."""
    found = {}
    for example in examples(page):
        for language, option in FILES.items():
            name = next((after for word, after in pairwise(example.words) if word == option), "")
            if name.endswith(f".{language}"):
                found[name] = _block_before(page, example, language)
        if "--listener" in example.words:
            name = f"{example.words[example.words.index('--listener') + 1].partition(':')[0]}.py"
            for text in _modules(page, example):
                if text.startswith(f"# {name}\n"):
                    found[name] = text
        played = example.words[0] == "simulate"
        for name in (word for word in example.words if played and word.endswith(SCRIPTS)):
            found.setdefault(name, _block_before(page, example, Path(name).suffix[1:]))
    return found


def _block_before(page, example, language):
    blocks = [each for each in _BLOCK.finditer(page, 0, example.span[0]) if each["language"] == language]
    return blocks[-1]["text"]


def _modules(page, example):
    """Blocks of Python before an example; one that is a file begins with its name."""
    return [each["text"] for each in _BLOCK.finditer(page, 0, example.span[0]) if each["language"] == "python"]


def run(example, ledger):
    """Exit code and what it prints, at 80 columns, on a ledger in place of the demo's."""
    words = [str(ledger) if word == DEMO_LEDGER else word for word in example.words]
    ran = CliRunner(env={"COLUMNS": WIDTH}).invoke(groupledger, words)
    return ran.exit_code, ran.stdout.replace(str(ledger), DEMO_LEDGER).strip("\n") + "\n"


def main(*pages):
    """Write the output of each command that a page shows with some."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = unpack(Path(folder))
        for path in map(Path, pages):
            page = path.read_text(encoding="utf-8")
            for name, content in files_of(page).items():
                (Path(folder) / name).write_text(content)
            sys.path.insert(0, folder)
            for example in reversed([each for each in examples(page) if each.text is not None]):
                words = tuple(str(Path(folder) / word) if word in files_of(page) else word for word in example.words)
                code, text = run(example._replace(words=words), ledger)
                sys.stdout.write(f"{path} [{code}] {example.line}\n")
                page = page[: example.span[0]] + text + page[example.span[1] :]
            path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
