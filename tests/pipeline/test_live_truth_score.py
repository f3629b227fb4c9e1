"""The judge of live days: it sees what is false, and takes "not known" for what it is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from groupledger.answers.causes import Cause, CauseKind, Moved
from groupledger.answers.timeline import TimelineEntry
from groupledger.core.moments import from_millis
from tests.live.truth.facts import Facts
from tests.live.truth.score import Outcome, judged

GROUP, TOPIC = "pay", "orders"
FOLLOW_UP = Cause(CauseKind.FOLLOW_UP, None, "withheld")
NOTHING = Cause(CauseKind.NOT_SHOWN, None, "nothing differs")
BORN = Cause(CauseKind.GROUP_BORN, None, "the first state")
DAY = Facts(
    [
        {"what": "act", "ms": 1_000, "group": GROUP, "act": "join", "clients": ["a"], "topics": [TOPIC]},
        {"what": "call", "ms": 1_500, "group": GROUP, "client": "a", "member_id": "a-1", "call": "assigned"}
        | {"partitions": [[TOPIC, 0], [TOPIC, 1]]},
        {"what": "settled", "ms": 1_900, "group": GROUP},
        {"what": "act", "ms": 2_000, "group": GROUP, "act": "join", "clients": ["b"], "topics": [TOPIC]},
        {"what": "call", "ms": 2_500, "group": GROUP, "client": "b", "member_id": "b-1", "call": "assigned"}
        | {"partitions": [[TOPIC, 1]]},
        {"what": "settled", "ms": 2_900, "group": GROUP},
        {"what": "act", "ms": 3_000, "group": GROUP, "act": "grow", "clients": [], "topics": [TOPIC]},
        {"what": "act", "ms": 4_000, "group": GROUP, "act": "leave", "clients": ["a", "b"]},
        {"what": "act", "ms": 5_000, "group": None, "act": "broker", "clients": []},
    ]
)
MOVED = (Moved(TOPIC, 1, "a-1", "b-1"),)


def joined(member):
    return Cause(CauseKind.MEMBER_JOINED, member, f"{member} joined")


def entry(at, *causes, moved=()):
    """A rebalance of the group at a moment of the day."""
    return TimelineEntry(
        cluster_id="live",
        group_id=GROUP,
        group_type="classic",
        incarnation=1,
        generation=at,
        began_at=from_millis(at),
        observed_at=from_millis(at) + timedelta(milliseconds=1),
        records=1,
        snapshot_id=f"log/live/0/{at}",
        snapshot_kind="generation",
        previous_snapshot_id=None,
        state="Stable",
        assignor="range",
        members_before=1,
        members=1,
        causes=causes,
        moved=moved,
        unowned=None,
        verdict=None,
        findings={},
        gaps=(),
    )


FIRST = entry(1_100, BORN)
RESTARTED = Cause(CauseKind.COORDINATOR_MOVED, None, "the leader epoch rose", possible=True)
MORE = Cause(CauseKind.PARTITIONS_ADDED, TOPIC, "went from 2 partitions to 3")


@pytest.mark.parametrize(
    ("entries", "outcomes"),
    [
        ([FIRST, entry(2_100, joined("b-1"))], ["right", "right"]),
        ([FIRST, entry(2_100, joined("a-1"))], ["right", "false"]),
        ([FIRST, entry(2_100, joined("b-1"), MORE)], ["right", "false"]),
        ([FIRST, entry(2_100, joined("b-1")), entry(2_200, FOLLOW_UP, moved=MOVED)], ["right", "right", "right"]),
        ([FIRST, entry(2_100, joined("b-1")), entry(2_200, NOTHING, moved=MOVED)], ["right", "right", "false"]),
        ([FIRST, entry(2_100, joined("b-1")), entry(2_200, NOTHING)], ["right", "right", "right"]),
        ([FIRST, entry(2_100, FOLLOW_UP, moved=MOVED)], ["right", "false"]),
        ([FIRST, entry(2_100, NOTHING, moved=MOVED)], ["right", "false"]),
        ([FIRST, entry(3_100, MORE)], ["right", "right"]),
        ([FIRST, entry(3_100, Cause(MORE.kind, "carts", "carts grew"))], ["right", "false"]),
        ([FIRST, entry(4_100, Cause(CauseKind.GROUP_EMPTIED, None, "all went"))], ["right", "right"]),
        ([FIRST, entry(3_100, Cause(CauseKind.GROUP_EMPTIED, None, "all went"))], ["right", "false"]),
        ([FIRST, entry(3_100, Cause(CauseKind.GROUP_DELETED, None, "deleted"))], ["right", "false"]),
        ([FIRST, entry(4_100, Cause(CauseKind.MEMBER_GONE, "a-1", "a is gone"))], ["right", "false"]),  # b as well
        ([FIRST, entry(3_100, RESTARTED)], ["right", "false"]),
        ([FIRST, entry(5_100, RESTARTED)], ["right", "right"]),
        ([FIRST, entry(5_100, NOTHING)], ["right"]),  # of a broker's end, nothing else is known
        ([entry(2_100, BORN), entry(3_100, MORE)], ["right"]),  # what a ledger begins with is no rebalance
    ],
)
def test_what_is_said_is_judged_by_what_was_done(entries, outcomes):
    found = list(judged(DAY, DAY.groups[GROUP], entries))
    assert [str(each.outcome) for each in found] == outcomes


def test_a_record_that_shows_no_difference_is_not_known():
    found = list(judged(DAY, DAY.groups[GROUP], [FIRST, entry(3_100, NOTHING)]))
    assert found[-1].outcome is Outcome.NOT_KNOWN
    assert found[-1].why == "the record shows no difference"


def test_owners_are_those_who_were_told_last_and_are_still_there():
    group = DAY.groups[GROUP]
    assert group.owners(1_800) == {(TOPIC, 0): "a", (TOPIC, 1): "a"}
    assert group.owners(2_800) == {(TOPIC, 0): "a", (TOPIC, 1): "b"}
    assert group.owners(4_500) == {}
