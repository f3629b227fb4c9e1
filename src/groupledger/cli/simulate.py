"""`groupledger simulate`: scripts in, every round and call out, line by line and without Spark."""

from __future__ import annotations

import json
import sys
from typing import TextIO

import click

from groupledger.cli.exits import Exit


@click.command(short_help="Groups run through events on paper; JSON lines, no Spark.")
@click.argument("scripts", type=click.File("r", encoding="utf-8", errors="surrogateescape"), default="-")
@click.option("--strict", is_flag=True, help="Exit with 3 when any line was no script.")
@click.option(
    "--assignor", "custom", multiple=True, metavar="MODULE:FUNCTION", help="A custom assignor that lines name."
)
def simulate(scripts: TextIO, *, strict: bool, custom: tuple[str, ...]) -> None:
    """Read one script a line from SCRIPTS (default: stdin), write one result a line; 500 groups are played together.

    A line that is no script gives an error object with its line number; the others are played all the same.

    \b
    {"id": "a", "topics": {"orders": 4}, "events": [{"event": "join", "member": "m1", "topics": ["orders"]}]}

    The format is in docs/simulation.md.
    """
    from groupledger.core.custom.naming import find_all
    from groupledger.core.protocol.story import simulate_lines

    bad_lines = 0
    for answer in simulate_lines(scripts, find_all(custom)):
        sys.stdout.write(answer.encode("utf-8", "backslashreplace").decode() + "\n")
        bad_lines += strict and "line" in json.loads(answer)
    if bad_lines:
        click.echo(f"groupledger: {bad_lines} lines were no script [BAD_LINE]", err=True)
        click.get_current_context().exit(Exit.QUARANTINE)
