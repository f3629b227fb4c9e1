"""Reports of people who run consumers of other libraries, as `groupledger solve` answers them."""

from __future__ import annotations

import json

from click.testing import CliRunner

from groupledger.cli import main

TEN = {f"t{number}": 1 for number in range(10)}
MIXED = {"topics": {"A": 6, "B": 2, "C": 1}, "members": [
    {"id": "m1", "topics": ["A"]}, {"id": "m2", "topics": ["A"]}, {"id": "m3", "topics": ["B"]},
    {"id": "m4", "topics": ["B", "C"]},
]}  # fmt: skip
ZONES = {"topics": {"t": 6}, "racks": {"t": [["b"], ["c"], ["a"], ["b"], ["c"], ["a"]]}, "members": [
    {"id": f"m{number}", "topics": ["t"], "rack": rack} for number, rack in enumerate("abc")
]}  # fmt: skip


def solved(*scenarios):
    ran = CliRunner().invoke(main, ["solve"], input="".join(f"{json.dumps(each)}\n" for each in scenarios))
    return ran.exit_code, [json.loads(line) for line in ran.stdout.splitlines()]


def lists(result):
    return {member: [f"{topic}{number}" for topic, number in mine] for member, mine in result["assignment"].items()}


def test_mixed_subscriptions_under_roundrobin():
    """librdkafka issue 3159: in both libraries a topic's partitions go in turn to its own subscribers."""
    code, results = solved(*({"assignor": name, **MIXED} for name in ("roundrobin", "librdkafka-roundrobin")))
    expected = {"m1": ["A0", "A2", "A4"], "m2": ["A1", "A3", "A5"], "m3": ["B0"], "m4": ["B1", "C0"]}
    assert (code, [lists(each) for each in results]) == (0, [expected] * 2)


def test_kafkajs_deals_its_leaders_topics_alone():
    """kafkajs issue 1679."""
    topics = ["topic-b", "topic-a", "topic-b", "topic-a"]
    members = [{"id": f"g-{number}", "topics": [topic]} for number, topic in enumerate(topics)]
    group = {"topics": {"topic-a": 2, "topic-b": 2}, "leader": "g-1", "members": members}
    code, (result,) = solved({"assignor": "kafkajs-roundrobin", **group})
    assert (code, lists(result)) == (0, {"g-0": ["topic-a0"], "g-1": ["topic-a1"], "g-2": [], "g-3": []})


def test_ten_topics_of_one_partition():
    """segmentio/kafka-go issue 1394: kafka-go gives all to the last member, or to the first."""
    members = [{"id": f"m{number}", "topics": list(TEN)} for number in range(3)]
    names = ("kafka-go-range", "kafka-go-roundrobin", "roundrobin", "range", "cooperative-sticky")
    code, results = solved(*({"assignor": name, "topics": TEN, "members": members} for name in names))
    sizes = [[len(mine) for mine in lists(each).values()] for each in results]
    assert (code, sizes) == (0, [[0, 0, 10], [10, 0, 0], [4, 3, 3], [10, 0, 0], [4, 3, 3]])


def test_racks_are_javas_or_refused():
    """librdkafka pull 4252."""
    names = ("range", "librdkafka-range", "librdkafka-cooperative-sticky", "franz-go-range")
    code, (java, *others) = solved(*({"assignor": name, **ZONES} for name in names))
    assert (code, lists(java)) == (3, {"m0": ["t2", "t5"], "m1": ["t0", "t3"], "m2": ["t1", "t4"]})
    assert [each["error"].split(":")[0] for each in others] == ["NO_ANSWER"] * 3
