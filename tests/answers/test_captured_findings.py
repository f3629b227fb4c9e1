"""What went wrong on a real broker is found by name, and nothing else."""

import pytest

from groupledger.answers.audit import audit
from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import Asked
from groupledger.answers.storms import storms
from tests.answers.captured import ledger_of

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
    ("storm", "storm"): {"NEVER_SETTLES": 29, "REPEATED_TOPIC": 30, "CLAIM_DIFFERS": 30},
}
"""Members that were stopped and came back with an old claim, whose partitions nobody had over two more generations; a
static member restarted with another subscription; topics that a librdkafka leader wrote twice; claims that differ as
the course of things has it; and the storm."""


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return LedgerReader(ledger_of(tmp_path_factory.mktemp("captures"), ["edge", "storm"]))


def test_each_is_found_by_name_and_nothing_else(reader):
    found = {}
    for each in audit(reader, Asked()).found:
        found.setdefault((each.cluster_id, each.group_id), {})[each.code] = each.records
    assert found == FOUND


def test_the_storm_has_the_repeated_topic_as_its_evidence(reader):
    [restless] = [each for each in audit(reader, Asked(cluster="storm")).found if each.code == "NEVER_SETTLES"]
    assert "found in them: REPEATED_TOPIC in 29" in restless.evidence
    first = storms(reader, Asked(), 1).groups[0]
    assert (first.group_id, first.rebalances, first.members[0].what) == ("storm", 37, "storm-go")
    assert [share.what for share in first.findings] == ["REPEATED_TOPIC", "CLAIM_DIFFERS"]
    assert first.causes[0].what == "not-shown"
