"""Read a running cluster's log as a Spark data source: one Spark partition per range of a log partition."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType

from groupledger.core.digest import digest
from groupledger.core.faults import Fault
from groupledger.core.log_plan import OffsetRange
from groupledger.sources import offsets_log
from groupledger.sources.kafka_records import StretchReader
from groupledger.sources.opening import NUMBER, PROBLEM

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FIELDS = StructType(
    [*offsets_log.FIELDS_OF_BATCHES, StructField(PROBLEM, StringType()), StructField(NUMBER, LongType())]
)
_NAME = "groupledger_kafka_log"
_MARK = "groupledger-fault "
_FAULT = re.compile(rf"{_MARK}(\[\"\w+\", \".*\"\])\s*$", re.MULTILINE)


def frame(spark: SparkSession, reader: StretchReader, stretches: Sequence[OffsetRange], cluster_id: str) -> DataFrame:
    """Return the records of these ranges and their counts (`kafka_records`), read lazily.

    The reader's settings travel inside the source, not as Spark options, which appear in plans and event logs.
    """
    name = f"{_NAME}_{digest(cluster_id)[:16]}"  # Spark lower-cases such names
    source = type("KafkaLog", (_KafkaLog,), {"label": name, "log": reader, "stretches": tuple(stretches)})
    spark.dataSource.register(source)
    return spark.read.format(name).load()


def fault_of(error: str) -> Fault | None:
    """Return the fault that ended a task, parsed from Spark's error; None for anything else."""
    found = _FAULT.search(error)
    return None if found is None else Fault(*json.loads(found[1]))


class _KafkaLog(DataSource):
    """A source whose class holds what is to be read."""

    label: str
    log: StretchReader
    stretches: tuple[OffsetRange, ...]

    @classmethod
    def name(cls) -> str:
        return cls.label

    def schema(self) -> StructType:
        return FIELDS

    def reader(self, schema: StructType) -> DataSourceReader:
        del schema  # always FIELDS
        return _Reader(self.log, self.stretches)


class _Task(InputPartition):
    """One range."""

    def __init__(self, stretch: OffsetRange) -> None:
        super().__init__(tuple(stretch))


class _Reader(DataSourceReader):
    """Reads each range in a task of its own."""

    def __init__(self, log: StretchReader, stretches: tuple[OffsetRange, ...]) -> None:
        self._log, self._stretches = log, stretches

    def partitions(self) -> Sequence[InputPartition]:
        return [_Task(stretch) for stretch in self._stretches]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is None:  # Spark calls once even without partitions
            return
        try:
            yield from self._log.read(OffsetRange(*partition.value))
        except Fault as fault:
            raise RuntimeError(f"{_MARK}{json.dumps([fault.code, fault.message])}") from None
