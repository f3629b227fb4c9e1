"""Topics that were deleted after the last listing: KIP-848 records say so by their ids; nothing of theirs is unowned.

The group `pay` subscribes to `orders` and `carts`; `carts` is deleted, and made again with another id.
"""

from __future__ import annotations

import pytest

from groupledger.answers.explanation import difference, explain
from groupledger.answers.gauges import gauges
from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import RequestedScope, scope
from groupledger.answers.timeline import timeline
from groupledger.answers.unowned import unowned_partitions, unowned_time
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import COMMITTED, read_to, write
from tests.answers.rows import at

ORDERS, CARTS = "orders/O:0,1", "carts/X:0,1,2"
LISTED = [listed("orders", 2, topic_id="O"), listed("carts", 3, topic_id="X")]
AGAIN = [*LISTED, listed("carts", 2, 20, topic_id="Y")]


class Targeted(History):
    """A history in which each member's target is what it has, unless `targets` names another."""

    def state(self, number, text, targets=None, **more):
        super().state(number, text, **{"complete": True} | more)
        for row in self.rows["ownership_changes"]:
            row["topic"] = row["topic"] or None
        for row in self.rows["member_snapshots"]:
            if row["offset"] == number:
                for entry in row["recorded"] or ():
                    entry["topic"] = entry["topic"] or None  # `/Y:0`: the id alone is known
                row["target"] = (targets or {}).get(row["member_id"], row["recorded"] or [])
        return self


def history(*states, kind="consumer"):
    found = Targeted("pay", kind=kind, topics=("carts", "orders"))
    for number, text, *targets in states:
        found.state(number, text, *targets)
    return found


HAD = (1, f"m {ORDERS} | n {CARTS}")
GONE = history(HAD, (5, f"m {ORDERS} | n"), (9, f"m {ORDERS} | n"))
FEWER = history(HAD, (5, f"m {ORDERS} | n"), (9, f"m {ORDERS} | n carts/Y:0,1"))
UNNAMED = history(HAD, (5, f"m {ORDERS} | n"), (9, f"m {ORDERS} | n /Y:0,1"))
REVOKED = history(HAD, (5, f"m {ORDERS} | n", {"m": [{"topic": "carts", "topic_id": "X", "partitions": [0, 1, 2]}]}))
NOT_READ = history((1, f"m {ORDERS} | n"))
LACKING = history(HAD, (5, f"m {ORDERS} | n carts/X:0,1"))
CLASSIC = history(HAD, (5, "m orders:0,1 | n"), kind="classic")
ALONE = history((1, "n carts/X:0,1,2"), (5, "n"))


def ledger(folder, of_group, listings=LISTED):
    rows = rows_of(of_group, topic_snapshots=listings, runs=[COMMITTED, read_to(dev=at(30))])
    return LedgerReader(write(folder, **rows))


def named(places):
    return None if places is None else [f"{each.topic}-{each.partition}" for each in places]


CASES = {
    "deleted": (GONE, None, []),
    "made again with fewer": (FEWER, None, []),
    "made again, without a name": (UNNAMED, None, []),
    "the only one": (ALONE, None, ["orders-0", "orders-1"]),
    "revoked, and in a target": (REVOKED, ["carts-0", "carts-1", "carts-2"], ["carts-0", "carts-1", "carts-2"]),
    "nobody had it yet": (NOT_READ, ["carts-0", "carts-1", "carts-2"], ["carts-0", "carts-1", "carts-2"]),
    "one partition lacks": (LACKING, ["carts-2"], ["carts-2"]),
    "a classic group": (CLASSIC, ["carts-0", "carts-1", "carts-2"], ["carts-0", "carts-1", "carts-2"]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_topic_whose_id_is_gone_is_not_counted_as_unowned(tmp_path, case):
    of_group, counted, places = CASES[case]
    reader = ledger(tmp_path, of_group)
    last = timeline(reader, "pay").entries[-1]
    told = last.unowned if last.unowned is None else [f"{topic}-{number}" for topic, number in last.unowned]
    assert told == counted
    answer = unowned_partitions(reader, at(15))
    assert sorted(named(answer.partitions)) == places
    assert answer.not_known == ((("dev", "pay"),) if counted is None else ())
    note = "not known of 1 group: deleted since the last topic listing: carts (first listed 2026-11-21T14:00:00.000Z)"
    assert (note in answer.notes) == (counted is None)
    [group] = gauges(reader, RequestedScope(None, None, None, at(15))).groups
    assert group.unowned == (None if counted is None else len(counted))


def test_what_is_compared_says_the_same(tmp_path):
    assert difference(ledger(tmp_path, GONE), "pay", at(2), at(15)).after.unowned is None


def test_the_next_listing_settles_it(tmp_path):
    reader = ledger(tmp_path, FEWER, AGAIN)
    answer = unowned_partitions(reader, at(25))
    assert (answer.partitions, answer.not_known) == ((), ())


@pytest.mark.parametrize("of_group", [GONE, FEWER, UNNAMED])
@pytest.mark.parametrize("generation", [5, 9])
def test_explain_names_no_partition_of_it(tmp_path, of_group, generation):
    assert explain(ledger(tmp_path, of_group), "pay", generation=generation).unowned == ()


def test_explain_does_not_take_one_topic_of_a_name_for_the_other(tmp_path):
    reader = ledger(
        tmp_path, FEWER, [*LISTED, listed("carts", None, 4, topic_id="X"), listed("carts", 2, 8, topic_id="Y")]
    )
    for generation in (5, 9):
        assert explain(reader, "pay", generation=generation).unowned == ()


@pytest.mark.parametrize(
    ("of_group", "listings", "expected"),
    [
        (GONE, LISTED, []),
        (FEWER, LISTED, []),
        (UNNAMED, LISTED, []),
        (FEWER, AGAIN, []),
        (UNNAMED, AGAIN, []),
        (LACKING, LISTED, ["carts-2"]),
        (REVOKED, LISTED, ["carts-0", "carts-1", "carts-2"]),
        (CLASSIC, LISTED, ["carts-0", "carts-1", "carts-2"]),
        (history(HAD), AGAIN, ["carts-0", "carts-1"]),  # the group still has the topic of before
    ],
    ids=["deleted", "fewer", "unnamed", "fewer, listed", "unnamed, listed", "one", "revoked", "classic", "not yet"],
)
def test_stretches_without_an_owner_are_told_by_topic_id(tmp_path, of_group, listings, expected):
    reader = ledger(tmp_path, of_group, listings)
    found = unowned_time(reader, scope(reader, RequestedScope("dev", "pay")), 100).stretches
    assert sorted(f"{each.topic}-{each.partition}" for each in found) == expected
