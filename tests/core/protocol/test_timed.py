"""A group with a clock: who learns of what when, and what that costs. Times are those of Kafka's classic groups."""

from __future__ import annotations

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback, MemberTimes
from groupledger.core.protocol.settlement import Pace
from groupledger.core.protocol.simulated_group import Records
from tests.core.protocol.played import t
from tests.core.protocol.timed_groups import COOPERATIVE, RANGE, SETTLED_MS, join, listened, played


def waited(settled):
    return [sum(each.unavailable_ms.values()) for each in settled]


# The first generation


@pytest.mark.parametrize(
    ("joins_ms", "rebalance_ms", "given_ms"),
    [
        ([0], 300_000, 3_000),  # nobody else comes
        ([0, 2_999], 300_000, 6_000),  # once more, since somebody came
        ([0, 2_999, 5_999], 300_000, 9_000),
        ([0, 2_999, 5_999], 5_000, 5_000),  # but for no longer than a rebalance timeout in all
        ([0, 2_999, 4_000], 5_000, 5_000),
    ],
)
def test_the_first_generation_waits_for_those_who_come(joins_ms, rebalance_ms, given_ms):
    """`group.initial.rebalance.delay.ms`; who comes after it makes a round of their own."""
    joins = [join(f"m{at}", at_ms) for at, at_ms in enumerate(joins_ms)]
    first = next(each for each in listened(played(*joins, rebalance_timeout_ms=rebalance_ms)))
    assert first[0] == given_ms


def test_the_calls_of_one_that_comes_are_of_the_round_that_it_comes_for():
    """It joins twice: the coordinator gives it its member id first (KIP-394)."""
    settled = played(join("a"), join("b", SETTLED_MS))
    made = [(each.round, each.call.callback) for one in settled for each in one.calls if each.member == "b"]
    assert made[:2] == [(settled[-1].calls[0].round, Callback.USER_DATA)] * 2


def test_an_empty_group_waits_again():
    settled = played(join("a"), e.Leave("a", at_ms=50_000), e.Restart("a", at_ms=60_000))
    assert [each[0] for each in listened(settled, "a")] == [3_000, 50_000, 63_000]


# A rebalance


@pytest.mark.parametrize(
    ("assignors", "revoked_ms", "taken_ms"),
    [
        # a polls every 190 ms from 3,012 on. It hears of b at 102,012 and joins at its next poll, at 102,192. Eager: it
        # owns nothing then, waits in that poll, and two round trips later both have their assignment.
        (RANGE, 102_192, 102_200),
        # Cooperative: it works on, sees JoinGroup answered at 102,382 and its assignment at 102,572, revokes, and joins
        # at once; b hears of that by its own heartbeat, at 105,200, and a leads it to an assignment at its next poll.
        (COOPERATIVE, 102_572, 105_236),
    ],
)
def test_a_member_learns_of_a_rebalance_by_heartbeat_and_joins_when_its_work_is_done(assignors, revoked_ms, taken_ms):
    joins = [join("a", 0, assignors), join("b", 100_500, assignors)]
    calls = listened(played(*joins, round_trip_ms=4, processing_ms=190))
    assert calls[0] == (3_012, "a", "Assigned", [0, 1, 2, 3])
    assert next(each[0] for each in calls if each[1:3] == ("a", "Revoked")) == revoked_ms
    assert next(each[0] for each in calls if each[1:3] == ("b", "Assigned")) == taken_ms


def test_cooperative_members_lose_only_what_moves_eager_ones_all():
    each = {"round_trip_ms": 4, "processing_ms": 200}
    cooperative = played(join("a"), join("b", SETTLED_MS), **each)[-1]
    eager = played(join("a", 0, RANGE), join("b", SETTLED_MS, RANGE), **each)[-1]
    assert set(cooperative.unavailable_ms) == set(t(2, 3))
    assert set(eager.unavailable_ms) == set(t(0, 1, 2, 3))
    assert {outage.partition for outage in eager.timed.outages} == set(t(0, 1, 2, 3))


def test_the_join_phase_ends_at_the_rebalance_timeout_without_who_is_too_slow():
    """b works for 40 s on a poll: it is expelled 20 s after the rebalance began, and loses all at its next poll."""
    slow = {"b": MemberTimes(processing_ms=40_000, rebalance_timeout_ms=60_000, heartbeat_interval_ms=1_000)}
    settled = played(join("a"), join("b"), join("c", 50_000), of=slow, rebalance_timeout_ms=20_000, partitions=6)
    calls = listened(settled, "b")
    assert calls[0][2] == "Assigned"
    # The longest rebalance timeout counts, b's own: b is back at 80 s or so, before it.
    assert [each[2] for each in calls[1:]] == ["Revoked"]
    slow = {"b": MemberTimes(processing_ms=40_000, rebalance_timeout_ms=20_000, heartbeat_interval_ms=1_000)}
    joins = join("a"), join("b"), join("c", 50_000)
    settled = played(*joins, of=slow, rebalance_timeout_ms=20_000, partitions=6, rests=False)
    assert "Lost" in [each[2] for each in listened(settled, "b")]


@pytest.mark.parametrize(
    ("assignors", "callback"),
    [(RANGE, Callback.REVOKED), (RANGE, Callback.USER_DATA), (COOPERATIVE, Callback.USER_DATA)],
)
def test_who_prepares_to_join_is_not_told_to_join_once_more(assignors, callback):
    """REBALANCE_IN_PROGRESS, heard while a callback before JoinGroup runs, says nothing new: no round more for it."""
    leaves = [e.Leave("b", at_ms=SETTLED_MS), e.Leave("c", at_ms=SETTLED_MS + 1_500)]
    settled = played(
        *(join(name, 0, assignors) for name in "abc"),
        *leaves,
        heartbeat_interval_ms=500,
        round_trip_ms=4,
        pace=Pace(callback_ms={callback: 4_000}),
    )
    assert [len(each.rounds) for each in settled[-2:]] == [0, 1]


def test_a_process_without_heartbeats_while_it_makes_its_user_data_is_expelled_when_its_session_ends():
    """From subscriptionUserData on it sends none (PREPARING_REBALANCE), be its own heartbeats ever so frequent."""
    pace = Pace(callback_ms={Callback.USER_DATA: 8_000})
    joins = [join("a", static=True), join("b", SETTLED_MS, static=True)]
    settled = played(*joins, session_timeout_ms=6_000, heartbeat_interval_ms=500, pace=pace, rests=False)
    assert "Lost" in [each[2] for each in listened(settled[-1:], "a")]


def test_events_take_effect_at_their_own_moment():
    """c comes while the rebalance that b caused waits for a: one round for both."""
    settled = played(join("a"), join("b", SETTLED_MS), join("c", SETTLED_MS + 500), processing_ms=1_000, partitions=6)
    assert settled[1].rounds == ()
    assert settled[1].timed.rebalancing
    assert [len(took.members) for took in settled[2].rounds] == [3, 3]


def test_who_joins_while_the_leader_assigns_starts_the_round_again():
    """The others' SyncGroup is answered REBALANCE_IN_PROGRESS."""
    settled = played(join("a"), join("b"), join("c", 6_100), round_trip_ms=200, delay_ms=3_000)
    rounds = [took for each in settled for took in each.rounds]
    assert [[row.answered for row in took.members] for took in rounds] == [[False, False], [True, True, True]]


# Going


def test_a_leave_is_at_once_and_a_static_one_waits_for_the_session():
    leaves = [join("a"), join("b"), e.Leave("b", at_ms=SETTLED_MS)]
    static = [join("a", static=True), join("b", static=True), e.Leave("b", at_ms=SETTLED_MS)]
    each = {"heartbeat_interval_ms": 1_000}
    dynamic, waiting = played(*leaves, **each), played(*static, **each)
    assert waited(dynamic)[-1] == 2 * 0  # a polls all the time, and its heartbeat is due at this very moment
    taken = listened(waiting, "a")[-1]
    assert taken == (SETTLED_MS + 45_000, "a", "Assigned", [1, 3])
    assert waited(waiting)[-1] == 2 * 45_000


@pytest.mark.parametrize("gone", [e.Crash, e.Pause])
@pytest.mark.parametrize(("round_trip_ms", "heard_ms"), [(0, 99_200), (200, 99_600 + 100)])
def test_who_is_gone_is_expelled_a_session_after_its_last_heartbeat(gone, round_trip_ms, heard_ms):
    """They joined at 6,200, so the last heartbeat before 100,500 was at 99,200; or 400 later, after two round trips."""
    each = {"session_timeout_ms": 10_000, "round_trip_ms": round_trip_ms}
    settled = played(join("a"), join("b", 1_000), gone("b", at_ms=100_500), delay_ms=3_100, **each)
    (round_, *_) = settled[-1].rounds
    assert round_.started_ms == heard_ms + 10_000
    assert [row.member for row in round_.members] == ["a"]


def test_who_is_back_before_its_session_ends_was_only_away():
    settled = played(join("a"), join("b"), e.Pause("b", at_ms=SETTLED_MS), e.Resume("b", at_ms=SETTLED_MS + 9_000))
    assert settled[-1].rounds == settled[-2].rounds == ()
    assert settled[-2].unavailable_ms == dict.fromkeys(t(1, 3), 9_000)


@pytest.mark.parametrize(("stood_ms", "left"), [(19_999, False), (20_000, True)])
def test_who_stood_still_for_its_longest_poll_interval_leaves_when_it_goes_on(stood_ms, left):
    away = e.Pause("b", at_ms=SETTLED_MS), e.Resume("b", at_ms=SETTLED_MS + stood_ms)
    back = played(join("a"), join("b"), *away, rebalance_timeout_ms=20_000, session_timeout_ms=40_000)[-1]
    assert [each[2] for each in listened([back], "b")] == (["Lost", "Assigned"] if left else [])


def test_the_first_outage_begins_when_the_first_member_comes():
    assert played(join("a"), delay_ms=3_000)[0].unavailable_ms == dict.fromkeys(t(0, 1, 2, 3), 3_000)


def test_polls_are_later_by_as_long_as_a_process_stood_still():
    """They are at odd seconds; a hears of b by its heartbeat at 120,000, or 122,750 (one was sent as it went on)."""
    for stood_ms, revoked_ms in ((0, 121_000), (1_250, 123_000 + 1_250)):
        away = [e.Pause("a", at_ms=100_500), e.Resume("a", at_ms=100_500 + stood_ms)] if stood_ms else []
        settled = played(join("a", 0, RANGE), *away, join("b", 120_000, RANGE), processing_ms=2_000)
        first = next(each for each in settled[-1].calls if each.member == "a")
        assert (first.call.callback, first.started_ms) == (Callback.REVOKED, revoked_ms)


def test_one_that_hangs_leaves_by_itself_and_loses_all_when_it_goes_on():
    """`max.poll.interval.ms` after its last poll; its heartbeats went on until then."""
    hung = [e.Hang("b", at_ms=SETTLED_MS), e.Resume("b", at_ms=SETTLED_MS + 50_000)]
    settled = played(join("a"), join("b"), *hung, rebalance_timeout_ms=20_000, session_timeout_ms=10_000)
    assert settled[2].rounds[0].started_ms == SETTLED_MS + 20_000
    assert listened(settled, "b")[1] == (SETTLED_MS + 50_000, "b", "Lost", [1, 3])
    assert settled[-1].unowned == ()


def test_one_that_hangs_within_a_round_is_done_with_it_when_it_leaves():
    """Its assignment has come, and no poll takes it: ten seconds after its last poll it leaves, and the round ends."""
    events = [join("a", 0, RANGE), join("b", 150, RANGE), e.Hang("a", at_ms=3_440)]
    settled = played(*events, rebalance_timeout_ms=10_000, round_trip_ms=100, delay_ms=0)
    rounds = {took.number: took for each in settled for took in each.rounds}
    told = [(row.member, row.answered, row.joins_again, row.ended_ms) for row in rounds[2].members]
    assert ("a", False, True, 13_440) in told
    assert rounds[2].ended_ms == 13_440


def test_a_static_one_that_hangs_is_silent_and_expelled_by_its_session():
    joins = [join(name, static=True) for name in "ab"]
    settled = played(*joins, e.Hang("b", at_ms=SETTLED_MS), rebalance_timeout_ms=20_000, session_timeout_ms=10_000)
    assert settled[-1].rounds[0].started_ms == 117_000 + 3_000 + 10_000  # heartbeats at 6,000, 9,000 and so on


def test_one_that_is_cut_off_goes_on_reading_what_others_have_by_then():
    cut = [e.CutOff("b", at_ms=SETTLED_MS), e.Resume("b", at_ms=SETTLED_MS + 40_000)]
    settled = played(join("a"), join("b"), *cut, session_timeout_ms=10_000, rate=10, heartbeat_interval_ms=1_000)
    twice = {each.partition: each for one in settled for each in one.double_owners}
    assert set(twice) == set(t(1, 3))
    assert {(each.members, each.since_ms, each.until_ms) for each in twice.values()} == {(("b", "a"), 110_000, 140_000)}
    # 30 s in which both read, 10 s in which b could not commit, at most 5 s since it last had; at most 3 s of a's.
    assert all(400 <= count <= 480 for count in settled[-1].timed.read.twice.values())
    assert settled[-1].timed.read.never == {}


def test_a_pause_of_the_whole_group_ends_when_nobody_is_left():
    settled = played(join("a"), e.Crash("a", at_ms=SETTLED_MS))
    (gone,) = settled[-1].rounds
    assert gone.members == ()
    assert settled[-1].timed.at_ms == SETTLED_MS - 1_000 + 45_000


def test_what_is_lost_belongs_to_the_round_in_which_it_joins_again():
    away = e.Pause("b", at_ms=SETTLED_MS), e.Resume("b", at_ms=SETTLED_MS + 60_000)
    back = played(join("a"), join("b"), *away)[-1]
    first = back.calls[0]
    assert (first.call.callback, first.round, back.rounds[0].number) == (Callback.LOST, 3, 3)


# Static members


def test_a_static_restart_costs_the_time_that_it_is_down():
    down = [e.Leave("b", at_ms=SETTLED_MS), e.Restart("b", at_ms=SETTLED_MS + 10_000)]
    settled = played(join("a", static=True), join("b", static=True), *down, round_trip_ms=4)
    assert [each.rounds for each in settled[2:]] == [(), ()]
    assert waited(settled)[2:] == [2 * 10_000, 2 * 8]  # two round trips: JoinGroup and SyncGroup


def test_a_static_member_that_is_away_holds_up_the_others_and_is_removed_when_its_sync_times_out():
    """The join phase waits for b, which is known, for a rebalance timeout; then b has another one to send SyncGroup.

    Its session (five minutes) begins anew with the generation, so it would end only afterwards.
    """
    joins = [join(name, 0, RANGE, static=True) for name in "ab"]
    events = [e.Leave("b", at_ms=SETTLED_MS), join("c", SETTLED_MS + 5_000, RANGE)]
    settled = played(*joins, *events, session_timeout_ms=300_000, rebalance_timeout_ms=60_000, partitions=6)
    first, second = settled[-1].rounds
    assert (first.started_ms, first.ended_ms) == (SETTLED_MS + 5_000, SETTLED_MS + 65_000)
    assert [row.member for row in first.members] == ["a", "c"]
    assert [len(row.assigned) for row in first.members] == [2, 2]
    assert second.started_ms == SETTLED_MS + 125_000
    assert [len(row.assigned) for row in second.members] == [3, 3]


def test_another_process_under_the_same_instance_id_fences_the_first():
    """The first one learns it from its next heartbeat; until then both read."""
    settled = played(join("a", static=True), e.Join("z", ("t",), COOPERATIVE, "i-a", at_ms=SETTLED_MS))
    assert settled[-1].running == {"z": 1}
    (span, *_) = {(each.members, each.since_ms, each.until_ms) for each in settled[-1].double_owners}
    assert span == (("a", "z"), SETTLED_MS, 102_000)


@pytest.mark.parametrize("misses", [True, False])
def test_one_that_dies_while_its_sync_waits_is_expelled_a_session_after_the_answer(misses):
    """a leads and polls every 1.9 s: it joins at 101,000, b at 102,000, and until 102,900 b waits for a to assign."""
    slow = {"a": MemberTimes(processing_ms=1_900)}
    missing = [e.MissAssignment("b", at_ms=100_001)] if misses else []
    events = [join("a"), join("b"), e.SetPartitions("t", 6, at_ms=100_000), *missing, e.Crash("b", at_ms=102_500)]
    settled = played(*events, of=slow, session_timeout_ms=10_000)
    assert settled[-1].rounds[-1].started_ms == 102_900 + 10_000
    assert set(settled[-1].owners.values()) == {"a"}
    assert settled[-1].unowned == ()


def test_a_join_phase_that_nobody_joined_lasts_another_rebalance_timeout():
    """c begins it at 101 s and leaves; at 121 s a, which is static and away, is the only member, and at 141 s d is
    there."""
    away = e.CutOff("a", at_ms=SETTLED_MS), join("c", 101_000), e.Leave("c", at_ms=105_000), join("d", 130_000)
    times = {"rebalance_timeout_ms": 20_000, "session_timeout_ms": 300_000}
    *_, last = played(join("a", static=True), *away, rests=False, **times)
    begun = last.rounds[0]
    assert (begun.started_ms, begun.ended_ms, [row.member for row in begun.members]) == (101_000, 141_000, ["d"])


def test_a_static_member_that_comes_back_with_other_topics_starts_a_round():
    """It is given back what it no longer subscribes to, and joins again."""
    back = [e.Leave("b", at_ms=SETTLED_MS), e.Restart("b", at_ms=110_000), e.Subscribe("b", ("u",), at_ms=110_000)]
    settled = played(join("a", static=True), join("b", static=True), *back, e.SetPartitions("u", 2, at_ms=150_000))
    assert [each.failure for each in settled] == [None] * len(settled)
    assert settled[-1].owners == {**dict.fromkeys(t(0, 1, 2, 3), "a"), ("u", 0): "b", ("u", 1): "b"}


# Callbacks


def test_a_static_leader_that_comes_back_to_more_partitions_starts_a_round():
    """In the form kip (decision 0032): nobody else looks for them."""
    grown = [
        e.Crash("a", at_ms=SETTLED_MS),
        e.SetPartitions("t", 6, at_ms=SETTLED_MS + 1_000),
        e.Restart("a", at_ms=SETTLED_MS + 2_000),
    ]
    settled = played(join("a", static=True), join("b", 1_000, static=True), *grown)[-1]
    assert settled.rounds[0].started_ms < SETTLED_MS + 5_000
    assert len(settled.owners) == 6


def test_a_callback_holds_up_the_round():
    pace = Pace(callback_ms={Callback.REVOKED: 700, Callback.ASSIGNED: 50})
    quick = played(join("a", 0, RANGE), join("b", SETTLED_MS, RANGE))
    slow = played(join("a", 0, RANGE), join("b", SETTLED_MS, RANGE), pace=pace)
    assert quick[-1].rounds[0].ended_ms + 750 <= slow[-1].rounds[0].ended_ms
    assert slow[-1].unavailable_ms == dict.fromkeys(t(0, 1, 2, 3), 50)


def test_a_callback_longer_than_the_rebalance_timeout_costs_the_seat():
    """a is removed while it revokes: b has all; a joins anew, without onPartitionsLost, for it has given all up."""
    pace = Pace(callback_ms={Callback.REVOKED: 30_000})
    joins = [join("a", 0, RANGE), join("b", SETTLED_MS, RANGE)]
    settled = played(*joins, pace=pace, rebalance_timeout_ms=20_000, rests=False)[-1]
    assert [row.member for row in settled.rounds[0].members] == ["b"]
    assert [each for each in listened([settled]) if each[2] == "Lost"] == []
    assert settled.rounds[-1].members[0].assigned != ()


# Records


@pytest.mark.parametrize("assignors", [COOPERATIVE, RANGE])
def test_a_crash_repeats_what_was_not_committed(assignors):
    """Both commit every 5 s at the least; at 10 records a second that is 50 records of each partition at the most."""
    events = [join("a", 0, assignors), join("b", 0, assignors), e.Crash("b", at_ms=SETTLED_MS)]
    read = played(*events, rate=10)[-1].timed.read
    assert read.never == {}
    assert len(read.twice) == 2
    assert all(0 < count <= 50 for count in read.twice.values())


def test_an_eager_hand_over_repeats_nothing_and_a_cooperative_one_what_is_read_while_it_goes_on():
    """A cooperative member commits before it joins, and reads on until it revokes (Kafka commits in onJoinPrepare)."""
    each = {"rate": 10, "processing_ms": 500}
    eager = played(join("a", 0, RANGE), join("b", SETTLED_MS, RANGE), **each)[-1].timed.read
    cooperative = played(join("a"), join("b", SETTLED_MS), **each)[-1].timed.read
    assert eager.twice == eager.never == cooperative.never == {}
    assert set(cooperative.twice) == set(t(2, 3))


def test_without_auto_commit_the_next_owner_begins_at_the_beginning():
    events = [join("a"), join("b"), e.Crash("b", at_ms=SETTLED_MS)]
    read = played(*events, rate=10, commits_ms=0)[-1].timed.read
    assert read.committed == {}
    assert set(read.twice.values()) == {SETTLED_MS * 10 // 1_000}


def test_who_reads_nothing_passes_nothing_over():
    read = Records(10)
    read.set_topics({"t": 1}, 0)
    read.read(t(0)[0], 0, 3)
    read.read(t(0)[0], 7, 7)
    assert read.found(1_000).never == {}


def test_records_of_a_new_partition_begin_with_it():
    settled = played(
        join("a"), e.SetPartitions("t", 5, at_ms=SETTLED_MS), e.SetPartitions("t", 5, at_ms=150_000), rate=10
    )
    assert settled[1].timed.read.ends[t(4)[0]] == 500
    assert settled[-1].unowned == ()


def test_who_waits_for_its_assignment_is_done_with_a_round_that_the_next_one_cuts_short():
    """b has sent SyncGroup, and a assigns for 20 s, when c comes."""
    pace = Pace(callback_ms={Callback.ASSIGN: 20_000})
    settled = played(join("a", 0, RANGE), join("b", 60_000, RANGE), join("c", 70_000, RANGE), pace=pace)
    (cut, _) = settled[-1].rounds
    told = {row.member: (row.answered, row.joins_again, row.ended_ms) for row in cut.members}
    assert told == {"a": (False, True, 80_000), "b": (False, True, 70_000)}
