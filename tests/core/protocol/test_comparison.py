"""What a script costs under variants: counted by hand in small groups, and as sums of what `simulate` gives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.protocol import comparison
from groupledger.core.protocol import events as e
from groupledger.core.protocol.comparison import Cost, changed, compare, read_variants
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.simulator import Script, simulate
from tests.core.protocol.drawn_times import timed_script

TWO = [e.Join("a", ("t",)), e.Join("b", ("t",), at_ms=60_000)]
OLD = ByteCode.BEFORE_KIP_429
MIXED = [e.Join("a", ("t",), byte_code=OLD), e.Join("b", ("t",)), e.Join("c", ("t",), byte_code=OLD)]
OTHER = [e.Join("a", ("t",)), e.Join("b", ("t",), ("range",))]
"""The second one is refused."""
TIMES = Times(MemberTimes(round_trip_ms=4, processing_ms=50), records_per_second=100)


def compared(asked, events=TWO, times=None, from_ms=0, topics=None):
    script = Script(topics or {"t": 4}, events, times=times)
    (found,) = compare([("s", script)], read_variants(asked, ASSIGNORS), from_ms=from_ms)
    return {each.variant: each for each in found.variants}


def costs(asked, *fields, **more):
    return [tuple(getattr(each.cost, name) for name in fields) for each in compared(asked, **more).values()]


def test_what_a_second_member_costs():
    """Two of four partitions go to b. Eager: all four are revoked; KIP-848: no rounds, and heartbeats take time."""
    assert costs("range,cooperative-sticky,consumer", "rounds", "moves", "revoked", "unavailable_rounds") == [
        (2, 2, 4, 8),
        (3, 2, 2, 6),
        (None, 2, 2, None),
    ]


def test_what_was_before_is_played_and_not_counted():
    assert costs("range,cooperative-sticky", "rounds", "moves", "revoked", "unavailable_rounds", from_ms=60_000) == [
        (1, 2, 4, 4),
        (2, 2, 2, 2),
    ]


def test_a_member_that_comes_back_takes_its_own_without_a_move():
    events = [*TWO, e.Leave("b", at_ms=100_000), e.Restart("b", at_ms=110_000)]
    assert costs("cooperative-sticky+static,cooperative-sticky", "moves", "lost", events=events, from_ms=100_000) == [
        (0, 0),
        (4, 0),
    ]


def test_a_zombie_loses_what_it_had_and_records_are_read_twice():
    gone = [e.Pause("b", at_ms=120_000), e.Resume("b", at_ms=200_000)]
    (found,) = compared("as-written", [*TWO, *gone], TIMES).values()
    assert (found.cost.lost, found.cost.double_owners) == (2, 2)
    assert found.cost.read_twice == sum(
        simulate(Script({"t": 4}, [*TWO, *gone], times=TIMES))[-1].timed.read.twice.values()
    )
    assert [row.event for row in found.events] == ["join a", "join b", "pause b", "resume b"]


@pytest.mark.parametrize("assignor", sorted(ASSIGNORS))
def test_every_assignor_of_ours_can_be_compared(assignor):
    """Those that no client library ships too: they are somebody's own code, in any."""
    (found,) = compared(assignor, TWO).values()
    assert found.cost.rounds >= 2


@pytest.mark.parametrize("seed", range(3))
def test_a_cost_is_the_sum_of_what_simulate_gives(seed):
    """Of random groups with a clock, some of whose topics grow; from any event on, the rest of the sum."""
    script = timed_script(seed, 30)
    settled = simulate(script)
    (whole,) = compare([("s", script)], read_variants("as-written", ASSIGNORS))[0].variants
    calls = [each.call for one in settled for each in one.calls]
    read = settled[-1].timed.read
    assert whole.cost == Cost(
        rounds=sum(len(each.rounds) for each in settled),
        moves=whole.cost.moves,
        revoked=sum(len(each.partitions) for each in calls if each.callback is Callback.REVOKED),
        lost=sum(len(each.partitions) for each in calls if each.callback is Callback.LOST),
        unavailable_rounds=None,
        unavailable_ms=sum(sum(each.unavailable_ms.values()) for each in settled),
        read_twice=sum(read.twice.values()),
        never_read=sum(read.never.values()),
        double_owners=len({each.partition for one in settled for each in one.double_owners}),
    )
    assert sum(row.cost.moves or 0 for row in whole.events) == whole.cost.moves
    half_ms = settled[len(settled) // 2].event.at_ms
    (rest,) = compare([("s", script)], read_variants("as-written", ASSIGNORS), from_ms=half_ms)[0].variants
    assert rest.events == tuple(row for row in whole.events if row.at_ms >= half_ms)
    assert rest.cost.revoked == sum(row.cost.revoked or 0 for row in rest.events)


def test_every_variant_has_the_events_of_the_script():
    """Also a consumer group with times, which goes on for a session after the last event: e.g. until b is expelled."""
    events = [*TWO, e.Crash("b", at_ms=120_000)]
    found = compared("range,consumer", events, TIMES)
    assert [len(each.events) for each in found.values()] == [3, 3]
    assert [each.unowned for each in found.values()] == [0, 0]
    assert compared("consumer", events)["consumer"].unowned == 2  # without times nobody waits for the session's end
    assert found["consumer"].events[-1].cost.unavailable_ms == sum(
        sum(each.unavailable_ms.values())
        for each in simulate(changed(Script({"t": 4}, events, times=TIMES), read_variants("consumer", ())[0]))[2:]
    )


def test_what_cannot_be_played_under_one_variant_is_played_under_the_others():
    found = compared("cooperative-sticky,consumer", [*TWO, e.FreezeMetadata("a", at_ms=90_000)], TIMES)
    assert found["cooperative-sticky"].error is None
    assert found["consumer"].error.startswith("BAD_EVENT: 'a' is a member of a consumer group")
    assert (found["consumer"].cost, found["consumer"].failures, found["consumer"].unowned) == (None, 0, 0)
    assert found["consumer"].cost is None


@pytest.mark.parametrize(
    ("library", "variant", "lacks"),
    [
        ("kafka-go", "cooperative-sticky", "a lists cooperative-sticky, which this kafka-go does not have"),
        ("sarama", "consumer", "a is a client of sarama, which does not speak KIP-848"),
        ("librdkafka", "sticky", "a lists sticky, which this librdkafka does not have"),
    ],
)
def test_a_variant_that_a_members_library_lacks_is_not_played(library, variant, lacks):
    joins = (e.Join("a", ("t",), assignors=("range",), library=library),)
    found = compared(f"range,{variant}", joins)
    assert (found["range"].error, found[variant].cost) == (None, None)
    assert found[variant].error.startswith(f"BAD_CLIENT: under {variant}: {lacks}")


def test_what_does_not_settle_says_why():
    found = compared("as-written,range", OTHER)
    assert found["as-written"].failures == 1
    assert found["as-written"].events[1].failure.startswith("refused: b lists range")
    assert found["range"].failures == 0


@pytest.mark.parametrize("events", [1, 2])
def test_what_settles_after_the_last_event_fails_with_it(events):
    *_, last = comparison.costs(list(simulate(Script({"t": 4}, OTHER))), events)
    assert last.number == events
    assert last.failure.startswith("refused: b lists range")


def test_how_even_the_assignment_is_in_the_end():
    """Range gives each topic to the first members; round robin goes on with the next topic (spring-kafka issue 941)."""
    topics = {f"t{number}": 10 for number in range(8)}
    joins = [e.Join(f"c{number:02}", tuple(topics), together=number < 29) for number in range(30)]
    found = compared("range,roundrobin,consumer,share", joins, topics=topics)
    even, uncounted = (3, 2, 0), (None, None, None)
    assert {name: (each.most, each.least, each.idle) for name, each in found.items()} == {
        "range": (8, 0, 20),
        "roundrobin": even,
        "consumer": even,
        "share": uncounted,
    }
    gone = compared("range", [TWO[0], e.Leave("a")])["range"]
    assert (gone.most, gone.least, gone.idle) == uncounted


def test_two_owners_are_counted_once_a_partition():
    assert costs("cooperative-sticky,range", "double_owners", events=MIXED) == [(1,), (0,)]


def test_two_owners_after_the_last_event_are_counted_with_it():
    *_, last = comparison.costs(list(simulate(Script({"t": 4}, MIXED))), 2)
    assert (last.number, last.cost.double_owners) == (2, 1)


def timeline(script):
    (found,) = compare([("s", script)], read_variants("as-written", ASSIGNORS), timeline=True)[0].variants
    return {(each.topic, each.partition, each.member, each.since_ms, each.until_ms) for each in found.consumed}


def test_without_a_clock_the_timeline_has_what_lasts():
    """Range: a has all four for a minute, then b has two of them."""
    alone = {("t", number, "a", 0, 60_000) for number in range(4)}
    shared = {("t", number, "a" if number < 2 else "b", 60_000, None) for number in range(4)}
    assert timeline(Script({"t": 4}, [replace(each, assignors=("range",)) for each in TWO])) == alone | shared


def test_two_owners_are_on_the_timeline_though_all_took_no_time():
    """Without a clock a, b and c come at once: only who shares a partition, or goes on, is told."""
    old = ByteCode.BEFORE_KIP_429
    mixed = [e.Join("a", ("t",), byte_code=old), e.Join("b", ("t",)), e.Join("c", ("t",), byte_code=old)]
    told, settled = timeline(Script({"t": 4}, mixed)), simulate(Script({"t": 4}, mixed))
    [shared] = {each.partition: each for one in settled for each in one.double_owners}.values()
    assert {member for *partition, member, _, _ in told if tuple(partition) == shared.partition} >= {*shared.members}
    alone = [row for row in told if row[:2] != shared.partition]
    assert [row for row in alone if row[3] == row[4] and row[2] not in shared.members] == []


@pytest.mark.parametrize("seed", [9, 39])
def test_who_had_a_partition_within_a_millisecond_is_on_the_timeline(seed):
    """Seed 39: findings of two owners. Seed 9: hand-overs that are counted as moves, and revoked at once."""
    script = timed_script(seed, 12, records_per_second=None)
    settled, told = simulate(script), timeline(script)
    consumed = {(*each.partition, *each[1:]) for one in settled for each in one.consumed}
    at_once = {row for row in consumed if row[3] == row[4]}
    assert at_once
    assert at_once <= told
    for shared in (each for one in settled for each in one.double_owners):
        then = {row[2] for row in told if row[:2] == shared.partition and row[3] <= shared.since_ms}
        assert then >= {*shared.members}


def test_scripts_are_told_apart():
    """range moves t-2, t-4 and t-5 for c, cooperative-sticky two partitions."""
    variants = read_variants("range,cooperative-sticky", ASSIGNORS)
    moves = {"one": TWO[:1], "two": TWO, "none": [], "three": [*TWO, e.Join("c", ("t",), at_ms=90_000)]}
    found = compare([(name, Script({"t": 6}, events)) for name, events in moves.items()], variants)
    assert [(each.id, [row.cost.moves for row in each.variants]) for each in found] == [
        ("one", [0, 0]),
        ("two", [3, 3]),
        ("none", [None, None]),
        ("three", [6, 5]),
    ]
    assert {row.consumed for each in found for row in each.variants} == {()}
