"""Offset commits that the fold does not see: recognized as the fold does, and the ledger is the same."""

import gzip
import json
import random
from base64 import b64encode

import pytest

from groupledger import tables
from groupledger.config import LimitSettings
from groupledger.config.loading import CAPTURES
from groupledger.core.history import LogRow
from groupledger.core.wire.offsets_log import LogKey, RecordKind, commit_kind, encode_key, encode_value
from groupledger.core.wire.records import OffsetCommit
from groupledger.engine import fold_slices
from groupledger.pipeline import ingest
from groupledger.pipeline.fold_input import IS_COMMIT, mark_commits
from groupledger.sources.offsets_records import group_id, named_group
from groupledger.tables import columns as c
from tests.core.history.captured import log_rows
from tests.core.history.records import Log, member
from tests.fuzz.mutations import mutated

LOG = "edge/offsets"
TOPIC_ID = "V1YOFAs_SRGmS1V4W0hINg"
EVERY = (
    *(tables.LOG_RECORDS, tables.GROUP_SNAPSHOTS, tables.MEMBER_SNAPSHOTS, tables.OWNERSHIP_CHANGES),
    *(tables.GROUP_HEADS, tables.COVERAGE, tables.QUARANTINE, tables.VIOLATIONS),
)


def known(value: bytes | None) -> bytes:
    assert value is not None
    return value


def commit(version: int, metadata: str = "", topic: str = "clicks", group: str = "payments") -> tuple[bytes, bytes]:
    """Key and value of a commit of any version; -1: of the type that Kafka had before."""
    fields = {"topic": topic, "partition": 7}
    if version < 0:
        old = {"offset": 1, "metadata": metadata, "commit_timestamp": 1_700_000_000_000}
        kind = RecordKind.LEGACY_OFFSET_COMMIT
        return encode_key(LogKey(kind, 0, group, fields)), known(encode_value(kind, 0, old))
    value = OffsetCommit(
        *(1, 5 if version >= 3 else None, metadata, 1_700_000_000_000),
        2 if version == 1 else None,
        TOPIC_ID if version == 4 and metadata != "no id" else None,
    )
    kind = RecordKind.OFFSET_COMMIT
    return encode_key(LogKey(kind, 1, group, fields)), known(encode_value(kind, version, value))


GOOD = [
    commit(version, metadata, topic, group)
    for version in range(-1, 5)
    for metadata in ("", "no id", "größe", "x" * 120)
    for topic, group in (("clicks", "payments"), ("t" * 249, ""), ("", "größe"), ("klicks-ü", "g" * 300))
]


def is_marked(key: bytes | None, value: bytes | None) -> bool:
    """Whether it is a commit that some group made, and no tombstone; those of type 0 are for the fold."""
    return commit_kind(key) is RecordKind.OFFSET_COMMIT and value is not None and named_group(key) is not None


def marked_in_spark(spark, records: list[tuple[bytes | None, bytes | None]]) -> list[bool]:
    rows = [(number, key, value) for number, (key, value) in enumerate(records)]
    frame = spark.createDataFrame(rows, f"number int, {c.KEY} binary, {c.VALUE} binary")
    named = frame.withColumn(c.GROUP_ID, group_id(frame[c.KEY])).repartition(2)  # a local relation is interpreted
    return [row[IS_COMMIT] for row in sorted(mark_commits(named).select("number", IS_COMMIT).collect())]


def test_commits_are_marked_as_the_fold_counts_them(spark):
    """Good ones, captured ones, and thousands with keys and values cut, spliced, or with absurd lengths; null, short
    and unknown keys."""
    captured = [(row.key, row.value) for of_group in log_rows(LOG).values() for row in of_group]
    odd = [None, b"", b"\0", b"\0\1", b"\0\0", b"\0\1\0", b"\0\1\xff\xff", b"\0\1\0\0\0\0", b"\0\x09\0\1g", b"\xff\xfe"]
    records = [*GOOD, *captured, *((key, value) for key in odd for value in (None, b"", b"\0", GOOD[-1][1]))]
    records += [(key, value) for key, _ in GOOD for value in (None, b"", b"\0\5", b"\0\3", b"\0\4")]
    dice = random.Random(182)  # noqa: S311 seeded
    for _ in range(6_000):
        (key, value), (other_key, other_value) = dice.choice(GOOD), dice.choice(GOOD)
        if dice.random() < 0.5:
            records.append((mutated(key, other_key, dice), value))
        else:
            records.append((key, mutated(value, other_value, dice)))
    found, expected = marked_in_spark(spark, records), [is_marked(*record) for record in records]
    wrong = [(record, one) for record, one, other in zip(records, found, expected, strict=True) if one != other]
    assert wrong == []
    assert sum(expected[: len(GOOD)]) == len(GOOD) * 5 // 6, "but for those of type 0"
    assert sum(expected[len(GOOD) : len(GOOD) + len(captured)]) > 150
    assert 3_000 < sum(found[-6_000:]) < 6_000


def line(row: LogRow) -> str:
    key, value = (None if each is None else b64encode(each).decode() for each in (row.key, row.value))
    said = (row.log_partition, row.offset, row.timestamp_ms, key, value)
    return json.dumps(dict(zip(("partition", "offset", "timestamp", "key", "value"), said, strict=True)))


def committed(group: str, generations: int) -> Log:
    """A classic group with commits between and behind its generations, some of them tombstones, broken or legacy."""
    log = Log(group)
    for generation in range(1, generations + 1):
        log.classic(generation, [member(f"m-{generation % 3}", {"clicks": (0, 1)})])
        for version in (-1, 0, 1, 3, 4, 3):
            kind = RecordKind.OFFSET_COMMIT
            log.put(kind, None, topic="clicks", partition=0)
            key, value = commit(version, group=group)
            log.rows[-1] = log.rows[-1]._replace(key=key, value=value)
        log.put(kind, None, topic="clicks", partition=0)
    log.broken(RecordKind.OFFSET_COMMIT, topic="clicks", partition=0)
    return log


def moved(rows: list[LogRow], by: int, partition: int = 10) -> list[LogRow]:
    return [row._replace(offset=row.offset + by, log_partition=partition) for row in rows]


def with_last(rows: list[LogRow], group: str) -> list[LogRow]:
    """The rows, and a commit behind them."""
    key, value = commit(3, group=group)
    return [*rows, rows[-1]._replace(offset=rows[-1].offset + 1, key=key, value=value)]


def only_commits(group: str, number: int) -> list[LogRow]:
    key, value = commit(3, group=group)
    return [LogRow(3, offset, 1_000 * offset, key, value) for offset in range(number)]


def rewritten(group: str) -> list[LogRow]:
    """Two commits at one offset, and one beside a generation; one is there twice, at another time."""
    rows = moved(committed(group, 2).rows, 0, partition=11)
    key, value = commit(3, "other", group=group)
    again = [rows[0]._replace(key=key, value=value), rows[3]._replace(key=key, value=value)]
    return [*rows, *again, rows[4]._replace(timestamp_ms=rows[4].timestamp_ms + 1)]


def hostile() -> list[LogRow]:
    """Keys that begin as those of commits, and are none, among good ones."""
    good, value = commit(3, group="odd")
    topic = good[7:]
    keys = [None, b"", b"\0", b"\0\1", b"\0\1\0\3odd", good + b"\0", good[:-1], b"\0\1\0\3o\xff\xff" + topic]
    keys += [b"\0\x63\0\3odd", b"\0\1\xff\xff" + topic, good[:7] + b"\xff\xff" + good[9:], good]
    rows = [LogRow(10, 90_000 + number, 0, key, value) for number, key in enumerate(keys)]
    values = [b"", b"\0", b"\0\3", value + b"\0", value[:-1], b"\0\5" + value[2:], b"\xff\xff" + value[2:], value]
    return rows + [LogRow(10, 91_000 + number, 0, good, each) for number, each in enumerate(values)]


def captured() -> list[str]:
    """The lines of a capture whose groups are of all types."""
    return gzip.decompress((CAPTURES / "edge" / "offsets.jsonl.gz").read_bytes()).decode().splitlines()


def stories() -> list[list[str]]:
    """The lines of three ingests: new groups, new and late records, strays."""
    own = moved(with_last(committed("payments", 6).rows, "payments"), 0)
    late = moved(committed("late", 4).rows, 100_000)
    first = [*own, *moved(only_commits("commits", 9), 1_000), *rewritten("again"), *late[:9], *late[15:20], *hostile()]
    stray = moved(committed("stray", 3).rows, 200_000)
    second = [*moved(committed("payments", 3).rows, 1_000), *moved(only_commits("commits", 3), 2_000)]
    second += [*late[9:15], *late[20:], *stray[:-4], *moved(stray[-4:], 0, partition=12)]
    third = [*moved(only_commits("stray", 4), 300_000), *moved(only_commits("payments", 2), 310_000), *second[:5]]
    return [[*captured(), *map(line, first)], list(map(line, second)), list(map(line, third))]


def ledger_of(space, monkeypatch, worth_marking: int) -> tuple[list[object], list[int]]:
    """What three ingests left in a ledger, and how many records went through each of its folds."""
    monkeypatch.setattr(ingest, "WORTH_MARKING", worth_marking)
    through: list[int] = []
    buckets = fold_slices.fold_buckets

    def counted(rows, *rest):
        through.append(rows.where(rows[c.KIND].isin("record", "known")).count())
        return buckets(rows, *rest)

    monkeypatch.setattr(ingest, "fold_buckets", counted)
    found: list[object] = []
    topics = space.source("topics.jsonl", [], "topics-jsonl")
    for number, lines in enumerate(stories()):
        source = space.source(f"{number}.jsonl", lines)
        done = space.ingest(source, topics, limits=LimitSettings(max_quarantined=1_000), buckets=3)
        run = done.run
        found.append((done.accounts, run.counts_in, run.counts_out, run.result_digest, run.inputs["read"]))
    found.append({table.name: space.rows(table) for table in EVERY})
    return found, through


@pytest.mark.long
def test_a_ledger_is_the_same_whoever_counts_the_commits(new_workspace, monkeypatch):
    """Accounts, counts, digests, ends of what was read, and all rows of all tables, heads and quarantine among them."""
    in_worker, all_rows = ledger_of(new_workspace("worker"), monkeypatch, 1 << 60)
    in_jvm, some_rows = ledger_of(new_workspace("jvm"), monkeypatch, 0)
    for one, other in zip(in_worker, in_jvm, strict=True):
        assert one == other
    assert all(some < every for some, every in zip(some_rows, all_rows, strict=True))
    assert some_rows[0] < all_rows[0] - 150, "the commits of the capture alone"
