"""The history of groups: which states are an entry, what each says, and what the filters leave."""

from copy import deepcopy
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groupledger.answers.causes import Moved
from groupledger.answers.explanation import explain
from groupledger.answers.reader import LedgerReader
from groupledger.answers.timeline import timeline
from groupledger.core.faults import Fault
from tests.answers.histories import History, in_words, listed, rows_of
from tests.answers.ledgers import write
from tests.answers.rows import at

EAGER = History("pay").state(1, "m a:0,1,2").state(2, "m a:0,1 | n a:2").state(4, "n a:0,1,2").state(5, None)
COOPERATIVE = (
    History("coop")
    .state(1, "m a:0,1,2,3")
    .state(2, "m a:0,1 | n")
    .state(3, "m a:0,1 | n a:2,3")
    .state(4, "m a:0,1 | n a:2,3")
)
STATIC = History("static").state(1, "s-1/i a:0 | m a:1").state(2, "s-2/i a:0 | m a:1", snapshot_kind="rewrite")
EPOCHS = (
    History("server", kind="consumer")
    .state(2, "m a:0,1,2")
    .state(3, "m a:0,1,2 | n", group_epoch=3, state="Reconciling")
    .state(4, "m a:0,1 | n", group_epoch=3, state="Reconciling")
    .state(5, "m a:0,1 | n a:2", group_epoch=3)
)
SHARE = History("fan", kind="share").state(1, "x a:0,1").state(2, "x a:0,1 | y a:0,1")
ELSEWHERE = History("pay", "eu").state(3, "e a:0,1,2")
FOLLOWED = {
    "cluster_id": "dev",
    "group_id": "coop",
    "snapshot_id": "log/dev/coop/2",
    "scenario": "baseline",
    "round": 1,
}


@pytest.fixture(scope="module")
def ledger(written):
    where = {"cluster_id": "dev", "group_id": "pay", "offset": 4, "snapshot_id": "log/dev/pay/4"}
    finding = {"severity": "error", "code": "STALE_CLAIM", "log_partition": 0}
    of_epoch = where | {"group_id": "server", "snapshot_id": "log/dev/server/4", "evidence": "of a fold between"}
    return written(
        **rows_of(
            *(EAGER, COOPERATIVE, STATIC, EPOCHS, SHARE, ELSEWHERE),
            topic_snapshots=[listed("a", 3), listed("a", 4, 2), listed("a", 4, cluster="eu")],
            rebalances=[FOLLOWED | {"follow_up": True, "verdict": "exact"}],
            violations=[
                *(where | finding | {"member_id": "n", "evidence": "1"}, where | finding | {"evidence": "2"}),
                of_epoch | finding,
            ],
            coverage=[
                where | {"kind": "generations-skipped", "reason": "2 to 4"},
                {"cluster_id": "dev", "group_id": "", "offset": 5, "snapshot_id": "log/dev/pay/5"}
                | {"kind": "offsets-skipped", "reason": "of this log partition"},
                {"cluster_id": "dev", "group_id": "", "offset": 5, "snapshot_id": "log/dev/other/5"}
                | {"kind": "offsets-skipped", "reason": "of another"},
            ],
        )
    )


def told(ledger, *asked, **more):
    """Number, members before and after, causes, how many moved, who has nobody."""
    return [
        (
            each.generation,
            each.members_before,
            each.members,
            [cause.kind.value for cause in each.causes],
            len(each.moved),
            None if each.unowned is None else [f"{topic}-{number}" for topic, number in each.unowned],
        )
        for each in timeline(ledger, *asked, **more).entries
    ]


def test_an_eager_group_has_an_entry_a_generation(ledger):
    assert told(ledger, "pay", "dev") == [
        (1, None, 1, ["group-born"], 3, []),
        (2, 1, 2, ["member-joined"], 1, ["a-3"]),
        (4, 2, 1, ["member-gone"], 2, ["a-3"]),
        (5, 1, 0, ["group-emptied"], 3, []),
    ]


def test_a_cooperative_handover_takes_two_entries_and_leaves_partitions_with_nobody_between_them(ledger):
    assert told(ledger, "coop") == [
        (1, None, 1, ["group-born"], 4, []),
        (2, 1, 2, ["member-joined"], 2, ["a-2", "a-3"]),
        (3, 2, 2, ["follow-up"], 2, []),
        (4, 2, 2, ["not-shown"], 0, []),
    ]
    assert [each.verdict for each in timeline(ledger, "coop").entries] == [None, "exact", None, None]


def test_a_static_member_that_came_back_is_an_entry_in_which_nothing_moved(ledger):
    entry = timeline(ledger, "static").entries[-1]
    assert (entry.snapshot_kind, entry.moved) == ("rewrite", ())
    assert [(cause.kind.value, cause.was, cause.about) for cause in entry.causes if cause.about != "a"] == [
        ("member-restarted", "s-1", "s-2")
    ]


def test_an_epoch_is_one_entry_its_last_state_against_what_was_before_it(ledger):
    first, second = timeline(ledger, "server").entries
    assert (first.generation, first.records) == (2, 1)
    assert (second.generation, second.records, second.snapshot_id) == (3, 3, "log/dev/server/5")
    assert (second.began_at, second.observed_at, second.state) == (at(3), at(5), "Stable")
    assert second.moved == (Moved("a", 2, "m", "n"),)
    assert second.findings == {"STALE_CLAIM": 1}


def test_in_a_share_group_a_second_owner_takes_nothing_from_the_first(ledger):
    assert timeline(ledger, "fan").entries[-1].moved == (Moved("a", 0, None, "y"), Moved("a", 1, None, "y"))


def test_findings_and_gaps_stand_at_the_entry_they_are_of(ledger):
    entries = timeline(ledger, "pay", "dev").entries
    assert [each.findings for each in entries] == [{}, {}, {"STALE_CLAIM": 2}, {}]
    assert [each.gaps for each in entries] == [
        *((), (), ("generations-skipped: 2 to 4",)),
        ("offsets-skipped: of this log partition",),
    ]


def test_one_group_in_two_clusters_is_two_histories(ledger):
    entries = timeline(ledger, "pay").entries
    assert [(each.cluster_id, each.generation) for each in entries] == [
        *(("dev", 1), ("dev", 2), ("eu", 3)),
        *(("dev", 4), ("dev", 5)),
    ]
    assert entries[2].causes[0].kind == "group-born"
    assert [each.generation for each in timeline(ledger, "pay", "eu").entries] == [3]


@pytest.mark.parametrize(
    ("pattern", "groups"),
    [
        ("*a*", {"pay", "static", "fan"}),
        ("s*", {"static", "server"}),
        ("pa?", {"pay"}),
        ("*", {"pay", "coop", "static", "server", "fan"}),
    ],
)
def test_groups_by_pattern(ledger, pattern, groups):
    assert {each.group_id for each in timeline(ledger, pattern).entries} == groups


@pytest.mark.parametrize(
    ("since", "until", "numbers"),
    [
        (None, None, [1, 2, 4, 5]),
        (at(2), None, [2, 4, 5]),
        (None, at(4), [1, 2, 4]),
        (at(2), at(4), [2, 4]),
        (at(2) + timedelta(seconds=1), at(4), [4]),
        (at(6), None, []),
        (None, at(0), []),
    ],
)
def test_a_stretch_of_time(ledger, since, until, numbers):
    assert [each.generation for each in timeline(ledger, "pay", "dev", since, until).entries] == numbers


def test_an_entry_at_the_edge_of_the_time_is_whole(ledger):
    """An epoch that began before is told from where it began; so is the generation before the first one."""
    [entry] = timeline(ledger, "server", since=at(5)).entries
    assert (entry.records, entry.began_at, len(entry.moved)) == (3, at(3), 1)
    assert timeline(ledger, "pay", "dev", at(4), at(4)).entries == timeline(ledger, "pay", "dev").entries[2:3]


def test_the_newest_entries_are_kept_and_the_others_counted(ledger):
    found = timeline(ledger, "pay", "dev", limit=2)
    assert ([each.generation for each in found.entries], found.left_off) == ([4, 5], 2)
    assert found.entries == timeline(ledger, "pay", "dev").entries[2:]
    assert timeline(ledger, "pay", "dev", limit=4).left_off == 0


def test_nothing_says_why(ledger):
    found = timeline(ledger, "pay", "dev", at(6))
    known = "2026-11-21T14:01:00.000Z to 2026-11-21T14:05:00.000Z"
    assert found.notes == (f"nothing in that time: the ledger knows pay from {known}",)
    for asked, says in (
        (("pya",), "no group 'pya' in this ledger; did you mean pay"),
        (("pay", "ue"), "no cluster 'ue' in this ledger; known: dev, eu"),
        (("x*",), "no group 'x\\*' in this ledger; known: coop"),
        (("coop", "eu"), "no group 'coop' in cluster 'eu'; known: pay"),
    ):
        with pytest.raises(Fault, match=says):
            timeline(ledger, *asked)


def test_what_no_listing_counts_is_not_known_to_be_unowned(written):
    found = timeline(written(**rows_of(History("pay").state(1, "m a:0"))), "pay")
    assert [each.unowned for each in found.entries] == [None]


def test_a_deleted_group_and_the_one_that_comes_after_it(written):
    history = History("pay").state(1, "m a:0").state(2, None)
    history.state(3, None, snapshot_kind="deleted", state="Dead", generation=None)
    history.state(4, "m a:0", generation=1, incarnation=2, previous_snapshot_id=None)
    found = timeline(written(**rows_of(history, topic_snapshots=[listed("a", 1)])), "pay").entries
    assert [(each.generation, [cause.kind.value for cause in each.causes]) for each in found] == [
        *((1, ["group-born"]), (2, ["group-emptied"]), (None, ["group-deleted"]), (1, ["group-born"])),
    ]


NO_TARGET_YET = {"group_epoch": 3, "target_epoch": 2}
UNTARGETED = (
    History("skips", kind="consumer")
    .state(2, "c1 a:0 | c2 a:1 | c3 a:2")
    .state(3, "c1 a:0 | c3 a:2", group_epoch=2, state="Reconciling")  # c2 leaves; epoch 3 gets no target
    .state(4, "c1 a:0", **NO_TARGET_YET, state="Reconciling")  # c3 leaves
    .state(5, "c1 a:0", group_epoch=4, state="Reconciling")
    .state(6, "c1 a:0,1,2", group_epoch=4)
    .state(7, None, group_epoch=4)  # c1 leaves
)
NO_TARGET = {"group_epoch": 5, "target_epoch": 4}
NEXT = {"group_epoch": 6}


@pytest.mark.parametrize(
    ("rest", "numbers"),
    [
        ([], [2, 4]),
        # Kafka before 4.1 makes no target for the epoch in which the last member leaves.
        ([(None, NO_TARGET), ("d a:0,1,2", NEXT)], [2, 4, 5, 6]),
        ([("d", NO_TARGET), ("d a:0,1,2", NEXT)], [2, 4, 6]),
        # The last member leaves before epoch 5 has a target: the state of that moment is of epoch 6, empty as well.
        ([(None, NO_TARGET), (None, NEXT)], [2, 4, 6]),
    ],
)
def test_what_came_in_an_epoch_without_a_target_is_told_with_the_next_one(written, rest, numbers):
    history = deepcopy(UNTARGETED)
    for number, (members, epochs) in enumerate(rest, 8):
        history.state(number, members, **epochs)
    reader = written(**rows_of(history, topic_snapshots=[listed("a", 3)]))
    found = timeline(reader, "skips").entries
    assert [each.generation for each in found] == numbers
    [born, left, *_] = found
    assert (born.snapshot_id, born.state, left.snapshot_id) == ("log/dev/skips/2", "Stable", "log/dev/skips/6")
    assert [(cause.kind.value, cause.about) for cause in left.causes] == [("member-gone", "c2"), ("member-gone", "c3")]
    assert (left.began_at, left.records, left.previous_snapshot_id) == (at(4), 4, born.snapshot_id)
    for entry in found:
        why = explain(reader, "skips", None, entry.generation)
        assert (why.rebalance.snapshot_id, why.causes) == (entry.snapshot_id, entry.causes)


CUT = {"group_epoch": 5, "state": "Reconciling", "complete": False}


def test_an_epoch_that_compaction_cut_is_told_with_all_of_its_members(written):
    history = History("cut", kind="consumer")
    history.state(2, "c1 a:0", **CUT).state(3, "c1 a:0 | c2 a:1", **CUT)
    history.state(4, "c1 a:0 | c2 a:1 | c3 a:2", group_epoch=5)
    history.state(6, "c1 a:0 | c3 a:2", group_epoch=5, state="Reconciling")  # c2 leaves
    history.state(7, "c1 a:0,1 | c3 a:2", group_epoch=6)
    begun, left = timeline(written(**rows_of(history, topic_snapshots=[listed("a", 3)])), "cut").entries
    assert (begun.snapshot_id, begun.members, left.previous_snapshot_id) == ("log/dev/cut/4", 3, begun.snapshot_id)
    assert [(each.partition, each.to_member_id) for each in begun.moved] == [(0, "c1"), (1, "c2"), (2, "c3")]
    assert [(each.partition, each.from_member_id, each.to_member_id) for each in left.moved] == [(1, "c2", "c1")]
    assert [(cause.kind.value, cause.about) for cause in left.causes] == [("member-gone", "c2")]


HOLDINGS = st.lists(
    st.dictionaries(st.sampled_from("abcd"), st.sets(st.integers(0, 5), max_size=4), max_size=3), min_size=1, max_size=8
)


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states=HOLDINGS, kind=st.sampled_from(["classic", "consumer", "share"]), limit=st.integers(1, 9))
def test_a_history_folded_up_is_its_last_state(tmp_path_factory, states, kind, limit):
    """What moved, applied to what was before, is what the last members have; any cut goes on from there."""
    history = History("pay", kind=kind)
    for number, members in enumerate(states, 1):
        history.state(number, in_words(members))
    ledger = LedgerReader(write(tmp_path_factory.mktemp("ledger"), **rows_of(history)))
    whole = timeline(ledger, "pay").entries
    assert folded(whole, set()) == owned(states[-1])
    newest = timeline(ledger, "pay", limit=limit)
    assert newest.entries == whole[-limit:]
    assert len(newest.entries) + newest.left_off == len(states)
    assert folded(newest.entries, owned(states[-limit - 1]) if limit < len(states) else set()) == owned(states[-1])


def owned(members):
    return {(number, name) for name, has in members.items() for number in has}


def folded(entries, owners):
    for entry in entries:
        for each in entry.moved:
            owners = owners - {(each.partition, each.from_member_id)}
            owners |= {(each.partition, each.to_member_id)} if each.to_member_id is not None else set()
    return owners
