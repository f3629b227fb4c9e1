"""`groupledger solve`: scenarios in, assignments out, line by line and without Spark."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, TextIO

import click

from groupledger.cli.custom import custom_assignors
from groupledger.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from groupledger.core.custom.limits import CustomLimits


@click.command(short_help="JSON lines in, assignments out; no Spark.")
@click.argument("scenarios", type=click.File("r", encoding="utf-8", errors="surrogateescape"), default="-")
@click.option("--strict", is_flag=True, help="Exit with 3 when any line was no scenario.")
@custom_assignors
def solve(scenarios: TextIO, *, strict: bool, custom: tuple[str, ...], limits: CustomLimits) -> None:
    """Read one scenario a line from SCENARIOS (default: stdin), write one result a line, as soon as it is there.

    A line that is no scenario gives an error object with its line number; the others are answered all the same.

    \b
    {"id": "a", "assignor": "range", "topics": {"orders": 3}, "members": [{"id": "m1", "topics": ["orders"]}]}

    For a sticky assignor a scenario may ask for more: "transferring": true (what changes owner without a stop between)
    and "is_sticky": true. The format is in docs/scenarios.md.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # what UTF-8 cannot say is escaped as JSON does it
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    bad_lines = 0
    for answer in _answers(scenarios, custom, limits):
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()
        bad_lines += strict and "line" in json.loads(answer)
    if bad_lines:
        click.echo(f"groupledger: {bad_lines} lines were no scenario [BAD_LINE]", err=True)
        click.get_current_context().exit(Exit.QUARANTINE)


def _answers(lines: Iterable[str], custom: tuple[str, ...], limits: CustomLimits) -> Iterator[str]:
    from groupledger.core.custom.naming import find_all
    from groupledger.core.scenario import solve_lines

    return solve_lines(lines, custom=find_all(custom, limits))
