"""The demonstration: captured logs through the whole pipeline in one session, and what to look at afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from groupledger.config import Config
from groupledger.pipeline.assign import AssignSummary, assign
from groupledger.pipeline.frames import GroupVerdicts, LedgerFrames, group_verdicts
from groupledger.pipeline.ingest import IngestSummary, ingest
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks.ledger_tables import LedgerLocation, init


@dataclass(frozen=True, slots=True)
class DemoSummary:
    """What the demonstration did; `groups` are those of every cluster."""

    tables_made: tuple[str, ...]
    ingest: IngestSummary
    assign: AssignSummary
    groups: tuple[GroupVerdicts, ...]


def demo(
    spark: SparkSession, config: Config, invocation: Callable[[], Invocation], telling: Callable[[str], None]
) -> DemoSummary:
    """Init, ingest, assign, ask. Run again, it finds its runs committed and shows the same.

    `telling` is called with each stage as it begins.
    """
    location = LedgerLocation.of(config.ledger)
    telling("making the ledger's tables")
    made = init(spark, location)
    telling("reading and folding the captured logs")
    read = ingest(spark, location, config, invocation())
    telling("recomputing every recorded rebalance")
    computed = assign(spark, config, invocation())
    telling("asking the ledger")
    ledger = LedgerFrames(spark, config.ledger.location, catalog=config.ledger.catalog)
    return DemoSummary(tuple(made), read, computed, group_verdicts(ledger, config.assign.scenario))
