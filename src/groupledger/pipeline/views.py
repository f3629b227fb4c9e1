"""The views of what counts in Spark: in a session, for a query over a ledger in a catalog, or in the catalog itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from arro3.core import Table
from pyspark.errors import AnalysisException, ParseException

from groupledger.answers.rows import filled, require_query
from groupledger.answers.view_page import WHERE_VIEWS_ARE, needed, tables, views
from groupledger.core.faults import Fault
from groupledger.sinks.ledger import LedgerLocation, check
from groupledger.tables import BY_NAME
from groupledger.tables.sql_text import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from groupledger.answers.rows import Value

_UNNEST = re.compile(r"\bunnest\(")
_NUMBERS = count()
"""Of the tables that are kept: several readers may be over one session."""


@dataclass(frozen=True, slots=True)
class SparkReader:
    """Queries over a ledger that only Spark can read; `answers.reader` has the same for one in a folder."""

    spark: SparkSession
    location: LedgerLocation

    def query(self, sql: str, /, **values: Value) -> Table:
        """The rows of a query over the views and tables; `:name` in it stands for the value of that name.

        Raises Fault SQL_INVALID for a query that cannot be run or is none that reads.
        """
        with _refused():
            return Table.from_arrow(self._frame(sql, values).toArrow())

    @contextmanager
    def kept(self, sql: str, /, **values: Value) -> Iterator[str]:
        """Keep the rows of a query where the executors store what is cached. Raises as `query`."""
        name = f"kept_{next(_NUMBERS)}"
        with _refused():
            frame = self._frame(sql, values).persist()
            frame.createOrReplaceTempView(name)
        try:
            yield name
        finally:
            self.spark.catalog.dropTempView(name)
            frame.unpersist()

    def _frame(self, sql: str, values: Mapping[str, Value]) -> DataFrame:
        require_query(sql)
        rests_on, named = needed(sql)
        for name in named:
            self.location.rows(self.spark, BY_NAME[name]).createOrReplaceTempView(name)
        for view in rests_on:
            self.spark.sql(f"CREATE OR REPLACE TEMP VIEW {view.name} AS {in_spark(view.query)}")
        return self.spark.sql(filled(in_spark(sql), values, literal))


@contextmanager
def _refused() -> Iterator[None]:
    """Raise Fault("SQL_INVALID") for what Spark refuses."""
    try:
        yield
    except (AnalysisException, ParseException) as error:
        said = str(error).splitlines()[0]
        raise Fault("SQL_INVALID", f"the query cannot be run: {said}; {WHERE_VIEWS_ARE}") from error


def in_spark(query: str) -> str:
    """The query in Spark's words: of all that the views use, one function has another name there."""
    return _UNNEST.sub("explode(", query)


def require_catalog(location: LedgerLocation) -> None:
    """Raise Fault("NOT_IN_A_CATALOG") for a ledger in a folder."""
    if location.catalog is None:
        message = f"the ledger at {location} is in a folder; expected one in a catalog (ledger.catalog)"
        raise Fault("NOT_IN_A_CATALOG", f"{message}: `groupledger sql` has the views of this one")


def create_views(spark: SparkSession, location: LedgerLocation) -> list[str]:
    """Create the views beside the tables of a ledger in a catalog, or replace them; give their names.

    Raises Fault: NOT_IN_A_CATALOG, and what `sinks.ledger.check` does.
    """
    require_catalog(location)
    check(spark, location, [BY_NAME[name] for name in sorted(tables())])
    for view in views().values():
        query = in_spark(view.reading(partial("{}.{}".format, location.schema)))
        spark.sql(f"CREATE OR REPLACE VIEW {location.schema}.{view.name} AS {query}")
    return list(views())
