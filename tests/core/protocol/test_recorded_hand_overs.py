"""What members of a recorded group had committed when they gave partitions up, from logs written by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest

from groupledger.core.history.head import read_group_log
from groupledger.core.protocol.recorded import OffsetVerdict, judge, tenures, with_commits
from tests.core.history.captured import folded, log_rows
from tests.core.history.records import CLICKS, Log, Partitions, ShareLog, member

ONE: Partitions = {"clicks": (0,)}
CAPTURED = {OffsetVerdict.COMMITTED, OffsetVerdict.NOT_COMMITTED, OffsetVerdict.DELETED}
"""What members of the captures did: none of them sought back, and nobody set their offsets."""


class Eager(Log):
    """Members a and b take turns at clicks-0; each generation is one of its own."""

    def has(self, name, *others, generation):
        self.classic(generation, [member(name, ONE), *(member(each, {}) for each in others)])
        return self

    def commits(self, *offsets):
        for offset in offsets:
            self.commit(0, offset)
        return self

    def empty(self, generation):
        self.classic(generation, [])
        return self


def judged(log, partition=("clicks", 0)):
    """(from, to, commits, where the next one begins, verdict, read twice, never read) of each hand-over."""
    fold, read = log.fold(), read_group_log(log.rows)
    mine = read.by_partition().get(partition, [])
    empty = [row.offset for row in fold.group_snapshots if row.members == 0]
    dealt = with_commits(tenures(fold.group_snapshots, fold.member_snapshots, read.topics)[partition], mine, empty)
    told = []
    for one, following in zip(dealt, [*dealt[1:], None], strict=True):
        if one.tenure.given_up is not None:
            found = judge(one, following, ever=bool(mine), known=True)
            to = None if following is None else following.tenure.member_id
            begins = None if one.in_force is None else one.in_force.offset
            told.append((one.tenure.member_id, to, len(one.own), begins, found.verdict.value, *found[1:]))
    return told


def test_who_commits_before_it_gives_up_leaves_nothing_behind():
    log = Eager().has("a", generation=1).commits(100, 250).has("b", "a", generation=2).commits(300)
    assert judged(log) == [("a", "b", 2, 250, "committed", 0, None)]


def test_who_commits_nothing_has_the_next_one_begin_where_it_began():
    log = Eager().has("a", generation=1).commits(100).has("b", "a", generation=2).has("a", "b", generation=3)
    assert judged(log)[1:] == [("b", "a", 0, 100, "not-committed", None, None)]
    assert judged(Eager().has("a", generation=1).has("b", "a", generation=2).commits(5)) == [
        ("a", "b", 0, None, "not-committed", None, None)
    ]


def test_an_eager_member_gives_up_what_it_gets_back():
    log = Eager().has("a", generation=1).commits(100).has("a", "b", generation=2).commits(120)
    log.has("a", "b", generation=3)
    assert judged(log) == [("a", "a", 1, 100, "committed", 0, None), ("a", "a", 1, 120, "committed", 0, None)]


def test_a_partition_that_nobody_ever_committed_tells_nothing():
    assert judged(Eager().has("a", generation=1).has("b", "a", generation=2)) == [
        ("a", "b", 0, None, "idle", None, None)
    ]


def test_a_commit_that_goes_back_is_read_again():
    log = Eager().has("a", generation=1).commits(250, 40).has("b", "a", generation=2)
    assert judged(log) == [("a", "b", 2, 40, "went-back", 210, None)]
    log = Eager().has("a", generation=1).commits(250).has("b", "a", generation=2).commits(40).has("a", generation=3)
    assert judged(log) == [("a", "b", 1, 250, "sought-back", 210, None), ("b", "a", 1, 40, "went-back", 210, None)]


def test_a_commit_of_where_it_began_is_no_step_back():
    log = Eager().has("a", generation=1).commits(250).has("b", "a", generation=2).commits(250)
    assert judged(log) == [("a", "b", 1, 250, "committed", 0, None)]


def test_what_its_owner_deletes_is_deleted():
    log = Eager().has("a", generation=1).commits(250, None).has("b", "a", generation=2)
    assert judged(log) == [("a", "b", 2, None, "deleted", None, None)]


@pytest.mark.parametrize(("offset", "twice", "never"), [(100, 150, 0), (400, 0, 150)])
def test_an_offset_that_is_set_while_the_group_is_empty(offset, twice, never):
    """kafka-consumer-groups --reset-offsets: only an empty group lets anybody do so."""
    log = Eager().has("a", generation=1).commits(200, 250).empty(2).commits(offset).has("b", generation=3)
    assert judged(log) == [("a", "b", 2, offset, "set-while-empty", twice, never)]
    same = Eager().has("a", generation=1).commits(250).empty(2).commits(250).has("b", generation=3)
    assert judged(same) == [("a", "b", 1, 250, "committed", 0, None)]


def test_an_offset_that_is_deleted_leaves_the_next_one_to_its_configuration():
    log = Eager().has("a", generation=1).commits(250).empty(2).commits(None).has("b", generation=3)
    log.has("a", "b", generation=4).commits(7).has("b", "a", generation=5)
    assert judged(log) == [
        ("a", "b", 1, None, "deleted", None, None),
        ("b", "a", 0, None, "not-committed", None, None),
        ("a", "b", 1, 7, "committed", 0, None),
    ]
    assert judged(Eager().has("a", generation=1).commits(9, None, 4).has("b", "a", generation=2)) == [
        ("a", "b", 3, 4, "committed", 0, None)
    ]


def test_a_cooperative_member_commits_after_the_generation_that_takes_its_partition():
    """Generation 2 tells a to give clicks-0 up; it commits and joins again, and b gets it in generation 3."""
    both: Partitions = {"clicks": (0, 1)}
    log = Log()
    log.classic(1, [member("a", both)], protocol="cooperative-sticky")
    log.classic(2, [member("a", {"clicks": (1,)}, owned=both), member("b", {})], protocol="cooperative-sticky")
    log.commit(0, 80)
    last = [member("a", {"clicks": (1,)}, owned={"clicks": (1,)}), member("b", ONE)]
    log.classic(3, last, protocol="cooperative-sticky")
    log.commit(1, 10)
    assert judged(log) == [("a", "b", 1, 80, "committed", 0, None)]
    assert [each[:2] for each in judged(log, ("clicks", 1)) if each] == []


def test_members_that_are_gone_may_have_died():
    log = Eager().has("a", generation=1).commits(5)
    log.classic(2, [member("b", ONE)])
    fold = log.fold()
    (first, second) = tenures(fold.group_snapshots, fold.member_snapshots)[("clicks", 0)]
    assert (first.member_id, first.gone, first.given_up.generation) == ("a", True, 2)
    assert (second.member_id, second.gone, second.given_up) == ("b", False, None)


def test_members_of_a_group_that_ended_unseen_are_gone():
    """The generation fell without a tombstone: nobody called them, and they are not there any more."""
    fold = Eager().has("a", generation=7).has("b", generation=1).fold()
    (first, second) = tenures(fold.group_snapshots, fold.member_snapshots)[("clicks", 0)]
    assert (first.member_id, first.gone, first.given_up) == ("a", True, second.taken)
    assert second.taken.generation == 1


def test_a_group_that_its_coordinator_assigns():
    log = Log()
    for name in "ab":
        log.joined(name)
    log.step(1, {"a": {CLICKS: (0, 1)}, "b": {}})
    log.commit(0, 7)
    log.epoch(2)
    log.target("a", {CLICKS: (1,)})
    log.target("b", {CLICKS: (0,)})
    log.target_epoch(2)
    log.current("a", 1, {CLICKS: (1,)}, pending={CLICKS: (0,)})
    log.commit(0, 9)
    log.current("a", 2, {CLICKS: (1,)})
    log.current("b", 2, {CLICKS: (0,)})
    assert judged(log) == [("a", "b", 2, 9, "committed", 0, None)]


def test_members_of_a_share_group_have_nothing_to_themselves():
    log = ShareLog()
    log.share_joined("a")
    log.step(1, {"a": {CLICKS: (0,)}})
    fold = log.fold()
    assert fold.group_snapshots
    assert tenures(fold.group_snapshots, fold.member_snapshots) == {}


def test_a_group_that_is_converted_keeps_its_members_partitions():
    """The capture del-to-new: what its classic members commit is theirs until the new ones have it."""
    rows, log = folded("edge/offsets", "del-to-new"), read_group_log(log_rows("edge/offsets")["del-to-new"])
    found = tenures(rows.group_snapshots, rows.member_snapshots, log.topics)
    types = {(some[0].taken.group_type, some[-1].taken.group_type) for some in found.values()}
    assert types == {("classic", "consumer")}
    for some in found.values():
        assert all(one.given_up is not None for one in some)
        assert all(one.given_up.offset <= two.taken.offset for one, two in pairwise(some))


@pytest.mark.parametrize("name", ["dev/offsets", "edge/offsets", "compacted/offsets"])
def test_every_captured_commit_is_decoded_and_dealt_out_once(name):
    """Commits of before the first owner, and of topics that the group never had, belong to nobody."""
    for group, raw in log_rows(name).items():
        log, fold = read_group_log(raw), folded(name, group)
        kinds = fold.counts.unused.get("OffsetCommit", 0) + fold.counts.tombstones.get("OffsetCommit", 0)
        assert len(log.commits) == kinds, group
        had = tenures(fold.group_snapshots, fold.member_snapshots, log.topics)
        empty = [row.offset for row in fold.group_snapshots if row.members == 0]
        for partition, mine in log.by_partition().items():
            if partition not in had:
                continue
            dealt = with_commits(had[partition], mine, empty)
            some = [each for one in dealt for each in (*one.own, *one.outside)]
            assert some == [each for each in mine if each.log_offset > had[partition][0].taken.offset], group
            assert {judge(one, None, ever=True, known=True).verdict for one in dealt} <= CAPTURED, group


def test_timeouts_are_those_that_members_joined_with():
    log = Eager().has("a", generation=1)
    log.broken()
    assert read_group_log(log.rows).rebalance_timeout_ms == {"a": 300_000}
