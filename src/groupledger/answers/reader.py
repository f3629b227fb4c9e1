"""A ledger read by delta-rs: queries over the views of what counts, as Arrow."""

from __future__ import annotations

import difflib
import os
import re
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from arro3.core import DataType

from groupledger.answers.rows import filled, require_query
from groupledger.answers.view_page import WHERE_VIEWS_ARE, needed, tables, views
from groupledger.core.engine_words import first_words
from groupledger.core.faults import Fault
from groupledger.core.ledger_version import VERSION_PROPERTY, no_ledger, version_problem
from groupledger.core.secrets import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from arro3.core import Table
    from deltalake import DeltaTable, QueryBuilder

    from groupledger.answers.rows import Value
    from groupledger.answers.view_page import View

_RUNS = "runs"
RUNS_THAT_COUNT, REFOLDS = "current_runs", "current_refolds"
_ATTEMPTS, _OF_ATTEMPTS = "attempts_that_count", "t.attempt_id, t.kind, t.sequence"
"""A table in memory in place of `current_runs`, with the columns of it that views use."""
_REFOLDED = "offsets_folded_again"
"""A table in memory behind `current_refolds`."""
_ALLOCATOR = "_RJEM_MALLOC_CONF", "narenas:2,dirty_decay_ms:200,muzzy_decay_ms:0"
"""How the allocator within delta-rs (jemalloc) is to work; it reads this variable of the environment when it is loaded.
By default it keeps freed memory for ten seconds: a third of what an answer about a large ledger takes."""
_NO_TABLE = re.compile(r"table 'datafusion\.(?:public\.)?(?P<name>[^']*)' not found")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class LedgerReader:
    """A ledger as of the moment at which it is opened: every query sees the same versions of the tables."""

    def __init__(self, location: str, storage_options: Mapping[str, str] | None = None) -> None:
        """Open it; on an object store with the options that delta-rs takes for it (`answers.object_store`).

        Raises Fault: LEDGER_MISSING, LEDGER_UNREADABLE, LEDGER_OLDER, LEDGER_NEWER.
        """
        os.environ.setdefault(*_ALLOCATOR)
        self._options = dict(storage_options or {}) or None
        self._location = location if "://" in location else str(Path(location).absolute())
        self._place = without_secrets(location)
        self._tables: dict[str, DeltaTable] = {}
        self._builder: QueryBuilder | None = None
        self._named: set[str] = set()
        self._numbers = count()
        version = self._table(_RUNS).metadata().configuration.get(VERSION_PROPERTY, "")
        if not version.isdecimal():
            raise Fault(
                "FOREIGN_TABLE", f"the table runs at {self._place} is no ledger's: it has no {VERSION_PROPERTY}"
            )
        problem = version_problem(self._place, int(version))
        if problem is not None:
            raise Fault(*problem)

    def query(self, sql: str, /, **values: Value) -> Table:
        """The rows of a query over the views and tables; `:name` in it stands for the value of that name.

        Raises Fault: SQL_INVALID for a query that cannot be run or is none that reads; LEDGER_UNREADABLE where a file
        is damaged or gone.
        """
        require_query(sql)
        return self._executed(sql, values)

    @contextmanager
    def kept(self, sql: str, /, **values: Value) -> Iterator[str]:
        """Keep the rows of a query in memory as a table, and drop it in the end. Raises as `query`.

        Texts are written anew: one that was read is a view of the whole page on which it stands, which stays in memory
        with it, and counts when the engine asks which side of a join is the smaller one.
        """
        require_query(sql)
        name = f"kept_{next(self._numbers)}"
        schema = self._executed(f"SELECT * FROM ({sql}) q LIMIT 0", values).schema
        columns = ", ".join(map(_written_anew, schema.names, schema.types))
        self._executed(f"CREATE TABLE {name} AS SELECT {columns} FROM ({sql}) q", values)
        try:
            yield name
        finally:
            self._executed(f"DROP TABLE {name}", {})

    def _executed(self, sql: str, values: Mapping[str, Value]) -> Table:
        rests_on, names = needed(sql)
        tables = {name: self._table(name) for name in names}
        try:
            return self._engine(rests_on, tables).execute(filled(sql, values, _text)).read_all()
        except Exception as error:
            raise self._fault(error) from error

    def _engine(self, rests_on: Sequence[View], tables: Mapping[str, DeltaTable]) -> QueryBuilder:
        """The reader's engine, once it knows what a query names: each table and view is made known once."""
        from deltalake import QueryBuilder

        if self._builder is None:
            self._builder = QueryBuilder()
        for name, table in tables.items():
            if name not in self._named:
                self._builder.register(name, table)
                self._named.add(name)
        for view in rests_on:
            if view.name not in self._named:
                self._make_known(self._builder, view)
                self._named.add(view.name)
        return self._builder

    def _make_known(self, engine: QueryBuilder, view: View) -> None:
        """Create a view. Which attempts count is read once, not in every query, and so are refolds, which are few.

        Where there are none, the engine is told: then it asks no row of any table whether it was folded again.
        """
        if view.name == RUNS_THAT_COUNT:
            engine.execute(f"CREATE TABLE {_ATTEMPTS} AS SELECT {_OF_ATTEMPTS} FROM ({view.query}) t").read_all()
        query = view.reading(lambda name: _ATTEMPTS if name == RUNS_THAT_COUNT else name)
        if view.name == REFOLDS:
            engine.execute(f"CREATE TABLE {_REFOLDED} AS {query}").read_all()
            any_refold = engine.execute(f"SELECT 1 AS found FROM {_REFOLDED} LIMIT 1").read_all().num_rows
            query = f"SELECT * FROM {_REFOLDED} t WHERE {'true' if any_refold else 'false'}"
        engine.execute(f"CREATE VIEW {view.name} AS {query}").read_all()

    def _table(self, name: str) -> DeltaTable:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        if name not in self._tables:
            place = f"{self._location.rstrip('/')}/{name}"
            try:
                self._tables[name] = DeltaTable(place, storage_options=self._options)
            except TableNotFoundError as error:
                raise Fault(*no_ledger(self._place, name)) from error
            except (DeltaError, OSError) as error:
                raise Fault(
                    "LEDGER_UNREADABLE", f"table {name} at {self._place} cannot be read: {first_words(error)}"
                ) from error
        return self._tables[name]

    def _fault(self, error: Exception) -> Fault:
        said = first_words(error)
        if isinstance(error, OSError) or re.search(r"Parquet|Object (?:at|Store)|IO error|Corrupt", said):
            return Fault("LEDGER_UNREADABLE", f"a file of the ledger at {self._place} cannot be read: {said}")
        return Fault("SQL_INVALID", _why_not(said))


def _why_not(said: str) -> str:
    """Why a query cannot be run, by the engine's words."""
    unknown = _NO_TABLE.search(said)
    if unknown is None:
        return f"the query cannot be run: {said}; {WHERE_VIEWS_ARE}"
    alike = difflib.get_close_matches(unknown["name"], [*views(), *tables()], n=3)
    hint = f"known: {', '.join(alike)}" if alike else WHERE_VIEWS_ARE
    return f"there is no table or view {unknown['name']!r}; {hint}"


def folder_of(location: str) -> str | None:
    """The folder of this machine that a location names; None where it is on another file system."""
    scheme, colon, rest = location.partition(":")
    if colon and scheme == "file":
        return re.sub("^/+", "/", rest)
    return None if _SCHEME.match(location) else location


def _written_anew(name: str, kind: DataType) -> str:
    """A column of `q`, its texts copied."""
    is_text = any(map(bool, (DataType.is_string(kind), DataType.is_string_view(kind), DataType.is_large_string(kind))))
    return f"q.{name} || '' AS {name}" if is_text else f"q.{name}"


def _text(value: str) -> str:
    """A text as this engine writes it: no character but a quote means anything else."""
    return "'" + value.replace("'", "''") + "'"
