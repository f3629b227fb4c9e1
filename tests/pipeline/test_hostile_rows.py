"""Any value in any column of any format: the run ends, all is accounted for, and the ledger can be shown after it."""

import csv
import json
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from groupledger.answers.at_a_glance import clusters, coverage, findings, groups, quarantine, runs
from groupledger.answers.reader import LedgerReader
from groupledger.config import LimitSettings, SourceSettings
from groupledger.core.log.lines import LATEST_MS
from groupledger.sinks.current import current
from groupledger.tables import LOG_RECORDS, TABLES
from groupledger.tables.facts import FORMS

NUMBERS = [
    *(-(2**63), -(2**31) - 1, -2, -1, 0, 1, 2**31 - 1, 2**31, 3_000_000_000, LATEST_MS, LATEST_MS + 1),
    *(9223372036854775, 2**63 - 2, 2**63 - 1),
]
TEXTS = [
    *("", " ", "\x00", "\u202e\u001b[2J", "a" * 5_000, "\u00fc\U0001f600", "null", "NaN", "-0", "1.0", "1e400", "true"),
    *("9223372036854775808", "[", "[0] x", '[{"topic":"t","partitions":[0]}] x', '{"a":1}', '"', "a,b", "%", "A==="),
    *("+294247-01-10T04:00:54Z", "-290308-12-21", "0000-00-00", "9999-12-31T23:59:59Z", "1969-12-31", "epoch"),
]
OTHERS = [None, True, 1.5, 10**400, -(10**400), [], {}, [[]], [None], [3e9], {"a": {"a": []}}, ["\ud800"], "\ud800"]
VALUES = [*NUMBERS, *TEXTS, *OTHERS]

RECORD = {"partition": 0, "offset": 0, "timestamp": 1795262898320, "key": "AAIAAWE=", "value": None}
LISTED = {"ts": 1795262893752, "topic": "t", "topic_id": "id", "partitions": 7, "racks": ["r"]}
HELD = [{"topic": "t", "partitions": [0]}]
ROWS = {
    "group_snapshots": {"snapshot_id": "s", "group_id": "g", "offset": 1, "observed_at": 1795262898320},
    "member_snapshots": {"snapshot_id": "s", "member_id": "m", "topics": ["t"], "recorded": HELD},
    "topic_snapshots": {"topic": "t", "partition_count": 3, "valid_from": 1795262898320},
}
"""Of each kind of row one that is good: it is changed in one column at a time."""


def changed(good, names, values):
    numbers = count(1)
    for name in names:
        for value in values:
            own: dict[str, object] = {"offset": next(numbers)} if "offset" in good else {}
            own |= {"snapshot_id": f"s{next(numbers)}"} if "snapshot_id" in good else {}
            yield good | own | {name: value}


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row).replace("Infinity", "1e999") + "\n" for row in rows))


def csv_file(path, form, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
        writer = csv.DictWriter(file, form.columns)
        writer.writeheader()
        for row in rows:
            texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()}
            writer.writerow({name: text.replace("\x00", "") for name, text in texts.items() if text != "null"})


def log_table(path, timestamps, **kinds):
    """A Parquet log: every number in every column that has one."""
    rows = list(changed(RECORD, ("partition", "offset", "timestamp"), NUMBERS))
    whole = {name: pa.int64() for name in ("partition", "offset")} | {"timestamp": timestamps} | kinds
    columns = {name: pa.array([row[name] for row in rows], pa.int64()).cast(kind) for name, kind in whole.items()}
    columns |= {name: pa.array([row[name] for row in rows], pa.string()) for name in ("key", "value")}
    pq.write_table(pa.table(columns), path)


def typed_table(space, path, form, kind):
    """A table of a user with types as wide as they are read: every number in every column of numbers."""
    numbers = [
        field.name for field in form.table.schema if field.dataType.simpleString() in ("int", "bigint", "timestamp")
    ]
    names = [name for name in numbers if name in form.columns]
    rows = list(changed(ROWS[form.table.name], names, NUMBERS))
    kinds = dict.fromkeys(("topics",), "array<string>") | dict.fromkeys(names, "bigint")
    kinds["recorded"] = "array<struct<topic string, partitions array<bigint>>>"
    used = sorted({name for row in rows for name in row})
    schema = ", ".join(f"{name} {kinds.get(name, 'string')}" for name in used)
    frame = space.spark.createDataFrame([tuple(row.get(name) for name in used) for row in rows], schema)
    if kind == "delta":  # as a timestamp, microseconds since 1970
        frame = frame.withColumns(
            {name: F.timestamp_micros(name) for name in ("observed_at", "valid_from") if name in used}
        )
    frame.coalesce(1).write.format(kind).save(str(path))


def sources(space):
    folder = space.folder
    lines(folder / "log.jsonl", changed(RECORD, [*RECORD, "topic"], VALUES))
    lines(folder / "topics.jsonl", changed(LISTED, LISTED, VALUES))
    yield SourceSettings(kind="offsets-jsonl", path=str(folder / "log.jsonl"))
    yield SourceSettings(kind="topics-jsonl", path=str(folder / "topics.jsonl"))
    for name, kind in {"ms": pa.int64(), "us": pa.timestamp("us", "UTC"), "plain": pa.timestamp("us")}.items():
        log_table(folder / f"{name}.parquet", kind)
        yield SourceSettings(kind="offsets-parquet", path=str(folder / f"{name}.parquet"))
    for form in FORMS:
        rows = list(changed(ROWS[form.table.name], form.columns, VALUES))
        lines(folder / "json" / f"{form.table.name}.json", rows)
        csv_file(folder / "csv" / f"{form.table.name}.csv", form, rows)
        for kind in ("parquet", "delta"):
            typed_table(space, folder / kind / form.table.name, form, kind)
    for kind in ("json", "csv", "parquet", "delta"):
        yield SourceSettings(kind="snapshots", path=str(folder / kind), format=kind)


@pytest.mark.long
def test_any_value_in_any_column_of_any_format_harms_only_its_row(workspace):
    summary = workspace.ingest(*sources(workspace), limits=LimitSettings(max_quarantined=100_000))
    (account,) = summary.accounts
    assert account.balanced, account
    assert summary.run.verdict == "done"
    assert min(account.lines, account.rows, summary.quarantined, len(account.used)) >= 3
    for table in TABLES:
        current(workspace.spark, workspace.location, table).collect()  # Python holds every value
    for listing in (groups, findings, coverage, quarantine, clusters, runs):
        assert listing(LedgerReader(workspace.location.path), 1_000) is not None
    good = current(workspace.spark, workspace.location, LOG_RECORDS)
    assert good.where("log_partition < 0 OR offset < 0 OR timestamp < timestamp_millis(-1)").count() == 0
