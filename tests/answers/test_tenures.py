"""The owners of a partition over time, as they follow one another, and as they stand beside one another."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groupledger.answers.owners import ownership, partition_timeline
from groupledger.answers.reader import LedgerReader
from groupledger.answers.unowned import unowned_partitions
from groupledger.core.faults import Fault
from tests.answers.histories import History, in_words, listed, rows_of
from tests.answers.ledgers import write
from tests.answers.rows import at

PAY = History("pay").state(1, "m a:0").state(3, "m a:1 | n a:0").state(5, "n a:1 | m").state(7, "m a:0").state(9, None)
FAN = History("fan", kind="share").state(2, "x a:0").state(4, "x a:0 | y a:0").state(6, "y a:0").state(8, "z")
TWICE = History("twice").state(1, "m a:0 | n").state(2, "m a:0 | n a:0").state(4, "m | n a:0")
ELSEWHERE = History("pay", "eu").state(2, "e a:0")


@pytest.fixture(scope="module")
def ledger(written):
    return written(**rows_of(PAY, FAN, TWICE, ELSEWHERE, topic_snapshots=[listed("a", 2)]))


def told(ledger, *asked, **more):
    found = partition_timeline(ledger, "a", 0, at(10), *asked, **more)
    return [
        (each.member_id, each.since and each.since.minute, each.until and each.until.minute, each.generation)
        for each in found.spans
    ]


def test_one_owner_after_another_and_nobody_in_between(ledger):
    assert told(ledger, cluster="dev", group="pay") == [
        *(("m", 1, 3, 1), ("n", 3, 5, 3), (None, 5, 7, 5), ("m", 7, 9, 7), (None, 9, None, 9)),
    ]


def test_owners_in_a_share_group_stand_beside_one_another(ledger):
    assert told(ledger, group="fan") == [("x", 2, 6, 2), ("y", 4, 8, 4), (None, 8, None, 8)]
    while_one_is_left = partition_timeline(ledger, "a", 0, at(7), group="fan").spans
    assert [(each.member_id, each.until) for each in while_one_is_left] == [("x", at(6)), ("y", None)]


def test_a_partition_that_two_members_have_is_told_of_both(ledger):
    assert told(ledger, group="twice") == [("m", 1, 4, 1), ("n", 2, None, 2)]


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (2, 4, [("m", 1, 3, 1), ("n", 3, None, 3)]),
        (3, 3, [("n", 3, None, 3)]),
        (6, 10, [(None, 5, 7, 5), ("m", 7, 9, 7), (None, 9, None, 9)]),
        (10, 10, [(None, 9, None, 9)]),
        (0, 1, [("m", 1, None, 1)]),
    ],
)
def test_a_stretch_of_time_begins_with_whoever_had_it_then(ledger, since, until, expected):
    found = partition_timeline(ledger, "a", 0, at(until), at(since), "dev", "pay")
    spans = [
        (each.member_id, each.since.minute, each.until and each.until.minute, each.generation) for each in found.spans
    ]
    assert spans == expected


def test_each_group_and_cluster_is_a_history_of_its_own(ledger):
    found = partition_timeline(ledger, "a", 0, at(10))
    groups = [(each.cluster_id, each.group_id) for each in found.spans]
    assert groups == sorted(groups)
    assert set(groups) == {("dev", "pay"), ("dev", "fan"), ("dev", "twice"), ("eu", "pay")}
    assert {each.group_id for each in partition_timeline(ledger, "a", 0, at(10), group="?a?").spans} == {"pay", "fan"}


def test_the_newest_changes_are_kept_and_the_others_counted(ledger):
    found = partition_timeline(ledger, "a", 0, at(10), None, "dev", "pay", limit=2)
    assert [(each.member_id, each.since.minute) for each in found.spans] == [(None, 5), ("m", 7), (None, 9)][1:]
    assert found.left_off == 3


def test_who_had_it_before_the_record_begins_is_told_from_when_on_it_is_known(written):
    base = {"cluster_id": "dev", "group_id": "pay", "topic": "a", "partition": 0, "log_partition": 0}
    lost = base | {"at": at(5), "from_member_id": "m", "to_member_id": "n", "offset": 5, "snapshot_id": "s"}
    [before, after] = partition_timeline(written(ownership_changes=[lost]), "a", 0, at(9)).spans
    assert (before.member_id, before.since, before.until, before.snapshot_id) == ("m", None, at(5), None)
    assert (after.member_id, after.since, after.until, after.snapshot_id) == ("n", at(5), None, "s")


def test_a_clock_that_goes_back_changes_no_order(written):
    history = History("pay").state(5, "m a:0").state(6, "n a:0", observed_at=at(2)).state(7, "o a:0")
    found = partition_timeline(written(**rows_of(history)), "a", 0, at(9)).spans
    assert {(each.member_id, each.since, each.until) for each in found} == {
        *(("m", at(5), at(2)), ("n", at(2), at(7)), ("o", at(7), None)),
    }


def test_nothing_says_why(ledger):
    reach = "the ledger knows cluster dev from 2026-11-21T14:01:00.000Z to 2026-11-21T14:09:00.000Z"
    found = partition_timeline(ledger, "a", 7, at(10), cluster="dev")
    assert found.notes[:2] == ("no group in this ledger was ever assigned a-7", reach)
    found = partition_timeline(ledger, "a", 1, at(2), group="pay", cluster="dev")
    assert found.notes[:2] == ("nobody is known to have had a-1 in that time", reach)
    for asked, says in (
        (("b", 0, at(9)), "no topic 'b' in this ledger; known: a"),
        (("a", 0, at(9), None, None, "x*"), "no group 'x\\*' in this ledger"),
        (("a", 0, at(9), None, "ue"), "no cluster 'ue' in this ledger"),
    ):
        with pytest.raises(Fault, match=says):
            partition_timeline(ledger, *asked)


def test_who_had_it_where_a_group_that_is_no_share_group_gave_it_twice(ledger):
    answer = ownership(ledger, "a", 0, at(3), "dev", "twice")
    had = [(each.member.member_id, each.shared, each.doubled, each.next and each.next.at) for each in answer.holdings]
    assert had == [("m", True, True, at(4)), ("n", True, True, None)]
    assert "twice (cluster dev) is no share group, and the record gives the partition to 2 members" in answer.notes
    [later] = ownership(ledger, "a", 0, at(4), "dev", "twice").holdings
    assert (later.member.member_id, later.doubled) == ("n", False)


STATES = st.lists(
    st.dictionaries(st.sampled_from("abc"), st.sets(st.integers(0, 1), max_size=2), max_size=3), min_size=1, max_size=5
)
GROUPS = st.lists(st.tuples(st.sampled_from(["classic", "share"]), STATES), min_size=8, max_size=12)


@settings(deadline=None, max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(groups=GROUPS, since=st.integers(0, 6))
def test_all_answers_about_an_owner_say_the_same(tmp_path_factory, groups, since):
    """Who had it, who had it when, and what nobody has: at each moment the state of the group that was the last."""
    histories = {
        f"g{number:02}": History(f"g{number:02}", kind=kind, topics=("t",)) for number, (kind, _) in enumerate(groups)
    }
    for history, (_, states) in zip(histories.values(), groups, strict=True):
        for number, members in enumerate(states, 1):
            history.state(number, in_words(members))
    rows = rows_of(*histories.values(), topic_snapshots=[listed("t", 2)])
    ledger = LedgerReader(write(tmp_path_factory.mktemp("ledger"), **rows))
    spans = {number: ask(all_spans, ledger, number, at(9)) for number in range(2)}
    for minute in range(1, 6):
        moment = at(minute) + timedelta(seconds=30)
        members = {
            name: states[min(minute, len(states)) - 1] for name, (_, states) in zip(histories, groups, strict=True)
        }
        has = {(group, n, name) for group, of in members.items() for name, held in of.items() for n in held}
        lasted = {(n, each) for n in range(2) for each in spans[n] if each.since <= moment < (each.until or at(9))}
        assert {(each.group_id, n, each.member_id) for n, each in lasted if each.member_id} == has
        found = {(n, each) for n in range(2) for each in ask(ownership, ledger, n, moment).holdings}
        assert {(each.group_id, n, each.member.member_id) for n, each in found if each.member} == has
        assert {each.group_id for _, each in found if each.doubled} <= {
            name for name, history in histories.items() if history.kind == "classic"
        }
        nobody = {(each.group_id, each.partition) for each in unowned_partitions(ledger, moment, limit=99).partitions}
        assert nobody == {(group, n) for group, of in members.items() if of for n in range(2)} - {
            each[:2] for each in has
        }
    for number in range(2):
        windowed = ask(all_spans, ledger, number, at(9), at(since))
        assert set(windowed) == {each for each in spans[number] if each.until is None or each.until > at(since)}


def all_spans(ledger, topic, number, until, since=None):
    """Every span: the groups drawn here change more often than a timeline lists by default."""
    found = partition_timeline(ledger, topic, number, until, since, limit=1_000)
    assert found.left_off == 0
    return found.spans


def ask(answer, ledger, number, *asked):
    """The answer for a partition of topic `t`, which some group may never have had."""
    return answer(ledger, "t", number, *asked)
