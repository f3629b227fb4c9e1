"""Pages whose code is run block by block: a block of text below one is what it prints.

`python -m tests.docs.shown_code docs/start/tutorial-dataframes.md` writes what the code prints into the page, and its
pictures beside it; with `--spark`, also of the blocks that start Spark.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$(?:\n\n```text\n(?P<text>.*?)^```$)?", re.MULTILINE | re.DOTALL)
_SPARK = "SparkSession"


class Shown(NamedTuple):
    """A block of code and the text below it (None: none), with where that is in the page."""

    code: str
    text: str | None
    span: tuple[int, int]

    @property
    def starts_spark(self):
        """Whether the block makes a session; the ones after it use it."""
        return _SPARK in self.code


def shown(page):
    """All of them in order."""
    return [Shown(found["code"], found["text"], found.span("text")) for found in _BLOCK.finditer(page)]


def printed(blocks, folder, **given):
    """What each block prints, run in order in a folder with the given names; pictures are the same in every run."""
    import matplotlib as mpl

    names: dict[str, object] = dict(given)
    with contextlib.chdir(folder), mpl.rc_context({"svg.hashsalt": "groupledger", "backend": "svg"}):
        for block in blocks:
            into = io.StringIO()
            with contextlib.redirect_stdout(into):
                exec(compile(block.code, "page", "exec"), names)  # noqa: S102 - the page's own code
            yield "".join(f"{line.rstrip()}\n" for line in into.getvalue().strip("\n").splitlines())


def main(name, *options):
    """Write the outputs of a page."""
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # no date in a picture
    os.environ["PYSPARK_PYTHON"] = sys.executable
    path = Path(name).resolve()
    page = path.read_text(encoding="utf-8")
    blocks = [block for block in shown(page) if options or not block.starts_spark]
    with tempfile.TemporaryDirectory() as folder:
        for block, text in reversed(list(zip(blocks, printed(blocks, folder), strict=True))):
            if block.text is not None:
                page = page[: block.span[0]] + text + page[block.span[1] :]
        for picture in Path(folder).glob("*.svg"):
            lines = picture.read_text(encoding="utf-8").splitlines()
            (path.parent / picture.name).write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
