"""Define the group of commands. Each is imported when it is looked up, and imports what it needs when it runs."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any

import click

from groupledger.cli.exits import Commands
from groupledger.core.version import __version__

SECTIONS = {
    "Set up": {
        **dict.fromkeys(("new-config", "init", "doctor", "jars", "kernels", "job-file"), "keeping"),
        "demo": "runs",
    },
    "Record": dict.fromkeys(("ingest", "assign", "callbacks"), "runs"),
    "Ask": {
        "show": "show",
        "who": "who",
        "timeline": "history",
        "explain": "explain",
        "diff": "history",
        "hand-overs": "judgements",
        "audit": "judgements",
        "report": "report",
        "readiness": "judgements",
        "sql": "sql",
        "openmetrics": "openmetrics",
    },
    "What if": {
        "what-if": "what_if",
        "replay": "replay",
        "rehearse": "replay",
        "plan-migration": "plan_migration",
        "simulate": "simulate",
        "solve": "simulate",
    },
    "Keep": {
        **dict.fromkeys(("maintain", "migrate", "rebuild"), "keeping"),
        "verify": "replay",
        "views": "sql",
        "schema": "json_schemas",
    },
}
"""The module of each command, under the heading of `--help`; the command has its own name there."""

ALIASES = {
    **dict.fromkeys(("groups", "list", "status"), "show"),
    "owner": "who",
    "history": "timeline",
    "why": "explain",
    "metrics": "openmetrics",
    "recompute": "assign",
    "compare": "replay",
    "listener": "rehearse",
}
"""What people type for a command that has another name."""


class _Imported(UserDict[str, Any]):
    """Modules by command; each is imported when looked up: importing all takes as long as a small answer."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"groupledger.cli.{self.data[name]}")
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command


@click.group(
    cls=Commands,
    commands=_Imported({name: module for of in SECTIONS.values() for name, module in of.items()}),
    sections=SECTIONS,
    aliases=ALIASES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="groupledger")
def main() -> None:
    """Flight recorder and simulator for Kafka consumer-group rebalances.

    A first session: `ingest --bootstrap HOST:PORT`, `show`, `who`, `explain`. Without data of your own: `demo`.

    \b
    Exit codes: 0 done, 1 a bug of ours (with its traceback), 2 usage,
    configuration or environment, 3 bad input (over the quarantine limit, or
    bad lines), 4 audit violations, 5 write conflict, worth a retry,
    130 interrupted, 141 whoever read the output closed it.
    """
