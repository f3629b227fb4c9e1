"""Declare the commit marker: an attempt's rows count once its `committed` row is in this table."""

from __future__ import annotations

from pyspark.sql.types import IntegerType, LongType, MapType, StringType, TimestampType

from groupledger.tables import columns as c
from groupledger.tables.declaration import STRING_LIST, TableConstraint, column, known, table

COUNTS = MapType(StringType(), LongType(), valueContainsNull=False)

RUNS = table(
    "runs",
    "Attempts: `planned` before any row is written, `committed` once, last and by compare-and-set.",
    column(c.RUN_ID, StringType(), "from the orchestrator, or derived from the input", required=True),
    column(c.ATTEMPT_ID, StringType(), "UUID of the attempt, stamped on every row it writes", required=True),
    column(
        c.KIND,
        StringType(),
        "ingest, nothing-new (an ingest that found nothing), assign, callbacks or maintain",
        required=True,
    ),
    column(
        c.STATUS,
        StringType(),
        "planned, committed, given-up (it can no longer commit), or leased (a maintain at work)",
        required=True,
    ),
    column(c.SEQUENCE, LongType(), "order of commits, from 1; null while planned"),
    column(
        c.GUARDS,
        STRING_LIST,
        "what no two attempts may commit side by side, such as dev/log: the later one starts again",
        required=True,
    ),
    column(c.INPUTS, StringType(), "JSON: positions, snapshot ids, files", required=True),
    column(c.INPUT_DIGEST, StringType(), "canonical content digest of the input"),
    column(c.CONFIG_DIGEST, StringType(), "digest of the configuration that matters for the result", required=True),
    column(c.CODE_DIGEST, StringType(), "version and digest of the code", required=True),
    column(c.COUNTS_IN, COUNTS, "rows in, by kind"),
    column(c.COUNTS_OUT, COUNTS, "rows out, by table and kind; digest.<table>: 60 bits of the digest of its rows"),
    column(c.RESULT_DIGEST, StringType(), "canonical digest of the rows written, free of run, attempt and clock"),
    column(c.VERDICT, StringType(), "done, quarantine-over-limit, ..."),
    column(c.SCHEMA, IntegerType(), "schema version of the ledger", required=True),
    column(c.STARTED_AT, TimestampType(), "when the attempt began"),
    column(c.FINISHED_AT, TimestampType(), "when it committed or was given up; of a lease: until when it is held"),
    column(
        c.REMOVED,
        MapType(StringType(), STRING_LIST, valueContainsNull=False),
        "of a maintain: by table, the attempts whose rows are removed for good; since schema version 2",
    ),
    partition_by=(c.STATUS,),  # so that a commit, which reads the committed rows, conflicts with no plan
    checks=(
        known(c.STATUS, "planned", "committed", "given-up", "leased"),
        TableConstraint(
            "sequence",
            f"CASE WHEN {c.STATUS} = 'committed' THEN coalesce({c.SEQUENCE} >= 1, false) ELSE {c.SEQUENCE} IS NULL END",
        ),
    ),
)
