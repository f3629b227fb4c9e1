"""Whatever answers say of the same thing is the same: in every group of the captures, and of a day of real clients."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path

import pytest

from groupledger.answers.at_a_glance import clusters, groups
from groupledger.answers.audit import SAME, audit
from groupledger.answers.causes import CauseKind
from groupledger.answers.explanation import INVALID, OF_NEIGHBOURS, difference, explain
from groupledger.answers.gauges import gauges
from groupledger.answers.group_owners import overview
from groupledger.answers.joins import joins
from groupledger.answers.owners import ownership, partition_timeline
from groupledger.answers.queries import CLASSIC, lives_of, partitions, records
from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import RequestedScope, gaps, scope
from groupledger.answers.states import measured
from groupledger.answers.storms import counted_rebalances, stickiness
from groupledger.answers.timeline import timeline
from groupledger.answers.unowned import unowned as unowned_for_long
from groupledger.answers.unowned import unowned_partitions
from groupledger.core.history import TopicHistory, fold_group
from groupledger.core.moments import from_millis
from tests.answers.captured import TABLES, fact_rows, log_record_rows, topic_rows
from tests.answers.histories import History, rows_of
from tests.answers.histories import listed as listed_topic
from tests.answers.ledgers import COMMITTED, read_to, write
from tests.answers.rows import at
from tests.core.history.captured import changes_of
from tests.corpus.found import by_group
from tests.docs.demo_ledger import unpack
from tests.live.truth.replay import CLUSTER, Kept

DAY = Path(__file__).parents[1] / "data/live-truth/4.4.0"
ALL = 1_000_000
SHARE = "share"


@pytest.fixture(scope="module", params=["demo", "live"])
def reader(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return LedgerReader(str(unpack(folder)) if request.param == "demo" else day(folder))


def day(folder):
    """The kept day of real clients, as a follower has it, without Spark: nothing of it is computed."""
    kept = Kept(DAY)
    lines = [each for each in kept.records if each["key"] and b64decode(each["key"])[:2] not in (b"\0\0", b"\0\1")]
    changes = changes_of([line for _, listed in kept.listings for line in listed])
    rows = {name: [] for name in (*TABLES, "log_records")}
    for group, of_group in by_group(lines).items():
        rows["log_records"] += log_record_rows(CLUSTER, group, of_group)
        folded = fold_group(CLUSTER, of_group, None, TopicHistory(changes))
        for name in TABLES:
            rows[name] += fact_rows(getattr(folded, name))
    runs = [COMMITTED, read_to(**{CLUSTER: from_millis(kept.ends_ms)})]
    return write(folder, runs=runs, topic_snapshots=topic_rows(CLUSTER, changes), **rows)


@pytest.fixture(scope="module")
def entries(reader):
    return timeline(reader, "*", limit=ALL).entries


@pytest.fixture(scope="module")
def told(reader, entries):
    """Some rebalances of each group, explained."""
    chosen = [each for each in entries if each.generation is not None]
    offset = {row["snapshot_id"]: row["offset"] for row in records(reader, OFFSETS)}
    return [
        (each, explain(reader, each.group_id, each.cluster_id, offset=offset[each.snapshot_id]))
        for each in chosen[::EVERY]
    ]


OFFSETS = "SELECT t.snapshot_id, t.offset FROM current_group_snapshots t"
EVERY = 41
"""Of so many rebalances one is explained: each takes a sixth of a second."""


def name(entry):
    return f"{entry.cluster_id}/{entry.group_id} {entry.generation} [{entry.snapshot_id}]"


def test_explain_says_what_its_line_of_the_timeline_says(told):
    for entry, one in told:
        assert one.rebalance.snapshot_id == entry.snapshot_id, name(entry)
        said, also = ([(c.kind, c.about, c.was, c.possible) for c in each.causes] for each in (one, entry))
        assert said == also, name(entry)
        assert one.moved == entry.moved, name(entry)
        before = None if one.before is None else one.before.snapshot_id
        assert before == one.rebalance.previous_snapshot_id, name(entry)
        assert before is None or before == entry.previous_snapshot_id
        assert sum(each.stays for each in one.rebalance.members) == entry.members, name(entry)
        verdict = one.rebalance.compared and one.rebalance.compared.verdict
        assert entry.verdict in (None, verdict), name(entry)
        assert one.rebalance.gaps == entry.gaps, name(entry)


def test_what_explain_says_that_nobody_had_is_what_the_timeline_counts(reader, told):
    lives = listed(reader)
    for entry, one in told:
        at = one.rebalance.observed_at
        now = {(e.topic, e.partition) for e in one.unowned if e.until is None or e.until > at}
        taken = {(e.topic, e.partition) for e in entry.moved if e.to_member_id is not None}
        assert taken & now == set(), name(entry)
        if entry.unowned is None or not entry.members:
            continue
        assert set(entry.unowned) - now == set(), name(entry)
        for topic, partition in now - set(entry.unowned):  # had an owner, and no listing has had it yet
            of_topic = lives[entry.cluster_id, topic]
            assert all(partition >= each.partition_count for each in of_topic if each.since <= at), name(entry)


def listed(reader):
    rows = records(reader, "SELECT DISTINCT t.cluster_id, t.topic FROM current_topic_snapshots t")
    return lives_of(reader, sorted({row["cluster_id"] for row in rows}), sorted({row["topic"] for row in rows}))


def test_what_explain_says_of_each_member_is_what_it_says_changed_hands(told):
    for entry, one in told:
        if entry.group_type == SHARE:
            continue
        for member in one.rebalance.members:
            got = {(e.topic, e.partition) for e in one.moved if e.to_member_id == member.member_id}
            lost = {(e.topic, e.partition) for e in one.moved if e.from_member_id == member.member_id}
            assert (got, lost) == ({*member.added}, {*member.revoked} if member.stays else {*member.held}), name(entry)


def test_what_explain_says_of_settling_is_what_the_next_ones_say(told, entries):
    of_group = {}
    for each in entries:
        if each.snapshot_kind == "generation":
            of_group.setdefault((each.cluster_id, each.group_id, each.incarnation), {})[each.generation] = each
    for entry, one in told:
        if one.rounds is None:
            continue
        following = of_group[entry.cluster_id, entry.group_id, entry.incarnation]
        numbers = [n for n in sorted(following) if entry.generation < n <= one.settled]
        assert one.rounds == len(numbers) + 1, name(entry)
        quiet = {CauseKind.FOLLOW_UP, CauseKind.NOT_SHOWN}
        for number in numbers:
            assert {c.kind for c in following[number].causes} <= quiet, (name(entry), one.settled)
        last = following[one.settled]
        assert not last.unowned, (name(entry), one.settled)
        assert last.verdict != INVALID, name(entry)


def test_a_verdict_agrees_with_the_attribution_and_with_what_changed_hands(reader, told):
    lives = listed(reader)
    for entry, one in told:
        result = one.rebalance.compared
        if result is None or entry.group_type != CLASSIC or result.verdict not in SAME:
            continue
        assert result.attribution.partition(":")[0] in ("exact", "equal-sets"), name(entry)
        stay = {each.member_id for each in one.rebalance.members if each.stays}
        between = {
            (each.topic, each.partition)
            for each in one.moved
            if {each.from_member_id, each.to_member_id} <= stay
            and len({life.topic_id for life in lives[entry.cluster_id, each.topic]}) == 1  # not of a topic made again
        }
        assert result.moves >= len(between), name(entry)


def test_each_entry_of_the_timeline_begins_where_the_one_before_ended(reader, entries):
    owners = recorded_owners(reader)
    for _, of_group in groupby(sorted(entries, key=GROUP), GROUP):
        for before, after in pairwise(of_group):
            if after.previous_snapshot_id is None:
                continue
            assert after.previous_snapshot_id == before.snapshot_id, name(after)
            assert after.members_before == before.members, name(after)
            had, has = owners.get(before.snapshot_id, {}), owners.get(after.snapshot_id, {})
            changed = {place for place in had.keys() | has.keys() if had.get(place) != has.get(place)}
            moved = {(e.topic, e.partition) for e in after.moved}
            assert moved <= changed, name(after)
            restarted = {c.was for c in after.causes if c.was is not None}
            assert all((had.get(place) or set()) & restarted for place in changed - moved), name(after)
            if after.unowned is not None:
                assert not set(after.unowned) & has.keys(), name(after)


GROUP = attrgetter("cluster_id", "group_id")


def recorded_owners(reader):
    """By state and partition, its owners: what a member is still to give up is its own until it has."""
    found = {}
    columns = "t.snapshot_id, t.member_id, t.recorded, t.pending_revocation"
    for row in records(reader, f"SELECT {columns} FROM current_member_snapshots t"):
        for place in (*partitions(row["recorded"]), *partitions(row["pending_revocation"])):
            found.setdefault(row["snapshot_id"], {}).setdefault(place, set()).add(row["member_id"])
    return found


def test_a_difference_of_neighbours_is_what_explain_says_of_the_later_one(reader, told, entries):
    once = Counter((e.cluster_id, e.group_id, e.generation) for e in entries)
    number = {e.snapshot_id: e.generation for e in entries}
    for entry, one in told[::5]:
        before = number.get(entry.previous_snapshot_id)
        keys = [(entry.cluster_id, entry.group_id, each) for each in (before, entry.generation)]
        if before is None or any(once[key] != 1 for key in keys):
            continue
        told_of = difference(reader, entry.group_id, before, entry.generation, entry.cluster_id)
        assert told_of.moved == one.moved, name(entry)
        assert told_of.members == one.rebalance.members, name(entry)
        kinds = [(c.kind, c.about) for c in one.causes if c.kind not in OF_NEIGHBOURS]
        assert [(c.kind, c.about) for c in told_of.changes] == kinds, name(entry)


def test_who_had_a_partition_is_who_its_timeline_says(reader):
    places = records(reader, PLACES_SEEN)
    end = scope(reader, RequestedScope()).end
    for place in places[::PLACES]:
        spans = partition_timeline(reader, place["topic"], place["partition"], end, limit=ALL).spans
        for moment in sorted({each.since for each in spans if each.since is not None})[::MOMENTS]:
            answer = ownership(reader, place["topic"], place["partition"], moment)
            said = {(h.cluster_id, h.group_id, h.last.to_member_id) for h in answer.holdings if h.last is not None}
            spanned = {
                (each.cluster_id, each.group_id, each.member_id)
                for each in spans
                if each.since is not None and each.since <= moment and (each.until is None or each.until > moment)
            }
            assert said <= spanned, (place, moment)
            assert {each for each in spanned - said if each[-1] is not None} == set(), (place, moment)


PLACES_SEEN = (
    "SELECT DISTINCT t.topic, t.partition FROM current_ownership_changes t WHERE t.topic IS NOT NULL ORDER BY 1, 2"
)
PLACES, MOMENTS = 25, 3
"""Of so many partitions, and moments of one, one is asked for."""


def test_audit_and_who_say_the_same_of_partitions_without_an_owner(reader):
    audited, now = without_owner(reader)
    assert {key: now.get(key) for key in audited} == audited


LISTED_LATE = {
    "given up before": (("m a:0,1,2", "m a:0,1"), 2),
    "never had, below another": (("m a:0 | n a:2",), 1),
    "never had, and recorded again": (("m a:0 | n a:2", "m a:0 | n a:2"), 1),
    "never had, the last one": (("m a:0,1", "m a:0,1"), 10),
}


@pytest.mark.parametrize("case", LISTED_LATE)
def test_of_a_topic_that_was_listed_late_audit_and_who_say_the_same(tmp_path, case):
    """The first listing is the ledger's news: what members had, and what lies below it, existed before."""
    states, since = LISTED_LATE[case]
    history = History("late")
    for number, state in enumerate(states, 1):
        history.state(number, state, complete=True)
    rows = rows_of(history, topic_snapshots=[listed_topic("a", 3, 10)], runs=[COMMITTED, read_to(dev=at(40))])
    audited, now = without_owner(LedgerReader(write(tmp_path, **rows)))
    assert audited == now
    assert set(now.values()) == {at(since)}


def without_owner(reader):
    """Since when no one has had a partition up to the end: as `audit` has it, and as `who` has it."""
    within = scope(reader, RequestedScope())
    answer = unowned_partitions(reader, within.end, limit=ALL)
    now = {(e.cluster_id, e.group_id, e.topic, e.partition): e.since for e in answer.partitions}
    with measured(reader, within) as of_period:
        audited = {
            (*group, each.topic, each.partition): each.since
            for group, stretches in unowned_for_long(reader, of_period)
            for each in stretches
            if each.open_ended
        }
    return audited, now


def test_gauges_say_what_the_reports_say(reader):
    asked = RequestedScope()
    within, told_of = scope(reader, asked), gauges(reader, asked)
    by_group = {(each.cluster_id, each.group_id): each for each in told_of.groups}
    lines = overview(reader, within)
    assert {each.key: each.members for each in lines} == {key: each.members for key, each in by_group.items()}
    rebalances = records(reader, counted_rebalances(within))
    counted = Counter((row["cluster_id"], row["group_id"]) for row in rebalances)
    assert dict(counted) == {key: each.rebalances for key, each in by_group.items() if each.rebalances}
    sums = {}
    for each in stickiness(reader, asked, ALL).groups:
        moves, least = sums.get((each.cluster_id, each.group_id), (0, 0))
        sums[each.cluster_id, each.group_id] = moves + each.moves, least + each.least
        assert each.moves == each.least + each.excess - each.below
    told_moves = {key: (each.moves, each.least_moves) for key, each in by_group.items() if each.moves is not None}
    assert told_moves == {key: each for key, each in sums.items() if key in told_moves}
    assert not any(any(each) for key, each in sums.items() if key not in told_moves)
    answer = unowned_partitions(reader, within.end, limit=ALL)
    unowned = Counter((each.cluster_id, each.group_id) for each in answer.partitions)
    others = "SELECT cluster_id, group_id FROM current_group_snapshots WHERE protocol_type NOT IN ('', 'consumer')"
    not_known = {*answer.not_known} | {(row["cluster_id"], row["group_id"]) for row in records(reader, others)}
    for key, of_one in by_group.items():
        assert of_one.unowned == (None if key in not_known else unowned[key])
    assert told_of.findings == audit(reader, asked).found


def test_members_that_came_and_went_are_those_of_the_timeline(reader, entries):
    """Of classic groups, of which each record is a line."""
    told_of = {(each.cluster_id, each.group_id): each for each in joins(reader, RequestedScope(), ALL).groups}
    for key, of_group in groupby(sorted(entries, key=GROUP), GROUP):
        lines = list(of_group)
        if {each.group_type for each in lines} != {CLASSIC}:
            continue
        kinds = Counter(cause.kind for each in lines for cause in each.causes)
        emptied = (each for each in lines if CauseKind.GROUP_EMPTIED in {cause.kind for cause in each.causes})
        went = sum(each.members_before or 0 for each in emptied)
        back = kinds[CauseKind.MEMBER_RESTARTED] + kinds[CauseKind.MEMBER_REPLACED]
        one = told_of.get(key)
        said = (one.joined, one.gone, one.restarted) if one else (0, 0, 0)
        assert said == (kinds[CauseKind.MEMBER_JOINED], kinds[CauseKind.MEMBER_GONE] + went, back), key


def test_footers_count_the_gaps_that_show_counts(reader):
    within = scope(reader, RequestedScope())
    listing = clusters(reader, ALL)
    number = sum(row[listing.columns.index("gaps")] for row in listing.rows)
    of_groups = groups(reader, ALL)
    by_group = sum(row[of_groups.columns.index("gaps")] for row in of_groups.rows)
    [*footer] = gaps(reader, within)
    assert [text.split(" gap")[0] for text in footer] == ([f"{number:,}"] if number else [])
    assert number >= by_group
