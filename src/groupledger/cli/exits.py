"""Define the exit codes; turn whatever ends a command, Spark's errors too, into a line on stderr."""

from __future__ import annotations

import functools
import logging
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

import click

from groupledger.cli.output import OutputClosedError, print_json, say, say_lines
from groupledger.core.faults import Fault
from groupledger.core.secrets import without_secrets
from groupledger.core.spark_versions import spark_missing

if TYPE_CHECKING:
    from groupledger.config import LedgerSettings


class Exit(IntEnum):
    """What a scheduler can distinguish. A bug of ours is a traceback and 1."""

    DONE = 0
    USAGE = 2
    QUARANTINE = 3
    VIOLATIONS = 4
    CONFLICT = 5
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def exit_if(failed: object, code: Exit = Exit.VIOLATIONS) -> None:
    """End the command with this exit code if it failed."""
    if failed:
        click.get_current_context().exit(code)


EXIT_BY_CODE = {
    "WRITE_CONFLICT": Exit.CONFLICT,
    "QUARANTINE_OVER_LIMIT": Exit.QUARANTINE,
    "BAD_LINE": Exit.QUARANTINE,
    "INTERRUPTED": Exit.INTERRUPTED,
}
"""Faults that the caller cannot fix; every other one is usage or configuration."""


class Commands(click.Group):
    """Commands under headings, some with other names; whatever ends one early becomes a line and an exit code."""

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Collection[str]] | None = None,
        aliases: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.sections, self.aliases = sections or {}, aliases or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List commands in the order of definition."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        widest = max(map(len, self.commands))
        for heading, names in self.sections.items():
            short = [(name, self.commands[name].get_short_help_str(formatter.width - 6 - widest)) for name in names]
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, text in short])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take `help COMMAND` and `version` as people type them, too."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, ["--version"] if args == ["version"] else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command by its name, or by another that people know it by."""
        return super().resolve_command(ctx, [self.aliases.get(args[0], args[0]), *args[1:]])

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
        for stream in ("stdout", "stderr"):
            if getattr(sys, stream) is None:  # it was closed before the command began
                setattr(sys, stream, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - as long as we run
        run = functools.partial(super().main, arguments, prog_name, standalone_mode=False, **extra)
        return sys.exit(self._code(arguments, run)) if standalone_mode else run()

    def _code(self, arguments: list[str], run: Callable[[], Any]) -> int:
        as_json = "--json" in arguments
        try:
            code = run()
            sys.stdout.flush()
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            return Exit.USAGE
        except click.ClickException as error:
            return _report(Fault("USAGE", _usage(error)), as_json=as_json)
        except click.Abort:
            return _report(Fault("INTERRUPTED", "interrupted; an unfinished run counts for nothing"), as_json=as_json)
        except Fault as fault:
            return _report(fault, as_json=as_json)
        except (OutputClosedError, BrokenPipeError, SystemExit):  # click raises the last one, which it reports itself
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # nothing more is written, and it is no error
            return Exit.PIPE_CLOSED
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
    if context is None:
        return error.format_message()
    said = _no_such_option(error) if isinstance(error, click.NoSuchOption) else error.format_message()
    said = _of_extra(said, context.command)
    end = "" if said.endswith((".", "!", "?")) else "."
    return f"{said}{end} See `{context.command_path} --help`."


_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)")
_NO_FILES = "expected them under sources (docs/operate/read-tables.md), or a cluster: --bootstrap HOST:PORT"


def _of_extra(said: str, command: click.Command) -> str:
    """Add to a message about extra arguments the options that they belong to: numbers are generations."""
    found = _EXTRA.fullmatch(said)
    given = found[1].split() if found else []
    if found and command.name == "ingest":
        return f"ingest takes no files; got {found[1]}; {_NO_FILES}"
    takes = {name for each in command.params if not getattr(each, "hidden", False) for name in each.opts}
    names = next((some for some in (("--from", "--to"), ("--generation",)) if takes.issuperset(some)), ())
    if not given or len(given) > len(names) or not all(each.isdecimal() for each in given):
        return said
    return f"{said}. Did you mean {' '.join(f'{name} {each}' for name, each in zip(names, given, strict=False))}?"


SAID_OTHERWISE = {
    "--start": ("--since",),
    "--from": ("--since", "--listed"),
    "--end": ("--until",),
    "--to": ("--until", "--assignor"),
    "--time": ("--at",),
    "--at": ("--until",),
    "--epoch": ("--generation",),
    "--format": ("--json",),
    "--verbose": ("--wide",),
    "--consumers": ("--members",),
    "--table": ("--only",),
    "--assignor": ("--custom",),
    "--output": ("--rows", "--html"),
}
"""Options that people expect, and those that say it, each of other commands."""


def _no_such_option(error: click.NoSuchOption) -> str:
    """Return the message with the likely option of this command, or else the command that has this one."""
    assert error.ctx is not None
    command, root = error.ctx.command, error.ctx.find_root().command
    own = [name for each in command.params for name in (*each.opts, *each.secondary_opts) if name.startswith("--")]
    text = f"No such option: {error.option_name}"
    likely = [each for each in SAID_OTHERWISE.get(error.option_name, ()) if each in own]
    every = {} if likely or not isinstance(root, Commands) else root.commands
    having = [name for name, each in every.items() if any(error.option_name in one.opts for one in each.params)]
    if not likely and error.option_name[2:] in every:
        return f"{text}; that is a command: {error.option_name[2:]}"
    if having:
        return f"{text}; that is an option of {', '.join(having)}"
    likely = likely or get_close_matches(error.option_name, own, 1, 0.7)
    return f"{text}. Did you mean {likely[0]}?" if likely else text


def _report(fault: Fault, *, as_json: bool) -> int:
    """Print one line on stderr and, with `--json`, the one JSON line on stdout; return the exit code."""
    message = " ".join(fault.message.split())
    if as_json:
        print_json({"status": "failed", "code": fault.code, "message": message})
    say(f"groupledger: {message} [{fault.code}]")
    return EXIT_BY_CODE.get(fault.code, Exit.USAGE)


LEDGER, JVM_OUTPUT = "groupledger.ledger", "groupledger.jvm_output"
"""Keys in click's `meta`: the settings of the command's ledger, and the file that its JVM writes to."""

LOGGED = frozenset({"JVM_GONE", "OUT_OF_MEMORY"})
"""Faults whose cause only the JVM's output can tell."""
MOST_OF_LOG = 2**20


def foreign_errors() -> tuple[type[Exception], ...]:
    """Return exceptions that are not bugs of ours: errors of the machine, and of Spark if it was started."""
    if "pyspark.sql" not in sys.modules:
        return (OSError, ModuleNotFoundError)
    from groupledger.sinks.location import ENGINE_ERRORS, JVM_GONE

    return (OSError, ModuleNotFoundError, *ENGINE_ERRORS, *JVM_GONE)


def explained(error: Exception, meta: Mapping[str, Any]) -> Fault | None:
    """Convert the error to a fault; None if it is a bug of ours."""
    if isinstance(error, ModuleNotFoundError):
        return spark_missing() if (error.name or "").partition(".")[0] in ("pyspark", "py4j") else None
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        where = f": {error.filename}" if error.filename else ""
        return Fault("NOT_POSSIBLE_HERE", f"{error.strerror or error}{where}; mend that, then run it again")
    from groupledger.sinks.location import LedgerLocation, is_bug, meaning
    from groupledger.sinks.location import explained as known

    if is_bug(error):
        return None
    settings: LedgerSettings | None = meta.get(LEDGER)
    fault = known(error, LedgerLocation.of(settings) if settings else None)
    if fault is not None and fault.code not in LOGGED:
        return fault
    what = fault or Fault("ENGINE_FAILED", f"Spark failed: {meaning(error)}")
    return Fault(what.code, f"{what.message}; all it said: {_written(error, meta.get(JVM_OUTPUT))}")


def _written(error: Exception, jvm_output: IO[bytes] | None) -> str:
    """Write the whole error and the JVM's output to a file of its own; return its name."""
    number, name = tempfile.mkstemp(prefix="groupledger-", suffix=".log")
    text = "".join(traceback.format_exception(error))
    if jvm_output is not None:
        jvm_output.seek(-min(MOST_OF_LOG, jvm_output.seek(0, os.SEEK_END)), os.SEEK_END)
        text += jvm_output.read().decode("utf-8", "replace")
    os.close(number)
    Path(name).write_text(without_secrets(text), encoding="utf-8", errors="backslashreplace")
    return name


# Print the traceback of a bug of ours without the secrets that an exception's message may quote.

SPARKS_OWN = "SQLQueryContextLogger"
"""The logger to which PySpark writes a query's exception in full, as JSON on stderr, when it is raised."""


def hide_secrets() -> None:
    """From now on, print errors that end this process without secrets, and only once."""
    sys.excepthook = print_traceback
    logging.getLogger(SPARKS_OWN).setLevel(logging.CRITICAL + 1)


def print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an exception as Python does, on stderr."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    say_lines(without_secrets("".join(traceback.format_exception(kind, error, trace))))
