"""`groupledger init`, `doctor`, `jars`, and `maintain`: make a ledger and keep it well."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from groupledger.cli.exits import Exit, exit_if
from groupledger.cli.options import DEFAULT_CONFIG, Job, takes
from groupledger.cli.output import Output, mark, plain, print_exact, say
from groupledger.cli.runs import print_timings
from groupledger.core.faults import Fault

if TYPE_CHECKING:
    from groupledger.pipeline.maintain import MaintainSummary


# `groupledger maintain`, `migrate` and `rebuild`: keep a ledger small, current and whole.


@click.command(short_help="Delete dead rows, compact files; safe while jobs run.")
@click.option("--only", "tables", multiple=True, metavar="TABLE", help="Only this table; may be given several times.")
@click.option(
    "--redact", is_flag=True, help="Replace names permanently, as configured in `redaction`, and delete the raw log."
)
@takes("timings", "config")
def maintain(job: Job, *, tables: tuple[str, ...], redact: bool, timings: bool) -> None:
    """Delete rows of dead attempts, compact files, and delete unreferenced files.

    Readers see the same before, during and after. Run it regularly, say once a day; jobs may run at the same time.
    Exit code 5 if another maintain is running.
    """
    from groupledger.pipeline.maintain import maintain as run
    from groupledger.tables import BY_NAME

    if unknown := [name for name in tables if name not in BY_NAME]:
        raise click.BadParameter(f"{unknown[0]!r} is no table; there are: {', '.join(BY_NAME)}", param_hint="--only")
    chosen = [BY_NAME[name] for name in tables or BY_NAME]
    spark = job.spark_for_ledger()
    job.warn_of_writers(spark)
    with job.output.status("tidying up") as doing:
        summary = run(spark, job.place(), job.config, job.invocation(None, doing), chosen, redact=redact)
    print_maintenance(job.output, summary)
    if timings:
        print_timings(job.output, summary.timings)
    job.done({**plain(summary), "rows_removed": summary.rows_removed})


def print_maintenance(output: Output, summary: MaintainSummary) -> None:
    """Print one line per table."""
    output.title("maintain")
    output.line(f"attempts given up: {summary.given_up}; rows of dead attempts removed: {summary.rows_removed:,}")
    if summary.redacted:
        output.line(f"names redacted in {summary.redacted} tables; erased for good once their old files are vacuumed")
    rows = [
        (of.table, of.rows_removed, of.before.files, of.after.files, _mib(of.before.bytes), _mib(of.after.bytes))
        for of in summary.tables
    ]
    output.table(["table", "rows removed", "files", "files now", "MiB", "MiB now"], rows)
    for aside in summary.set_aside:
        output.line(f"damaged table {aside.folder}: {f'kept; {aside.kept}' if aside.kept else 'removed'}")


def _mib(size: int) -> float:
    return round(size / 2**20, 2)


@click.command(short_help="Migrate a ledger of an older version in place.")
@takes("config")
def migrate(job: Job) -> None:
    """Create the tables, columns and layout that the ledger lacks in this version.

    If nothing is missing, nothing changes. No row is rewritten. Jobs of the older version that run meanwhile end with
    exit code 5, and are refused afterwards.
    """
    from groupledger.sinks.ledger_tables import migrate as bring_forward
    from groupledger.tables import SCHEMA_VERSION

    spark = job.spark_for_ledger()
    with job.output.status("bringing the tables forward"):
        moved = bring_forward(spark, job.place())
    text = f"{len(moved)} tables brought to schema version {SCHEMA_VERSION}" if moved else "nothing to do"
    job.output.line(f"{job.place()}: {text}")
    for name, was in moved.items():
        job.output.line(f"    {name} {'made' if was is None else f'was {was}'}")
    job.done({"location": str(job.place()), "version": SCHEMA_VERSION, "moved": moved})


@click.command(short_help="Restore lost or damaged rows from the raw records.")
@takes("config")
def rebuild(job: Job) -> None:
    """Read every table; set aside unreadable ones; restore missing rows of committed runs.

    Needs intact `log_records`, `topic_snapshots` and `runs`. Restored rows have the digest that their run committed;
    otherwise the command ends with exit code 2 and says what differs. No other job should write meanwhile.
    """
    from groupledger.pipeline.rebuild import rebuild as run

    spark = job.spark_for_ledger()
    with job.output.status("reading every table"):
        summary = run(spark, job.place(), job.config, job.invocation(None))
    for table, aside in summary.set_aside.items():
        job.output.line(f"{table} could not be read; its files are now at {aside}")
    if summary.remade:
        rows = [(each.table, each.run_id, f"{each.rows:,}") for each in summary.remade]
        job.output.table(["table", "rows made again of run", "rows"], rows)
    else:
        job.output.line(f"{job.place()}: the rows of all {summary.runs} committed runs are there; nothing was done")
    job.done(plain(summary))


# `groupledger new-config`, `init`, `doctor`, `jars`, `kernels` and `job-file`: prepare the work.


@click.command(short_help="Write a configuration with every key, commented.")
@click.argument("file", default=DEFAULT_CONFIG)
def new_config(file: str) -> None:
    """Write a commented configuration to FILE (default: groupledger.yaml), or to stdout if FILE is `-`.

    An existing file is kept, and that is an error.
    """
    from groupledger.config.loading import TEMPLATE

    text = TEMPLATE.read_text(encoding="utf-8")
    if file == "-":
        print_exact(text.removesuffix("\n"))
        return
    try:
        Path(file).touch(exist_ok=False)
    except FileExistsError as error:
        message = f"{file} is there already; expected a new file: name another, or `-` to print it"
        raise Fault("CONFIG_EXISTS", message) from error
    Path(file).write_text(text, encoding="utf-8")
    say(f"wrote {file}: name your cluster and what to read under `sources`, then run `groupledger init`")


@click.command(short_help="Create the ledger's tables; keep existing ones.")
@takes("config")
def init(job: Job) -> None:
    """Create the ledger's tables in the configured location. A second run changes nothing."""
    from groupledger.sinks.ledger_tables import init as make
    from groupledger.sinks.ledger_tables import require_lasting_catalog

    spark = job.spark()
    require_lasting_catalog(spark, job.place())
    with job.output.status("making the tables"):
        made = make(spark, job.place())
    job.output.line(f"{job.place()}: {f'made {len(made)} tables' if made else 'all tables are there'}")
    for name in made:
        job.output.line(f"    {name}")
    job.done({"location": str(job.place()), "made": made})


@click.command(short_help="Check versions, jars, rights, and the ledger's integrity.")
@click.option("--deep", is_flag=True, help="Read every row, and compare it with what its run committed.")
@takes("bootstrap", "config")
def doctor(job: Job, *, deep: bool) -> None:
    """Check versions, jars, rights and the ledger itself; say how to fix each problem.

    Clusters among the sources are checked as well, or only that of --bootstrap: is it reachable and readable?

    Exit code 2 when anything is wrong.
    """
    from groupledger.config.settings import CLUSTERS
    from groupledger.pipeline.cluster import cluster_checks as ask
    from groupledger.pipeline.doctor import doctor as examine

    folder = job.config.spark.jars
    clusters = [source for source in job.config.sources if source.kind in CLUSTERS]
    with job.output.status("looking"):
        checks = [check for source in clusters for check in ask(source, time.perf_counter)]
        if "sources" not in job.given:
            checks += examine(job.spark, job.place(), Path(folder) if folder else None, deep=deep)
    job.output.table(
        ["", "check", "found", "what to do"], [(mark(each.ok), each.name, each.detail, each.remedy) for each in checks]
    )
    sound = all(each.ok for each in checks)
    job.done({"checks": checks}, "done" if sound else "failed")
    exit_if(not sound, Exit.USAGE)


@click.command(short_help="Print the jars that Spark lacks; download missing ones.")
@click.argument("configurations", nargs=-1)
@click.option("--class-path", is_flag=True, help="Separate as in a class path, not by commas.")
def jars(configurations: tuple[str, ...], *, class_path: bool) -> None:
    """Print the jars of CONFIGURATIONS (default: delta); download missing ones.

    \b
    spark-submit --jars "$(groupledger jars)" "$(groupledger job-file)" \\
      assign --config groupledger.yaml
    """
    import os

    from groupledger.engine.jars import ensure

    print_exact((os.pathsep if class_path else ",").join(str(jar) for jar in ensure(configurations or ("delta",))))


@click.command(short_help="Print the archive of compiled kernels for executors.")
def kernels() -> None:
    """Print the path of a zip of compiled kernels, for executors without a cache of their own.

    It is made if it is missing, in a minute or two. It serves executors with the same Python, numba, groupledger and
    kind of processor (such as x86_64); others pass over it and compile.

    \b
    spark-submit --archives "$(groupledger kernels)#kernels" \\
      --conf spark.executorEnv.GROUPLEDGER_KERNEL_CACHE=./kernels \\
      --jars "$(groupledger jars)" "$(groupledger job-file)" \\
      assign --config groupledger.yaml
    """
    from groupledger.engine.archive import kernel_archive

    print_exact(str(kernel_archive()))


@click.command(short_help="Print the script that spark-submit runs.")
def job_file() -> None:
    """Print the path of the script that spark-submit runs; what follows it is a command with its options.

    \b
    spark-submit --jars "$(groupledger jars)" "$(groupledger job-file)" \\
      ingest --config groupledger.yaml
    """
    from importlib.resources import files

    print_exact(str(files("groupledger") / "jobs" / "groupledger_job.py"))
