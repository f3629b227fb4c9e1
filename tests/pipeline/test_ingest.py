"""Ingest into a real ledger: every order and repetition of the same records ends in the same facts."""

import gzip
import json

import pytest
from pyspark.sql import functions as F

from groupledger.config import LimitSettings, SourceSettings
from groupledger.config.loading import CAPTURES
from groupledger.core.faults import Fault
from groupledger.sinks.current import current
from groupledger.tables import (
    COVERAGE,
    GROUP_HEADS,
    GROUP_SNAPSHOTS,
    LOG_RECORDS,
    MEMBER_SNAPSHOTS,
    OWNERSHIP_CHANGES,
    QUARANTINE,
    TABLES,
    TOPIC_SNAPSHOTS,
    VIOLATIONS,
)

FACTS = (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES, COVERAGE, VIOLATIONS)
TOPICS = SourceSettings(kind="topics-jsonl", path=str(CAPTURES / "edge" / "topics.jsonl.gz"))
LOG = SourceSettings(kind="offsets-jsonl", path=str(CAPTURES / "edge" / "offsets.jsonl.gz"))
LINES = gzip.decompress((CAPTURES / "edge" / "offsets.jsonl.gz").read_bytes()).decode().splitlines()


def offset(line):
    return json.loads(line)["offset"]


@pytest.fixture(scope="module")
def whole(new_workspace):
    """The captured log in one ingest: what every other way must end in."""
    space = new_workspace("whole")
    summary = space.ingest(TOPICS, LOG)
    return space, summary, facts(space)


def facts(space):
    return {table.name: space.rows(table) for table in FACTS}


def heads(space):
    """The last head of each group: what the next ingest starts from."""
    newest = F.max_by("state", "offset")
    rows = current_heads(space).groupBy("group_id").agg(F.max("offset").alias("offset"), newest.alias("state"))
    return sorted((row["group_id"], row["offset"], bytes(row["state"])) for row in rows.collect())


def current_heads(space):
    return current(space.spark, space.location, GROUP_HEADS)


def test_every_record_is_kept_and_accounted_for(whole):
    space, summary, _ = whole
    (account,) = summary.accounts
    assert account.records == len(LINES) == len(space.rows(LOG_RECORDS))
    assert account.balanced
    assert sum(account.used.values()) == 605
    assert (account.duplicates, dict(account.quarantined)) == (0, {})
    assert summary.run.verdict == "done"


def test_a_run_that_counts_is_not_done_again(whole):
    space, summary, before = whole
    again = space.ingest(TOPICS, LOG)
    assert again.already_committed
    assert again.run == summary.run
    assert facts(space) == before


def test_records_read_again_change_nothing(whole):
    space, _, before = whole
    again = space.ingest(TOPICS, LOG, run_id="the same files under another name")
    (account,) = again.accounts
    assert (account.records, account.duplicates) == (len(LINES), len(LINES))
    assert not again.already_committed
    assert facts(space) == before
    assert len(space.rows(TOPIC_SNAPSHOTS)) == 12


@pytest.mark.long
def test_a_log_read_in_parts_ends_in_the_same_facts(whole, workspace):
    cut = 130
    workspace.ingest(TOPICS, workspace.source("first.jsonl", [line for line in LINES if offset(line) < cut]))
    second = workspace.ingest(workspace.source("second.jsonl", [line for line in LINES if offset(line) >= cut]))
    assert second.run.counts_out["late_groups"] == 0
    assert second.rows.keys() <= {table.name for table in TABLES}
    assert facts(workspace) == whole[2]
    assert heads(workspace) == heads(whole[0])


@pytest.mark.long
def test_late_records_end_in_the_same_facts(whole, workspace):
    """Every fifth record comes a day late, among records that were read before; twice, and in another order."""
    early = [line for number, line in enumerate(LINES) if number % 5]
    workspace.ingest(TOPICS, workspace.source("early.jsonl", early))
    assert facts(workspace) != whole[2]
    late = workspace.ingest(workspace.source("late.jsonl", [*reversed(LINES), *LINES[::5]]))
    (account,) = late.accounts
    new = len(LINES) - len(early)
    assert (account.records, account.duplicates) == (len(LINES) + new, len(LINES))
    assert account.balanced
    assert late.run.counts_out["late_groups"] > 20
    assert facts(workspace) == whole[2]
    assert heads(workspace) == heads(whole[0])


@pytest.mark.long
def test_tables_of_bytes_give_the_facts_of_the_json(whole, workspace):
    """Half of the log partitions come as Parquet, the others as Delta."""
    rows = workspace.spark.read.json(LOG.path).select(
        "partition", "offset", "timestamp", F.unbase64("key").alias("key"), F.unbase64("value").alias("value")
    )
    rows = rows.withColumn("timestamp", F.timestamp_millis("timestamp"))
    sources = []
    for number, form in enumerate(("parquet", "delta")):
        path = str(workspace.folder / form)
        rows.where(F.col("partition") % 2 == number).repartition(7).write.format(form).save(path)
        assert workspace.spark.read.format(form).load(path).count() > 0
        sources.append(SourceSettings(kind=f"offsets-{form}", path=path))
    summary = workspace.ingest(TOPICS, *sources, buckets=7)
    assert facts(workspace) == whole[2]
    assert summary.run.result_digest == whole[1].run.result_digest


BAD = {
    "half-written": (LINES[0][:50], "MALFORMED_LINE", LINES[0][:50]),
    "an array": ("[1, 2]", "MALFORMED_LINE", "[1, 2]"),
    "no offset": ('{"partition":0,"timestamp":1,"key":"AAIAAWc=","value":null}', "BAD_OFFSET", None),
    "negative": ('{"partition":-1,"offset":1,"timestamp":1,"key":"AAIAAWc=","value":null}', "BAD_PARTITION", None),
    "no time": ('{"partition":0,"offset":1,"key":"AAIAAWc=","value":null}', "BAD_TIMESTAMP", None),
    "not base64": ('{"partition":0,"offset":1,"timestamp":1,"key":"A%","value":null}', "BAD_BASE64", None),
    "not a key": ('{"partition":0,"offset":1,"timestamp":1,"key":"AAIAAw==","value":null}', "TRUNCATED", None),
    "no UTF-8": ('{"partition":0,"offset":1,"timestamp":1,"key":"AAIAAf8=","value":null}', "BAD_UTF8", None),
    "no value": ('{"partition":0,"offset":9999,"timestamp":1,"key":"AAIAAWc=","value":"AAM="}', "TRUNCATED", None),
    "too large": (
        json.dumps({"partition": 1, "offset": 7, "timestamp": 1, "key": "AAIAAWc=", "value": "A" * 40_000}),
        "RECORD_TOO_LARGE",
        None,
    ),
}


def test_bad_lines_are_quarantined_and_harm_no_other(whole, workspace):
    lines = [*LINES, *(line for line, _, _ in BAD.values())]
    summary = workspace.ingest(
        TOPICS, workspace.source("log.jsonl", lines), limits=LimitSettings(max_record_bytes=20_000, max_quarantined=3)
    )
    rejected = workspace.rows(QUARANTINE)
    assert len(rejected) == len(BAD)
    for _, code, text in BAD.values():
        assert any(f"code='{code}'" in row and (text is None or text in row) for row in rejected), code
    (account,) = summary.accounts
    assert account.records == len(lines)
    assert account.balanced
    assert sum(account.quarantined.values()) == len(BAD)
    assert summary.run.verdict == "quarantine-over-limit"
    others = {name: [row for row in rows if "group_id='g'" not in row] for name, rows in facts(workspace).items()}
    assert others == whole[2]


def test_bad_listings_are_quarantined_and_nothing_else_is_believed_of_them(workspace):
    listing = [
        {"ts": 1000, "topic": "a", "topic_id": "id-a", "partitions": 3, "racks": ["r1"]},
        {"ts": 1000, "topic": "b", "topic_id": "id-b", "partitions": 2, "racks": [["r1", None], ["r2"]]},
        {"ts": 2000, "topic": "a", "topic_id": "id-a", "partitions": -1, "racks": ["r1"]},
        {"ts": 2000, "topic": "b", "topic_id": "id-b"},
        {"ts": 3000, "topic": "a", "topic_id": "id-a", "partitions": 4, "racks": ["r1", "r2"]},
    ]
    source = workspace.source("topics.jsonl", [*map(json.dumps, listing), '{"ts": 30'], "topics-jsonl")
    summary = workspace.ingest(source, limits=LimitSettings(max_quarantined=3))
    assert summary.run.verdict == "done"
    codes = [row.split("code='")[1].split("'")[0] for row in workspace.rows(QUARANTINE)]
    assert sorted(codes) == ["BAD_PARTITION_COUNT", "BAD_PARTITION_COUNT", "MALFORMED_LINE"]
    changes = [tuple(row) for row in changes_of(workspace)]
    assert changes == [
        (1, "a", "id-a", 3, [["r1"], ["r1"], ["r1"]]),
        (1, "b", "id-b", 2, [["r1", None], ["r2"]]),
        (3, "a", "id-a", 4, None),
        (3, "b", "id-b", None, None),
    ]


def test_a_listing_after_another_says_what_changed(workspace):
    def listing(name, *rows):
        fields = ("ts", "topic", "topic_id", "partitions")
        lines = [json.dumps(dict(zip(fields, row, strict=True))) for row in rows]
        return workspace.source(name, lines, "topics-jsonl")

    workspace.ingest(listing("1", (1000, "a", "x", 3), (1000, "gone", "y", 1), (1000, "again", "z", 2)))
    workspace.ingest(listing("2", (5000, "a", "x", 3), (5000, "again", "w/+=", 2)))
    assert [tuple(row)[:4] for row in changes_of(workspace)] == [
        (1, "a", "x", 3),
        (1, "again", "z", 2),
        (1, "gone", "y", 1),
        (5, "again", "w_-", 2),
        (5, "gone", "y", None),
    ]


def changes_of(space):
    rows = current(space.spark, space.location, TOPIC_SNAPSHOTS)
    seconds = F.unix_seconds("valid_from").alias("at")
    return rows.select(seconds, "topic", "topic_id", "partition_count", "racks").sort("at", "topic").collect()


def test_sources_that_cannot_be_read_stop_before_anything_is_written(workspace):
    strange = str(workspace.folder / "strange")
    workspace.spark.createDataFrame([(1, "a")], "offset int, key string").write.parquet(strange)
    cases = [
        ((), "NO_SOURCES"),
        ((SourceSettings(kind="offsets-jsonl", path=str(workspace.folder / "nowhere.jsonl")),), "SOURCE_MISSING"),
        ((SourceSettings(kind="offsets-delta", path=strange),), "SOURCE_UNREADABLE"),
        ((SourceSettings(kind="offsets-parquet", path=strange),), "FOREIGN_SCHEMA"),
    ]
    for sources, code in cases:
        with pytest.raises(Fault) as caught:
            workspace.ingest(*sources)
        assert caught.value.code == code, caught.value.message
    assert workspace.spark.read.format("delta").load(f"{workspace.location.path}/runs").count() == 0


@pytest.mark.long
def test_tables_of_snapshots_become_facts_and_a_bad_snapshot_harms_no_other(workspace):
    spark, folder = workspace.spark, workspace.folder / "export"
    groups = [("s1", "good", 1, "range"), ("s2", "twice", 1, "range"), ("s3", "good", 2, "range")]
    members = [("s1", "m1", ["t"]), ("s1", "m2", ["t"]), ("s2", "m1", ["t"]), ("s2", "m1", ["t"]), ("s3", "m1", ["t"])]
    at = F.timestamp_seconds(F.lit(1_795_000_000))
    frame = spark.createDataFrame(groups, "snapshot_id string, group_id string, offset bigint, assignor string")
    frame.withColumn("observed_at", at).write.parquet(str(folder / "group_snapshots"))
    frame = spark.createDataFrame(members, "snapshot_id string, member_id string, topics array<string>")
    frame.write.parquet(str(folder / "member_snapshots"))
    frame = spark.createDataFrame([("t", 3), ("u", -1)], "topic string, partition_count int")
    frame.withColumn("valid_from", F.timestamp_seconds(F.lit(1_790_000_000))).write.parquet(
        str(folder / "topic_snapshots")
    )
    source = SourceSettings(kind="snapshots", path=str(folder))
    summary = workspace.ingest(source, limits=LimitSettings(max_quarantined=9))
    (account,) = summary.accounts
    assert account.balanced
    assert account.records == 3 + 5 + 2
    assert dict(account.used) == {"group_snapshots": 2, "member_snapshots": 3, "topic_snapshots": 1}
    assert sum(account.quarantined.values()) == summary.quarantined == 1 + 2 + 1
    assert len(workspace.rows(GROUP_SNAPSHOTS)) == 2
    assert len(workspace.rows(MEMBER_SNAPSHOTS)) == 3
    again = workspace.ingest(source, run_id="again", limits=LimitSettings(max_quarantined=9))
    (account,) = again.accounts
    assert account.balanced
    assert (account.duplicates, sum(account.used.values())) == (6, 0)
