"""Every look-up of topics over time gives one answer, to the microsecond: fold, assign, judgement and `show`."""

import itertools
from datetime import timedelta

import numpy as np
import pytest

from groupledger.answers.queries import lives
from groupledger.core.arrays.batch import NONE
from groupledger.core.assignors.server import judgement
from groupledger.core.assignors.server.judgement import WrittenTarget
from groupledger.core.assignors.server.server_group import ServerMember, TopicId
from groupledger.core.history import TopicChange, TopicHistory
from groupledger.core.moments import EPOCH
from groupledger.core.rebalance.verdict import Verdict
from groupledger.engine.bucket_rows import TopicCatalogue

RECORD_MS = 1_795_000_000_123
IDS = {"": TopicId(bytes(16)), "A": TopicId(b"A" * 16), "B": TopicId(b"B" * 16)}

HISTORIES: dict[str, list[tuple[str, int | None, int]]] = {
    "400 us before the record": [("A", 3, -400)],
    "at the record": [("A", 3, 0)],
    "400 us after, in the same millisecond": [("A", 3, 400)],
    "grown 400 us after": [("A", 3, -5_000), ("A", 5, 400)],
    "grown 400 us before": [("A", 3, -5_000), ("A", 5, -400)],
    "deleted 1 us after": [("A", 3, -5_000), ("A", None, 1)],
    "made again at the record": [("A", 3, -5_000), ("A", None, 0), ("B", 2, 0)],
    "told twice at one moment, with an id and without": [("", 4, 0), ("A", 3, 0)],
}


def of_fold(changes):
    rows = [TopicChange("t", topic_id or None, count, None, at) for topic_id, count, at in changes]
    state = TopicHistory(rows).as_of("t", RECORD_MS)
    return None if state is None else state[1]


def of_assign(changes):
    rows = [
        {"cluster_id": "c", "topic": "t", "topic_id": topic_id or None, "partition_count": count, "since": at}
        for topic_id, count, at in changes
    ]
    catalogue = TopicCatalogue.of_rows(rows)
    (change,) = catalogue.listings.at(np.array([0]), np.array([RECORD_MS * 1_000]))
    count = NONE if change == NONE else catalogue.listings.count[change]
    return None if count == NONE else int(count)


def of_show(changes):
    at = EPOCH + timedelta(milliseconds=RECORD_MS)
    found = lives(("c", topic_id or None, count, since) for topic_id, count, since in changes)
    alive = [life for life in found if life.since <= at and (life.until is None or at < life.until)]
    return alive[-1].partition_count if alive else None


def of_judgement(changes):
    known = [judgement.IdentifiedChange(at, "t", IDS[topic_id], count) for topic_id, count, at in changes]
    members = (ServerMember("m", ("t",)),)
    target = WrittenTarget(2, 0, RECORD_MS, "uniform", members, (), None, {}, True, True, False)
    exact = [view.topics for view in judgement.views(known, target) if view.equal is Verdict.EXACT]
    return exact[0]["t"].partitions if exact and "t" in exact[0] else None


@pytest.mark.parametrize("name", HISTORIES)
def test_the_change_in_force_at_a_record(name):
    history = [(topic_id, count, RECORD_MS * 1_000 + at) for topic_id, count, at in HISTORIES[name]]
    past = [count for _, count, at in HISTORIES[name] if at <= 0]
    expected = past[-1] if past else None
    for changes in itertools.permutations(history):
        assert of_fold(changes) == of_assign(changes) == of_show(changes) == expected
    assert of_judgement(sorted(history, key=lambda change: (change[2], change[1] is not None))) == expected
