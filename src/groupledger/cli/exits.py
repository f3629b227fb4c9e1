"""Define the exit codes, and turn whatever ends a command into a line on stderr."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import click

from groupledger.cli.engine_errors import explained, foreign_errors
from groupledger.cli.output import OutputClosedError, print_json, say
from groupledger.core.faults import Fault


class Exit(IntEnum):
    """What a scheduler can distinguish. A bug of ours is a traceback and 1."""

    DONE = 0
    USAGE = 2
    QUARANTINE = 3
    VIOLATIONS = 4
    CONFLICT = 5
    INTERRUPTED = 130
    PIPE_CLOSED = 141


EXIT_BY_CODE = {
    "WRITE_CONFLICT": Exit.CONFLICT,
    "QUARANTINE_OVER_LIMIT": Exit.QUARANTINE,
    "BAD_LINE": Exit.QUARANTINE,
    "INTERRUPTED": Exit.INTERRUPTED,
}
"""Faults that the caller cannot fix; every other one is usage or configuration."""


class Commands(click.Group):
    """Commands in the order of a first session; whatever ends one early becomes a line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List commands in the order of definition."""
        return list(self.commands)

    def main(  # type: ignore[override]  # click's own is overloaded
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; with `--json`, a usage error is a JSON line as well."""
        arguments = list(sys.argv[1:] if args is None else args)
        run = functools.partial(super().main, arguments, prog_name, standalone_mode=False, **extra)
        return sys.exit(self._code(arguments, run)) if standalone_mode else run()

    def _code(self, arguments: list[str], run: Callable[[], Any]) -> int:
        as_json = "--json" in arguments
        try:
            code = run()
            if sys.stdout is not None:  # None if it was closed before the command began
                sys.stdout.flush()
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            return Exit.USAGE
        except click.ClickException as error:
            return _told(Fault("USAGE", _usage(error)), as_json=as_json)
        except click.Abort:
            return _told(Fault("INTERRUPTED", "interrupted; an unfinished run counts for nothing"), as_json=as_json)
        except Fault as fault:
            return _told(fault, as_json=as_json)
        except (OutputClosedError, BrokenPipeError, SystemExit):  # click raises the last one, which it reports itself
            return _pipe_closed()
        return code if isinstance(code, int) else Exit.DONE

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors of Spark and of the machine become a `Fault`, a bug of ours keeps its traceback."""
        try:
            return super().invoke(ctx)
        except foreign_errors() as error:
            fault = explained(error, ctx.meta)
            if fault is None:
                raise
            raise fault from error


def _usage(error: click.ClickException) -> str:
    """Return the error message with the command whose help explains more."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    said = error.format_message()
    if context is None:
        return said
    end = "" if said.endswith((".", "!", "?")) else "."
    return f"{said}{end} See `{context.command_path} --help`."


def _told(fault: Fault, *, as_json: bool) -> int:
    """Print one line on stderr and, with `--json`, the one JSON line on stdout; return the exit code."""
    message = " ".join(fault.message.split())
    if as_json:
        print_json({"status": "failed", "code": fault.code, "message": message})
    say(f"groupledger: {message} [{fault.code}]")
    return EXIT_BY_CODE.get(fault.code, Exit.USAGE)


def _pipe_closed() -> int:
    """Handle a closed output: nothing more is written, and it is not reported as an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.PIPE_CLOSED
