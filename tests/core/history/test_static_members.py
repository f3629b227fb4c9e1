"""Static members on a real broker: identity-edge-cases, "Static members"."""

from collections import Counter
from itertools import pairwise

import pytest

from groupledger.core.wire.offsets_log import RecordKind, decode
from tests.core.history.captured import folded, log_rows
from tests.core.history.records import CLICKS, Log, member

EDGE = "edge/offsets"


def rewrites(name):
    for group in log_rows(name):
        snapshots = folded(name, group).group_snapshots
        yield from ((group, before, now) for before, now in pairwise(snapshots) if now.first_snapshot_id)


def members_of(name, group, snapshot):
    return [row for row in folded(name, group).member_snapshots if row.snapshot_id == snapshot.snapshot_id]


@pytest.mark.parametrize(("name", "count"), [(EDGE, 16), ("compacted/offsets-before", 1)])
def test_a_replaced_static_member_rewrites_the_generation_with_one_new_id_and_the_same_assignment(name, count):
    found = list(rewrites(name))
    assert len(found) == count
    for group, before, now in found:
        assert (before.generation, before.incarnation) == (now.generation, now.incarnation)
        assert now.snapshot_kind == "rewrite"
        assert now.previous_snapshot_id == before.snapshot_id
        old, new = members_of(name, group, before), members_of(name, group, now)
        by_instance = [{row.group_instance_id: row.recorded for row in rows} for rows in (old, new)]
        assert by_instance[0] == by_instance[1]
        assert len({row.member_id for row in new} - {row.member_id for row in old}) == 1


def test_every_rewrite_names_the_first_snapshot_of_its_generation():
    for group, _, now in rewrites(EDGE):
        same = [s for s in folded(EDGE, group).group_snapshots if s.generation == now.generation]
        assert now.first_snapshot_id == same[0].snapshot_id
        assert same[0].first_snapshot_id is None
    generations = Counter((group, now.generation) for group, _, now in rewrites(EDGE))
    assert max(generations.values()) == 4, "so (group, generation) is no key"


def test_the_leader_gets_the_new_id_when_it_is_the_one_that_came_back():
    leaders: Counter[bool] = Counter()
    for group, before, now in rewrites(EDGE):
        gone = {m.member_id for m in members_of(EDGE, group, before)} - {
            m.member_id for m in members_of(EDGE, group, now)
        }
        leaders[before.leader in gone] += 1
        assert (before.leader != now.leader) == (before.leader in gone)
    assert leaders == {True: 4, False: 12}


def test_a_replacement_hands_its_partitions_from_the_old_id_to_the_new_one():
    for group, before, now in rewrites(EDGE):
        changes = [c for c in folded(EDGE, group).ownership_changes if c.offset == now.offset]
        old = {row.member_id: row.group_instance_id for row in members_of(EDGE, group, before)}
        new = {row.member_id: row.group_instance_id for row in members_of(EDGE, group, now)}
        assert changes
        assert {old[c.from_member_id] == new[c.to_member_id] for c in changes} == {True}
        assert not [v for v in folded(EDGE, group).violations if v.code == "REWRITE_DIFFERS"]


def test_the_newcomer_of_a_rewrite_claims_nothing_which_is_told_apart_from_other_empty_claims():
    for group in ("st-java-coop", "st-rdk-coop"):
        findings = folded(EDGE, group).violations
        claims = [v for v in findings if v.code == "CLAIM_DIFFERS"]
        assert {(v.severity, v.evidence.split(":")[0]) for v in claims} == {("info", "static-replacement")}
        assert {v.offset for v in claims} == {now.offset for g, _, now in rewrites(EDGE) if g == group}
        rows = {(row.offset, row.member_id): row for row in folded(EDGE, group).member_snapshots}
        for finding in claims:
            row = rows[finding.offset, finding.member_id or ""]
            assert (row.claimed, row.claimed_generation) == ((), None)
            assert row.recorded


def test_a_restart_with_another_subscription_leaves_a_partition_with_a_member_that_does_not_read_it():
    findings = [v for g in log_rows(EDGE) for v in folded(EDGE, g).violations if v.code == "ASSIGNED_NOT_SUBSCRIBED"]
    assert [(v.group_id, v.offset, v.topic, v.severity) for v in findings] == [
        ("st-java-range", 5, "grow", "error"),  # noticed by Java's client: the next generation came 0.5 s later
        ("st-rdk-range", 37, "grow", "error"),
        ("st-rdk-range", 54, "grow", "error"),
    ]
    assert {"grow 1" in v.evidence for v in findings} == {True}


def test_a_session_that_runs_out_makes_a_newcomer_of_the_instance():
    snapshots = {s.generation: s for s in folded(EDGE, "st-rdk-range").group_snapshots}
    instances = [
        {m.group_instance_id for m in members_of(EDGE, "st-rdk-range", snapshots[generation])}
        for generation in (2, 3, 4)
    ]
    assert instances == [{"i-1", "i-2"}, {"i-1"}, {"i-1", "i-2"}]
    assert snapshots[4].snapshot_kind == "generation"


def test_a_returning_kip_848_member_is_written_twice_in_one_millisecond_and_ordered_by_offset():
    written = Counter((row.key, row.timestamp_ms) for rows in log_rows(EDGE).values() for row in rows)
    twice = [decode(key, None).kind for (key, _), times in written.items() if times == 2]
    assert len(twice) == 7
    assert twice.count(RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT) == 5
    for group in log_rows(EDGE):
        changes = folded(EDGE, group).ownership_changes
        assert changes == sorted(changes, key=lambda change: change.offset)


def test_a_returning_kip_848_member_takes_over_in_the_same_epoch():
    fold = folded(EDGE, "st-rdk-new")
    left, came = (s for s in fold.group_snapshots if s.offset in (20, 25))
    assert (left.group_epoch, came.group_epoch, left.target_epoch, came.target_epoch) == (3, 3, 3, 3)
    assert (left.members, came.members) == (1, 2)
    assert (left.complete, came.complete) == (True, True)
    (new,) = [m for m in fold.member_snapshots if m.offset == 25 and m.group_instance_id == "i-2"]
    assert new.member_epoch == 0, "the fold is at the first of the two records"
    gone = {(c.topic, c.partition) for c in fold.ownership_changes if c.offset == 20 and c.to_member_id is None}
    taken = {(c.topic, c.partition) for c in fold.ownership_changes if c.offset == 25 and c.from_member_id is None}
    assert gone == taken


def test_a_static_member_that_left_keeps_its_partitions_until_somebody_takes_over():
    log = Log()
    log.joined("m")
    log.joined("n")
    log.step(2, {"m": {CLICKS: (0, 1)}, "n": {CLICKS: (2,)}})
    before = len(log.fold().ownership_changes)
    log.current("m", -2, {CLICKS: (0, 1)})
    assert len(log.fold().ownership_changes) == before
    log.current("n", 2, {}, {CLICKS: (2,)})
    epochs = {row.member_id: row.member_epoch for row in log.fold().member_snapshots[-2:]}
    assert epochs == {"m": -2, "n": 2}


def test_a_rewrite_that_moves_partitions_is_no_replacement_and_a_finding():
    log = Log()
    log.classic(0)
    log.classic(1, [member("m", {"clicks": (0, 1)}, instance="i"), member("n", {"clicks": (2,)}, instance="j")])
    log.classic(1, [member("o", {"clicks": (0,)}, instance="i"), member("n", {"clicks": (2, 1)}, instance="j")])
    (finding,) = [v for v in log.fold().violations if v.code == "REWRITE_DIFFERS"]
    assert (finding.topic, finding.partition, finding.offset) == ("clicks", 1, 2)
    assert "went from m to n" in finding.evidence
