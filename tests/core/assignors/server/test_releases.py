"""Targets of other releases than Kafka 4.4: what 4.0.0 and 4.2.0 wrote is exact, under the name of the release."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import replace

import pytest

from groupledger.core.assignors.server.judgement import (
    IdentifiedChange,
    TopicView,
    WrittenTarget,
    follow,
    judge,
    judge_snapshots,
    views,
)
from groupledger.core.assignors.server.server_batch import ASSIGNORS, EARLIER, path_word, written
from groupledger.core.assignors.server.server_group import ServerMember, Topic, TopicId, encode
from groupledger.core.rebalance.verdict import Verdict
from groupledger.core.scenarios.solving import read
from groupledger.core.wire.codec import uuid_bytes, uuid_text
from groupledger.core.wire.offsets_log import LogKey, LogRecord, RecordKind, decode
from groupledger.core.wire.records import (
    AssignedTopic,
    ConsumerGroupMetadata,
    MemberMetadata,
    RegularExpression,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)
from tests.core.assignors.golden import PARITY
from tests.core.assignors.server.test_captures import raw

RELEASES = PARITY.parent / "parity-releases"
T, U = TopicId(b"t" * 16), TopicId(b"u" * 16)


def lines(name):
    with gzip.open(RELEASES / f"{name}.jsonl.gz", "rt", encoding="utf-8") as rows:
        return [json.loads(row) for row in rows]


def pairs_of_4_0_0(assignor):
    return [pair for pair in lines("server-4.0.0") if pair["scenario"]["assignor"] == f"server-{assignor}"]


def equal(pairs, assign):
    """Ids of the pairs that are answered as 4.0.0 answered: list for list, in the order of its records."""
    batch, names = encode([read(pair["scenario"]) for pair in pairs])
    result = assign(batch)
    found = set()
    for group, pair in enumerate(pairs):
        rows = written(batch, names, result, group)
        order = {member: [[topic, list(each)] for topic, each in mine] for member, mine in rows.items()}
        if order == pair["result"]["order"] and path_word(result.path, group) == pair["result"]["path"]:
            found.add(pair["scenario"]["id"])
    return found


@pytest.mark.parity
@pytest.mark.parametrize(("assignor", "count"), [("range", 13), ("uniform", 87)])
def test_all_pairs_of_4_0_0_are_equal_by_its_own_rule(assignor, count):
    pairs = pairs_of_4_0_0(assignor)
    assert len(equal(pairs, {**ASSIGNORS, **EARLIER}[assignor])) == len(pairs) == count


def test_only_uniform_with_one_subscription_has_a_rule_of_its_own():
    pairs = pairs_of_4_0_0("uniform")
    same = equal(pairs, ASSIGNORS["uniform"])
    differing = {pair["result"]["path"] for pair in pairs if pair["scenario"]["id"] not in same}
    assert set(EARLIER) == {"uniform"}
    assert differing == {"homogeneous"}
    assert len(pairs) - len(same) > 60


def changes_of(release):
    return [
        IdentifiedChange(row["ts"] * 1000, row["topic"], TopicId(uuid_bytes(row["topic_id"])), row["partitions"])
        for row in lines(f"broker-{release}.topics")
    ]


def logs_of(release):
    logs = defaultdict(list)
    for row in sorted(lines(f"broker-{release}.offsets"), key=lambda row: (row["partition"], row["offset"])):
        record = decode(raw(row["key"]), raw(row["value"]))
        if record.kind.startswith("ConsumerGroup"):
            logs[record.group_id].append((row["offset"], row["timestamp"], record))
    return logs


OF_4_0_0 = "exact as of Kafka 4.0.0"


@pytest.mark.parity
@pytest.mark.parametrize(
    ("release", "listed", "uni"),
    [
        ("4.0.0", True, ["exact", *[OF_4_0_0] * 3]),
        ("4.0.0", False, ["exact", *[OF_4_0_0] * 3]),  # it lists its topics itself
        ("4.2.0", True, ["exact"] * 4),
    ],
)
def test_every_target_of_a_broker_is_exact_under_a_named_release(release, listed, uni):
    changes = changes_of(release) if listed else []
    logs = logs_of(release)
    found = {
        group: [judge(target, views(changes, target)).verdict.text for target in follow(logs[group])]
        for group in ("uni", "re")
    }
    assert found == {"uni": uni, "re": ["exact"] * 3}


@pytest.mark.parametrize("release", ["4.0.0", "4.2.0"])
def test_a_group_of_before_4_3_is_known_from_its_epoch_1_on(release):
    targets = [target for log in logs_of(release).values() for target in follow(log)]
    assert [target.epoch for target in targets if target.epoch == 1] == [1, 1]
    assert all(target.before_known and target.history_known for target in targets)


def test_epoch_2_is_no_birth_where_its_target_has_no_time():
    """Before Kafka 4.3 there was an epoch 1, which compaction took, and with it the targets of then."""
    log = [entry for entry in logs_of("4.2.0")["uni"] if not is_epoch(entry, 1)]
    first, *_ = follow(log)
    assert (first.epoch, first.before_known) == (1, False)
    from_2 = [entry for entry in log if entry[0] > first.offset]
    (target, *_) = follow(from_2)
    assert (target.epoch, target.before_known, target.history_known) == (2, False, False)
    later = [(offset, at, with_time(record)) for offset, at, record in from_2]
    (target, *_) = follow(later)
    assert (target.before_known, target.history_known) == (True, True)


def is_epoch(entry, epoch):
    return entry[2].value == ConsumerGroupMetadata(epoch, getattr(entry[2].value, "metadata_hash", None))


def with_time(record):
    if record.kind is RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA and record.value is not None:
        return replace(record, value=replace(record.value, timestamp=5))
    return record


def uneven(**values):
    """Three members, four partitions, a target that 4.0.0 alone gives: by place the first has the extra one."""
    held = {"A": ((T, (0,)),), "B": ((T, (1, 2)),), "C": ((T, (3,)),)}
    members = tuple(ServerMember(each, ("t",), held[each]) for each in held)
    after = {"A": ((T, (0, 2)),), "B": ((T, (1,)),), "C": ((T, (3,)),)}
    given = {"before_known": True, "history_known": True, **values}
    return WrittenTarget(3, 9, 0, "uniform", members, (1,) * 3, None, after, **given)


FOUR = [TopicView(Verdict.EXACT, {"t": Topic(T, 4)})]


def test_the_rule_of_4_0_0_is_tried_after_that_of_now():
    assert judge(uneven(), FOUR).verdict is Verdict.EXACT_4_0_0
    before = TopicView(Verdict.EXACT_OLDER_TOPICS, FOUR[0].topics)
    older = [TopicView(Verdict.EXACT, {"t": Topic(T, 5)}), before]
    assert judge(uneven(), older).verdict.text == "exact-older-topics as of Kafka 4.0.0"
    stays = replace(uneven(), after={each.member_id: each.target for each in uneven().members})
    assert judge(stays, FOUR).verdict is Verdict.EXACT


def test_the_rule_of_4_0_0_is_not_tried_where_a_later_release_wrote():
    assert judge(uneven(since_4_1=True), FOUR).verdict is Verdict.VALID_DIFFERENT
    assert judge(replace(uneven(), assignor="range"), FOUR).verdict is Verdict.VALID_DIFFERENT


@pytest.mark.parametrize("base", ["EXACT", "EQUAL_SETS", "EXACT_OLDER_TOPICS", "EXACT_NEWER_TOPICS"])
def test_each_equality_has_its_form_of_4_0_0(base):
    plain, unless = Verdict[base], Verdict[f"{base}_UNLESS_NEIGHBOURS"]
    assert plain.as_of_4_0_0.text == f"{plain.text} as of Kafka 4.0.0"
    assert unless.as_of_4_0_0.text == f"{plain.text} as of Kafka 4.0.0, unless bucket neighbours compete"


def record(kind, value, **fields):
    return LogRecord(LogKey(kind, 0, "g", fields), 0, value)


def says(member, topics=(), regex=None):
    value = MemberMetadata(None, None, "client", "/host", topics, regex, 1_000, None)
    return record(RecordKind.CONSUMER_GROUP_MEMBER_METADATA, value, member_id=member)


def resolves(regex, *topics):
    value = RegularExpression(topics, 7, 0)
    return record(RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION, value, regular_expression=regex)


def epoch(number):
    return record(RecordKind.CONSUMER_GROUP_METADATA, ConsumerGroupMetadata(number, 1))


def gets(member, *topics):
    target = TargetAssignmentMember(tuple(AssignedTopic(uuid_text(each), numbers) for each, numbers in topics))
    return record(RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, target, member_id=member)


def complete(number):
    return record(RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, TargetAssignmentMetadata(number, 1))


def verdict(*records, listed=(("t", T, 2), ("u", U, 1))):
    log = [(offset, 0, each) for offset, each in enumerate(records)]
    changes = [IdentifiedChange(0, *each) for each in listed]
    return judge_snapshots(log, changes, [len(log)], "range")[0].verdict.text


ALL = (T, (0, 1)), (U, (0,))


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([says("A", regex=".*"), resolves(".*", "t", "u"), epoch(2), gets("A", *ALL), complete(2)], "exact"),
        ([says("A", regex=".*"), resolves(".*", "t", "gone"), epoch(2), gets("A", ALL[0]), complete(2)], "exact"),
        ([says("A", regex=".*"), epoch(2), gets("A"), complete(2)], "exact"),
        ([says("A", ("t",), ".*"), epoch(2), gets("A", ALL[0]), complete(2)], "exact"),
        ([says("A", ("t",), ".*"), resolves(".*", "u"), epoch(2), gets("A", *ALL), complete(2)], "exact"),
        ([says("A", regex=".*"), resolves(".*", "t"), epoch(2), gets("A", (T, (0,))), complete(2)], "valid-different"),
        (
            [says("A", regex=".*"), epoch(2), gets("A", *ALL), complete(2)],
            "cannot-tell: a regular expression subscribes",
        ),
        (  # a refresh behind the target is not what it was computed from
            [says("A", regex=".*"), resolves(".*", "t"), epoch(2), gets("A", ALL[0]), complete(2), resolves(".*")],
            "exact",
        ),
    ],
)
def test_an_expression_means_what_the_log_last_resolved_it_to(records, text):
    assert verdict(*records) == text


def test_an_expression_that_was_deleted_means_nothing_any_more():
    gone = LogRecord(
        LogKey(RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION, 0, "g", {"regular_expression": ".*"}), 0, None
    )
    born = [says("A", regex=".*"), resolves(".*", "t"), gone, epoch(2)]
    assert verdict(*born, gets("A"), complete(2)) == "exact"


def test_one_expression_for_all_is_one_subscription():
    """Kafka counts names and expressions apart: the same topics by both are two subscriptions."""
    log = [says("A", regex="t"), says("B", regex="t"), resolves("t", "t"), epoch(2), complete(2)]
    (target,) = follow([(offset, 0, each) for offset, each in enumerate(log)])
    assert target.homogeneous is True
    log[1] = says("B", ("t",), "t")
    (target,) = follow([(offset, 0, each) for offset, each in enumerate(log)])
    assert target.homogeneous is False
