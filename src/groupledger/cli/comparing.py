"""`groupledger simulate --compare` and `--summary`: print the cost of scripts, one line per script and variant."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groupledger.answers.spoken import numbered
from groupledger.cli.exits import Exit
from groupledger.cli.fitting import Column
from groupledger.cli.output import Output, plain, say
from groupledger.cli.scripts import ScriptLines
from groupledger.core.faults import Fault

if TYPE_CHECKING:
    from groupledger.core.custom.naming import CustomAssignor
    from groupledger.core.protocol.comparison import ComparedScript, ComparedVariant, Cost, ScriptComparison
    from groupledger.core.protocol.script import Script

_COLUMNS = (
    Column("script", least=12),
    Column("variant", least=12),
    Column("rounds"),
    Column("moves"),
    Column("revoked"),
    Column("lost", rank=2),
    Column("partition-rounds"),
    Column("partition-ms"),
    Column("each"),
    Column("idle"),
    Column("twice", rank=1),
    Column("never", rank=2),
    Column("two owners", rank=1),
    Column("not settled", rank=1),
    Column("unowned", rank=3),
)
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
    wide: bool


TO_COMPARE = "With --compare, --summary"


def takes_comparison(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--compare` and its related options; the command gets `comparison`, None if it is not requested."""

    @click.option("--compare", metavar="VARIANTS", help="Costs of a script under range,cooperative-sticky,consumer.")
    @click.option("--summary", is_flag=True, help="One line per script: its costs.")
    @click.option("--difference", is_flag=True, help="With --compare A,B: by event, what B costs more than A.")
    @click.option("--from-ms", type=click.IntRange(0), default=0, help=f"{TO_COMPARE}: count events from this time on.")
    @click.option(
        "--html", type=click.Path(path_type=Path, dir_okay=False), help=f"{TO_COMPARE}: write a page of timelines."
    )
    @functools.wraps(command)
    def run(
        *,
        html: Path | None,
        compare: str | None,
        summary: bool,
        difference: bool,
        from_ms: int,
        output: Output,
        wide: bool,
        **options: Any,
    ) -> Any:
        if difference and (compare is None or compare.count(",") != 1):
            raise click.UsageError("--difference is that of two variants: --compare range,cooperative-sticky.")
        if compare is not None and summary:
            raise click.UsageError(
                "--summary tells scripts as they are written: --compare as-written,range tells more."
            )
        if compare is None and not summary:
            alone = "--from-ms" if from_ms else "--html" if html else None
            if alone is not None:
                raise click.UsageError(f"{alone} goes with --compare and --summary.")
            return command(comparison=None, **options)
        asked = ComparisonAsked(compare or AS_WRITTEN, summary, difference, from_ms, html, output, wide)
        beside = ("grid", "table", "listener", "metrics")
        other = next((name for name in beside if options[name]), None)
        if other is not None:
            raise click.UsageError(f"--{other} goes without --compare and --summary.")
        return command(comparison=asked, **options)

    return run


def tell_compared(files: Iterable[ScriptLines], asked: ComparisonAsked, custom: Mapping[str, CustomAssignor]) -> None:
    """Play all scripts under all variants; print one table, or one JSON line; exit with the code of the worst."""
    with asked.output.status("playing the scripts"):
        found = _compared(files, asked, custom)
    _tell(asked, found)
    if asked.html is not None:
        from groupledger.report.html.written import write_comparison

        write_comparison(found, asked.html)
        asked.output.line(f"timelines: {asked.html}")
    asked.output.result({"status": "done", "command": "simulate", "comparison": plain(found)})
    _exit(found)


def _compared(
    files: Iterable[ScriptLines], asked: ComparisonAsked, custom: Mapping[str, CustomAssignor]
) -> ScriptComparison:
    """Play every script of these files under the requested variants. Raises Fault("BAD_VARIANT")."""
    from groupledger.core.assignors import ASSIGNORS
    from groupledger.core.custom.naming import by_every_name
    from groupledger.core.protocol.comparison import BadScript, ScriptComparison, compare
    from groupledger.core.protocol.story import read_line
    from groupledger.core.protocol.variants import read_variants

    variants = read_variants(asked.variants, {*ASSIGNORS, *by_every_name(custom, ASSIGNORS)})
    good: list[tuple[str, Script]] = []
    bad = []
    for file in files:
        for number, line in enumerate(file.lines, 1):
            name, script = read_line(line)
            if isinstance(script, Fault):
                bad.append(BadScript(file.named, number, f"{script.code}: {script.message}"))
            else:
                good.append((_named(name, f"{Path(file.named).name}:{number}"), script))
    timeline = asked.html is not None or asked.output.as_json
    scripts = compare(good, variants, custom, asked.from_ms, timeline=timeline)
    return ScriptComparison(asked.from_ms, scripts, tuple(bad))


def _named(name: object, place: str) -> str:
    """Return the script's id as text, or its position among the files if it has none."""
    if name is None:
        return place
    return name if isinstance(name, str) else json.dumps(name)


def _tell(asked: ComparisonAsked, found: ScriptComparison) -> None:
    """Print a table of all scripts and variants, then what cannot be played or does not settle, and differences."""
    output = asked.output
    since = f", from {found.from_ms:,} ms on" if found.from_ms else ""
    rows = [_row(script, each, asked) for script in found.scripts for each in script.variants]
    if len(found.scripts) == 1 and not asked.summary:
        name, rows = found.scripts[0].id, [(None, *row[1:]) for row in rows]
    else:
        name = numbered(len(found.scripts), "script")
    output.title(f"{name}, sums over all events{since}")
    output.fitted(_COLUMNS, rows, wide=asked.wide)
    for script in found.scripts:
        for each in script.variants:
            for told in _told(each):
                output.line(f"{script.id} {told}" if asked.summary else f"{script.id}, {each.variant} {told}")
        if asked.difference:
            _tell_difference(output, script)
    for bad in found.bad_scripts:
        output.line(f"{bad.file}, script {bad.line}: {bad.error}")


def _exit(found: ScriptComparison) -> None:
    variants = [each for script in found.scripts for each in script.variants]
    unplayed = len(found.bad_scripts) + sum(each.error is not None for each in variants)
    if unplayed:
        say(f"groupledger: {numbered(unplayed, 'script')} could not be played [BAD_LINE]")
        click.get_current_context().exit(Exit.QUARANTINE)
    if any(each.cost is not None and each.cost.double_owners for each in variants):
        click.get_current_context().exit(Exit.VIOLATIONS)


def _row(script: ComparedScript, each: ComparedVariant, asked: ComparisonAsked) -> tuple[object, ...]:
    """Return a row without the zeros that are the desired result."""
    variant = None if asked.summary else each.variant
    if each.cost is None:
        return (script.id, variant, *(None for _ in _COLUMNS[2:]))
    cost = each.cost
    given_up = cost.revoked, cost.lost or None
    away = cost.unavailable_rounds, _waited(cost)
    rare = cost.never_read or None, cost.double_owners or None, each.failures or None, each.unowned or None
    has = _span(each.least, each.most), each.idle or None
    return (script.id, variant, cost.rounds, cost.moves, *given_up, *away, *has, cost.read_twice, *rare)


def _span(least: int | None, most: int | None) -> str | None:
    """Return the partitions of one member, as `2` or `0-8`."""
    if most is None:
        return None
    return f"{most:,}" if least == most else f"{least:,}-{most:,}"


def _waited(cost: Cost) -> int | None:
    """Return milliseconds, or None if no time ever passed: then rounds are counted."""
    return cost.unavailable_ms or (None if cost.unavailable_rounds is not None else 0)


def _told(each: ComparedVariant) -> list[str]:
    """Return what cannot be played, and the first event that did not settle."""
    if each.error is not None:
        return [f"cannot be played: {each.error}"]
    first = next((row for row in each.events if row.failure is not None), None)
    return [] if first is None else [f"does not settle: event {first.number}, {first.event}: {first.failure}"]


def _tell_difference(output: Output, script: ComparedScript) -> None:
    """Print the second variant minus the first, for each event in which they differ."""
    first, second = script.variants
    if first.cost is None or second.cost is None:
        return
    pairs = list(zip(first.events, second.events, strict=True))
    rows = [_difference(one.cost, other.cost) for one, other in pairs]
    output.title(f"{script.id}: {second.variant} less {first.variant}")
    columns = (Column("event"), Column("what", least=12), *(Column(name) for name in _SHORT))
    shown = [(one, row) for (one, _), row in zip(pairs, rows, strict=True) if any(row)]
    told: list[Sequence[object]] = [(one.number, one.event, *_without_zeros(row)) for one, row in shown]
    total = _difference(first.cost, second.cost)
    output.fitted(columns, [*told, (None, "all", *_without_zeros(total))])


def _difference(one: Cost, other: Cost) -> list[int | None]:
    pairs = ((getattr(one, name), getattr(other, name)) for name in _COUNTED)
    return [None if a is None or b is None else b - a for a, b in pairs]


def _without_zeros(row: Iterable[int | None]) -> list[int | None]:
    return [each or None for each in row]
