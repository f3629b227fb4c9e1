"""A what-if in the KIP's form settles in two rounds, where Kafka's own code takes a third."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core import assignors
from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import Seat, Subscription
from groupledger.core.protocol.leader import Question, plan
from groupledger.core.rebalance.step import Form
from groupledger.tables import columns as c
from tests.engine.bucket_rows import AS_KAFKA, KIP, computed, group_row, member_row, topic_row, wire

COUNTS = {"t0": 3, "t1": 1, "t2": 5}
TOPICS = {"A": ["t0"], "B": ["t0", "t1", "t2"], "C": ["t0", "t1", "t2"]}
HELD = {
    "A": [("t0", 1)],
    "B": [("t0", 0), ("t0", 2), ("t1", 0), ("t2", 2), ("t2", 4)],
    "C": [("t2", 0), ("t2", 3)],
}
"""B is to give t0-0 and t1-0 up. Kafka deals them anew in the second round, which lets t0-2 go to A in a third."""


def rows(held, assignor):
    """A group that ran `assignor` and might run cooperative-sticky; what it held was recorded for it before."""
    return [
        group_row("g/1", assignor=assignor, chosen="cooperative-sticky", previous_snapshot_id="g/0"),
        *(topic_row("g/1", topic, count) for topic, count in COUNTS.items()),
        *(member_row("g/1", at, name, topics=TOPICS[name], **_said(held[name])) for at, name in enumerate(TOPICS)),
        *(member_row("g/0", at, name, recorded=wire(held[name])) for at, name in enumerate(TOPICS)),
    ]


def _said(owned):
    return {"claimed": wire(owned), "claimed_generation": 4, "subscription_generation": 4}


def rounds(calculation, assignor="range"):
    """What members hold after each round, until one changes nothing."""
    held, found = HELD, []
    while not found or held != found[-1]:
        found.append(held)
        members = computed(rows(held, assignor), calculation)["assignments"]
        held = {
            row[c.MEMBER_ID]: sorted((each["topic"], at) for each in row[c.ASSIGNED] for at in each["partitions"])
            for row in members
        }
    return found[1:]


def test_a_what_if_takes_two_rounds_in_the_kips_form_and_three_in_kafkas():
    assert len(rounds(AS_KAFKA)) == 3
    first, second = rounds(KIP)
    assert all(set(first[name]) <= set(second[name]) for name in first)
    assert sum(map(len, second.values())) == sum(COUNTS.values())


def test_history_is_recomputed_as_kafka_does_it_in_either_form():
    assert rounds(KIP, "cooperative-sticky") == rounds(AS_KAFKA, "cooperative-sticky")


@pytest.fixture
def _gives_less(monkeypatch):
    """The assignor holds back the first partition that B has and is to keep, as `offer_less_until_stable` might."""

    def without_one(assignor, batch, answer, **_):
        given = answer.assigned
        kept = given.partition >= 0
        kept[given.start[1]] = False
        return replace(answer, assigned=given.only(kept))

    monkeypatch.setattr(assignors, "settle_in_two_rounds", without_one)


@pytest.mark.usefixtures("_gives_less")
def test_what_is_held_back_for_a_later_round_is_not_given_in_the_kips_form():
    members = computed(rows(HELD, "range"), KIP)["assignments"]
    awaited = {row[c.MEMBER_ID]: _named(row[c.TARGET]) - _named(row[c.ASSIGNED]) for row in members}
    seats = [Seat(name, Subscription(ByteCode.KIP_792, tuple(TOPICS[name]), _owned(name), 4)) for name in TOPICS]
    planned = plan(Question("cooperative-sticky", tuple(seats), COUNTS, Form.KIP))
    for name in TOPICS:
        assert awaited[name] == set(planned.target[name]) - set(planned.assigned[name])
    assert awaited["B"] <= set(HELD["B"]), "nobody else has it, and B is to give it up all the same"
    assert len(awaited["B"]) == 1


def _named(cell):
    return {(entry["topic"], partition) for entry in cell for partition in entry["partitions"]}


def _owned(name):
    return tuple(TopicPartition(*each) for each in HELD[name])
