"""`groupledger simulate`: play scripts and print every round and call, line by line and without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from groupledger.answers.spoken import numbered, spans
from groupledger.cli.comparing import ComparisonAsked, takes_comparison, tell_compared
from groupledger.cli.custom import custom_assignors
from groupledger.cli.exits import Exit
from groupledger.cli.from_ledger import RecordedStart, started
from groupledger.cli.grid import GridAsked, takes_grid, tell_grid
from groupledger.cli.listeners import rehearse_lines
from groupledger.cli.output import Output, print_exact
from groupledger.cli.scripts import ScriptLines, read_files
from groupledger.core.custom.limits import CustomLimits
from groupledger.core.faults import Fault

if TYPE_CHECKING:
    from groupledger.core.custom.naming import CustomAssignor

Told = dict[str, Any]
T = TypeVar("T")
MOST_ROWS = 20
"""Rows of members, listener calls and heartbeats that a table shows per event."""
TEXT = click.File("r", encoding="utf-8", errors="surrogateescape")
DOUBLE_OWNERS = '"double_owners": [{'
"""In a line in which some event has any; other lines need not be parsed again."""


@click.command(short_help="Simulate groups through events, compare variants, or apply a grid of changes.")
@click.argument("scripts", nargs=-1, type=TEXT)
@click.option("--table", is_flag=True, help="Tables for a person instead of JSON lines.")
@click.option("--listener", metavar="MODULE:CLASS", help="Give members this rebalance listener; print its journal.")
@click.option("--ways", is_flag=True, help="How else each event may go where a client's timing decides, and why.")
@click.option("--metrics", is_flag=True, help="KIP-429's client metrics of each member and of the group.")
@takes_grid
@takes_comparison
@custom_assignors
def simulate(
    scripts: tuple[TextIO, ...],
    *,
    table: bool,
    listener: str | None,
    metrics: bool,
    ways: bool,
    grid: GridAsked | None,
    start: RecordedStart | None,
    custom: tuple[str, ...],
    limits: CustomLimits,
    comparison: ComparisonAsked | None,
) -> None:
    """Read scripts from SCRIPTS (default: stdin), write one result per line.

    A file has a script per line, or is one JSON object or list of them (.json), or YAML (.yaml). Results come after
    every 500 scripts and at the end. An invalid script gives an error object with its line number; the others are still
    played, and the exit code is 3. It is 4 if a partition has two owners, or if a --listener failed or raised, gave up
    what it read without a commit, or took too long (docs/guides/decide/rehearse-a-listener.md).

    \b
    id: a
    topics: {orders: 4}
    events:
    - {event: join, member: m1, topics: [orders]}

    The format is in docs/guides/decide/simulate-a-group.md; "times" in a script give its group a clock. --compare plays
    each script under variants: words joined by + are an assignor, consumer (KIP-848), share (KIP-932), streams
    (KIP-1071), static, dynamic, as-written, or name=value. With --grid, no scripts are read: every group of a ledger
    meets each change of the grid (docs/guides/decide/what-if.md). With --from-ledger, a script goes on from that
    group's last recorded state: its members, what each holds, its topics.

    \b
    groupledger simulate restart.yaml --compare range,range+static,consumer
    groupledger simulate --grid grid.yaml
    """
    if grid is not None:
        if listener is not None or metrics or ways:
            raise click.UsageError("--listener, --metrics and --ways go with scripts, not with --grid")
        tell_grid(grid)
        return
    if ways and (listener is not None or comparison is not None):
        raise click.UsageError("--ways goes with scripts alone, not with --listener, --compare or --summary")
    from groupledger.core.custom.naming import find_all

    files: Iterable[ScriptLines] = read_files(scripts or (TEXT.convert("-", None, None),))
    found = find_all(custom, limits)
    if start is not None:
        files = started(files, start)
    if comparison is not None:
        tell_compared(files, comparison, found)
    else:
        _play(files, found, table=table, listener=listener, metrics=metrics, ways=ways)


def _play(
    files: Iterable[ScriptLines],
    custom: Mapping[str, CustomAssignor],
    *,
    table: bool,
    listener: str | None,
    metrics: bool,
    ways: bool,
) -> None:
    """Print a result line, or tables, for each script."""
    bad_lines, violations = 0, False
    for answer in _answers(files, custom, listener, metrics=metrics, ways=ways):
        told = json.loads(answer) if table or listener or '"line": ' in answer or DOUBLE_OWNERS in answer else {}
        bad_lines += "line" in told
        violations |= any(event["double_owners"] for event in told.get("events", ())) or bool(told.get("convicted"))
        if table:
            _show(Output(as_json=False), told)
        else:
            print_exact(answer)
    if bad_lines:
        raise Fault("BAD_LINE", f"{bad_lines} {'line was' if bad_lines == 1 else 'lines were'} no script")
    if violations:
        click.get_current_context().exit(Exit.VIOLATIONS)


def _answers(
    files: Iterable[ScriptLines],
    custom: Mapping[str, CustomAssignor],
    listener: str | None,
    *,
    metrics: bool,
    ways: bool,
) -> Iterator[str]:
    from groupledger.core.protocol.story import simulate_lines

    for file in files:
        if listener is None:
            yield from simulate_lines(file.lines, custom, metrics=metrics, ways=ways)
        else:
            yield from rehearse_lines(file.lines, listener, custom, metrics=metrics)


def _show(output: Output, told: Told) -> None:
    """Print one group: for each event its outcome, its rounds and its listeners' calls."""
    if "error" in told:
        output.line(f"line {told['line']}: {told['error']}")
    seats = [event for event in told.get("events", ()) if "seat" in event]
    if seats:
        output.title(f"{told['id']}: as recorded{_unowned(seats[-1])}")
        rows = [(event["member"], _named(event["seat"]["assigned"]), event["seat"]["leads"]) for event in seats]
        output.table(("member", "has", "leads"), rows)
    for number, event in enumerate(told.get("events", ())[len(seats) :], 1):
        what = " ".join(str(event[key]) for key in ("event", "member", "topic") if key in event)
        output.title(f"{told['id']}, event {number}: {what}: {_outcome(event)}")
        columns = ("round", "generation", "leader", "member", "owned", "assigned", "revoked", "joins again")
        group = _coordinated(event)
        if event["rounds"] or group is None:
            seats = [(took, member) for took in event["rounds"] for member in took["members"]]
            shown = _first(seats, lambda seat: seat[1]["joins_again"] or seat[1]["owned"] != seat[1]["assigned"])
            output.table(columns, [_row(*seat) for seat in shown])
            _tell_rest(output, len(seats) - len(shown))
        _show_calls(output, event)
        _show_ways(output, event)
        if group is not None:
            _show_heartbeats(output, group)
        if event["double_owners"]:
            output.table(
                ("two owners", "first", "second", "from ms", "to ms"),
                [_doubly(each) for each in event["double_owners"]],
            )
    for note in told.get("notes", ()):
        output.line(f"note: {note}")
    _show_listener(output, told)
    if "metrics" in told:
        output.title(f"{told['id']}: client metrics (KIP-429)")
        known = [each for each in told["metrics"] if each["value"] is not None]
        values = [(each["member"] or "(group)", each["name"], _number(each["value"])) for each in known]
        output.table(("member", "metric", "value"), values)


def _show_listener(output: Output, told: Told) -> None:
    """Print what went wrong in listeners; nothing without a listener."""
    if "journal" not in told:
        return
    wrong = [each for each in told["journal"] if each["error"] is not None]
    output.title(f"{told['id']}: what the listeners did wrong: {len(wrong)} of {len(told['journal']):,} entries")
    columns = ("at_ms", "member", "callback", "did", "partitions", "error")
    output.table(columns, [tuple(each.get(name, "") for name in columns) for each in wrong])


def _number(value: float) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def _first(rows: Sequence[T], changes: Callable[[T], object]) -> list[T]:
    """Return all of a few rows; of many first those with changes, as many as a person reads."""
    return list(rows) if len(rows) <= MOST_ROWS else sorted(rows, key=lambda row: not changes(row))[:MOST_ROWS]


def _tell_rest(output: Output, number: int) -> None:
    if number > 0:
        output.line(f"... and {number:,} more (without --table: all)")


def _coordinated(event: Told) -> Told | None:
    """Return what the coordinator did that assigns: of a consumer group (KIP-848), or a share or Streams group."""
    return next((event[name] for name in ("consumer_group", "share_group", "streams_group") if name in event), None)


def _show_calls(output: Output, event: Told) -> None:
    """Print the calls of listeners, in order, and when each returned if the group has times."""
    calls = [call for call in event["calls"] if call["callback"].startswith("onPartitions")]
    told_calls = _first(calls, lambda call: call["partitions"])
    clock = ("ended_ms",) if "ended_ms" in event else ()
    columns = (*clock, "round", "member", "callback")
    rows = [(*(call[name] for name in columns), _named(call["partitions"])) for call in told_calls]
    output.table((*("at ms" for _ in clock), "round", "member", "listener", "partitions"), rows)
    _tell_rest(output, len(calls) - len(told_calls))


def _show_ways(output: Output, event: Told) -> None:
    """Print how else the event may go, and why; nothing if that was not asked for."""
    for number, way in enumerate(event.get("ways", ()), 1):
        output.line(f"or, way {number} ({numbered(way['rounds'], 'round')}): {way['cause']}")
        columns = ("round", "member", "callback")
        rows = [(*(call[name] for name in columns), _named(call["partitions"])) for call in way["calls"]]
        output.table(("round", "member", "listener", "partitions"), rows)


def _show_heartbeats(output: Output, group: Told) -> None:
    """Print a group that its coordinator assigns: its members' heartbeats and answers, and its state."""
    rows = group["heartbeats"][:MOST_ROWS]
    standby = ("standby",) if any("standby" in row for row in rows) else ()
    columns = (
        "ms",
        "member",
        "said epoch",
        "owned",
        "epoch",
        "state",
        "assigned",
        *standby,
        "to revoke",
        "group epoch",
    )
    output.table(columns, [_heartbeat(each) for each in rows])
    _tell_rest(output, len(group["heartbeats"]) - MOST_ROWS)


def _heartbeat(row: Told) -> tuple[object, ...]:
    owned = "" if row["owned"] is None else _named(row["owned"])
    state = row["error"] or row["state"]
    lists = tuple(_named(row[name]) for name in ("assigned", "standby", "pending") if name in row)
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
    unowned = _unowned(event)
    twice = sorted({tuple(each["partition"]) for each in event["double_owners"]})
    owned_twice = f", two owners: {_named(twice)}" if twice else ""
    waited = sum(ms for *_, ms in event["unavailable_ms"])
    group = _coordinated(event)
    if group is not None and not event["rounds"]:
        status = f", {group['status']}" if group.get("status") else ""
        away_ms = f"group epoch {group['epoch']}, {waited:,} partition-ms unavailable"
        return f"{away_ms}{_records(event)}{unowned}{owned_twice}{status}"
    time = f" ({waited:,} partition-ms)" if waited else ""
    rounds = f"{numbered(len(event['rounds']), 'round')}, {numbered(away, 'partition-round')} unavailable{time}"
    return f"{rounds}{_records(event)}{unowned}{owned_twice}"


def _unowned(event: Told) -> str:
    return f", unowned: {_named(event['unowned'])}" if event["unowned"] else ""


def _records(event: Told) -> str:
    """Return the numbers of records read twice, or never, so far."""
    words = {"twice": "read twice", "never": "never read"}
    counts = [(sum(count for *_, count in event.get(name, ())), told) for name, told in words.items()]
    return "".join(f", {numbered(count, 'record')} {told}" for count, told in counts if count)


def _row(took: Told, member: Told) -> tuple[object, ...]:
    kept = [each for each in member["owned"] if each not in member["assigned"]]
    lists = (_named(each) for each in (member["owned"], member["assigned"], kept))
    return (took["round"], took["generation"], took["leader"], member["member"], *lists, member["joins_again"])


def _named(partitions: Iterable[tuple[str, int]]) -> str:
    """Format as `orders:0-1`; nothing as `-`."""
    return spans((topic, number) for topic, number in partitions)
