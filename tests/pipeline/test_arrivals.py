"""Whatever is fed to an ingest: every line is accounted for, nothing ends the run, and nothing new is no error."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from groupledger.config import LimitSettings, SourceSettings
from groupledger.config.loading import CAPTURES
from groupledger.core.faults import Fault
from groupledger.tables import LOG_RECORDS, QUARANTINE, TOPIC_SNAPSHOTS

LOG = gzip.decompress((CAPTURES / "storm" / "offsets.jsonl.gz").read_bytes()).decode().splitlines()
GOOD = LOG[:20]
LISTED = {"ts": 1000, "topic": "orders", "topic_id": "id", "partitions": 3, "racks": ["r"]}
MANY = LimitSettings(max_quarantined=10_000)


def written(space, name, data, kind="offsets-jsonl", **settings):
    path = space.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return SourceSettings(kind=kind, path=str(path), **settings)


def only(summary):
    (account,) = summary.accounts
    assert account.balanced, account
    return account


MARKER = {"key": "AAAAAQ==", "value": "AAAAAAAD"}
STATE = {"key": "AAIAA3BheQ==", "timestamp": 1795262400000}
DESCRIBED = "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG"
MARKERS = [MARKER | {"partition": number % 3, "offset": number, "timestamp": 1} for number in range(6)]
WRONG = [GOOD[0] + GOOD[1], "[]", f"[{GOOD[2]}]", GOOD[3] + " x", "7", "null"]
OTHER_TOPIC = json.dumps({**json.loads(GOOD[0]), "topic": "orders"})
LINES = ["\ufeff" + GOOD[0] + "\r", *GOOD[1:], *WRONG, "", " \t\r", OTHER_TOPIC, OTHER_TOPIC]
LISTING = [json.dumps(LISTED), json.dumps(LISTED) * 2, "", json.dumps(LISTED | {"ts": -1})]
TICKET = [
    *GOOD,
    *map(json.dumps, MARKERS),
    json.dumps(MARKER | {"partition": 0, "offset": 9, "timestamp": 1, "key": "AAAAAA=="}),
    json.dumps(STATE | {"partition": 1, "offset": 20, "value": ""}),
    *("", DESCRIBED, "what is this?"),
]


@pytest.fixture(scope="module")
def arrived(new_workspace):
    """What one ingest says of three clusters, and the ledger: odd lines, a ticket's, a marker where few are wanted."""
    space = new_workspace("arrived")
    sources = (
        written(space, "log.jsonl", "\n".join(LINES), cluster_id="lines"),
        written(space, "topics.jsonl", "\n".join(LISTING) + "\n", "topics-jsonl", cluster_id="lines"),
        written(space, "ticket.jsonl", "\n".join(TICKET), cluster_id="ticket"),
        written(space, "markers.jsonl", json.dumps(MARKERS[0]), cluster_id="markers", offset_commits=False),
    )
    summary = space.ingest(*sources, limits=MANY)
    assert all(account.balanced for account in summary.accounts)
    assert summary.quarantined == len(WRONG) + 2 + 2
    return space, {account.cluster_id: account for account in summary.accounts}


def test_every_physical_line_is_accounted_for(arrived):
    """A file that ends without a line feed before another, an array, text behind a value, blank lines, other topics."""
    space, account = arrived[0], arrived[1]["lines"]
    assert (account.lines, account.rows, account.blank) == (len(LINES) + len(LISTING), 0, 3)
    assert account.records == len(LINES) - 2
    assert dict(account.quarantined) == {"MALFORMED_LINE": len(WRONG)}
    assert dict(account.listings) == {"listed": 1, "MALFORMED_LINE": 1, "BAD_MOMENT": 1}
    assert account.unused["other topic"] == 2
    assert sum("cluster_id='lines'" in row for row in space.rows(LOG_RECORDS)) == len(GOOD)
    quarantined = space.rows(QUARANTINE)
    for line in WRONG:
        assert any(repr(line)[1:-1] in row or line in row for row in quarantined), line


def test_control_records_and_empty_values_are_no_fault_and_bad_lines_are_told_with_their_place(arrived):
    space, account = arrived[0], arrived[1]["ticket"]
    assert account.unused["ControlRecord"] == len(MARKERS) + 1
    assert account.tombstones["GroupMetadata"] == 1
    assert dict(account.quarantined) == {"OTHER_TOOL": 1, "MALFORMED_LINE": 1}
    told, path = space.rows(QUARANTINE), space.folder / "ticket.jsonl"
    place = f"message='{path}, line {len(TICKET) - 1}: the line is from kafka-consumer-groups --describe, "
    assert any(place in row for row in told), told
    assert any(f"{path}, line {len(TICKET)}: the line is not one JSON object" in row for row in told), told
    assert any('it begins "what is this?"' in row for row in told), told
    assert arrived[1]["markers"].unused == {"ControlRecord": 1}


EMPTY = {
    "nothing.jsonl": b"",
    "blank.jsonl": b"\n \n",
    "nothing.jsonl.gz": gzip.compress(b""),
}


@pytest.mark.long
def test_nothing_new_is_no_error(workspace):
    """Empty files, folders and tables of every kind, beside a topic listing: a quiet hour."""
    folder = workspace.folder
    sources = [written(workspace, name, data) for name, data in EMPTY.items()]
    for name in ("lines", "parquet"):
        (folder / name).mkdir()
    nothing = pa.table({"partition": [], "offset": [], "timestamp": [], "key": [], "value": []}, FIELDS)
    pq.write_table(nothing, folder / "rows.parquet")
    (folder / "spark" / "_temporary").mkdir(parents=True)
    (folder / "spark" / "_SUCCESS").touch()
    workspace.spark.createDataFrame([], TABLE).write.format("delta").save(str(folder / "delta"))
    sources += [SourceSettings(kind="offsets-jsonl", path=str(folder / "lines"))]
    sources += [
        SourceSettings(kind="offsets-parquet", path=str(folder / name)) for name in ("parquet", "rows.parquet", "spark")
    ]
    sources += [SourceSettings(kind="offsets-delta", path=str(folder / "delta"))]
    for name in ("group_snapshots", "member_snapshots"):
        written(workspace, f"json/{name}.json", b"")
        (folder / "tables" / name).mkdir(parents=True)
        written(workspace, f"csv/{name}.csv", b"")
    sources += [SourceSettings(kind="snapshots", path=str(folder / "json"), format="json")]
    sources += [SourceSettings(kind="snapshots", path=str(folder / "csv"), format="csv")]
    sources += [SourceSettings(kind="snapshots", path=str(folder / "tables"))]
    summary = workspace.ingest(*sources)
    account = only(summary)
    assert (summary.run.verdict, account.records, account.lines, account.blank) == ("done", 0, 2, 2)
    again = workspace.ingest(*sources)  # files are the same, and the Delta table has nothing new
    assert (again.nothing_new, again.run.run_id) == (True, summary.run.run_id)
    listing = written(workspace, "topics.jsonl", json.dumps(LISTED), "topics-jsonl")
    quiet = workspace.ingest(sources[0], listing)
    assert (quiet.run.verdict, only(quiet).records) == ("done", 0)
    assert len(workspace.rows(TOPIC_SNAPSHOTS)) == 1
    again = workspace.ingest(sources[0], written(workspace, "none.jsonl", b"", "topics-jsonl"))
    assert again.run.verdict == "done"


NUMBERS = [("partition", pa.int32()), ("offset", pa.int64()), ("timestamp", pa.int64())]
FIELDS = pa.schema([*NUMBERS, ("key", pa.binary()), ("value", pa.binary())])
TABLE = "partition int, offset bigint, timestamp bigint, key binary, value binary"
NAMES = ("a[1].jsonl", "b{c,d}.jsonl", "e*.jsonl", "f?.jsonl", "g\\h.jsonl", "i j%20.jsonl", "_k/l.jsonl", ".m/n.jsonl")


@pytest.mark.long
def test_names_are_taken_literally(workspace):
    """Each name has a neighbour that it would also name as a pattern; folders are read with all below them."""
    for name in ("a1.jsonl", "bc.jsonl", "bd.jsonl", "ee.jsonl", "ff.jsonl"):
        written(workspace, name, "no record\n")
    sources = [written(workspace, name, f"{line}\n") for name, line in zip(NAMES, GOOD, strict=False)]
    for at, name in enumerate(("2026/11/21/a.jsonl", "2026/11/22/b.jsonl", "2026/_SUCCESS"), len(NAMES)):
        written(workspace, f"tree/{name}", f"{GOOD[at]}\n")
    sources.append(SourceSettings(kind="offsets-jsonl", path=str(workspace.folder / "tree")))
    account = only(workspace.ingest(*sources))
    assert (account.lines, sum(account.quarantined.values())) == (len(NAMES) + 2, 0)
    pattern = SourceSettings(kind="offsets-jsonl", path=str(workspace.folder / "b[cd].json?"), glob=True)
    account = only(workspace.ingest(pattern, limits=MANY))
    assert (account.lines, dict(account.quarantined)) == (2, {"MALFORMED_LINE": 2})


def parquet(space, name, lines, **columns):
    found = [json.loads(line) for line in lines]
    rows = space.spark.createDataFrame(found, TABLE.replace("binary", "string"))
    return rows.selectExpr("*", *(f"{sql} AS {column}" for column, sql in columns.items()))


@pytest.mark.long
def test_tables_in_folders_are_read_as_spark_reads_them(workspace):
    path = str(workspace.folder / "log [1]")
    rows = parquet(workspace, "log", GOOD, date="date'2026-11-21' + int(offset % 2)")
    rows.write.partitionBy("date", "partition").parquet(path)
    nested = workspace.folder / "tree" / "2026" / "11"
    parquet(workspace, "tree", LOG[20:24]).write.parquet(str(nested))
    for line in LOG[24:30]:
        found = json.loads(line)
        folder = f"lines/partition={found.pop('partition')}"
        written(workspace, f"{folder}/{found['offset']}.jsonl", json.dumps(found) + "\n")
    sources = [SourceSettings(kind="offsets-parquet", path=each) for each in (path, str(workspace.folder / "tree"))]
    sources.append(SourceSettings(kind="offsets-jsonl", path=str(workspace.folder / "lines")))
    account = only(workspace.ingest(*sources))
    assert (account.rows, account.lines, account.records) == (24, 6, 30)
    assert len(workspace.rows(LOG_RECORDS)) == 30


@pytest.mark.long
def test_records_of_other_topics_are_left_out_of_tables(workspace):
    topic = "CASE WHEN offset % 2 = 0 THEN 'orders' ELSE '__consumer_offsets' END"
    parquet(workspace, "log", GOOD, topic=topic).write.parquet(str(workspace.folder / "log"))
    account = only(workspace.ingest(SourceSettings(kind="offsets-parquet", path=str(workspace.folder / "log"))))
    other = sum(json.loads(line)["offset"] % 2 == 0 for line in GOOD)
    assert (account.rows, account.records, account.unused["other topic"]) == (20, 20, other)
    assert len(workspace.rows(LOG_RECORDS)) == 20 - other > 0


def test_a_file_that_cannot_be_read_is_named_in_one_line(workspace):
    """Also where it lies in a folder that has the name of one of our tables."""
    whole = gzip.compress("".join(f"{line}\n" for line in LOG).encode())
    page = bytearray(damaged_parquet(workspace))
    timestamps = pa.table(
        {"partition": [1], "offset": [1], "timestamp": pa.array([2**63 - 1], pa.timestamp("ms", "UTC"))}
    )
    cases = [
        (written(workspace, "metrics/cut.jsonl.gz", whole[: len(whole) // 2]), "it is cut"),
        (written(workspace, "runs/plain.jsonl.gz", b"no gzip file at all\n" * 9), "it is no gzip file"),
        (written(workspace, "topics.jsonl.gz", whole[:-8] + bytes(8), "topics-jsonl"), "its check sum is wrong"),
        (written(workspace, "log_records/page.parquet", bytes(page), "offsets-parquet"), "cannot"),
        (written(workspace, "none.parquet", b"no parquet at all", "offsets-parquet"), ""),
        (written(workspace, "_hidden.jsonl", "{}"), "rename it"),
        (written(workspace, "colon:name.jsonl", "{}"), "colon"),
    ]
    (workspace.folder / "hidden").mkdir()
    written(workspace, "hidden/_part.jsonl", "{}")
    cases.append((SourceSettings(kind="offsets-jsonl", path=str(workspace.folder / "hidden")), "_part.jsonl"))
    for name in ("key", "value"):
        timestamps = timestamps.append_column(name, pa.array([b"x"]))
    pq.write_table(timestamps, workspace.folder / "late.parquet")
    cases.append((SourceSettings(kind="offsets-parquet", path=str(workspace.folder / "late.parquet")), "beyond"))
    for source, words in cases:
        with pytest.raises(Fault) as caught:
            workspace.ingest(source)
        message = caught.value.message
        assert caught.value.code in ("SOURCE_UNREADABLE", "FILES_PASSED_OVER"), message
        assert source.path in message, message
        assert words in message, message
        assert "\n" not in message, message
        assert not any(word in message for word in ("rebuild", "damaged, run", "org.apache")), message


def damaged_parquet(space):
    """A Parquet file whose pages are damaged and whose end is whole."""
    table = pa.table(
        {
            name: [json.loads(line)[name] for line in LOG]
            for name in ("partition", "offset", "timestamp", "key", "value")
        }
    )
    path = space.folder / "whole.parquet"
    pq.write_table(table, path, compression="gzip", write_page_checksum=True)
    data = bytearray(path.read_bytes())
    data[40:140] = bytes(100)
    path.unlink()
    return data
