"""Open a file or table: a missing one, or wrong columns, are reported before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from groupledger.core.faults import Fault
from groupledger.core.log.lines import OFFSET_COMMIT_LEFT_OUT, OTHER_TOPIC
from groupledger.core.secrets import without_secrets
from groupledger.tables import QUARANTINE
from groupledger.tables import columns as c

T = TypeVar("T")

CORRUPT = "_corrupt"
PROBLEM = "_problem"
BLANK = "BLANK"
"""The problem of an empty line: not a fault, it is counted and left out."""
ENTRIES, NUMBER = "ENTRIES", "_number"
"""The problem of a row that holds the number of entries, and the column with that number."""

_ARRIVED, _REJECTED, _BLANK, _OTHER, _GOOD = "arrived", "rejected", "blank", "other_topic", "good"
_LEFT_OUT = "left_out"
_NO_TABLE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE", "PARSE_SYNTAX_ERROR")
_NO_CATALOG = ("CATALOG_NOT_FOUND", "INVALID_CATALOG", "CATALOG_NOT_REGISTERED")
_NO_TYPE = ("PARQUET_TYPE", "UNSUPPORTED_TIME", "DELTA_UNSUPPORTED", "UNSUPPORTED_DATATYPE")


class SourceFault(Fault):
    """An input that cannot be read: SOURCE_MISSING, SOURCE_UNREADABLE, FILES_PASSED_OVER, FOREIGN_SCHEMA."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """The account of a source: how many lines or rows it had, and what its reader did with them."""

    entries: int
    good: int
    rejected: int
    blank: int
    other_topic: int
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Both ends of a reader: `scan` has a row for each line or row of the source, `sorted_out` has its PROBLEM.

    `watches` (of both, in this order) count them in passing; without them a separate query counts. `counts` says how
    entries are counted in `scan`; None: each row is one. `others` are additional rows of other topics, which are only
    counted.
    """

    scan: DataFrame
    sorted_out: DataFrame
    of_lines: bool
    watches: tuple[Observation, Observation] | None = None
    counts: Mapping[str, Column] | None = None
    others: DataFrame | None = None

    def observed(self) -> Arrived:
        """Return the counts taken in passing, once the source's rows have been read; a retried task counts again."""
        before, behind = (None, None) if self.watches is None else map(seen, self.watches)
        if before is None or behind is None:
            return self.counted()
        return _arrived(before, behind, self._others())

    def counted(self) -> Arrived:
        """Count with two separate queries, unaffected by retried tasks."""
        (there,) = self.scan.agg(*_named(self.counts)).collect()
        (found,) = self.sorted_out.agg(*_fates()).collect()
        return _arrived(there.asDict(), found.asDict(), self._others())

    def _others(self) -> int:
        return 0 if self.others is None else self.others.count()


@dataclass(frozen=True, slots=True)
class Rows:
    """The content of a source: usable rows, and unusable ones as rows of `quarantine` (without the attempt).

    After `good` has been read, `watches` show whether there are unusable rows: a second pass is rarely needed.
    `newest_left_out`, asked afterwards: by log partition, the time (ms) of the newest record that was left out.
    """

    good: DataFrame
    rejected: DataFrame
    watches: tuple[Observation, ...] = ()
    arrivals: Arrivals | None = None
    newest_left_out: Callable[[], Mapping[int, int]] | None = None

    def rejections(self) -> int:
        """Count the rows of `rejected`, after an action on `good`. Without a watch a query counts them.

        A watch counts the rows of a retried task again: it only distinguishes none from some.
        """
        found = [seen(watch) for watch in self.watches]
        known = [each[_REJECTED] for each in found if each is not None]
        return sum(known) if found and len(known) == len(found) else self.rejected.count()


def seen(watch: Observation) -> dict[str, int] | None:
    """Return what a watch counted; None if Spark removed its part of the query, next to one without rows."""
    try:
        return watch.get or None
    except Py4JJavaError as error:
        if "AssertionError" in str(error):  # there is no row of metrics
            return None
        raise


def missing(path: str) -> SourceFault:
    """Return the fault that nothing is at a path."""
    return SourceFault("SOURCE_MISSING", f"{path}: there is no such file or table; check sources")


def opened(read: Callable[[], T], path: str) -> T:
    """Return what `read` returns. Raises SourceFault if there is nothing, or something Spark cannot read."""
    try:
        frame = read()
        getattr(frame, "schema", None)  # a lazy session looks for the file only now
    except AnalysisException as error:
        condition = error.getCondition() or "an unknown reason"
        if condition.startswith(("PATH_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_MISSING_DELTA_TABLE")):
            raise missing(path) from error
        if condition.startswith((*_NO_TABLE, *_NO_CATALOG)):
            words = f"the catalog of this Spark session has no such table or view ({condition})"
            expected = "expected a name as SHOW TABLES gives it, such as schema.table or catalog.schema.table"
            raise SourceFault("SOURCE_MISSING", f"{path}: {words}; {expected}") from error
        if condition.startswith(_NO_TYPE):
            words = f"a column has a type that Spark cannot read ({str(error).splitlines()[0][:200]})"
            raise SourceFault("FOREIGN_SCHEMA", f"{path}: {words}; write it with another type") from error
        raise SourceFault("SOURCE_UNREADABLE", f"{path}: Spark cannot read it: {condition}") from error
    except IllegalArgumentException as error:
        reason = str(error).splitlines()[0][:200]
        raise SourceFault("SOURCE_UNREADABLE", f"{path}: this is no path that Spark can read: {reason}") from error
    return frame


def split(rows: DataFrame, good: list[Column], source: str, rejected: dict[str, Column]) -> Rows:
    """Split rows into those without a PROBLEM (`CODE: message`, or null), and quarantine rows of the others.

    Rows that are BLANK, of OTHER_TOPIC, or OFFSET_COMMIT_LEFT_OUT, are in neither.
    """
    watch = Observation()
    usable = observed(rows, watch).where(F.col(PROBLEM).isNull()).select(*good)
    return Rows(usable, rejections(rows, source, rejected), (watch,))


def rejections(rows: DataFrame, source: str, known: dict[str, Column]) -> DataFrame:
    """Return rows of `quarantine`, without the attempt, for rows with a PROBLEM.

    `known` provides columns of `quarantine` other than source, code and message.
    """
    columns = {
        c.SOURCE: F.lit(without_secrets(source)),
        c.CODE: F.substring_index(PROBLEM, ": ", 1),
        c.MESSAGE: F.expr(f"substring({PROBLEM}, instr({PROBLEM}, ': ') + 2)"),
        **known,
    }
    kinds = {field.name: field.dataType for field in QUARANTINE.schema if field.name != c.ATTEMPT_ID}
    chosen = [columns.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in kinds.items()]
    return rows.where(_is_rejected()).select(*chosen)


def watched_scan(scan: DataFrame, counts: Mapping[str, Column] | None = None) -> tuple[DataFrame, Observation]:
    """Return the lines or rows of the source, and the observation that counts them; `counts` as in `Arrivals`."""
    watch = Observation()
    return scan.observe(watch, *_named(counts)), watch


def watched_times(
    scan: DataFrame, partitions: Iterable[int], which: Column
) -> tuple[DataFrame, Callable[[], Mapping[int, int]]]:
    """Return the rows, and what their reading shows: by log partition, the greatest time (ms) in rows of this kind."""
    watch, time = Observation(), F.col(c.TIMESTAMP)
    kind = dict(scan.dtypes)[c.TIMESTAMP]
    millis = time if kind == "bigint" else F.unix_millis(time.cast("timestamp"))
    numbers = sorted(set(partitions))
    greatest = [F.max(F.when(which & (F.col(c.PARTITION) == number), millis)).alias(str(number)) for number in numbers]

    def newest() -> Mapping[int, int]:
        return {int(name): found for name, found in (seen(watch) or {}).items() if found is not None}

    return (scan.observe(watch, *greatest) if numbers else scan), newest


def each_row(left_out: Mapping[str, Column]) -> dict[str, Column]:
    """Return counts of a scan in which each row is an entry; `left_out`: by kind, which of them are not kept."""
    return {_ARRIVED: F.count(F.lit(1))} | {kind: F.count_if(which) for kind, which in left_out.items()}


def tallied(*kinds: str) -> dict[str, Column]:
    """Return counts of a scan with rows that stand for a NUMBER of entries.

    The NUMBER counts all entries if PROBLEM is ENTRIES, and those that the reader left out if it is one of `kinds`.
    """
    named = {_ARRIVED: ENTRIES} | {kind: kind for kind in kinds}
    sums = {name: F.sum(F.when(F.col(PROBLEM) == kind, F.col(NUMBER))) for name, kind in named.items()}
    return {name: F.coalesce(total, F.lit(0)) for name, total in sums.items()}


def observed(rows: DataFrame, watch: Observation) -> DataFrame:
    """Return the rows, and count in `watch` the rows of each kind of PROBLEM."""
    return rows.observe(watch, *_fates())


def problem(code: str, what: str, got: Column, expected: str) -> Column:
    """Return the text of PROBLEM: `CODE: what is got; expected ...`."""
    return F.concat(
        F.lit(f"{code}: {what} is "), F.coalesce(got.cast("string"), F.lit("missing")), F.lit(f"; expected {expected}")
    )


def _is_rejected() -> Column:
    return F.col(PROBLEM).isNotNull() & ~F.col(PROBLEM).isin(BLANK, OTHER_TOPIC, OFFSET_COMMIT_LEFT_OUT)


def _named(counts: Mapping[str, Column] | None) -> list[Column]:
    return [count.alias(name) for name, count in (each_row({}) if counts is None else counts).items()]


def _fates() -> list[Column]:
    """Return the number of rows of each kind of PROBLEM."""
    fates = {
        _GOOD: F.col(PROBLEM).isNull(),
        _REJECTED: _is_rejected(),
        _BLANK: F.col(PROBLEM) == BLANK,
        _OTHER: F.col(PROBLEM) == OTHER_TOPIC,
        _LEFT_OUT: F.col(PROBLEM) == OFFSET_COMMIT_LEFT_OUT,
    }
    return [F.count_if(condition).alias(name) for name, condition in fates.items()]


def _arrived(before: dict[str, int], behind: dict[str, int], others: int) -> Arrived:
    left_out = {kind: number for kind, number in before.items() if kind != _ARRIVED and number}
    if behind[_LEFT_OUT]:
        left_out[OFFSET_COMMIT_LEFT_OUT] = behind[_LEFT_OUT]
    there, other_topic = before[_ARRIVED] + others, behind[_OTHER] + others
    return Arrived(there, behind[_GOOD], behind[_REJECTED], behind[_BLANK], other_topic, left_out)
