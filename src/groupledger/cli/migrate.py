"""`groupledger migrate`: migrate an older ledger to the schema version of this groupledger."""

from __future__ import annotations

import click

from groupledger.cli.options import Job, takes_config


@click.command(short_help="Migrate a ledger of an older version in place.")
@takes_config
def migrate(job: Job) -> None:
    """Create the tables, columns and layout that the ledger lacks in this version.

    If nothing is missing, nothing changes. No row is rewritten. Jobs of the older version that run meanwhile end with
    exit code 5, and are refused afterwards.
    """
    from groupledger.sinks.ledger import migrate as bring_forward
    from groupledger.tables import SCHEMA_VERSION

    spark = job.spark_for_ledger()
    with job.output.status("bringing the tables forward"):
        moved = bring_forward(spark, job.place())
    told = f"{len(moved)} tables brought to schema version {SCHEMA_VERSION}" if moved else "nothing to do"
    job.output.line(f"{job.place()}: {told}")
    for name, was in moved.items():
        job.output.line(f"    {name} {'made' if was is None else f'was {was}'}")
    job.output.result(
        {"status": "done", "command": job.name, "location": str(job.place()), "version": SCHEMA_VERSION, "moved": moved}
    )
