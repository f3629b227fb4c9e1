"""After the storm: the work is brought to its end, and the ledger is held against one that nobody disturbed.

`python -m tests.storm.settling <order>`: one JVM, in a process of its own.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from groupledger.pipeline.assign import assign
from groupledger.pipeline.call_tables import keep_calls
from groupledger.pipeline.doctor import soundness
from groupledger.pipeline.ingest import ingest
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.maintain import NAMES, maintain
from groupledger.pipeline.rebuild import rebuild
from groupledger.sinks.ledger_tables import LedgerLocation, init, migrate
from groupledger.tables import GROUP_HEADS, MEMBER_SNAPSHOTS, RUNS, TABLES, Table
from groupledger.tables import columns as c
from tests.faults.story import Content
from tests.storm.checker import look
from tests.storm.sources import ASSIGNS, TOPICS, Sources
from tests.storm.worker import storm_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = itertools.count(1)
_AFTER_ALL = timedelta(days=30)


def main(order: dict[str, Any]) -> None:
    """Make the ledgers (`prepare`), or settle and judge; one line for each thing that is wrong."""
    spark = storm_session()
    sources, ledger, quiet = Sources(Path(order["sources"])), Path(order["ledger"]), Path(order["quiet"])
    wrong: list[str] = []
    if order["step"] == "prepare":
        for each in (ledger, quiet):
            init(spark, LedgerLocation(path=str(each)))
            take(spark, sources, each, TOPICS)
    else:
        settle(spark, sources, ledger, order["pieces"])
        wrong += exact(spark, sources, ledger)
    if order["step"] == "compare":
        settle(spark, sources, quiet, order["pieces"])
        wrong += unlike(ledger, quiet)
    if order["step"] == "redacted":
        maintain(spark, place(ledger), sources.config(ledger), invocation(), redact=True)
        wrong += named(ledger, quiet)
    Path(order["report"]).write_text(json.dumps(wrong), encoding="utf-8")
    spark.stop()


def place(ledger: Path) -> LedgerLocation:
    """A ledger's place."""
    return LedgerLocation(path=str(ledger))


def invocation() -> Invocation:
    """Once the storm is over: its leases have run out, and its attempts are dead."""
    moment = datetime(2026, 1, 1, tzinfo=UTC) + 400 * _AFTER_ALL
    return Invocation(attempt_id=f"settled-{os.getpid()}-{next(_numbers)}", now=lambda: moment, seconds=lambda: 0.0)


def take(spark: SparkSession, sources: Sources, ledger: Path, piece: str) -> None:
    """Ingest a piece."""
    ingest(spark, place(ledger), sources.config(ledger, piece), invocation())


def settle(spark: SparkSession, sources: Sources, ledger: Path, pieces: list[str]) -> None:
    """Finish what was cut off, ingest what is missing in order, then compute everything again."""
    migrate(spark, place(ledger))
    maintain(spark, place(ledger), sources.config(ledger), invocation())
    for piece in pieces:
        take(spark, sources, ledger, piece)
    for each in ASSIGNS:
        assign(spark, sources.config(ledger, assign=each), invocation())
    keep_calls(spark, sources.config(ledger), invocation(), 24)


def exact(spark: SparkSession, sources: Sources, ledger: Path) -> Iterator[str]:
    """Rows of committed runs that are not there exactly once, by number and digest; what the doctor complains of."""
    yield from look(ledger)[0]
    done = rebuild(spark, place(ledger), sources.config(ledger), invocation())
    yield from (f"lost: {each.rows} rows of {each.run_id} in {each.table}" for each in done.remade)
    yield from (f"doctor: {each.name}: {each.detail}" for each in soundness(spark, place(ledger)) if not each.ok)


def unlike(ledger: Path, quiet: Path) -> Iterator[str]:
    """Tables whose rows that count are not those of the ledger that nobody disturbed."""
    content = Content()
    for table in TABLES:
        if table not in (RUNS, GROUP_HEADS):
            got, expected = (_rows(content, each, table) for each in (ledger, quiet))
            got = set(_answered_by_both(got, expected))
            more, less = got - expected, expected - got
            if more or less or len(got) != len(expected):
                yield f"{table.name}: {len(more)} rows more, {len(less)} less than the quiet ledger's {len(expected)}"
                yield from (
                    f"    {sign} {row[:600]}" for sign, rows in (("+", more), ("-", less)) for row in list(rows)[:3]
                )


def _answered_by_both(got: set[str], expected: set[str]) -> Iterator[str]:
    """Rows without the results for snapshots that were the latest for a while only in the storm."""
    asked = {_answer(row) for row in expected}
    passing = {each.scenario for each in ASSIGNS if each.snapshots == "latest"}
    for row in got:
        scenario, snapshot = _answer(row)
        if scenario not in passing or (scenario, snapshot) in asked:
            yield row


def _answer(row: str) -> tuple[str | None, str | None]:
    columns = json.loads(row)
    return columns.get(c.SCENARIO), columns.get(c.SNAPSHOT_ID)


def _rows(content: Content, ledger: Path, table: Table) -> set[str]:
    """The rows that count, of no attempt."""
    return set(content.rows(ledger, table, [name for name in table.columns if name != c.ATTEMPT_ID]))


def named(ledger: Path, quiet: Path) -> Iterator[str]:
    """Names of the quiet ledger's members that stand in the redacted one."""
    members = DeltaTable(str(quiet / MEMBER_SNAPSHOTS.name)).to_pandas()
    names = {name for column in sorted(set(NAMES.values())) for name in members[column].dropna()}
    for table in TABLES:
        for column in set(table.columns) & NAMES.keys():
            found = set(DeltaTable(str(ledger / table.name)).to_pandas(columns=[column])[column].dropna())
            if found & names:
                yield f"{table.name}.{column} has names after a redaction: {sorted(found & names)[:3]}"


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
