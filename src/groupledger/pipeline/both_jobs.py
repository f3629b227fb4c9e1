"""The demonstration: captured logs through the whole pipeline in one session, and what to look at afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from groupledger.config import Config, LedgerSettings, SourceSettings
from groupledger.config.settings import SNAPSHOTS
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


# Ingest Spark DataFrames of memberships and topics, and keep what an assignor makes of them in a ledger.


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """Memberships and topics as DataFrames of one session; `columns`: their names of columns, by ours.

    `cluster_id`: the cluster of rows that name none.
    """

    members: DataFrame
    topics: DataFrame | None
    cluster_id: str
    columns: Mapping[str, str] = field(default_factory=dict)


def ingest_frames(spark: SparkSession, frames: Frames, ledger: LedgerSettings, invocation: Invocation) -> IngestSummary:
    """Ingest the frames as one run; a ledger that is not there is made.

    With a run id of the invocation a second call changes nothing; without one, snapshots that the ledger has are
    counted as duplicates. Raises Fault as `ingest` does.
    """
    location = LedgerLocation.of(ledger)
    init(spark, location)
    with _as_views(frames, invocation.attempt_id) as source:
        config = Config(cluster_id=frames.cluster_id, ledger=ledger, sources=(source,))
        return ingest(spark, location, config, invocation)


def write_assigned(spark: SparkSession, frames: Frames, config: Config, invocation: Invocation) -> AssignSummary:
    """Keep the frames and what the configured assignor makes of every snapshot in the ledger, as two runs.

    The invocation has a run id: under it stand the results, and under `<run id>-facts` the facts. A second call with
    it changes nothing. The scenario is named after the assignor.
    """
    assert invocation.run_id is not None, "without a run id a second write would not be recognised"
    run_id, attempt_id = f"{invocation.run_id}-facts", f"{invocation.attempt_id}-facts"
    ingest_frames(spark, frames, config.ledger, replace(invocation, run_id=run_id, attempt_id=attempt_id))
    named = config.assign.assignor.lower()
    scenario = "".join(each if each.isalnum() or each in "._-" else "-" for each in named)[:64]
    wanted = replace(config.assign, scenario=scenario, snapshots="every")
    return assign(spark, replace(config, assign=wanted), invocation)


@contextmanager
def _as_views(frames: Frames, attempt_id: str) -> Iterator[SourceSettings]:
    """Give the frames as views, by names that no other attempt in the session has."""
    named = {"members": frames.members, **({} if frames.topics is None else {"topics": frames.topics})}
    views = {name: f"{name}_{''.join(filter(str.isalnum, attempt_id))}" for name in named}
    for name, frame in named.items():
        frame.createOrReplaceTempView(views[name])
    try:
        yield SourceSettings(
            kind=SNAPSHOTS, table=views["members"], topics=views.get("topics"), columns=dict(frames.columns)
        )
    finally:
        for view in views.values():
            frames.members.sparkSession.catalog.dropTempView(view)
