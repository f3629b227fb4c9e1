"""`groupledger simulate --grid`: print what changes would do to all groups of a ledger, in one table."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groupledger.cli.fitting import Column
from groupledger.cli.from_ledger import RecordedStart
from groupledger.cli.options import DEFAULT_CONFIG, Job, file_of
from groupledger.cli.output import Output, plain

if TYPE_CHECKING:
    from groupledger.pipeline.grid import GridAnswer

_COLUMNS = (
    Column("assignor", least=18),
    Column("change", least=16),
    Column("groups", rank=2),
    Column("moves"),
    Column("least", rank=1),
    Column("given up"),
    Column("no owner", rank=1),
    Column("uneven"),
    Column("two rounds", rank=2),
    Column("refused", rank=3),
)
_ALONE = "goes with --grid only"
_OF_LEDGER = "goes with --grid and --from-ledger only"
_OF_TABLES = "goes with --grid, --compare and --summary only."


@dataclass(frozen=True, slots=True)
class GridAsked:
    """The grid, and the groups that it applies to."""

    job: Job
    path: Path
    groups: str | None
    cluster: str | None
    output: str | None
    wide: bool


FOR_LEDGER = "With --grid, --from-ledger"


def takes_grid(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--grid`, `--from-ledger` and what goes with them: the command gets `grid` and `start` (None: not asked for),
    `output` and `wide`.
    """

    @click.option("--grid", "path", metavar="FILE", help="A grid in YAML: docs/guides/decide/what-if.md.")
    @click.option("--group", "groups", metavar="GROUP", help="With --grid: only this group; `payments-*`: a pattern.")
    @click.option("--from-ledger", metavar="GROUP", help="Scripts go on where this recorded group stands.")
    @click.option("--cluster", metavar="CLUSTER", help=f"{FOR_LEDGER}: only this cluster.")
    @click.option("--output", metavar="FOLDER", help="With --grid: write a row a group and cell, as Parquet.")
    @click.option(
        "--config", "config_file", default=DEFAULT_CONFIG, metavar="FILE", help=f"{FOR_LEDGER}: the configuration."
    )
    @click.option("--ledger", metavar="FOLDER", help=f"{FOR_LEDGER}: the ledger's folder.")
    @click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help=f"{FOR_LEDGER}: override a setting.")
    @click.option("--wide", is_flag=True, help="All columns of a table, whatever the terminal's width.")
    @click.option("--json", "as_json", is_flag=True, help="One JSON line on stdout instead of a table.")
    @functools.wraps(command)
    def run(
        *,
        path: str | None,
        groups: str | None,
        from_ledger: str | None,
        cluster: str | None,
        output: str | None,
        config_file: str,
        ledger: str | None,
        overrides: tuple[str, ...],
        wide: bool,
        as_json: bool,
        **options: Any,
    ) -> Any:
        of_ledger = {"--cluster": cluster, "--ledger": ledger, "--set": overrides}
        if path is None:
            _require_unused({"--group": groups, "--output": output}, _ALONE)
            if from_ledger is None:
                _require_unused(of_ledger, _OF_LEDGER)
        elif from_ledger is not None:
            raise click.UsageError("--from-ledger goes with scripts, not with --grid")
        given = {} if ledger is None else {"ledger": {"location": ledger}}
        if path is None:
            told = _of_scripts(options, wide=wide, as_json=as_json)
            start = None
            if from_ledger is not None:
                job = Job.configured("simulate", told, file_of(config_file), overrides, given)
                start = RecordedStart(job, from_ledger, cluster)
            return command(grid=None, start=start, output=told, wide=wide, **options)
        job = Job.configured("simulate", Output(as_json=as_json), file_of(config_file), overrides, given)
        asked = GridAsked(job, Path(path), groups, cluster, output, wide)
        return command(grid=asked, start=None, output=job.output, wide=wide, **options)

    return run


def _require_unused(values: Mapping[str, object], rule: str) -> None:
    unfit = next((name for name, value in values.items() if value), None)
    if unfit is not None:
        raise click.UsageError(f"{unfit} {rule}")


def _of_scripts(options: Mapping[str, Any], *, wide: bool, as_json: bool) -> Output:
    """Return the output of a comparison of scripts; the result of scripts alone has another form."""
    if (wide or as_json) and not (options["compare"] or options["summary"]):
        raise click.UsageError(f"{'--wide' if wide else '--json'} {_OF_TABLES}")
    return Output(as_json=as_json)


def tell_grid(asked: GridAsked) -> None:
    """Compute the grid, and print one line per cell."""
    from groupledger.config.grid import load_grid
    from groupledger.pipeline.grid import grid

    settings = load_grid(asked.path)
    job = asked.job
    spark = job.spark()
    with job.output.status("computing the grid"):
        answer = grid(spark, job.config, settings, groups=asked.groups, cluster=asked.cluster, output=asked.output)
    _tell(job.output, answer, wide=asked.wide)
    if asked.output is not None:
        job.output.line(f"{answer.rows:,} rows, one a group and cell: {asked.output}")
    job.output.result({"status": "done", "command": "simulate", **plain(answer)})


def _tell(output: Output, answer: GridAnswer, *, wide: bool) -> None:
    output.title(f"{answer.groups:,} groups in {len(answer.cells):,} cells, sums over all groups")
    output.fitted(_COLUMNS, [_row(cell) for cell in answer.cells], wide=wide)


def _row(cell: Any) -> tuple[object, ...]:
    counts = (cell.moves, cell.least_moves, cell.revoked, cell.unassigned, cell.spread, cell.two_rounds)
    return (cell.assignor, cell.change, cell.groups, *counts, cell.refused or None)
