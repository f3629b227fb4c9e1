"""Ingest DataFrames of memberships and topics into a ledger."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from groupledger.core.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from groupledger.config import LedgerSettings
    from groupledger.pipeline.ingest import IngestSummary


def ingest(
    spark: SparkSession,
    *,
    members: Any,
    topics: Any = None,
    ledger: str | os.PathLike[str] | None = None,
    catalog: str | None = None,
    cluster_id: str = "default",
    columns: Mapping[str, str] | None = None,
    run_id: str | None = None,
) -> IngestSummary:
    """Ingest who was a member of which group, and had which partitions, into a ledger; one that is missing is made.

    `members` has a row a member of a group at a moment: `group_id`, `observed_at`, `member_id`, `topics`, and, as far
    as they are known, `cluster_id`, `owned` and the others of docs/operate/read-tables.md. `topics` has a row a topic:
    `topic`, `partitions`. Both are Spark DataFrames, or what `spark.createDataFrame` takes. `columns`: their names of
    columns, by ours. `cluster_id`: the cluster of rows that name none. `ledger`: a folder or URL; `catalog`: instead, a
    catalog and schema.

    A second call with the same `run_id` changes nothing. Without one, snapshots that the ledger has are duplicates:
    they are counted, and change nothing either. Rows that cannot be used send those of their group at that moment to
    `quarantine`.

    Raises Fault, before anything is written: USAGE, FOREIGN_SCHEMA, and those of a ledger that cannot be used.
    """
    from groupledger.cli.options import new_invocation
    from groupledger.pipeline.frames_in import Frames, ingest_frames

    place = place_of(ledger, catalog)
    frames = Frames(
        members=_frame(spark, members),
        topics=None if topics is None else _frame(spark, topics),
        cluster_id=cluster_id,
        columns=columns or {},
    )
    return ingest_frames(spark, frames, place, new_invocation(run_id))


def place_of(ledger: str | os.PathLike[str] | None, catalog: str | None) -> LedgerSettings:
    """Return where the ledger is. Raises Fault: USAGE unless one of the two is given."""
    from groupledger.config import LedgerSettings

    if (ledger is None) == (catalog is None):
        raise Fault("USAGE", "a ledger is at a location or in a catalog: expected one of ledger and catalog")
    return LedgerSettings(location=None if ledger is None else os.fspath(ledger), catalog=catalog)


def _frame(spark: SparkSession, given: Any) -> DataFrame:
    from pyspark.sql import DataFrame

    return given if isinstance(given, DataFrame) else spark.createDataFrame(given)
