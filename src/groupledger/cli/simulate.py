"""`groupledger simulate` and `solve`: play scripts, or compute scenarios, line by line and without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from groupledger.answers.answer_columns import Column
from groupledger.answers.spoken import numbered, spans
from groupledger.cli.exits import Exit, exit_if
from groupledger.cli.options import Job, takes, was_given
from groupledger.cli.output import Output, print_exact, say
from groupledger.cli.scripts import ScriptLines, read_files, rehearse_lines, started
from groupledger.core.custom.custom_group import CustomLimits
from groupledger.core.faults import Fault

if TYPE_CHECKING:
    from groupledger.core.custom.custom_group import CustomAssignor
    from groupledger.core.protocol.comparison import ComparedScript, ComparedVariant, Cost, ScriptComparison
    from groupledger.core.protocol.script import Script

AS_WRITTEN = "as-written"
_COUNTED = ("rounds", "moves", "revoked", "lost", "unavailable_rounds", "unavailable_ms", "read_twice", "double_owners")
_SHORT = ("rounds", "moves", "revoked", "lost", "partition-rounds", "partition-ms", "twice", "two owners")


@dataclass(frozen=True, slots=True)
class ComparisonAsked:
    """What to compare, and how to print it."""

    variants: str
    summary: bool
    difference: bool
    from_ms: int
    html: Path | None
    output: Output


TO_COMPARE = "With --compare, --summary"


def comparison_asked(
    output: Output,
    compare: str | None,
    html: Path | None,
    from_ms: int,
    *,
    summary: bool,
    difference: bool,
    beside: Mapping[str, object],
) -> ComparisonAsked | None:
    """Return what is to be compared; None if nothing is. `beside`: options that go without a comparison."""
    if difference and (compare is None or compare.count(",") != 1):
        raise click.UsageError("--difference is that of two variants: --compare range,cooperative-sticky.")
    if compare is not None and summary:
        raise click.UsageError("--summary tells scripts as they are written: --compare as-written,range tells more.")
    if compare is None and not summary:
        alone = "--from-ms" if from_ms else "--html" if html else None
        if alone is not None:
            raise click.UsageError(f"{alone} goes with --compare and --summary.")
        return None
    other = next((name for name, given in beside.items() if given), None)
    if other is not None:
        raise click.UsageError(f"--{other} goes without --compare and --summary.")
    return ComparisonAsked(compare or AS_WRITTEN, summary, difference, from_ms, html, output)


def compare_scripts(files: Iterable[ScriptLines], asked: ComparisonAsked, custom: Mapping[str, CustomAssignor]) -> None:
    """Play all scripts under all variants; print one table, or one JSON line; exit with the code of the worst."""
    with asked.output.status("playing the scripts"):
        found = _compared(files, asked, custom)
    _print_comparison(asked, found)
    if asked.html is not None:
        from groupledger.report.html.comparison_page import comparison_page
        from groupledger.report.html.written import write_page

        write_page(comparison_page, found, asked.html)
        asked.output.line(f"timelines: {asked.html}")
    asked.output.result({"status": "done", "command": "simulate", "comparison": found})
    _exit(found)


def _compared(
    files: Iterable[ScriptLines], asked: ComparisonAsked, custom: Mapping[str, CustomAssignor]
) -> ScriptComparison:
    """Play every script of these files under the requested variants. Raises Fault("BAD_VARIANT")."""
    from groupledger.core.assignors import ASSIGNORS
    from groupledger.core.custom.assignor_names import by_every_name
    from groupledger.core.protocol.comparison import BadScript, ScriptComparison, compare, read_variants
    from groupledger.core.protocol.script_json import read_line

    variants = read_variants(asked.variants, {*ASSIGNORS, *by_every_name(custom, ASSIGNORS)})
    good: list[tuple[str, Script]] = []
    bad = []
    for file in files:
        for number, line in enumerate(file.lines, 1):
            name, script = read_line(line)
            if isinstance(script, Fault):
                bad.append(BadScript(file.named, number, f"{script.code}: {script.message}"))
            else:
                place = f"{Path(file.named).name}:{number}"
                good.append((place if name is None else name if isinstance(name, str) else json.dumps(name), script))
    timeline = asked.html is not None or asked.output.as_json
    scripts = compare(good, variants, custom, asked.from_ms, timeline=timeline)
    return ScriptComparison(asked.from_ms, scripts, tuple(bad))


def _print_comparison(asked: ComparisonAsked, found: ScriptComparison) -> None:
    """Print a table of all scripts and variants, then what cannot be played or does not settle, and differences."""
    output = asked.output
    since = f", from {found.from_ms:,} ms on" if found.from_ms else ""
    alone = len(found.scripts) == 1 and not asked.summary
    name = found.scripts[0].id if alone else numbered(len(found.scripts), "script")
    output.title(f"{name}, sums over all events{since}")
    output.rows(
        [
            {
                Column("script", least=12): None if alone else script.id,
                Column("variant", least=12): None if asked.summary else each.variant,
                **_cells(each),
            }
            for script in found.scripts
            for each in script.variants
        ]
    )
    for script in found.scripts:
        for each in script.variants:
            for failure in _failures(each):
                output.line(f"{script.id} {failure}" if asked.summary else f"{script.id}, {each.variant} {failure}")
        if asked.difference:
            _print_difference(output, script)
    for bad in found.bad_scripts:
        output.line(f"{bad.file}, script {bad.line}: {bad.error}")


def _exit(found: ScriptComparison) -> None:
    variants = [each for script in found.scripts for each in script.variants]
    unplayed = len(found.bad_scripts) + sum(each.error is not None for each in variants)
    if unplayed:
        say(f"groupledger: {numbered(unplayed, 'script')} could not be played [BAD_LINE]")
    exit_if(unplayed, Exit.QUARANTINE)
    exit_if(any(each.cost is not None and each.cost.double_owners for each in variants))


def _cells(each: ComparedVariant) -> dict[Column, object]:
    """Return the costs without the zeros that are the desired result; none of a variant that cannot be played."""
    cost = each.cost
    no_time = 0 if cost and cost.unavailable_rounds is None else None  # else rounds are counted
    return {
        Column("rounds"): cost and cost.rounds,
        Column("moves"): cost and cost.moves,
        Column("revoked"): cost and cost.revoked,
        Column("lost", rank=2): cost and (cost.lost or None),
        Column("partition-rounds"): cost and cost.unavailable_rounds,
        Column("partition-ms"): cost and (cost.unavailable_ms or no_time),
        Column("each"): cost and _span(each.least, each.most),
        Column("idle"): cost and (each.idle or None),
        Column("twice", rank=1): cost and cost.read_twice,
        Column("never", rank=2): cost and (cost.never_read or None),
        Column("two owners", rank=1): cost and (cost.double_owners or None),
        Column("not settled", rank=1): cost and (each.failures or None),
        Column("unowned", rank=3): cost and (each.unowned or None),
    }


def _span(least: int | None, most: int | None) -> str | None:
    """Return the partitions of one member, as `2` or `0-8`."""
    if most is None:
        return None
    return f"{most:,}" if least == most else f"{least:,}-{most:,}"


def _failures(each: ComparedVariant) -> list[str]:
    """Return what cannot be played, and the first event that did not settle."""
    if each.error is not None:
        return [f"cannot be played: {each.error}"]
    first = next((row for row in each.events if row.failure is not None), None)
    return [] if first is None else [f"does not settle: event {first.number}, {first.event}: {first.failure}"]


def _print_difference(output: Output, script: ComparedScript) -> None:
    """Print the second variant minus the first, for each event in which they differ."""
    first, second = script.variants
    if first.cost is None or second.cost is None:
        return
    pairs = list(zip(first.events, second.events, strict=True))
    rows = [_difference(one.cost, other.cost) for one, other in pairs]
    output.title(f"{script.id}: {second.variant} less {first.variant}")
    columns = (Column("event"), Column("what", least=12), *(Column(name) for name in _SHORT))
    shown = [(one, row) for (one, _), row in zip(pairs, rows, strict=True) if any(row)]
    differing: list[Sequence[object]] = [(one.number, one.event, *_without_zeros(row)) for one, row in shown]
    total = _difference(first.cost, second.cost)
    output.fitted(columns, [*differing, (None, "all", *_without_zeros(total))], wide=False)


def _difference(one: Cost, other: Cost) -> list[int | None]:
    pairs = ((getattr(one, name), getattr(other, name)) for name in _COUNTED)
    return [None if a is None or b is None else b - a for a, b in pairs]


def _without_zeros(row: Iterable[int | None]) -> list[int | None]:
    return [each or None for each in row]


JsonObject = dict[str, Any]
T = TypeVar("T")
MOST_ROWS = 20
"""Rows of members, listener calls and heartbeats that a table shows per event."""
TEXT = click.File("r", encoding="utf-8", errors="surrogateescape")
DOUBLE_OWNERS = '"double_owners": [{'
"""In a line in which some event has any; other lines need not be parsed again."""


@click.command(short_help="Play scripts of joins, restarts, ...; compare variants.")
@click.argument("scripts", nargs=-1, type=TEXT)
@click.option("--table", is_flag=True, help="Tables for a person instead of JSON lines.")
@takes("listener")
@click.option("--metrics", is_flag=True, help="KIP-429's client metrics of each member and of the group.")
@click.option("--from-ledger", metavar="GROUP", help="Scripts go on where this recorded group stands.")
@takes("cluster", "ledger", "json", "wide")
@click.option("--compare", metavar="VARIANTS", help="Costs of a script under range,cooperative-sticky,consumer.")
@click.option("--summary", is_flag=True, help="One line per script: its costs.")
@click.option("--difference", is_flag=True, help="With --compare A,B: by event, what B costs more than A.")
@click.option("--from-ms", type=click.IntRange(0), default=0, help=f"{TO_COMPARE}: count events from this time on.")
@takes("html", "custom")
def simulate(
    output: Output,
    *,
    scripts: tuple[TextIO, ...],
    table: bool,
    listener: str | None,
    metrics: bool,
    from_ledger: str | None,
    cluster: str | None,
    opened: Callable[..., Job],
    compare: str | None,
    summary: bool,
    difference: bool,
    from_ms: int,
    html: Path | None,
    custom: tuple[str, ...],
    limits: CustomLimits,
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
    (KIP-1071), static, dynamic, as-written, or name=value. With --from-ledger, a script goes on from that group's last
    recorded state: its members, what each holds, its topics. --custom names a custom assignor that scripts may name.

    \b
    groupledger simulate restart.yaml --compare range,range+static,consumer
    """
    beside = {"table": table, "listener": listener, "metrics": metrics}
    comparison = comparison_asked(output, compare, html, from_ms, summary=summary, difference=difference, beside=beside)
    if output.as_json and comparison is None:
        raise click.UsageError("--json goes with --compare and --summary; scripts alone give JSON lines as they are.")
    if from_ledger is None and was_given("cluster", "ledger"):
        raise click.UsageError("--cluster and --ledger go with --from-ledger: they say where that group is.")
    from groupledger.core.custom.assignor_names import find_all

    files: Iterable[ScriptLines] = read_files(scripts or (TEXT.convert("-", None, None),))
    found = find_all(custom, limits)
    if from_ledger is not None:
        files = started(files, opened(output), from_ledger, cluster)
    if comparison is not None:
        compare_scripts(files, comparison, found)
    else:
        _play(files, found, table=table, listener=listener, metrics=metrics)


def _play(
    files: Iterable[ScriptLines],
    custom: Mapping[str, CustomAssignor],
    *,
    table: bool,
    listener: str | None,
    metrics: bool,
) -> None:
    """Print a result line, or tables, for each script."""
    bad_lines, violations = 0, False
    for answer in _answers(files, custom, listener, metrics=metrics):
        result = json.loads(answer) if table or listener or '"line": ' in answer or DOUBLE_OWNERS in answer else {}
        bad_lines += "line" in result
        violations |= any(event["double_owners"] for event in result.get("events", ())) or bool(result.get("convicted"))
        if table:
            _show(Output(as_json=False), result)
        else:
            print_exact(answer)
    if bad_lines:
        raise Fault("BAD_LINE", f"{bad_lines} {'line was' if bad_lines == 1 else 'lines were'} no script")
    exit_if(violations)


def _answers(
    files: Iterable[ScriptLines], custom: Mapping[str, CustomAssignor], listener: str | None, *, metrics: bool
) -> Iterator[str]:
    from groupledger.core.protocol.script_json import simulate_lines

    for file in files:
        if listener is None:
            yield from simulate_lines(file.lines, custom, metrics=metrics)
        else:
            yield from rehearse_lines(file.lines, listener, custom, metrics=metrics)


def _show(output: Output, result: JsonObject) -> None:
    """Print one group: for each event its outcome, its rounds and its listeners' calls."""
    from groupledger.core.protocol.events import ABOUT

    if "error" in result:
        output.line(f"line {result['line']}: {result['error']}")
    seats = [event for event in result.get("events", ()) if "seat" in event]
    if seats:
        output.title(f"{result['id']}: as recorded{_unowned(seats[-1])}")
        rows = [(event["member"], _named(event["seat"]["assigned"]), event["seat"]["leads"]) for event in seats]
        output.table(("member", "has", "leads"), rows)
    for number, event in enumerate(result.get("events", ())[len(seats) :], 1):
        what = " ".join(str(event[key]) for key in ("event", *ABOUT) if key in event)
        output.title(f"{result['id']}, event {number}: {what}: {_outcome(event)}")
        columns = ("round", "generation", "leader", "member", "owned", "assigned", "revoked", "joins again")
        group = _coordinated(event)
        if event["rounds"] or group is None:
            seats = [(took, member) for took in event["rounds"] for member in took["members"]]
            shown = _first(seats, lambda seat: seat[1]["joins_again"] or seat[1]["owned"] != seat[1]["assigned"])
            output.table(columns, [_row(*seat) for seat in shown])
            output.left_off(len(seats) - len(shown), how="without --table: all")
        _show_calls(output, event)
        if group is not None:
            _show_heartbeats(output, group)
        if event["double_owners"]:
            output.table(
                ("two owners", "first", "second", "from ms", "to ms"),
                [_double_owner(each) for each in event["double_owners"]],
            )
    output.notes(result.get("notes", ()))
    _show_listener(output, result)
    if "metrics" in result:
        output.title(f"{result['id']}: client metrics (KIP-429)")
        known = [each for each in result["metrics"] if each["value"] is not None]
        values = [
            (each["member"] or "(group)", each["name"], f"{each['value']:,.3f}".rstrip("0").rstrip("."))
            for each in known
        ]
        output.table(("member", "metric", "value"), values)


def _show_listener(output: Output, result: JsonObject) -> None:
    """Print what went wrong in listeners; nothing without a listener."""
    if "journal" not in result:
        return
    wrong = [each for each in result["journal"] if each["error"] is not None]
    output.title(f"{result['id']}: what the listeners did wrong: {len(wrong)} of {len(result['journal']):,} entries")
    columns = ("at_ms", "member", "callback", "did", "partitions", "error")
    output.table(columns, [tuple(each.get(name, "") for name in columns) for each in wrong])


def _first(rows: Sequence[T], changes: Callable[[T], object]) -> list[T]:
    """Return all of a few rows; of many first those with changes, as many as a person reads."""
    return list(rows) if len(rows) <= MOST_ROWS else sorted(rows, key=lambda row: not changes(row))[:MOST_ROWS]


def _coordinated(event: JsonObject) -> JsonObject | None:
    """Return what the coordinator did that assigns: of a consumer group (KIP-848), or a share or Streams group."""
    return next((event[name] for name in ("consumer_group", "share_group", "streams_group") if name in event), None)


def _show_calls(output: Output, event: JsonObject) -> None:
    """Print the calls of listeners, in order, and when each returned if the group has times."""
    calls = [call for call in event["calls"] if call["callback"].startswith("onPartitions")]
    shown = _first(calls, lambda call: call["partitions"])
    clock = ("ended_ms",) if "ended_ms" in event else ()
    columns = (*clock, "round", "member", "callback")
    rows = [(*(call[name] for name in columns), _named(call["partitions"])) for call in shown]
    output.table((*("at ms" for _ in clock), "round", "member", "listener", "partitions"), rows)
    output.left_off(len(calls) - len(shown), how="without --table: all")


def _show_heartbeats(output: Output, group: JsonObject) -> None:
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
    output.left_off(len(group["heartbeats"]) - MOST_ROWS, how="without --table: all")


def _heartbeat(row: JsonObject) -> tuple[object, ...]:
    owned = "" if row["owned"] is None else _named(row["owned"])
    state = row["error"] or row["state"]
    lists = tuple(_named(row[name]) for name in ("assigned", "standby", "pending") if name in row)
    return row["at_ms"], row["member"], row["sent_epoch"], owned, row["epoch"], state, *lists, row["group_epoch"]


def _double_owner(each: JsonObject) -> tuple[object, ...]:
    until = "goes on" if each["until_ms"] is None else each["until_ms"]
    return (_named([each["partition"]]), *each["members"], each["since_ms"], until)


def _outcome(event: JsonObject) -> str:
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


def _unowned(event: JsonObject) -> str:
    return f", unowned: {_named(event['unowned'])}" if event["unowned"] else ""


def _records(event: JsonObject) -> str:
    """Return the numbers of records read twice, or never, so far."""
    words = {"twice": "read twice", "never": "never read"}
    counts = [(sum(count for *_, count in event.get(name, ())), text) for name, text in words.items()]
    return "".join(f", {numbered(count, 'record')} {text}" for count, text in counts if count)


def _row(took: JsonObject, member: JsonObject) -> tuple[object, ...]:
    kept = [each for each in member["owned"] if each not in member["assigned"]]
    lists = (_named(each) for each in (member["owned"], member["assigned"], kept))
    return (took["round"], took["generation"], took["leader"], member["member"], *lists, member["joins_again"])


def _named(partitions: Iterable[tuple[str, int]]) -> str:
    """Format as `orders:0-1`; nothing as `-`."""
    return spans((topic, number) for topic, number in partitions)


# `groupledger solve`: compute scenarios.


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
    from groupledger.core.assignors import ASSIGNORS
    from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
    from groupledger.core.custom.assignor_names import by_every_name, find_all
    from groupledger.core.scenarios.solving import solve_lines

    bad_lines = 0
    found = by_every_name(find_all(custom, limits), (*ASSIGNORS, *CLIENT_ASSIGNORS))
    for answer in solve_lines(scenarios, custom=found):
        print_exact(answer)
        bad_lines += '"line": ' in answer and "line" in json.loads(answer)
    if bad_lines:
        raise Fault("BAD_LINE", f"{bad_lines} {'line was' if bad_lines == 1 else 'lines were'} no scenario")
