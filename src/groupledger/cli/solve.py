"""`groupledger solve`: scenarios in, assignments out, line by line and without Spark."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, TextIO

import click

from groupledger.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Iterable


@click.command(short_help="JSON lines in, assignments out; no Spark.")
@click.argument("scenarios", type=click.File("r", encoding="utf-8", errors="surrogateescape"), default="-")
@click.option("--strict", is_flag=True, help="Exit with 3 when any line was not a scenario.")
def solve(scenarios: TextIO, *, strict: bool) -> None:
    """Read one scenario a line from SCENARIOS (default: stdin), write one result a line.

    A line that is no scenario gives an error object with its line number; the others are answered all the same.
    """
    bad_lines = answer(scenarios)
    if strict and bad_lines:
        click.echo(f"groupledger: {bad_lines} lines were no scenario [BAD_LINE]", err=True)
        sys.exit(Exit.QUARANTINE)


def answer(lines: Iterable[str]) -> int:
    """Print a result for each line as soon as it is there; return how many lines were no scenario."""
    from groupledger.core.scenario import solve_lines

    bad_lines = 0
    for result in solve_lines(lines):
        click.echo(result)
        bad_lines += "line" in json.loads(result)
    return bad_lines
