"""Topics are found by cluster and name, whatever order their changes were read in."""

from __future__ import annotations

import pickle
from itertools import permutations

import numpy as np
import pyarrow as pa

from groupledger.core.arrays.batch import NONE
from groupledger.core.log.listings import TopicChange
from groupledger.engine.bucket_rows import TopicCatalogue
from tests.engine.bucket_rows import topic_row

ROWS = [
    topic_row("", "t", 4, 10, cluster_id="one", topic_id="first"),
    topic_row("", "t", None, 20, cluster_id="one"),
    topic_row("", "t", 6, 20, cluster_id="one", topic_id="second", racks=[["a"], ["b", "a"]]),
    topic_row("", "t", 9, 5, cluster_id="two"),
    topic_row("", "u", -1, 5, cluster_id="two"),
]


def catalogue(rows):
    return TopicCatalogue.of_rows([{name: row.get(name) for name in NAMES} for row in rows])


NAMES = ("cluster_id", "topic", "topic_id", "partition_count", "since", "racks")


def numbers(topics, *pairs):
    cluster, name = (pa.array([pair[at] for pair in pairs]) for at in (0, 1))
    every = np.arange(len(pairs))
    return topics.numbers(cluster, every, name, every)


def test_a_name_is_another_topic_in_another_cluster():
    topics = catalogue(ROWS)
    one, two, other, unknown, nowhere = numbers(
        topics, ("one", "t"), ("two", "t"), ("two", "u"), ("one", "u"), ("three", "t")
    )
    assert (unknown, nowhere) == (NONE, NONE)
    assert list(topics.changes(np.array([two]))) == [TopicChange("t", None, 9, None, 5)]
    assert [change.valid_from for change in topics.changes(np.array([one, two]))] == [10, 20, 20, 5]
    change = topics.listings.at(np.array([one, one, two, other]), np.array([9, 20, 20, 20]))
    assert change[0] == NONE
    assert topics.ids(change).to_pylist() == [None, "second", None, None]
    assert topics.racks(change).to_pylist() == [None, [["a"], ["b", "a"]], None, None]
    assert topics.negative[change[1:]].tolist() == [False, False, True]


def test_the_order_of_rows_says_nothing():
    first = catalogue(ROWS)
    for rows in permutations(ROWS):
        topics = catalogue(rows)
        assert topics.digest == first.digest
        (number,) = numbers(topics, ("one", "t"))
        assert list(topics.changes(np.array([number]))) == list(first.changes(numbers(first, ("one", "t"))))
    assert catalogue(ROWS[1:]).digest != first.digest


def test_it_travels_to_workers_and_may_be_empty():
    topics = pickle.loads(pickle.dumps(catalogue(ROWS)))  # noqa: S301 - our own bytes
    assert topics.digest == catalogue(ROWS).digest
    empty = catalogue([])
    assert numbers(empty, ("one", "t")).tolist() == [NONE]
    assert not empty.has_racks()
    assert len(empty.listings.start) == 1
