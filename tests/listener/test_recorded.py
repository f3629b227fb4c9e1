"""Listeners over recorded history: by its offset commits, what they leave uncommitted is told in records."""

from __future__ import annotations

from typing import ClassVar

import pytest

from groupledger.core.history.head import read_group_log
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.recorded import recorded_calls
from groupledger.listener import OffsetAndMetadata, RebalanceListener, rehearse_commits, rehearse_history, spend
from tests.core.history.captured import folded, log_rows
from tests.core.history.records import Log, Partitions, member

ONE: Partitions = {"clicks": (0,)}


class Careful(RebalanceListener):
    """Commits what it has read."""

    ahead = 0
    flush_ms = 0

    def on_partitions_assigned(self, partitions, consumer): ...

    def on_partitions_revoked(self, partitions, consumer):
        spend(self.flush_ms)
        consumer.commit_sync({each: OffsetAndMetadata(consumer.position(each) + self.ahead) for each in partitions})

    def on_partitions_lost(self, partitions, consumer): ...


class Silent(Careful):
    def on_partitions_revoked(self, partitions, consumer): ...


class Half(Careful):
    """Commits the first of the partitions that it gives up."""

    def on_partitions_revoked(self, partitions, consumer):
        super().on_partitions_revoked(partitions[:1], consumer)


class Counted(Silent):
    made = 0

    def __init__(self):
        type(self).made += 1


class Ahead(Careful):
    ahead = 5


class Slow(Careful):
    flush_ms = 300_001


class JustInTime(Careful):
    flush_ms = 300_000


class Elsewhere(Silent):
    """Keeps offsets of its own: here, that of the last owner."""

    offsets: ClassVar[dict[tuple[str, int], int]] = {}

    def on_partitions_assigned(self, partitions, consumer):
        for each in partitions:
            consumer.seek(each, self.offsets.get(each, 0))

    def on_partitions_revoked(self, partitions, consumer):
        self.offsets.update({each: consumer.position(each) for each in partitions})


class Pausing(Silent):
    def on_partitions_assigned(self, partitions, consumer):
        consumer.pause(partitions)


class Asking(Silent):
    asked: ClassVar[list[tuple[object, ...]]] = []

    def on_partitions_revoked(self, partitions, consumer):
        for each in partitions:
            ends, committed = consumer.end_offsets([each])[each], consumer.committed([each])[each]
            first = consumer.offsets_for_times({each: 0})[each]
            self.asked.append((consumer.position(each), ends, committed and committed.offset, first))


def handed(*before, between=(), after=(), eager=True):
    """a had clicks-0 and committed `before`; b got it and committed `after`; a got it back."""
    log = Log()
    log.classic(1, [member("a", ONE)])
    for offset in before:
        log.commit(0, offset)
    if eager:
        log.classic(2, [member("a", {}), member("b", ONE)])
    else:
        log.classic(2, [])
        for offset in between:
            log.commit(0, offset)
        log.classic(3, [member("b", ONE)])
    for offset in after:
        log.commit(0, offset)
    log.classic(4, [member("a", ONE), member("b", {})])
    return log


def replayed(log, make):
    fold = log.fold()
    return rehearse_commits(fold.group_snapshots, fold.member_snapshots, read_group_log(log.rows), make)


def wrong(log, make):
    return [
        (each.member, each.did, *(offset for offset, *_ in each.offsets)) for each in replayed(log, make) if each.error
    ]


def test_the_last_commit_before_a_partition_is_given_up_is_the_listeners():
    """a had read up to 250 and committed 100 itself; without the listener's commit b begins there."""
    log = handed(100, 250, after=(300, 310))
    assert wrong(log, Careful) == []
    assert wrong(log, Silent) == [
        ("a", "left uncommitted", 250),
        ("b", "reads again", 100),
        ("b", "left uncommitted", 310),
        ("a", "reads again", 300),
    ]
    told = [each.error for each in replayed(log, Silent) if each.error]
    assert told[0] == (
        "clicks-0 was read up to offset 250, and offset 100 is committed; expected a commit before the callback returns"
    )
    assert told[1] == "clicks-0 goes on at offset 100, and was read up to offset 250: reads again 150 records"


def test_where_nothing_else_was_committed_the_next_one_begins_nobody_knows_where():
    log = handed(250)
    assert wrong(log, Silent) == [("a", "left uncommitted", 250), ("b", "reads again")]
    assert replayed(log, Silent)[1].error == (
        "nothing is committed of clicks-0, which was read up to offset 250: "
        "the next owner begins where auto.offset.reset says"
    )


def test_what_was_committed_before_the_first_generation_is_where_the_next_one_begins():
    log = Log()
    log.commit(0, 40)
    log.classic(1, [member("a", ONE)])
    log.commit(0, 250)
    log.classic(2, [member("a", {}), member("b", ONE)])
    assert wrong(log, Silent) == [("a", "left uncommitted", 250), ("b", "reads again", 40)]


def test_what_is_committed_of_one_partition_says_nothing_of_another():
    two: Partitions = {"clicks": (0, 1)}
    log = Log()
    log.classic(1, [member("a", two)])
    for partition in (0, 1):
        log.commit(partition, 100)
        log.commit(partition, 250)
    log.classic(2, [member("a", {}), member("b", two)])
    told = [each.partitions for each in replayed(log, Half) if each.did == "left uncommitted"]
    assert told == [(("clicks", 1),)]


def test_a_member_that_nobody_knows_the_end_of_has_a_new_listener_if_it_comes_back():
    log = Log()
    for generation, members in enumerate(["ab", "b", "ab"], 1):
        log.classic(generation, [member(each, {"clicks": (number,)}) for number, each in enumerate(members)])
    Counted.made = 0
    replayed(log, Counted)
    assert Counted.made == 3


def test_a_commit_of_a_partition_that_nobody_had_is_nobodys():
    log = handed(100, 250, after=(300, 310))
    log.commit(7, 5)
    assert wrong(log, Careful) == []


def test_a_group_of_one_generation_is_replayed():
    log = Log()
    log.classic(1, [member("a", ONE)])
    log.commit(0, 100)
    assert {each.member for each in replayed(log, Pausing)} == {"a"}


def test_what_was_read_by_nobody_is_held_against_nobody():
    assert wrong(handed(), Silent) == []
    assert wrong(handed(100, 100, after=(100,)), Silent) == []


def test_a_commit_that_is_too_far_skips_what_lies_between():
    for after in ((300,), (250, 300)):  # to commit once more where it began takes nothing back
        assert wrong(handed(100, 250, after=after), Ahead) == [("b", "skips", 255)]


def test_offsets_that_are_kept_elsewhere_are_no_fault():
    Elsewhere.offsets.clear()
    journal = replayed(handed(100, 250, after=(300, 310)), Elsewhere)
    assert [(each.member, each.did, each.offsets[0].offset) for each in journal] == [
        ("a", "seek", 0),
        ("b", "seek", 250),
        ("a", "seek", 310),
    ]
    assert [each.error for each in journal] == [None, None, None]
    assert Elsewhere.offsets == {("clicks", 0): 310}


def test_what_is_paused_is_not_read():
    assert wrong(handed(100, 250, after=(300, 310)), Pausing) == []


def test_logs_reach_as_far_as_anybody_has_committed():
    Asking.asked.clear()
    replayed(handed(100, 250, after=(300, 310)), Asking)
    assert Asking.asked == [(250, 250, 100, None), (310, 310, 300, None)]


@pytest.mark.parametrize("log", [handed(0), handed(between=(0,), eager=False)], ids=["owner", "nobody"])
def test_a_log_of_which_offset_0_is_committed_may_be_empty(log):
    Asking.asked.clear()
    replayed(log, Asking)
    assert {ends for _, ends, _, _ in Asking.asked} == {0}


def test_what_somebody_else_commits_is_in_the_log_as_well():
    Asking.asked.clear()
    replayed(handed(100, between=(400,), eager=False), Asking)
    assert Asking.asked[-1] == (400, 400, 400, None)


def test_a_member_is_in_the_generation_that_it_joined():
    told = [(each.member, each.did, each.generation) for each in replayed(handed(100, 250, after=(300,)), Careful)]
    assert told == [("a", "commit", 1), ("b", "commit", 2)]


def test_a_deleted_commit_is_committed_no_longer():
    Asking.asked.clear()
    replayed(handed(100, None), Asking)
    assert Asking.asked[0] == (100, 100, None, None)


def test_a_member_that_goes_back_reads_again_by_itself():
    """b sought back to 40: that is no fault of the listener, and neither is where a goes on."""
    log = handed(100, 250, after=(40, 60))
    assert wrong(log, Careful) == []
    assert wrong(log, Silent)[-2:] == [("b", "left uncommitted", 60), ("a", "reads again", 40)]


@pytest.mark.parametrize("offset", [7, 400, None])
def test_what_is_set_while_the_group_is_empty_is_nobodys_fault(offset):
    log = handed(100, 250, between=(offset,), after=(500,), eager=False)
    assert wrong(log, Careful) == []
    assert wrong(log, Silent) == [("a", "left uncommitted", 250), ("b", "left uncommitted", 500)] + (
        [("a", "reads again")] if offset is None else [("a", "reads again", offset)]
    )


def test_a_callback_that_takes_longer_than_the_rebalance_timeout_is_told_and_its_commit_refused():
    log = handed(100, 250)
    assert wrong(log, JustInTime) == []
    found = replayed(log, Slow)
    ends = ["commit", "left uncommitted", "expelled", "raised CommitFailedError"]
    assert [each.did for each in found if each.member == "a"] == ends
    late = next(each for each in found if each.did == "expelled")
    assert late.callback is Callback.REVOKED
    assert late.partitions == (("clicks", 0),)
    assert late.error == (
        "onPartitionsRevoked took 300,001 ms: the group would go on without the member; "
        "expected less than its rebalance timeout of 300,000 ms"
    )


def test_timeouts_count_without_commits_too():
    log = handed()
    fold, read = log.fold(), read_group_log(log.rows)
    calls = list(recorded_calls(fold.group_snapshots, fold.member_snapshots))
    told = {make: rehearse_history(calls, make, timeouts=read.rebalance_timeout_ms) for make in (Slow, JustInTime)}
    late = {make: sum(each.did == "expelled" for each in found) for make, found in told.items()}
    assert late == {Slow: 2, JustInTime: 0}
    assert [each for each in rehearse_history(calls, Slow) if each.did == "expelled"] == []


def test_a_cooperative_member_had_read_what_it_committed_after_the_generation_that_revoked_it():
    log = Log()
    both: Partitions = {"clicks": (0, 1)}
    log.classic(1, [member("a", both)], protocol="cooperative-sticky")
    log.commit(0, 50)
    log.classic(2, [member("a", {"clicks": (1,)}, owned=both), member("b", {})], protocol="cooperative-sticky")
    log.commit(0, 80)
    last = [member("a", {"clicks": (1,)}, owned={"clicks": (1,)}), member("b", ONE)]
    log.classic(3, last, protocol="cooperative-sticky")
    log.commit(1, 10)
    assert wrong(log, Careful) == []
    assert wrong(log, Silent) == [("a", "left uncommitted", 80), ("b", "reads again", 50)]


@pytest.mark.parametrize("group", ["java-range", "java-cooperative-sticky", "kpy-sticky", "rdk-range"])
def test_captured_commits_convict_who_commits_nothing_and_nobody_else(group):
    rows, log = folded("dev/offsets", group), read_group_log(log_rows("dev/offsets")[group])
    told = {
        make: rehearse_commits(rows.group_snapshots, rows.member_snapshots, log, make) for make in (Careful, Silent)
    }
    assert [each for each in told[Careful] if each.error] == []
    assert {each.did for each in told[Silent] if each.error} == {"left uncommitted", "reads again"}
    left = {each.partitions for each in told[Silent] if each.did == "left uncommitted"}
    assert left <= {(each.partition,) for each in log.commits}
    assert told[Silent] == rehearse_commits(rows.group_snapshots, rows.member_snapshots, log, Silent)
