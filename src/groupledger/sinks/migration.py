"""An older ledger brought forward, in place: new tables are made, new columns added, layout and properties set.

What a version adds to the one before is told from the declarations: a table, a column that may be null, another layout.
A change of another kind needs a step of its own here. Each step can be done again; a table's version is set last, and
`runs`, by which every command knows the ledger, comes last of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from pyspark.sql import SparkSession

from groupledger.sinks import changes
from groupledger.sinks.ledger import (
    LedgerLocation,
    columns_ddl,
    constraints,
    create,
    first_difference,
    foreign,
    layout,
    missing,
    properties_ddl,
    version,
)
from groupledger.sinks.upkeep import persistently
from groupledger.tables import RUNS, SCHEMA_VERSION, TABLES, Table
from groupledger.tables.sql_text import quoted


def migrate(spark: SparkSession, location: LedgerLocation) -> dict[str, int | None]:
    """Bring every table to this version; the tables that were not, with their version before (None: made now).

    Raises LedgerFault: LEDGER_MISSING, LEDGER_NEWER, FOREIGN_TABLE, all before anything is changed but where a table of
    an older version holds a column of another type.
    """
    before = {table: version(spark, location, table) for table in TABLES}
    if before[RUNS] is None:
        raise missing(location, RUNS)
    older = {table: was for table, was in before.items() if was != SCHEMA_VERSION}
    for table, was in older.items():
        if was is None:
            create(spark, location, table)
        else:
            _forward(spark, location, table)
    return {table.name: was for table, was in older.items()}


def _forward(spark: SparkSession, location: LedgerLocation, table: Table) -> None:
    """One table from any older version to this one."""
    name = location.identifier(table)
    got = location.rows(spark, table).schema
    new = [field for field in table.schema if field.name not in got.names]
    if any(not field.nullable for field in new):
        raise foreign(location, table, first_difference(got, table.schema) or "")
    commands = [f"ALTER TABLE {name} ADD COLUMNS ({columns_ddl(new)})"] if new else []
    commands += _constraining(name, constraints(spark, location, table), table.constraints)
    if table.cluster_by != _clustering(spark, name):
        commands.append(f"ALTER TABLE {name}{layout(table) or ' CLUSTER BY NONE'}")
    for command in commands:
        persistently(partial(changes.run, spark, location, table, command), table)
    difference = first_difference(location.rows(spark, table).schema, table.schema)
    if difference is not None:
        raise foreign(location, table, difference)
    command = f"ALTER TABLE {name} SET TBLPROPERTIES ({properties_ddl(table)})"
    persistently(partial(changes.run, spark, location, table, command), table)


def _constraining(name: str, got: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[str]:
    """The commands that give a table the constraints it is to have; Delta reads the rows before it takes one."""
    kept = {each for each in got if each in wanted and _squeezed(got[each]) == _squeezed(wanted[each])}
    for each in sorted(got.keys() - kept):
        yield f"ALTER TABLE {name} DROP CONSTRAINT {quoted(each)}"
    for each, condition in wanted.items():
        if each not in kept:
            yield f"ALTER TABLE {name} ADD CONSTRAINT {quoted(each)} CHECK ({condition})"


def _squeezed(condition: str) -> str:
    """Delta puts spaces into the text of a constraint that it is given later than at the table's making."""
    return "".join(condition.split())


def _clustering(spark: SparkSession, name: str) -> tuple[str, ...]:
    [row] = spark.sql(f"DESCRIBE DETAIL {name}").collect()
    return tuple(row["clusteringColumns"] or ())
