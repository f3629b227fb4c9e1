"""History under another assignor beside what happened: summed by group, over the rebalances that both have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from groupledger.answers.reader import LedgerReader
from groupledger.answers.replayed import Course, replayed
from groupledger.answers.scope import RequestedScope
from groupledger.report.pictures import TITLE_WIDTH, draw_courses
from tests.answers.ledgers import write

DAY = datetime(2026, 11, 21, tzinfo=UTC)


def snapshot(group, number, **more):
    return {
        "snapshot_id": f"log/{group}/{number}",
        "cluster_id": "dev",
        "group_id": group,
        "group_type": "classic",
        "snapshot_kind": "generation",
        "generation": number,
        "offset": number,
        "members": 2,
        "observed_at": DAY + timedelta(hours=number),
        **more,
    }


def result(group, number, scenario, **counts):
    return {
        "snapshot_id": f"log/{group}/{number}",
        "cluster_id": "dev",
        "group_id": group,
        "group_type": "classic",
        "scenario": scenario,
        "round": 1,
        "members": 2,
        "outcome": "ASSIGNED",
        "follow_up": False,
        **counts,
    }


def change(number, partition, before, after):
    """A partition of orders goes from one member of `pay` to another; None: nobody."""
    return {
        "snapshot_id": f"log/pay/{number}",
        "cluster_id": "dev",
        "group_id": "pay",
        "topic": "orders",
        "partition": partition,
        "from_member_id": before,
        "to_member_id": after,
        "offset": number,
        "log_partition": 0,
        "at": DAY + timedelta(hours=number),
    }


def named(number, member, instance):
    return {
        "snapshot_id": f"log/pay/{number}",
        "cluster_id": "dev",
        "group_id": "pay",
        "member_id": member,
        "group_instance_id": instance,
    }


@pytest.fixture
def reader(tmp_path):
    ledger = write(
        tmp_path,
        group_snapshots=[
            *(snapshot("pay", number) for number in (1, 2, 3)),
            snapshot("pay", 4, snapshot_kind="rewrite"),
            *(snapshot("ship", number) for number in (1, 2)),
            snapshot("modern", 1, group_type="consumer", snapshot_kind="fold"),
        ],
        member_snapshots=[named(1, "A", None), named(2, "S-1", "S"), named(3, "S-2", "S")],
        ownership_changes=[
            *(change(1, partition, None, "A") for partition in (0, 1)),
            change(2, 0, "A", None),  # given up in one generation, handed over in the next: once
            change(2, 1, "A", "S-1"),
            change(3, 0, None, "B"),
            change(3, 1, "S-1", "S-2"),  # the same static member
            change(4, 0, "B", "A"),  # in a rewrite
        ],
        rebalances=[
            result("pay", 1, "recorded", revoked=0, load_min=2, load_max=2),
            result("pay", 1, "other", added=2, revoked=0, load_min=1, load_max=3),
            result("pay", 2, "recorded", revoked=8),
            result("pay", 2, "other", added=1, revoked=1, follow_up=True),
            result("pay", 3, "recorded", revoked=8),
            result("pay", 3, "other", added=0, revoked=1),
            result("pay", 4, "recorded", revoked=9),
            result("pay", 4, "other", added=9, revoked=9),
            result("ship", 1, "recorded", revoked=3),
            result("ship", 1, "other", outcome="REJECTED"),
            result("ship", 2, "recorded", revoked=1),
            result("ship", 2, "other", added=2, revoked=1),
            result("modern", 1, "recorded", revoked=7),
            result("modern", 1, "other", added=7, revoked=7),
        ],
    )
    return LedgerReader(ledger)


def test_the_title_of_the_picture_is_no_wider_than_the_picture(reader):
    title = draw_courses(replayed(reader, RequestedScope(), "cooperative-sticky", "other", 10)).get_suptitle()
    assert max(map(len, title.splitlines())) <= TITLE_WIDTH


def test_rebalances_are_summed_by_group(reader):
    answer = replayed(reader, RequestedScope(), "sticky", "other", 10)
    ship, pay = sorted(answer.groups, key=lambda group: group.rebalances)
    assert (pay.group_id, pay.rebalances, pay.refused) == ("pay", 3, 0)
    assert pay.happened == Course(gained=4, revoked=16, follow_ups=0, spread=0)
    assert pay.replayed == Course(gained=3, revoked=2, follow_ups=1, spread=2)
    assert (ship.group_id, ship.rebalances, ship.refused) == ("ship", 1, 1)
    assert (ship.happened.gained, ship.replayed.gained) == (0, 2)
    assert (answer.rebalances, answer.happened.revoked, answer.replayed.revoked) == (4, 17, 3)
    assert [group.group_id for group in answer.groups] == ["pay", "ship"]
    assert answer.notes == (
        "the assignor gives no answer to 1 rebalance: with --commit, `groupledger show --quarantine` says why",
    )


def test_the_sums_are_of_all_groups_also_of_those_that_are_not_shown(reader):
    answer = replayed(reader, RequestedScope(), "sticky", "other", 1)
    assert ([group.group_id for group in answer.groups], answer.total, answer.happened.revoked) == (["pay"], 2, 17)


def test_only_what_lies_in_the_period_is_summed(reader):
    answer = replayed(reader, RequestedScope(group="pay", since=DAY + timedelta(hours=3)), "sticky", "other", 10)
    assert (answer.rebalances, answer.happened.gained, answer.replayed.revoked) == (1, 1, 1)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (RequestedScope(since=DAY + timedelta(hours=9)), "no record lies in this period"),
        (RequestedScope(group="modern"), "no rebalance of a classic consumer group lies there"),
    ],
)
def test_where_there_is_nothing_it_says_why(reader, asked, says):
    answer = replayed(reader, asked, "sticky", "other", 10)
    assert (answer.total, answer.happened) == (0, Course(0, 0, 0, 0))
    assert says in answer.notes[0]
