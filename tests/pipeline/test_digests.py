"""`doctor --deep`: a value that changed under the same number of rows is named; what was erased on purpose is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from groupledger import tables
from groupledger.core.digest import result_digest, rows_digest
from groupledger.pipeline import doctor as doctoring
from groupledger.pipeline.doctor import DigestComparison, compare, compared, soundness
from groupledger.pipeline.maintain import Erasure
from groupledger.sinks.append import Written, digest_counts, digest_name, digests
from groupledger.sinks.attempts import Run
from tests.pipeline.ledgers import Workspace, committed
from tests.pipeline.test_ingest import LINES, TOPICS

WHOLE = Erasure({}, 0)
FACTS, RAW, LISTINGS = tables.GROUP_SNAPSHOTS.name, tables.LOG_RECORDS.name, tables.TOPIC_SNAPSHOTS.name


def wrote(**rows: int) -> list[Written]:
    return [Written(table, number, (number, 1, 2, 3)) for table, number in rows.items()]


def run(written: list[Written], *, by_table: bool = True, sequence: int = 1, **other: Any) -> Run:
    by_name = digests(written)
    counts = {each.table: each.rows for each in written} | (digest_counts(by_name) if by_table else {})
    values: dict[str, Any] = {
        "attempt_id": f"a{sequence}",
        "sequence": sequence,
        "result_digest": result_digest(by_name),
    }
    changed_run: Run = replace(committed(sequence, counts_out=counts), run_id="nightly", **values | other)
    return changed_run


def there(*attempts: tuple[str, list[Written]]) -> dict[str, dict[str, Written]]:
    found: dict[str, dict[str, Written]] = {table.name: {} for table in tables.TABLES if table is not tables.RUNS}
    for attempt, written in attempts:
        for each in written:
            found[each.table][attempt] = each
    return found


def changed(each: Written) -> Written:
    return replace(each, sums=(each.sums[0] ^ 1, *each.sums[1:]))


FILLED = wrote(group_snapshots=3, log_records=5, topic_snapshots=1)


def test_what_is_as_it_was_written_is_counted_by_table():
    found = compared([run(FILLED), run([], sequence=2)], there(("a1", FILLED)), WHOLE)
    assert found == DigestComparison((), 3, 0, 0)


def test_a_changed_value_is_named_with_table_attempt_run_rows_and_digests():
    now = [changed(FILLED[0]), *FILLED[1:]]
    found = compared([run(FILLED)], there(("a1", now)), WHOLE)
    [told] = found.different
    got, wanted = (f"{digest_counts(digests(each))[digest_name(FACTS)]:015x}" for each in (now, FILLED))
    assert told == f"{FACTS} of attempt a1 (run nightly): 3 rows of 3, digest {got}, wanted {wanted}"
    assert found.equal == 2


def test_of_a_run_that_kept_no_digest_of_each_table_the_whole_is_compared():
    history = [run(FILLED, by_table=False)]
    assert compared(history, there(("a1", FILLED)), WHOLE) == DigestComparison((), 3, 0, 0)
    [told] = compared(history, there(("a1", [changed(FILLED[0]), *FILLED[1:]])), WHOLE).different
    assert "attempt a1 (run nightly)" in told
    assert f"{FACTS} (3 rows)" in told


@pytest.mark.parametrize("by_table", [True, False])
def test_rows_that_are_lost_or_too_many_are_named_too(by_table):
    history = [run(FILLED, by_table=by_table)]
    for now in (FILLED[1:], [*FILLED, *wrote(coverage=1)], []):
        assert compared(history, there(("a1", now)), WHOLE).different


def test_a_run_whose_own_digest_was_changed_is_named():
    [told] = compared([run(FILLED, result_digest="other")], there(("a1", FILLED)), WHOLE).different
    assert told.endswith("wanted other")


def test_what_retention_removed_is_not_missed_and_the_rest_is_compared():
    erasure = Erasure({RAW: {"a1"}}, 0)
    left = [FILLED[0], FILLED[2]]
    assert compared([run(FILLED)], there(("a1", left)), erasure) == DigestComparison((), 2, 1, 0)
    assert compared([run(FILLED, by_table=False)], there(("a1", left)), erasure) == DigestComparison((), 0, 1, 2)
    [told] = compared([run(FILLED)], there(("a1", [changed(FILLED[0]), FILLED[2]])), erasure).different
    assert told.startswith(FACTS)


def test_what_a_redaction_rewrote_is_not_missed_and_what_it_leaves_alone_is_compared():
    now = [changed(FILLED[0]), FILLED[2]]
    assert compared([run(FILLED)], there(("a1", now)), Erasure({RAW: {"a1"}}, 2)) == DigestComparison((), 1, 2, 0)
    listing = [*FILLED[:2], changed(FILLED[2])]
    [told] = compared([run(FILLED)], there(("a1", listing)), Erasure({}, 2)).different
    assert told.startswith(LISTINGS)
    later = run(FILLED, sequence=3)
    assert compared([later], there(("a3", [changed(FILLED[0]), *FILLED[1:]])), Erasure({}, 2)).different


def test_the_short_digest_tells_bags_of_rows_apart():
    numbers = {digest_counts({FACTS: rows_digest(rows, (rows,) * 4)})[digest_name(FACTS)] for rows in range(2000)}
    assert len(numbers) == 2000
    assert all(0 <= number < 2**60 for number in numbers)


@pytest.mark.long
def test_one_cell_that_was_changed_from_outside_is_found_by_the_deep_look_alone(workspace: Workspace):
    """One column of one row has another value: as many rows, of the same attempt."""
    workspace.ingest(TOPICS, workspace.source("log.jsonl", LINES[:40]), run_id="nightly")
    spark, place = workspace.spark, workspace.location
    assert doctoring.digest_checks(spark, place).ok
    first = min(row[0] for row in place.rows(spark, tables.GROUP_SNAPSHOTS).select("snapshot_id").collect())
    name = place.identifier(tables.GROUP_SNAPSHOTS)
    [changes] = spark.sql(f"UPDATE {name} SET state = 'Forged' WHERE snapshot_id = '{first}'").collect()
    assert changes[0] == 1
    assert [check.name for check in soundness(spark, place) if not check.ok] == []
    told = doctoring.digest_checks(spark, place)
    assert not told.ok
    assert told.detail.startswith(f"{FACTS} of attempt ")
    assert "(run nightly)" in told.detail
    assert told.remedy
    assert compare(spark, place).equal > 0
