"""Opening a file or table: what is not there, or has other columns, is said before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from groupledger.core.faults import Fault
from groupledger.core.secrets import without_secrets
from groupledger.tables import QUARANTINE
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CORRUPT = "_corrupt"
PROBLEM = "_problem"
_REJECTED = "rejected"


class SourceFault(Fault):
    """An input that cannot be opened: SOURCE_MISSING, SOURCE_UNREADABLE, FOREIGN_SCHEMA."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a source holds: rows that can be used, and rows of `quarantine` (without the attempt) that cannot.

    `watches` say once `good` has been read whether there are any of the others: a second pass is rarely needed.
    """

    good: DataFrame
    rejected: DataFrame
    watches: tuple[Observation, ...] = ()

    def rejections(self) -> int:
        """How many rows `rejected` holds; asked after an action on `good`. Without a watch they are counted.

        A watch counts once more what a lost task had seen: only none and some can be told apart.
        """
        if not self.watches:
            return self.rejected.count()
        return sum(watch.get[_REJECTED] for watch in self.watches)


def open_json(spark: SparkSession, path: str, schema: StructType) -> DataFrame:
    """JSON lines with these fields; a line that is none stands as text in the column CORRUPT, its fields null."""
    read = spark.read.schema(StructType([*schema, StructField(CORRUPT, StringType())])).option(
        "columnNameOfCorruptRecord", CORRUPT
    )
    return opened(lambda: read.json(path), path)


def open_table(spark: SparkSession, path: str, kind: str) -> DataFrame:
    """A Parquet or Delta folder."""
    return opened(lambda: spark.read.format(kind).load(path), path)


def opened(read: Callable[[], DataFrame], path: str) -> DataFrame:
    """The frame `read` gives. Raises SourceFault where there is nothing, or something Spark cannot read."""
    try:
        frame = read()
        frame.schema  # noqa: B018 - a lazy session looks for the file only now
    except AnalysisException as error:
        condition = error.getCondition() or "an unknown reason"
        if condition.startswith(("PATH_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_MISSING_DELTA_TABLE")):
            raise SourceFault("SOURCE_MISSING", f"{path}: there is no such file or table; check sources") from error
        raise SourceFault("SOURCE_UNREADABLE", f"{path}: Spark cannot read it: {condition}") from error
    return frame


def split(rows: DataFrame, good: list[Column], source: str, rejected: dict[str, Column]) -> Rows:
    """Rows without a PROBLEM (`CODE: message`, or null), and quarantine rows of the others.

    `rejected` gives the columns of `quarantine` that are known beside stage, source, code and message.
    """
    known = {
        c.SOURCE: F.lit(without_secrets(source)),
        c.CODE: F.substring_index(PROBLEM, ": ", 1),
        c.MESSAGE: F.expr(f"substring({PROBLEM}, instr({PROBLEM}, ': ') + 2)"),
        **rejected,
    }
    kinds = {field.name: field.dataType for field in QUARANTINE.schema if field.name != c.ATTEMPT_ID}
    columns = [known.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in kinds.items()]
    watch = Observation()
    rejections = F.count_if(F.col(PROBLEM).isNotNull()).alias(_REJECTED)
    watched = rows.observe(watch, rejections)
    bad = rows.where(F.col(PROBLEM).isNotNull()).select(*columns)
    return Rows(watched.where(F.col(PROBLEM).isNull()).select(*good), bad, (watch,))


def problem(code: str, what: str, got: Column, expected: str) -> Column:
    """The text of PROBLEM: `CODE: what is got; expected ...`."""
    return F.concat(
        F.lit(f"{code}: {what} is "), F.coalesce(got.cast("string"), F.lit("missing")), F.lit(f"; expected {expected}")
    )
