"""What every command takes, and what it makes of it: a `Job` with a checked configuration and a place for output."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groupledger.cli.exits import JSON_WANTED
from groupledger.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from groupledger.config import Config
    from groupledger.pipeline.ledger import Ledger

DEFAULT_CONFIG = "conf/local.yaml"


@dataclass(frozen=True, slots=True)
class Job:
    """A command about to run: its name, its configuration, where its words go."""

    name: str
    config: Config
    output: Output

    def spark(self) -> SparkSession:
        """The session; starting one takes seconds, so it is the last thing before the work."""
        from groupledger.engine.session import session

        with self.output.status("starting Spark"):
            return session(self.config.spark, f"groupledger {self.name}")

    def ledger(self) -> Ledger:
        """The configured ledger, which must be there."""
        from groupledger.pipeline.ledger import Ledger

        place = self.config.ledger
        return Ledger(self.spark(), place.location, catalog=place.catalog)


def takes_json(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--json`; the command gets an `Output` as its first argument."""

    @click.option(
        "--json", "as_json", is_flag=True, is_eager=True, callback=_note_json, help="One JSON line on stdout."
    )
    @functools.wraps(command)
    def run(*, as_json: bool, **options: Any) -> Any:
        return command(Output(as_json=as_json), **options)

    return run


def takes_config(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config`, `--set` and `--json`; the command gets a `Job` as its first argument."""

    @click.option(
        "--config", "config_file", default=DEFAULT_CONFIG, show_default=True, metavar="FILE", help="YAML file."
    )
    @click.option(
        "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key: assign.snapshots=every."
    )
    @takes_json
    @functools.wraps(command)
    def run(output: Output, *, config_file: str, overrides: tuple[str, ...], **options: Any) -> Any:
        from groupledger.config import load

        job = Job(click.get_current_context().info_name or "", load(Path(config_file), overrides), output)
        return command(job, **options)

    return run


takes_run_id = click.option("--run-id", metavar="ID", help="Name of the run; one that is committed changes nothing.")
takes_timings = click.option("--timings", is_flag=True, help="Say where the time went.")


def _note_json(ctx: click.Context, _: click.Parameter, wanted: bool) -> bool:
    if wanted:
        ctx.meta[JSON_WANTED] = True
    return wanted
