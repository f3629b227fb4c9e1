"""What the pages of a report ask besides: groups at a glance, counts over time, and the owners of a whole group."""

import pytest

from groupledger.answers.group_owners import Size, group_owners, hand_overs, overview, rebalances_over_time, sizes
from groupledger.answers.queries import alike, exactly
from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import Scope
from tests.answers.histories import History, rows_of
from tests.answers.ledgers import write
from tests.answers.rows import at

PAY = (
    History("pay", topics=("a",))
    .state(1, "m a:0,1,2,3", complete=True)
    .state(2, "m a:0,1 | n a:2,3", complete=True)
    .state(3, "m a:0,1 | n a:2", complete=True)
    .state(4, "m a:0,1 | n a:2", complete=True, snapshot_kind="rewrite", generation=3)
    .state(5, "n a:0,1,2,3", complete=True)
)
STAR = History("p*y").state(4, "s/i a:0", complete=True)
OTHER = History("pay", "prod").state(1, "x a:0", complete=True).state(2, None)
EVERYTHING = Scope(None, None, None, None, at(9))


def of_pay(since=None, until=None):
    return Scope("dev", exactly("pay"), since, until, at(9))


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return LedgerReader(write(tmp_path_factory.mktemp("ledger"), **rows_of(PAY, STAR, OTHER)))


def test_groups_at_a_glance_those_with_most_records_first(reader):
    lines = overview(reader, EVERYTHING)
    assert [(*each.key, each.records, each.members, each.number) for each in lines] == [
        ("dev", "pay", 5, 1, 5),
        ("prod", "pay", 2, 0, 2),
        ("dev", "p*y", 1, 1, 4),
    ]
    assert (lines[0].first, lines[0].last, lines[0].state) == (at(1), at(5), "Stable")


def test_a_glance_at_a_period_is_of_its_records(reader):
    [line] = overview(reader, of_pay(at(2), at(4)))
    assert (line.records, line.members, line.last) == (2, 2, at(3))
    assert overview(reader, of_pay(at(8))) == ()


def test_rebalances_are_counted_by_unit_without_rewrites(reader):
    found = rebalances_over_time(reader, EVERYTHING, [("dev", "pay")], "minute")
    assert [(each.what, each.at, each.times) for each in found] == [
        (("dev", "pay"), at(minute), 1) for minute in (1, 2, 3, 5)
    ]
    [hour] = rebalances_over_time(reader, EVERYTHING, [("dev", "pay")], "hour")
    assert (hour.at, hour.times) == (at(0), 4)


def test_partitions_taken_from_a_member_are_counted_by_block(reader):
    found = hand_overs(reader, of_pay(), "minute", 2)
    assert [(each.what, each.at, each.times) for each in found] == [
        (("a", "0"), at(5), 2),
        (("a", "2"), at(2), 2),
        (("a", "2"), at(3), 1),
    ]


def test_every_partition_of_a_group_has_its_owners(reader):
    found = group_owners(reader, of_pay(), 10, 100)
    assert (found.partitions, found.changes) == (4, 10)
    last = found.owners["a", 3]
    assert [(span.member_id, span.since, span.until) for span in last] == [
        ("m", at(1), at(2)),
        ("n", at(2), at(3)),
        (None, at(3), at(5)),
        ("n", at(5), None),
    ]
    assert group_owners(reader, Scope("dev", exactly("p*y"), None, None, at(9)), 10, 100).names == {"s": "i"}


def test_the_end_of_a_period_is_the_end_of_its_changes(reader):
    found = group_owners(reader, of_pay(until=at(3)), 10, 100)
    last = found.owners["a", 3]
    assert [(span.member_id, span.until) for span in last] == [("m", at(2)), ("n", None)]


@pytest.mark.parametrize(("partitions", "changes"), [(3, 100), (10, 9)])
def test_too_many_partitions_or_changes_are_counted_alone(reader, partitions, changes):
    found = group_owners(reader, of_pay(), partitions, changes)
    assert (found.partitions, found.changes, found.owners) == (4, 10, None)


def test_sizes_are_those_of_the_last_records(reader):
    found, total = sizes(reader, of_pay(), 3)
    assert total == 5
    assert found == (Size(at(3), 2, 3, 2, 1), Size(at(4), 2, 3, 2, 1), Size(at(5), 1, 4, 4, 4))
    assert sizes(reader, Scope("prod", "pay", None, None, at(9)), 9)[0][-1] == Size(at(2), 0, 0, 0, 0)


@pytest.mark.parametrize("name", ["pay", "p*y", "?", "a[*]b", "[", "a[b", "%_\\*", "[[]"])
def test_a_name_is_exactly_itself_whatever_a_pattern_would_make_of_it(tmp_path, name):
    others = ("pay", "p*y", "pxy", "x", "?", "a[*]b", "a*b", "[", "a[b", "%_\\*", "a_\\b", "[[]")
    rows = [{"cluster_id": "c", "group_id": each, "snapshot_id": f"log/c/{each}"} for each in others]
    reader = LedgerReader(write(tmp_path, group_snapshots=rows))
    condition = alike("t.group_id", exactly(name))
    found = reader.query(f"SELECT t.group_id FROM current_group_snapshots t WHERE {condition}")
    assert found["group_id"].to_pylist() == [name]
