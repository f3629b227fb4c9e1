"""`groupledger simulate`: scripts in, every round and call out, line by line and without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TextIO

import click

from groupledger.cli.custom import custom_assignors
from groupledger.cli.exits import Exit
from groupledger.cli.grid import GridAsked, takes_grid, tell_grid
from groupledger.cli.output import Output, print_exact
from groupledger.core.custom.limits import CustomLimits
from groupledger.core.faults import Fault

Told = dict[str, Any]
DOUBLE_OWNERS = '"double_owners": [{'
"""In a line of which some event has any: other lines need not be read again."""


@click.command(short_help="Groups run through events on paper, or all groups through a grid of changes.")
@click.argument("scripts", type=click.File("r", encoding="utf-8", errors="surrogateescape"), default="-")
@click.option("--table", is_flag=True, help="Tables for a person instead of JSON lines.")
@takes_grid
@custom_assignors
def simulate(
    scripts: TextIO, *, table: bool, grid: GridAsked | None, custom: tuple[str, ...], limits: CustomLimits
) -> None:
    """Read one script a line from SCRIPTS (default: stdin), write one result a line.

    Results come after every 500 lines and at the end. A line that is no script gives an error object with its line
    number; the others are played all the same, and the exit code is 3. It is 4 where a partition has two owners.

    \b
    {"id": "a", "topics": {"orders": 4}, "events": [{"event": "join", "member": "m1", "topics": ["orders"]}]}

    The format is in docs/simulation.md. With --grid, no scripts are read: every group of a ledger, in its last state,
    meets each change of the grid under each of its assignors (docs/grid.md).

    \b
    groupledger simulate --grid grid.yaml
    """
    if grid is not None:
        tell_grid(grid)
        return
    from groupledger.core.custom.naming import find_all
    from groupledger.core.protocol.story import simulate_lines

    bad_lines, double_owners = 0, False
    for answer in simulate_lines(scripts, find_all(custom, limits)):
        told = json.loads(answer) if table or '"line": ' in answer or DOUBLE_OWNERS in answer else {}
        bad_lines += "line" in told
        double_owners |= any(event["double_owners"] for event in told.get("events", ()))
        if table:
            _show(Output(as_json=False), told)
        else:
            print_exact(answer)
    if bad_lines:
        raise Fault("BAD_LINE", f"{bad_lines} {'line was' if bad_lines == 1 else 'lines were'} no script")
    if double_owners:
        click.get_current_context().exit(Exit.VIOLATIONS)


def _show(output: Output, told: Told) -> None:
    """One group: for each event what became of it, its rounds and its listeners' calls."""
    if "error" in told:
        output.line(f"line {told['line']}: {told['error']}")
    for number, event in enumerate(told.get("events", ()), 1):
        what = " ".join(str(event[key]) for key in ("event", "member", "topic") if key in event)
        output.title(f"{told['id']}, event {number}: {what}: {_outcome(event)}")
        columns = ("round", "generation", "leader", "member", "owned", "assigned", "revoked", "joins again")
        if event["rounds"] or "consumer_group" not in event:
            output.table(columns, [_row(took, member) for took in event["rounds"] for member in took["members"]])
        calls = [call for call in event["calls"] if call["callback"].startswith("onPartitions")]
        rows = [(call["round"], call["member"], call["callback"], _named(call["partitions"])) for call in calls]
        output.table(("round", "member", "listener", "partitions"), rows)
        if "consumer_group" in event:
            _show_heartbeats(output, event["consumer_group"])
        if event["double_owners"]:
            output.table(
                ("two owners", "first", "second", "from ms", "to ms"),
                [_doubly(each) for each in event["double_owners"]],
            )


def _show_heartbeats(output: Output, group: Told) -> None:
    """A consumer group (KIP-848): what its members said and were answered, and how it stands."""
    columns = ("ms", "member", "said epoch", "owned", "epoch", "state", "assigned", "to revoke", "group epoch")
    output.table(columns, [_heartbeat(each) for each in group["heartbeats"]])


def _heartbeat(row: Told) -> tuple[object, ...]:
    owned = "" if row["owned"] is None else _named(row["owned"])
    state = row["error"] or row["state"]
    lists = _named(row["assigned"]), _named(row["pending"])
    return row["at_ms"], row["member"], row["sent_epoch"], owned, row["epoch"], state, *lists, row["group_epoch"]


def _doubly(each: Told) -> tuple[object, ...]:
    until = "goes on" if each["until_ms"] is None else each["until_ms"]
    return (_named([each["partition"]]), *each["members"], each["since_ms"], until)


def _outcome(event: Told) -> str:
    if event["refused"] is not None:
        return f"refused: {event['refused']}"
    if event["cycle"] is not None:
        return "never stable: rounds {} to {} repeat".format(*event["cycle"])
    if event["failure"] is not None:
        return f"hangs: {event['failure']}"
    away = sum(len(took["unavailable"]) for took in event["rounds"])
    unowned = f", unowned: {_named(event['unowned'])}" if event["unowned"] else ""
    twice = sorted({tuple(each["partition"]) for each in event["double_owners"]})
    owned_twice = f", two owners: {_named(twice)}" if twice else ""
    waited = sum(ms for *_, ms in event["unavailable_ms"])
    if "consumer_group" in event and not event["rounds"]:
        epoch = event["consumer_group"]["epoch"]
        return f"group epoch {epoch}, {waited:,} partition-ms unavailable{unowned}{owned_twice}"
    time = f" ({waited:,} partition-ms)" if waited else ""
    return f"{len(event['rounds'])} rounds, {away} partition-rounds unavailable{time}{unowned}{owned_twice}"


def _row(took: Told, member: Told) -> tuple[object, ...]:
    kept = [each for each in member["owned"] if each not in member["assigned"]]
    lists = (_named(each) for each in (member["owned"], member["assigned"], kept))
    return (took["round"], took["generation"], took["leader"], member["member"], *lists, member["joins_again"])


def _named(partitions: Iterable[tuple[str, int]]) -> str:
    """`orders-0 orders-1`; nothing as `-`."""
    return " ".join(f"{topic}-{number}" for topic, number in partitions) or "-"
