"""The KIP-848 groups of a real broker, recomputed from its log: what it wrote is what we answer, in its order."""

import gzip
import json
from base64 import b64decode
from collections import Counter, defaultdict

import pytest

from groupledger.config.loading import CAPTURES
from groupledger.core.assignors.server.judgement import TargetCertainty, certainty, follow
from groupledger.core.assignors.server.orders import JOINED, LEFT, REWRITTEN
from groupledger.core.assignors.server.server_batch import assign, written
from groupledger.core.assignors.server.server_group import Topic, TopicId, encode
from groupledger.core.wire.offsets_log import decode


def read(capture, name):
    with gzip.open(CAPTURES / capture / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def raw(text):
    return None if text is None else b64decode(text)


def targets(capture, name="offsets"):
    """All targets of a capture's KIP-848 groups whose topics are named."""
    logs = defaultdict(list)
    for row in sorted(read(capture, name), key=lambda row: (row["partition"], row["offset"])):
        record = decode(raw(row["key"]), raw(row["value"]))
        if record.kind.startswith("ConsumerGroup"):
            logs[record.group_id].append((row["offset"], row["timestamp"], record))
    return [target for log in logs.values() for target in follow(log)]


def listings(capture):
    """Every listing of the topics: {name: Topic}."""
    seen: defaultdict[int, dict[str, Topic]] = defaultdict(dict)
    for row in read(capture, "topics"):
        topic_id = TopicId(b64decode(row["topic_id"].replace("-", "+").replace("_", "/") + "=="))
        seen[row["ts"]][row["topic"]] = Topic(topic_id, row["partitions"])
    return list(seen.values())


def answer(target, topics):
    """{member: record}: what the assignor of that moment answers among these topics."""
    batch, names = encode([target.group(topics)])
    records = written(batch, names, assign(target.assignor, batch), 0)
    return {
        member: tuple((topics[topic].topic_id, tuple(partitions)) for topic, partitions in record)
        for member, record in records.items()
    }


def is_reproduced(target, capture):
    """Whether some listing of the topics leads to exactly what was written: a listing may be a moment late."""
    return any(answer(target, topics) == target.after for topics in listings(capture))


@pytest.mark.parity
@pytest.mark.parametrize(
    ("capture", "name", "assignors"),
    [
        ("dev", "offsets", {"range": 7, "uniform": 17}),
        ("edge", "offsets", {"uniform": 59}),
        ("compacted", "offsets-before", {"uniform": 4}),
    ],
)
def test_every_target_of_the_broker_is_reproduced_with_its_order(capture, name, assignors):
    known = [target for target in targets(capture, name) if target.before_known]
    assert Counter(target.assignor for target in known) == assignors
    assert [target.epoch for target in known if not is_reproduced(target, capture)] == []


def test_a_joining_member_is_seen_in_the_write_of_its_target():
    joins = [target for target in targets("dev") if target.joining is not None]
    assert joins
    assert all(target.joining == target.members[-1].member_id for target in joins)
    assert all(
        target.changes.count(JOINED) == len(target.members) - 1 for target in joins if LEFT not in target.changes
    )
    assert {target.changes[-1] for target in joins if target.changes} == {REWRITTEN}


def test_nothing_is_claimed_of_what_compaction_took():
    """The target's own records are there, the ones it was computed from are not."""
    (left,) = targets("compacted")
    assert not left.before_known
    assert not left.history_known
    assert not is_reproduced(left, "compacted")


def test_groups_read_from_their_birth_are_exact():
    known = [target for target in targets("edge") if target.history_known]
    assert len(known) == 59
    for target in known:
        batch, _ = encode([target.group(listings("edge")[0])])
        assert certainty(target.assignor, batch, [target.history_known]) == [TargetCertainty.EXACT]


def test_a_group_that_is_deleted_and_made_again_begins_anew():
    epochs = [(target.epoch, target.history_known) for target in targets("edge") if target.epoch == 2]
    assert len(epochs) > 5
    assert all(known for _, known in epochs)
