"""Add `--since`, `--until`, `--group` and `--cluster`: the part of the ledger that a question is about."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from groupledger.cli.times import read_time

if TYPE_CHECKING:
    from collections.abc import Callable

_TIME = (
    "24h before now (up to when the ledger is known), or a moment: ISO 8601 (UTC unless it names a zone), milliseconds "
    "since 1970."
)


def takes_scope(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the four options; the command gets them as `asked`, a `answers.scope.RequestedScope`."""

    @click.option("--since", metavar="TIME", help=f"From then on: {_TIME}")
    @click.option("--until", metavar="TIME", help="End of the period, in the same format.")
    @click.option("--group", metavar="GROUP", help="Only this group, or those matching `payments-*`.")
    @click.option("--cluster", metavar="CLUSTER", help="Only this cluster.")
    @functools.wraps(command)
    def run(
        *args: Any, since: str | None, until: str | None, group: str | None, cluster: str | None, **more: Any
    ) -> Any:
        from groupledger.answers.scope import RequestedScope

        return command(*args, asked=RequestedScope(cluster, group, read_time(since), read_time(until)), **more)

    return run
