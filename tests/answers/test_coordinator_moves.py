"""A coordinator that moved or restarted between two states: what leader epochs of the log show, and no more."""

import pytest

from groupledger.answers.audit import caused
from groupledger.answers.explanation import explain
from groupledger.answers.reader import LedgerReader
from groupledger.answers.timeline import timeline
from tests.answers.histories import History, rows_of
from tests.answers.ledgers import write
from tests.answers.rows import at

SAME = "m a:0,1 | n a:2,3"
STABLE = History("pay").state(10, SAME).state(20, SAME)
TEXT = (
    "no member, subscription, topic or assignor differs: a member joined again (the log does not say which, or why); "
    "the leader epoch of log partition 0 rose from 3 to 4 between offsets 15 (2026-11-21T14:15:00.000Z) and 18 "
    "(2026-11-21T14:18:00.000Z), as it does when the coordinator moves or restarts"
)
RISE = {10: 3, 15: 3, 18: 4, 20: 4}
MOVED, NOTHING, JOINED = "coordinator-moved", "not-shown", "member-joined"


def epochs(of, cluster="dev", partition=0):
    """Records of any group at these offsets, each at the minute of its offset."""
    place = {"cluster_id": cluster, "log_partition": partition}
    return [place | {"offset": o, "timestamp": at(o), "leader_epoch": epoch} for o, epoch in of.items()]


def answered(folder, history, of):
    return LedgerReader(write(folder, **rows_of(history), log_records=epochs(of)))


def kinds(causes):
    return [(str(each.kind), each.possible) for each in causes]


CASES = {
    "it moved between two other records": (RISE, MOVED),
    "the state is the first record of the new leader": ({10: 3, 20: 4}, MOVED),
    "it moved twice": ({10: 1, 12: 3, 20: 4}, MOVED),
    "the epoch is the same": ({10: 4, 15: 4, 20: 4}, NOTHING),
    "the source has no epochs": ({10: None, 15: None, 20: None}, NOTHING),
    "there are none any more": ({}, NOTHING),
    "one of the two states has none": ({10: None, 15: 3, 20: 4}, NOTHING),
    "the epoch falls: another log": ({10: 4, 20: 3}, NOTHING),
    "two logs in one": ({10: 3, 15: 4, 17: 3, 20: 4}, NOTHING),
    "it moved long before": ({9: 3, 10: 3, 11: 4, 22: 4}, NOTHING),
}
LATE = History("pay").state(10, SAME).state(22, SAME)


@pytest.mark.parametrize("name", CASES)
def test_a_rebalance_in_which_nothing_else_differs(name, tmp_path):
    of, kind = CASES[name]
    reader = answered(tmp_path, LATE if 22 in of else STABLE, of)
    told = explain(reader, "pay")
    assert kinds(told.causes) == [(kind, kind == MOVED)]
    assert (told.leader_change is not None) == (kind == MOVED)
    assert timeline(reader, "pay").entries[-1].causes == told.causes
    row = {"cluster_id": "dev", "group_id": "pay", "group_type": "classic"}
    ids = {"snapshot_id": told.rebalance.snapshot_id, "previous_snapshot_id": told.rebalance.previous_snapshot_id}
    [found] = caused(reader, [row | ids]).values()
    assert found.causes == told.causes
    assert found.is_quiet


def test_what_the_record_shows_is_said(tmp_path):
    told = explain(answered(tmp_path, STABLE, RISE), "pay")
    assert [each.what for each in told.causes] == [TEXT]


def test_it_is_context_where_something_else_differs(tmp_path):
    history = History("pay").state(10, "m a:0,1,2,3").state(20, SAME)
    reader = answered(tmp_path, history, RISE)
    told = explain(reader, "pay")
    assert kinds(told.causes) == kinds(timeline(reader, "pay").entries[-1].causes) == [(JOINED, False)]
    change = told.leader_change
    assert change is not None
    assert (change.from_epoch, change.to_epoch, change.last_offset, change.first_offset) == (3, 4, 15, 18)


def test_other_log_partitions_and_clusters_say_nothing(tmp_path):
    records = [*epochs({10: 4, 20: 4}), *epochs(RISE, partition=1), *epochs(RISE, cluster="other")]
    reader = LedgerReader(write(tmp_path, **rows_of(STABLE), log_records=records))
    assert kinds(explain(reader, "pay").causes) == [(NOTHING, False)]
