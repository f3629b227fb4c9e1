"""Opening a file or table: what is not there, or has other columns, is said before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import Observation
from pyspark.sql import functions as F

from groupledger.core.faults import Fault
from groupledger.core.lines import OTHER_TOPIC
from groupledger.core.secrets import without_secrets
from groupledger.tables import QUARANTINE
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

T = TypeVar("T")

CORRUPT = "_corrupt"
PROBLEM = "_problem"
BLANK = "BLANK"
"""The problem of a line with nothing on it: no fault, it is counted and left out."""
ENTRIES, NUMBER = "ENTRIES", "_number"
"""The problem of a row that says how many entries there are, and the column that says it."""

_ARRIVED, _REJECTED, _BLANK, _OTHER, _GOOD = "arrived", "rejected", "blank", "other_topic", "good"
_NO_TABLE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE", "PARSE_SYNTAX_ERROR")
_NO_CATALOG = ("CATALOG_NOT_FOUND", "INVALID_CATALOG", "CATALOG_NOT_REGISTERED")
_NO_TYPE = ("PARQUET_TYPE", "UNSUPPORTED_TIME", "DELTA_UNSUPPORTED", "UNSUPPORTED_DATATYPE")


class SourceFault(Fault):
    """An input that cannot be read: SOURCE_MISSING, SOURCE_UNREADABLE, FILES_PASSED_OVER, FOREIGN_SCHEMA."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came of a source: how many lines or rows were there, and what became of them in its reader."""

    entries: int
    good: int
    rejected: int
    blank: int
    other_topic: int
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def balanced(self) -> bool:
        """Whether everything that was there came out of the reader."""
        became = self.good + self.rejected + self.blank + self.other_topic + sum(self.left_out.values())
        return self.entries == became


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Both ends of a reader: `scan` has a row for each line or row there is, `sorted_out` has its PROBLEM.

    `watches` (of both, in this order) saw them pass; without them they are counted by a query of its own. `counts` says
    how entries are counted in `scan`; None: each row is one. `others` are rows of other topics
    beside these, which are only counted.
    """

    scan: DataFrame
    sorted_out: DataFrame
    of_lines: bool
    watches: tuple[Observation, Observation] | None = None
    counts: Mapping[str, Column] | None = None
    others: DataFrame | None = None

    def observed(self) -> Arrived:
        """As they passed, once what comes of the source has been read; a task that ran again counted again."""
        before, behind = (None, None) if self.watches is None else map(seen, self.watches)
        if before is None or behind is None:
            return self.counted()
        return _arrived(before, behind, self._others())

    def counted(self) -> Arrived:
        """By two queries of their own, which know no task's past."""
        (there,) = self.scan.agg(*_named(self.counts)).collect()
        (found,) = self.sorted_out.agg(*_fates()).collect()
        return _arrived(there.asDict(), found.asDict(), self._others())

    def _others(self) -> int:
        return 0 if self.others is None else self.others.count()


@dataclass(frozen=True, slots=True)
class Rows:
    """What a source holds: rows that can be used, and rows of `quarantine` (without the attempt) that cannot.

    `watches` say once `good` has been read whether there are any of the others: a second pass is rarely needed.
    """

    good: DataFrame
    rejected: DataFrame
    watches: tuple[Observation, ...] = ()
    arrivals: Arrivals | None = None

    def rejections(self) -> int:
        """How many rows `rejected` holds; asked after an action on `good`. Without a watch they are counted.

        A watch counts once more what a lost task had seen: only none and some can be told apart.
        """
        found = [seen(watch) for watch in self.watches]
        known = [each[_REJECTED] for each in found if each is not None]
        return sum(known) if found and len(known) == len(found) else self.rejected.count()


def seen(watch: Observation) -> dict[str, int] | None:
    """What a watch saw; None where Spark left out the part of a query that it stood in, beside one without rows."""
    try:
        return watch.get or None
    except Py4JJavaError as error:
        if "AssertionError" in str(error):  # there is no row of metrics
            return None
        raise


def opened(read: Callable[[], T], path: str) -> T:
    """What `read` gives. Raises SourceFault where there is nothing, or something Spark cannot read."""
    try:
        frame = read()
        getattr(frame, "schema", None)  # a lazy session looks for the file only now
    except AnalysisException as error:
        condition = error.getCondition() or "an unknown reason"
        if condition.startswith(("PATH_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_MISSING_DELTA_TABLE")):
            raise SourceFault("SOURCE_MISSING", f"{path}: there is no such file or table; check sources") from error
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
    """Rows without a PROBLEM (`CODE: message`, or null), and quarantine rows of the others.

    What is BLANK or of OTHER_TOPIC is in neither.
    """
    watch = Observation()
    usable = observed(rows, watch).where(F.col(PROBLEM).isNull()).select(*good)
    return Rows(usable, rejections(rows, source, rejected), (watch,))


def rejections(rows: DataFrame, source: str, known: dict[str, Column]) -> DataFrame:
    """Rows of `quarantine`, without the attempt, of those with a PROBLEM.

    `known` gives the columns of `quarantine` that are known beside source, code and message.
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
    """The lines or rows as they are there, and who counts them; `counts` as in `Arrivals`."""
    watch = Observation()
    return scan.observe(watch, *_named(counts)), watch


def each_row(left_out: Mapping[str, Column]) -> dict[str, Column]:
    """Counts of a scan in which each row is an entry; `left_out`: by kind, which of them are not kept."""
    return {_ARRIVED: F.count(F.lit(1))} | {kind: F.count_if(which) for kind, which in left_out.items()}


def tallied(*kinds: str) -> dict[str, Column]:
    """Counts of a scan with rows that stand for a NUMBER of entries.

    That is of all there are where PROBLEM is ENTRIES, and of those that the reader left out where it is one of `kinds`.
    """
    named = {_ARRIVED: ENTRIES} | {kind: kind for kind in kinds}
    sums = {name: F.sum(F.when(F.col(PROBLEM) == kind, F.col(NUMBER))) for name, kind in named.items()}
    return {name: F.coalesce(total, F.lit(0)) for name, total in sums.items()}


def observed(rows: DataFrame, watch: Observation) -> DataFrame:
    """The rows, and in `watch` how many have which kind of PROBLEM."""
    return rows.observe(watch, *_fates())


def problem(code: str, what: str, got: Column, expected: str) -> Column:
    """The text of PROBLEM: `CODE: what is got; expected ...`."""
    return F.concat(
        F.lit(f"{code}: {what} is "), F.coalesce(got.cast("string"), F.lit("missing")), F.lit(f"; expected {expected}")
    )


def _is_rejected() -> Column:
    return F.col(PROBLEM).isNotNull() & ~F.col(PROBLEM).isin(BLANK, OTHER_TOPIC)


def _named(counts: Mapping[str, Column] | None) -> list[Column]:
    return [count.alias(name) for name, count in (each_row({}) if counts is None else counts).items()]


def _fates() -> list[Column]:
    """How many rows have which kind of PROBLEM."""
    fates = {
        _GOOD: F.col(PROBLEM).isNull(),
        _REJECTED: _is_rejected(),
        _BLANK: F.col(PROBLEM) == BLANK,
        _OTHER: F.col(PROBLEM) == OTHER_TOPIC,
    }
    return [F.count_if(condition).alias(name) for name, condition in fates.items()]


def _arrived(before: dict[str, int], behind: dict[str, int], others: int) -> Arrived:
    left_out = {kind: number for kind, number in before.items() if kind != _ARRIVED and number}
    there, other_topic = before[_ARRIVED] + others, behind[_OTHER] + others
    return Arrived(there, behind[_GOOD], behind[_REJECTED], behind[_BLANK], other_topic, left_out)
