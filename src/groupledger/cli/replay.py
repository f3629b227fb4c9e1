"""`groupledger replay --listener`: a user's listener over what a group really went through, and what it would do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from groupledger.cli.exits import Exit
from groupledger.cli.options import Job, takes_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupledger.cli.output import Output
    from groupledger.listener import Entry


@click.command(short_help="A listener of yours over a group's recorded history.")
@click.option("--listener", required=True, metavar="MODULE:CLASS", help="The listener; one is made for each member.")
@click.option("--group", required=True, metavar="GROUP", help="The group whose history it is given.")
@click.option("--cluster", metavar="CLUSTER", help="The cluster of the group, where several have one of that name.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Most rows of a table.")
@takes_config
def replay(job: Job, *, listener: str, group: str, cluster: str | None, limit: int) -> None:
    """Make the calls that each member of a recorded group got, and tell what the listener did.

    Its commits, seeks, pauses and errors are told; exit code 4 where it failed or raised, or gave up a partition and
    had not committed since it last read it (one record of each before each generation). How a member ended is not in
    the log: revoked is called.

    \b
    groupledger replay --listener shop.listeners:Committing --group payments
    """
    from groupledger.listener.naming import find_listener
    from groupledger.listener.rehearsal import rehearse_history
    from groupledger.pipeline.callbacks import callbacks

    make = find_listener(listener)  # before Spark starts
    ledger = job.ledger()
    with job.output.status("reading the group's history"):
        calls = callbacks(ledger.group(group, cluster))
    journal = rehearse_history(calls, make)
    wrong = [entry for entry in journal if entry.error is not None]
    _tell(job.output, journal, wrong, limit)
    job.output.result(
        {
            "status": "done",
            "command": "replay",
            "calls": len(calls),
            "did": dict(Counter(entry.did for entry in journal)),
            "errors": [_plain(entry) for entry in wrong],
        }
    )
    if wrong:
        click.get_current_context().exit(Exit.VIOLATIONS)


def _tell(output: Output, journal: Sequence[Entry], wrong: Sequence[Entry], limit: int) -> None:
    counted = Counter((entry.callback.value, entry.did, entry.error is None) for entry in journal)
    output.title("What the listener did")
    output.table(("callback", "did", "well", "times"), [(*what, times) for what, times in sorted(counted.items())])
    output.title(f"What went wrong: {len(wrong)}")
    columns = ("member", "callback", "did", "partitions", "error")
    rows = [tuple(plain[name] for name in columns) for plain in map(_plain, wrong[:limit])]
    output.table(columns, rows)


def _plain(entry: Entry) -> dict[str, object]:
    named = ", ".join(f"{topic}-{number}" for topic, number in entry.partitions)
    return {
        "member": entry.member,
        "callback": entry.callback.value,
        "did": entry.did,
        "partitions": named,
        "offsets": [offset for offset, *_ in entry.offsets],
        "generation": entry.generation,
        "error": entry.error,
    }
