"""`groupledger new-config`, `init`, `doctor`, `jars`, `kernels` and `job-file`: prepare the work."""

from __future__ import annotations

import time
from pathlib import Path

import click

from groupledger.cli.exits import Exit
from groupledger.cli.options import DEFAULT_CONFIG, Job, takes_cluster, takes_config
from groupledger.cli.output import mark, plain, print_exact, say
from groupledger.core.faults import Fault


@click.command(short_help="Write a configuration with every key, its default and its meaning.")
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
@takes_config
def init(job: Job) -> None:
    """Create the ledger's tables in the configured location. A second run changes nothing."""
    from groupledger.sinks.ledger import init as make
    from groupledger.sinks.ledger import require_lasting_catalog

    spark = job.spark()
    require_lasting_catalog(spark, job.place())
    with job.output.status("making the tables"):
        made = make(spark, job.place())
    job.output.line(f"{job.place()}: {f'made {len(made)} tables' if made else 'all tables are there'}")
    for name in made:
        job.output.line(f"    {name}")
    job.output.result({"status": "done", "command": "init", "location": str(job.place()), "made": made})


@click.command(short_help="Check versions, jars, rights, and the ledger's integrity.")
@click.option("--deep", is_flag=True, help="Read every row, and compare it with what its run committed.")
@takes_cluster
@takes_config
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
    job.output.result({"status": "done" if sound else "failed", "command": "doctor", "checks": plain(checks)})
    if not sound:
        click.get_current_context().exit(Exit.USAGE)


@click.command(short_help="Print the jars that Spark lacks; download missing ones.")
@click.argument("configurations", nargs=-1)
@click.option("--class-path", is_flag=True, help="Separate as in a class path, not by commas.")
def jars(configurations: tuple[str, ...], *, class_path: bool) -> None:
    """Print the jars of CONFIGURATIONS (default: delta); download missing ones.

    \b
    spark-submit --jars "$(groupledger jars)" "$(groupledger job-file)" assign --config groupledger.yaml
    """
    import os

    from groupledger.engine.jars import ensure

    print_exact((os.pathsep if class_path else ",").join(str(jar) for jar in ensure(configurations or ("delta",))))


@click.command(short_help="Print the archive of compiled kernels for executors; compile them if it is missing.")
def kernels() -> None:
    """Print the path of a zip of compiled kernels, for executors without a cache of their own.

    It is made if it is missing, in a minute or two. It serves executors with the same Python, numba, groupledger and
    kind of processor (such as x86_64); others pass over it and compile.

    \b
    spark-submit --archives "$(groupledger kernels)#kernels" \\
      --conf spark.executorEnv.GROUPLEDGER_KERNEL_CACHE=./kernels \\
      --jars "$(groupledger jars)" "$(groupledger job-file)" assign --config groupledger.yaml
    """
    from groupledger.engine.kernel_archive import kernel_archive

    print_exact(str(kernel_archive()))


@click.command(short_help="Print the script that spark-submit runs: every command, with its own options.")
def job_file() -> None:
    """Print the path of the script that spark-submit runs; what follows it is a command with its options.

    \b
    spark-submit --jars "$(groupledger jars)" "$(groupledger job-file)" ingest --config groupledger.yaml
    """
    from importlib.resources import files

    print_exact(str(files("groupledger") / "jobs" / "groupledger_job.py"))
