"""What is counted of a bucket, against the rows themselves."""

from collections import Counter
from dataclasses import replace

import pytest

from groupledger.engine.buckets import enveloped
from groupledger.engine.envelope import COUNTS, SCHEMAS, counts_of
from groupledger.engine.result_rows import EACH_SIDE, SUMS, bucket_counts
from tests.engine.bucket_rows import AS_KAFKA, catalogue, computed, group_row, table
from tests.engine.captured_rows import CAPTURES, captured_groups, rows_of
from tests.engine.test_compute import BAD, good


def told_by_rows(rebalances):
    """The same counts, row by row."""
    found = Counter()
    for row in rebalances:
        found[f"outcome.{row['outcome']}"] += 1
        found[f"verdict.{row['verdict']}"] += 1
        for name in {*SUMS, *EACH_SIDE}:
            found[f"sum.{name}"] += row[name] or 0
        over = row["kept"] + row["added"] + row["unassigned"] - row["partitions"]
        found["sum.beyond"] += max(over, 0)
        found["sum.missing"] += max(-over, 0)
        found["sum.with_reason"] += sum(len(each["partitions"]) for each in row["unassigned_partitions"] or [])
        found["sum.members_with_outcome"] += row["members"] if row["outcome"] != "REJECTED" else 0
    return +found


def counted(rows):
    calculation = replace(AS_KAFKA, topics=catalogue(rows))
    (found,) = (each for each in enveloped(table(rows), calculation, None) if each.table == COUNTS)
    return {name: number for _, name, number in counts_of(found)}


@pytest.mark.parametrize("capture", CAPTURES)
def test_captured_groups(capture):
    rows = [row for group in captured_groups(capture) for row in rows_of(capture, group)]
    kinds = Counter(row["row_kind"] for row in rows)
    received = {f"received.{name}": kinds[kind] for kind, name in enumerate(("groups", "members", "records"))}
    expected = told_by_rows(computed(rows)["rebalances"])
    assert {name for name in expected if name.startswith("outcome.")} >= {"outcome.ASSIGNED", "outcome.UNCHANGED"}
    assert counted(rows) == +Counter(received) | expected


@pytest.mark.parametrize("code", BAD)
def test_a_refused_group_and_its_neighbour(code):
    rows = [*BAD[code], *good()]
    found = counted(rows)
    assert (found["outcome.REJECTED"], found["sum.members_with_outcome"]) == (1, 2)
    expected = told_by_rows(computed(rows)["rebalances"])
    assert {name: found[name] for name in expected} == expected


def test_what_is_neither_assigned_nor_unassigned_is_missing():
    rebalances = SCHEMAS["rebalances"].empty_table()
    row = dict.fromkeys(rebalances.column_names) | {
        "outcome": "ASSIGNED", "partitions": 5, "kept": 1, "added": 1, "unassigned": 1, "members": 2,
    }  # fmt: skip
    rows = rebalances.from_pylist([row, row | {"partitions": 1}], schema=rebalances.schema)
    found = {name: number for _, name, number in bucket_counts(table([group_row("g/1")]), rows)}
    assert (found["sum.missing"], found["sum.beyond"]) == (2, 2)
    assert set(found) <= {
        "received.groups", "outcome.ASSIGNED", *(f"sum.{name}" for name in (*EACH_SIDE, "added", "missing", "beyond")),
        "sum.members_with_outcome",
    }  # fmt: skip
