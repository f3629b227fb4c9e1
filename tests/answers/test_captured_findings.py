"""What went wrong on a real broker is found by name, and nothing else: all captures, as the demonstration has them."""

import pytest

from groupledger.answers.audit import audit
from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import RequestedScope
from groupledger.answers.storms import storms
from tests.docs.demo_ledger import unpack

FOUND = {
    ("edge", "stale-java"): {"UNOWNED": 3, "STALE_CLAIM": 2},
    ("edge", "stale-rdk"): {"UNOWNED": 2, "STALE_CLAIM": 1},
    ("edge", "st-java-range"): {"NOT_SUBSCRIBED": 1},
    ("edge", "st-rdk-range"): {"NOT_SUBSCRIBED": 2},
    ("edge", "mute-rdk"): {"REPEATED_TOPIC": 1},
    ("edge", "st-rdk-coop"): {"REPEATED_TOPIC": 1, "CLAIM_DIFFERS": 4},
    ("edge", "zo-rdk"): {"REPEATED_TOPIC": 2},
    ("edge", "st-java-coop"): {"CLAIM_DIFFERS": 4},
    ("edge", "up-coop-first"): {"CLAIM_DIFFERS": 7},
    ("edge", "up-range-first"): {"CLAIM_DIFFERS": 4},
    ("edge", "rc-java-re"): {"CLAIM_DIFFERS": 1},
    ("dev", "java-sticky"): {"EXCESS_MOVES": 1},
    ("dev", "java-cooperative-sticky"): {"EXCESS_MOVES": 1},
    ("dev", "rdk-cooperative-sticky"): {"EXCESS_MOVES": 1, "REPEATED_TOPIC": 2},
    ("storm", "storm"): {"NEVER_SETTLES": 29, "REPEATED_TOPIC": 30, "CLAIM_DIFFERS": 30, "EXCESS_MOVES": 1},
}
"""Members that were stopped and came back with an old claim, whose partitions nobody had over two more generations; a
static member restarted with another subscription; topics that a librdkafka leader wrote twice; claims that differ as
the course of things has it; sticky assignors that moved one partition too many, by all balances gone through; the
storm."""
EXCESS = {
    "java-sticky": "sticky moved 5 partitions where 4 had to move",
    "java-cooperative-sticky": "cooperative-sticky moved 5 partitions where 4 had to move",
    "rdk-cooperative-sticky": "cooperative-sticky moved 5 partitions where 4 had to move",
    "storm": "cooperative-sticky moved 6 partitions where 5 had to move",
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return LedgerReader(str(unpack(tmp_path_factory.mktemp("captures"))))


@pytest.fixture(scope="module")
def judged(reader):
    return audit(reader, RequestedScope())


def test_each_is_found_by_name_and_nothing_else(judged):
    found = {}
    for each in judged.found:
        found.setdefault((each.cluster_id, each.group_id), {})[each.code] = each.records
    assert found == FOUND
    assert (judged.records, judged.groups, judged.computed) == (678, 52, 678)


def test_what_moved_too_much_is_told_in_numbers(judged):
    assert {each.group_id: each.evidence for each in judged.found if each.code == "EXCESS_MOVES"} == EXCESS


def test_the_storm_has_the_repeated_topic_as_its_evidence(reader, judged):
    [restless] = [each for each in judged.found if each.code == "NEVER_SETTLES"]
    assert "found in them: REPEATED_TOPIC in 29" in restless.evidence
    first = storms(reader, RequestedScope(), 1).groups[0]
    assert (first.group_id, first.rebalances, first.members[0].what) == ("storm", 37, "storm-go")
    assert [share.what for share in first.findings] == ["REPEATED_TOPIC", "CLAIM_DIFFERS"]
    assert first.causes[0].what == "not-shown"
