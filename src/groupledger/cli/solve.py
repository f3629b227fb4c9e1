"""`groupledger solve`: solve scenarios, line by line and without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

import click

from groupledger.cli.options import takes
from groupledger.cli.output import print_exact
from groupledger.core.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from groupledger.core.custom.custom_group import CustomLimits


@click.command(short_help="Compute assignments from JSON lines; no Spark.")
@click.argument("scenarios", type=click.File("r", encoding="utf-8", errors="surrogateescape"), default="-")
@takes("custom")
def solve(scenarios: TextIO, *, custom: tuple[str, ...], limits: CustomLimits) -> None:
    """Read one scenario per line from SCENARIOS (default: stdin), write one result per line, as soon as it is ready.

    An invalid line gives an error object with its line number; the others are still answered, and the exit code is 3.

    \b
    {"id": "a", "assignor": "range", "topics": {"o": 3},
     "members": [{"id": "m1", "topics": ["o"]}]}

    A scenario is one line; here it is two to fit.

    For a sticky assignor a scenario may ask for more: "transferring": true (what changes owner without a stop between)
    and "is_sticky": true. The format is in docs/guides/decide/solve-one-group.md.
    """
    bad_lines = 0
    for answer in _answers(scenarios, custom, limits):
        print_exact(answer)
        bad_lines += '"line": ' in answer and "line" in json.loads(answer)
    if bad_lines:
        raise Fault("BAD_LINE", f"{bad_lines} {'line was' if bad_lines == 1 else 'lines were'} no scenario")


def _answers(lines: Iterable[str], custom: tuple[str, ...], limits: CustomLimits) -> Iterator[str]:
    from groupledger.core.assignors import ASSIGNORS
    from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
    from groupledger.core.custom.assignor_names import by_every_name, find_all
    from groupledger.core.scenarios.solving import solve_lines

    return solve_lines(lines, custom=by_every_name(find_all(custom, limits), (*ASSIGNORS, *CLIENT_ASSIGNORS)))
