"""Records of a group in several log partitions: its own stay, strays are quarantined alone, in any order and split."""

import json
import random
from base64 import b64encode

import pytest

from groupledger.core.history import log_partition_of
from groupledger.tables import COVERAGE, GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES, QUARANTINE, VIOLATIONS
from tests.core.history.records import Log, member

PARTITIONS = 50
FACTS = (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES, COVERAGE, VIOLATIONS, QUARANTINE)


def history(group, generations):
    log = Log(group)
    log.classic(0)
    for generation in range(1, generations):
        log.classic(generation, [member(f"m-{generation % 3}", {"clicks": (0, 1)})])
    home = log_partition_of(group, PARTITIONS)
    return [row._replace(log_partition=home, offset=row.offset + 100) for row in log.rows]


def line(row):
    value = None if row.value is None else b64encode(row.value).decode()
    key = b64encode(row.key).decode()
    said = (row.log_partition, row.offset, row.timestamp_ms, key, value)
    return json.dumps(dict(zip(("partition", "offset", "timestamp", "key", "value"), said, strict=True)))


def lines(rows):
    return [line(row) for row in rows]


def moved(row, by):
    return row._replace(log_partition=(row.log_partition + by) % PARTITIONS)


PAYMENTS, ORDERS = history("payments", 16), history("orders", 5)
WITNESSES = [row for name in ("a-group", "b-group", "c-group", "d-group") for row in history(name, 2)]
GOOD = [*PAYMENTS, *ORDERS]
STRAYS = [moved(PAYMENTS[5], -3), *(moved(row, 7) for row in (ORDERS[0], ORDERS[2], ORDERS[4]))]


def said(space):
    return {table.name: space.rows(table) for table in FACTS}


@pytest.fixture(scope="module")
def together(new_workspace):
    space = new_workspace("together")
    summary = space.ingest(space.source("all.jsonl", lines([*GOOD, *STRAYS, *WITNESSES])), **TOLERANT)
    return summary, said(space)


TOLERANT = {"buckets": 2}


@pytest.mark.long
def test_a_stray_harms_no_other_record_of_its_group(together, new_workspace):
    summary, found = together
    (account,) = summary.accounts
    assert dict(account.quarantined) == {"OTHER_LOG_PARTITION": len(STRAYS)}
    assert account.used == {"GroupMetadata": len(GOOD) + len(WITNESSES)}
    clean = new_workspace("clean")
    clean.ingest(clean.source("good.jsonl", lines([*GOOD, *WITNESSES])), **TOLERANT)
    assert {**said(clean), QUARANTINE.name: None} == {**found, QUARANTINE.name: None}
    assert all("expected 13" in row or "expected 1" in row for row in found[QUARANTINE.name])


@pytest.mark.long
def test_strays_that_came_first_give_way(together, workspace):
    """Two of `orders` outnumber the good one that comes with them, until its home can be inferred."""
    workspace.ingest(workspace.source("1.jsonl", lines([*STRAYS, ORDERS[1]])), **TOLERANT)
    assert said(workspace) != together[1]
    second = workspace.ingest(workspace.source("2.jsonl", lines(PAYMENTS[:9])), **TOLERANT)
    workspace.ingest(workspace.source("3.jsonl", lines([*GOOD, *WITNESSES])), **TOLERANT)
    assert said(workspace) == together[1]
    for account in second.accounts:
        assert account.balanced
        assert all(number > 0 for number in account.used.values())


@pytest.mark.long
def test_strays_that_come_last_are_quarantined_alone(together, workspace):
    workspace.ingest(workspace.source("1.jsonl", lines([*GOOD, *WITNESSES])), **TOLERANT)
    workspace.ingest(workspace.source("2.jsonl", lines(STRAYS)), **TOLERANT)
    assert said(workspace) == together[1]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_any_order_and_split_ends_in_the_same(together, workspace, seed):
    chosen = random.Random(seed)  # noqa: S311 - seeded on purpose
    rows = [*GOOD, *STRAYS, *WITNESSES]
    chosen.shuffle(rows)
    cuts = sorted(chosen.sample(range(1, len(rows)), 3))
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        again = chosen.sample(rows[:start], min(start, 3))
        workspace.ingest(workspace.source(f"{number}.jsonl", lines([*rows[start:end], *again])), **TOLERANT)
    assert said(workspace) == together[1]
