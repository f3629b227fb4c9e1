"""Exit codes, and the one place where a fault becomes a line on stderr."""

from __future__ import annotations

import json
import sys
from enum import IntEnum
from typing import Any

import click

from groupledger.core.faults import Fault

JSON_WANTED = "groupledger.json"
"""Key in click's `meta`: set as soon as `--json` is parsed, so that a fault can answer in kind."""


class Exit(IntEnum):
    """What a scheduler can tell apart. A bug of ours is a traceback and 1."""

    DONE = 0
    USAGE = 2
    QUARANTINE = 3
    VIOLATIONS = 4
    CONFLICT = 5


EXIT_BY_CODE = {"WRITE_CONFLICT": Exit.CONFLICT, "QUARANTINE_OVER_LIMIT": Exit.QUARANTINE}
"""Faults that are not the caller's to mend; every other one is usage or configuration."""


class Commands(click.Group):
    """Commands in the order of a first session; their faults end in an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of definition."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a `Fault` becomes a line, anything else is a bug and keeps its traceback."""
        try:
            return super().invoke(ctx)
        except Fault as fault:
            _end(ctx, fault)
        except _engine_errors() as error:
            from groupledger.sinks.refusals import explained

            known = explained(error)
            if known is None:
                raise
            _end(ctx, known)


def _engine_errors() -> tuple[type[Exception], ...]:
    """Errors of Spark, where Spark was started at all."""
    if "pyspark.sql" not in sys.modules:
        return ()
    from groupledger.sinks.refusals import ENGINE_ERRORS

    return ENGINE_ERRORS


def _end(ctx: click.Context, fault: Fault) -> None:
    _say(fault, as_json=JSON_WANTED in ctx.meta)
    ctx.exit(EXIT_BY_CODE.get(fault.code, Exit.USAGE))


def _say(fault: Fault, *, as_json: bool) -> None:
    """One line on stderr and, under `--json`, the one JSON line on stdout."""
    message = " ".join(fault.message.split())
    if as_json:
        click.echo(json.dumps({"status": "failed", "code": fault.code, "message": message}, ensure_ascii=False))
    click.echo(f"groupledger: {message} [{fault.code}]", err=True)
