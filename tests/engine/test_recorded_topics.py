"""Partition counts that no listing has are those of the record: listed late, or grown twice between two listings."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from groupledger.engine.bucket_rows import GROUP_ROW, MEMBER_ROW, MOMENT, ROW_KIND, SINCE
from groupledger.tables import columns as c
from tests.core.assignors.golden import gold
from tests.engine.bucket_rows import TOPIC, computed, group_row, member_row, scenario_rows, topic_row, wire
from tests.engine.live_days import DAYS, day_rows

SECOND = 1_000_000
EXACT = {"exact", "exact-older-topics", "exact-newer-topics", "exact-recorded-topics"}
EXACT |= {f"{each} as of Kafka 4.0.0" for each in EXACT}


def group(lists, *listed, assignor="range", claimed=None, topics=("t",), moment=0):
    """A generation at a moment (seconds), `lists` of (topic, partition), and listings (topic, seconds, count)."""
    members = [
        member_row(
            "g/1", at, name, recorded=wire(mine), topics=list(topics), claimed=wire((claimed or {}).get(name, ()))
        )
        for at, (name, mine) in enumerate(lists.items())
    ]
    changes = [topic_row("g/1", topic, count, since * SECOND) for topic, since, count in listed]
    row = group_row("g/1", assignor=assignor, leader="a", members=len(members), moment=moment * SECOND)
    return [row, *members, *changes]


def dealt(*counts, topic="t"):
    """The partitions of members a, b, ..: so many each, in order."""
    start = [sum(counts[:at]) for at in range(len(counts))]
    return {
        name: [(topic, number) for number in range(first, first + count)]
        for name, first, count in zip("abc", start, counts, strict=False)
    }


def result(rows):
    (row,) = computed(rows)["rebalances"]
    return row


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        pytest.param(group(dealt(2, 2), ("t", 9, 7)), "exact-recorded-topics", id="first listed later, and more"),
        pytest.param(group(dealt(4, 3), ("t", 9, 7)), "exact-newer-topics", id="first listed later"),
        pytest.param(group(dealt(3, 1), ("t", 9, 7)), "cannot-tell: no partition counts", id="listed later, no range"),
        pytest.param(group(dealt(4, 4), ("t", 9, 7)), "cannot-tell: no partition counts", id="more than listed later"),
        pytest.param(
            group(dealt(3, 3), ("t", 0, 4), ("t", 9, 8), moment=5), "exact-recorded-topics", id="between two listings"
        ),
        pytest.param(
            group(dealt(4, 2), ("t", 0, 4), ("t", 9, 8), moment=5), "valid-different", id="between them, no range"
        ),
        pytest.param(group(dealt(3, 3), ("t", 0, 4), moment=5), "exact-recorded-topics", id="grown since"),
        pytest.param(group(dealt(2, 1), ("t", 0, 4), moment=5), "invalid", id="fewer than ever listed"),
        pytest.param(
            group({"a": [("t", 0), ("t", 1)], "b": [("t", 3)]}, ("t", 9, 7)),
            "cannot-tell: no partition counts",
            id="one is missing",
        ),
        pytest.param(group(dealt(2, 2)), "cannot-tell: no partition counts", id="never listed"),
        pytest.param(
            group(dealt(3, 2), ("t", 0, 4), ("t", 9, 8), ("u", 0, 3), ("u", 9, None), topics=("t", "u"), moment=5),
            "exact-recorded-topics",
            id="another was deleted between them",
        ),
    ],
)
def test_a_record_is_compared_among_as_many_partitions_as_it_has(rows, verdict):
    assert result(rows)[c.VERDICT] == verdict


def test_what_a_member_claims_counts_where_a_round_withholds_it():
    """A cooperative round gives b nothing yet of what a must revoke first."""
    claims = {"a": [("t", number) for number in range(4)]}
    rows = group(dealt(2, 0), ("t", 9, 7), assignor="cooperative-sticky", claimed=claims)
    row = result(rows)
    assert row[c.VERDICT] == "exact-recorded-topics"
    assert (row[c.PARTITIONS], row[c.FOLLOW_UP]) == (4, True)


def test_all_numbers_are_those_of_the_topics_that_fit():
    row = result(group(dealt(2, 2), ("t", 9, 7)))
    assert (row[c.PARTITIONS], row[c.UNASSIGNED], row[c.LOAD_MIN], row[c.LOAD_MAX]) == (4, 0, 2, 2)


def test_other_libraries_are_asked_with_them_too():
    row = result(group({"a": [("t", 0)], "b": [("t", 1), ("t", 2)]}, ("t", 9, 7)))
    assert (row[c.ATTRIBUTION], row[c.ATTRIBUTED_TO]) == ("exact", ["kafka-go-range"])


def moved(scenario, recorded, *more):
    """A scenario whose topics had the first of these numbers beside its own count from 0 s on, then the second."""
    rows = scenario_rows(scenario, recorded)
    listed = [row for row in rows if row[ROW_KIND] == TOPIC]
    changes = [
        row
        | {SINCE: at * SECOND, c.PARTITION_COUNT: row[c.PARTITION_COUNT] + new}
        | {c.RACKS: None if row[c.RACKS] is None else [*row[c.RACKS], *[[]] * new]}
        for at, new in enumerate(more)
        for row in listed
    ]
    group_at_5 = [row | {MOMENT: 5 * SECOND} for row in rows if row[ROW_KIND] == GROUP_ROW]
    return [*group_at_5, *(row for row in rows if row[ROW_KIND] == MEMBER_ROW), *changes]


def test_racks_of_a_group_count_whatever_topics_another_group_had():
    """KIP-881: a leader that did not know of new partitions went by racks, also beside a group whose topics shrank."""
    drawn = [(each["scenario"], each["result"].get("assignment")) for each in gold("racks")]
    found = [(scenario, recorded) for scenario, recorded in drawn if scenario["assignor"] == "range" and recorded]
    grown = [moved(*each, 0, 2) for each in found[1:]]
    alone = [result(rows)[c.VERDICT] for rows in grown]
    assert alone.count("exact-older-topics") > len(alone) / 2
    together = computed([row for rows in [moved(*found[0], 2, 0), *grown] for row in rows])["rebalances"]
    by_group = {row[c.GROUP_ID]: row[c.VERDICT] for row in together}
    assert [by_group[scenario["id"]] for scenario, _ in found[1:]] == alone


@cache
def results_of(release, way):
    rows = day_rows(release, way)
    kinds = {row[c.SNAPSHOT_ID]: row[c.GROUP_TYPE] for row in rows if c.GROUP_TYPE in row}
    return [(kinds[row[c.SNAPSHOT_ID]], row) for row in computed(rows)["rebalances"]]


@pytest.mark.parity
@pytest.mark.parametrize("way", ["whole", "turns:3", "turns:6", "turns:40"])
@pytest.mark.parametrize("release", DAYS)
def test_no_target_of_a_coordinator_is_called_another_answer(release, way):
    found = Counter(row[c.VERDICT] for kind, row in results_of(release, way) if kind == "consumer" and row[c.MEMBERS])
    others = set(found) - EXACT - {"carried-over"}
    assert all(each.startswith("cannot-tell: ") for each in others)
    assert release == "4.4.0" or others == set()  # there topics were made again before they were ever listed
    assert found.total() > 100


@pytest.mark.parity
@pytest.mark.parametrize("release", ["4.0.0", "4.2.0"])
def test_numbers_do_not_depend_on_when_topics_were_listed(release):
    early, late = (
        [{name: value for name, value in row.items() if name != c.VERDICT} for _, row in results_of(release, way)]
        for way in ("turns:40", "whole")
    )
    assert early == late
