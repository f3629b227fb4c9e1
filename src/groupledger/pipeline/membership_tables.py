"""Open tables of memberships and of their topics: folders, catalog tables, views; of a Delta table what is new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from groupledger.core.digest import digest
from groupledger.core.secrets import without_secrets
from groupledger.pipeline.growing import GrowingTable, read_growing
from groupledger.sources import memberships
from groupledger.sources.given_table import opened_frame
from groupledger.sources.memberships import OpenedTable
from groupledger.sources.opening import SourceFault
from groupledger.sources.tables import table_files
from groupledger.tables.given import MEMBERSHIPS, TOPIC_COUNTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from groupledger.config import SourceSettings
    from groupledger.pipeline.growing import TableReading
    from groupledger.pipeline.invocation import Invocation
    from groupledger.sinks.runs import Commit
    from groupledger.sources.snapshot_tables import SnapshotRows
    from groupledger.tables.given import GivenForm

FORMATS = ("parquet", "delta")


def read_memberships(
    spark: SparkSession,
    source: SourceSettings,
    cluster_id: str,
    most_claims: int,
    commits: Sequence[Commit],
    invocation: Invocation | None,
) -> tuple[SnapshotRows, tuple[TableReading, ...]]:
    """Read a table of memberships, and its topics; with what the next ingest goes on from.

    Raises SourceFault: SOURCE_MISSING, SOURCE_UNREADABLE, FOREIGN_SCHEMA.
    """
    if source.table is None and source.format not in FORMATS:
        words = f"format is {source.format}; expected {' or '.join(FORMATS)} for a table of memberships"
        raise SourceFault("SOURCE_UNREADABLE", f"{without_secrets(source.place)}: {words}")
    forms = {source.place: MEMBERSHIPS, **({source.topics: TOPIC_COUNTS} if source.topics else {})}
    places: list[OpenedTable] = []
    grown: list[TableReading] = []
    for place, form in forms.items():
        if source.table is None and source.format != "delta":
            files = table_files(spark, place, source.format, glob=source.glob)
            places.append(OpenedTable(opened_frame(spark, files, form, source.format), files, place))
        else:
            found = read_growing(spark, _growing(source, place, form), cluster_id, commits, invocation)
            places.append(OpenedTable(found.frame, found.files, place))
            grown.append(found)
    members, *topics = places
    rows = memberships.read(members, next(iter(topics), None), cluster_id, source.columns, most_claims=most_claims)
    return rows, tuple(grown)


def _growing(source: SourceSettings, place: str, form: GivenForm) -> GrowingTable:
    def fields(schema: StructType) -> Iterable[str]:
        return [source.columns.get(name, name) for name in form.columns]

    kind = f"{source.kind} {form.table.name}"
    return GrowingTable(place, kind, source.table is not None, digest({"columns": dict(source.columns)}), fields)
