"""Bring the small files of tables together where they have become many, so that a follower needs no upkeep."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from groupledger.engine.fold_schema import FILLED
from groupledger.sinks import upkeep
from groupledger.sinks.refusals import WriteConflict
from groupledger.tables import LOG_RECORDS, TOPIC_SNAPSHOTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from groupledger.config import MaintainSettings
    from groupledger.sinks.ledger import LedgerLocation

MOST_FILES = 64
"""Small files of a table beyond which an ingest gathers them: seconds in every 64th, where each would open them all."""
GATHERED = (LOG_RECORDS, TOPIC_SNAPSHOTS, *FILLED)
"""Tables to which an ingest adds files."""


def gather(spark: SparkSession, location: LedgerLocation, settings: MaintainSettings) -> None:
    """Gather the small files of each table that has too many.

    Each is a commit of its own, which changes no row; where others write at that moment, a later ingest does it. What
    no reader can need any longer is then removed.
    """
    for table in GATHERED:
        if upkeep.small_files(spark, location, table, settings.file_mb) > MOST_FILES:
            with suppress(WriteConflict):
                upkeep.gather(spark, location, table, settings.file_mb)
                upkeep.vacuum(spark, location, table, settings.vacuum_hours)
