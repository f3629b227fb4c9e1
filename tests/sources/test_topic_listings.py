"""Listings of topics become changes, once."""

import json

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from groupledger.config.loading import CAPTURES
from groupledger.sources.files import list_files
from groupledger.sources.topic_listings import changes, read_json
from groupledger.tables import TOPIC_SNAPSHOTS
from groupledger.tables import columns as c

BARE = StructType([field for field in TOPIC_SNAPSHOTS.schema if field.name != c.ATTEMPT_ID])


def line(ts, topic, topic_id="id", partitions=1, racks=("r",)):
    return {"ts": ts, "topic": topic, "topic_id": topic_id, "partitions": partitions, "racks": list(racks)}


def listing(spark, tmp_path, lines, name="topics.jsonl"):
    file = tmp_path / name
    file.write_text("".join(f"{text if isinstance(text, str) else json.dumps(text)}\n" for text in lines))
    return read_json(spark, list_files(spark, str(file)), "dev")


def told(found):
    rows = found.select(F.unix_millis(c.VALID_FROM), c.TOPIC, c.TOPIC_ID, c.PARTITION_COUNT).collect()
    return sorted((at, topic, topic_id, count is not None, count) for at, topic, topic_id, count in rows)


def short(found):
    return [(at, topic, topic_id, count) for at, topic, topic_id, _, count in told(found)]


def nothing(spark):
    return spark.createDataFrame([], BARE)


CASES = [
    pytest.param([line(1, "a"), line(2, "a")], [(1, "a", "id", 1)], id="the same again"),
    pytest.param(
        [line(1, "a"), line(2, "a", partitions=3)], [(1, "a", "id", 1), (2, "a", "id", 3)], id="partitions added"
    ),
    pytest.param(
        [line(1, "a"), line(1, "b"), line(2, "b")],
        [(1, "a", "id", 1), (1, "b", "id", 1), (2, "a", "id", None)],
        id="deleted",
    ),
    pytest.param(
        [line(1, "a"), line(1, "b"), line(2, "b"), line(3, "b"), line(3, "a", "new", 5)],
        [(1, "a", "id", 1), (1, "b", "id", 1), (2, "a", "id", None), (3, "a", "new", 5)],
        id="made again after a while",
    ),
    pytest.param(
        [line(1, "a"), line(2, "a", "new")], [(1, "a", "id", 1), (2, "a", "new", 1)], id="made again in between"
    ),
    pytest.param(
        [line(1, "a"), line(2, "a", racks=("s",))],
        [(1, "a", "id", 1), (2, "a", "id", 1)],
        id="replicas moved to another rack",
    ),
]


RACKS = [
    pytest.param(["r"], 2, [["r"], ["r"]], id="one rack is that of every partition"),
    pytest.param(["r", "r"], 2, [["r"], ["r"]], id="one rack, said twice"),
    pytest.param(["r", "s"], 2, None, id="several racks say nothing of a partition"),
    pytest.param([["r", "s"], ["s"]], 2, [["r", "s"], ["s"]], id="a list a partition"),
    pytest.param([], 2, None, id="no racks"),
    pytest.param(None, 2, None, id="none given"),
    pytest.param(["r"], 0, None, id="no partitions"),
]


BAD = [
    pytest.param({**line(2, "bad"), "partitions": -1}, "BAD_PARTITION_COUNT", id="negative count"),
    pytest.param({**line(2, "bad"), "partitions": None}, "BAD_PARTITION_COUNT", id="missing count"),
    pytest.param({**line(2, "bad"), "topic": None}, "BAD_TOPIC", id="no name"),
    pytest.param({**line(2, "bad"), "ts": None}, "BAD_MOMENT", id="no moment"),
    pytest.param('{"ts":2,"topic":"bad', "MALFORMED_LINE", id="half a line"),
]


COUNT_WRONG_ONCE = [line(1, "a"), line(2, "a", partitions=-1), line(3, "a")]


def clusters():
    """Return the lines of every case, by its name: each case is a cluster of its own."""
    of = {"a count wrong once": COUNT_WRONG_ONCE}
    for lines, _, name in parts(CASES):
        of |= {f"in order: {name}": lines, f"turned round: {name}": lines[::-1]}
    for racks, partitions, _, name in parts(RACKS):
        of[f"racks: {name}"] = [{**line(1, "a", partitions=partitions), "racks": racks}]
    for wrong, _, name in parts(BAD):
        of[f"bad: {name}"] = [line(1, "a"), wrong, line(2, "a", partitions=2)]
    return {name: [placed(text, name) for text in lines] for name, lines in of.items()}


def parts(cases):
    return [(*case.values, case.id) for case in cases]


def placed(text, cluster):
    """Return the line as text; a listing names no cluster, so that the topic does: `cluster/topic`."""
    if isinstance(text, str):
        return text
    return json.dumps({**text, "topic": text["topic"] and f"{cluster}/{text['topic']}"})


@pytest.fixture(scope="module")
def cases(spark, tmp_path_factory):
    """What a single reading of all cases gives: columns, changes by cluster, and rejected rows by their text."""
    lines = [text for its in clusters().values() for text in its]
    found = listing(spark, tmp_path_factory.mktemp("cases"), lines)
    cluster, topic = F.substring_index(c.TOPIC, "/", 1), F.substring_index(c.TOPIC, "/", -1)
    changed = changes(found.good.withColumns({c.CLUSTER_ID: cluster, c.TOPIC: topic}), nothing(spark))
    by_cluster = {name: [] for name in clusters()}
    for row in changed.withColumn(c.VALID_FROM, F.unix_millis(c.VALID_FROM)).orderBy(c.VALID_FROM, c.TOPIC).collect():
        by_cluster[row[c.CLUSTER_ID]].append(row)
    rejected = found.rejected.collect()
    by_text = {row[c.ROW]: row for row in rejected}
    assert len(by_text) == len(rejected) == len(BAD) + 1, "each wrong line once, and no other"
    return changed.columns, by_cluster, by_text


def brief(rows):
    return [(row[c.VALID_FROM], row[c.TOPIC], row[c.TOPIC_ID], row[c.PARTITION_COUNT]) for row in rows]


@pytest.mark.parametrize(("name", "expected"), [pytest.param(name, case, id=name) for _, case, name in parts(CASES)])
@pytest.mark.parametrize("order", ["in order", "turned round"])
def test_changes_between_listings(cases, name, expected, order):
    columns, by_cluster, _ = cases
    assert columns == BARE.names
    assert brief(by_cluster[f"{order}: {name}"]) == expected


@pytest.mark.parametrize(("name", "expected"), [pytest.param(name, case, id=name) for *_, case, name in parts(RACKS)])
def test_racks(cases, name, expected):
    [row] = cases[1][f"racks: {name}"]
    assert row[c.RACKS] == expected


@pytest.mark.parametrize(("name", "code"), [pytest.param(name, code, id=name) for _, code, name in parts(BAD)])
def test_a_bad_row_is_rejected_and_the_others_count(cases, name, code):
    _, by_cluster, by_text = cases
    cluster = f"bad: {name}"
    assert brief(by_cluster[cluster]) == [(1, "a", "id", 1), (2, "a", "id", 2)]
    row = by_text[clusters()[cluster][1]]
    assert (row[c.CODE], row[c.STAGE], row[c.CLUSTER_ID]) == (code, "topics", "dev")
    assert "expected" in row[c.MESSAGE]


def test_a_topic_whose_count_is_wrong_once_was_not_deleted(cases):
    _, by_cluster, by_text = cases
    assert brief(by_cluster["a count wrong once"]) == [(1, "a", "id", 1)]
    assert by_text[clusters()["a count wrong once"][1]][c.CODE] == "BAD_PARTITION_COUNT"


@pytest.mark.parametrize("cut", [1, 2, 3])
@pytest.mark.long
def test_what_is_known_is_not_told_again(spark, tmp_path, cut):
    """However the listings are divided over runs, all runs together say the same."""
    lines = [
        line(1, "a"),
        line(1, "b"),
        line(2, "b"),
        line(3, "b", partitions=2),
        line(4, "a", "new"),
        line(4, "b", partitions=2),
    ]
    whole = changes(listing(spark, tmp_path, lines).good, nothing(spark))
    first = [text for text in lines if text["ts"] <= cut]
    earlier = changes(listing(spark, tmp_path, first, "first.jsonl").good, nothing(spark)).localCheckpoint()
    rest = [text for text in lines if text["ts"] > cut]
    later = changes(listing(spark, tmp_path, rest, "rest.jsonl").good, earlier)
    assert told(earlier.unionByName(later)) == told(whole)
    assert told(changes(listing(spark, tmp_path, lines, "again.jsonl").good, whole.localCheckpoint())) == []


def test_a_name_made_again_in_the_captures_is_another_topic(spark):
    found = changes(
        read_json(spark, list_files(spark, str(CAPTURES / "edge" / "topics.jsonl.gz")), "edge").good, nothing(spark)
    )
    by_topic: dict[str, set[str]] = {}
    for _, topic, topic_id, _ in short(found):
        by_topic.setdefault(topic, set()).add(topic_id)
    assert max(len(ids) for ids in by_topic.values()) > 1
    assert all("=" not in topic_id and "+" not in topic_id for ids in by_topic.values() for topic_id in ids)
