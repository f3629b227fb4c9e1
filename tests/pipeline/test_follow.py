"""Following: when the next ingest begins, and which faults end it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from groupledger.core.faults import Fault
from groupledger.pipeline.ingest import PASSING, follow


class Turns:
    """Ingests that go as planned, on a clock of their own: each takes as long as said, and gives what is left."""

    def __init__(self, *turns, takes=0.0):
        self.turns, self.takes = list(turns), takes
        self.clock, self.waited, self.failed = 0.0, [], []

    def once(self):
        self.clock += self.takes
        turn = self.turns.pop(0)
        if isinstance(turn, Fault):
            raise turn
        return SimpleNamespace(left={"dev": turn}, number=len(self.turns))

    def stopped(self, seconds):
        self.waited.append(seconds)
        self.clock += seconds
        return not self.turns

    def follow(self, every, failures):
        return follow(self.once, every, failures, lambda: self.clock, self.stopped, self.failed.append)


def test_an_ingest_begins_a_turn_after_the_last_began():
    turns = Turns(0, 0, 0, takes=20.0)
    assert [each.number for each in turns.follow(60.0, 0)] == [2, 1, 0]
    assert turns.waited == [40.0, 40.0, 40.0]


def test_what_takes_longer_than_a_turn_is_followed_at_once():
    turns = Turns(0, 0, takes=90.0)
    list(turns.follow(60.0, 0))
    assert turns.waited == [0.0, 0.0]


def test_what_max_records_left_is_read_at_once():
    turns = Turns(500, 0, 0)
    list(turns.follow(60.0, 0))
    assert turns.waited == [0.0, 60.0, 60.0]


@pytest.mark.parametrize("code", sorted(PASSING))
def test_a_passing_fault_is_told_and_tried_again(code):
    fault = Fault(code, "for now")
    turns = Turns(0, fault, fault, 0, fault, fault, 0)
    assert len(list(turns.follow(60.0, 2))) == 3
    assert turns.failed == [fault] * 4
    assert turns.waited == [60.0] * 7


def test_one_failure_too_many_in_a_row_ends_it():
    turns = Turns(0, *(Fault("KAFKA_UNREACHABLE", f"{number}") for number in range(3)), 0)
    with pytest.raises(Fault, match=r"^2$"):
        list(turns.follow(60.0, 2))
    assert len(turns.failed) == 2


def test_a_fault_that_no_retry_mends_ends_it_at_once():
    turns = Turns(0, Fault("KAFKA_REFUSED", "the login"), 0)
    with pytest.raises(Fault, match="the login"):
        list(turns.follow(60.0, 10))
    assert turns.failed == []
