"""A slice of `make fuzz`: broken records among good ones, in every order and split, on one processor in seconds."""

from __future__ import annotations

import random

import pytest

from groupledger.core.history import fold_group
from tests.core.history.captured import CLUSTER, catalog, log_rows
from tests.fuzz.buckets import check_buckets
from tests.fuzz.checks import LOGS, check, check_memory, in_pieces, same
from tests.fuzz.records import Round, group_key, one_round, rounds

SMALL = LOGS[1:]


@pytest.mark.slow
def test_a_thousand_broken_records_harm_nobody_else_and_any_order_ends_alike():
    counts = check(seed=20, records=1_000, logs=SMALL)
    assert counts["broken"] == 1_000
    assert sum(number for name, number in counts.items() if name.startswith("used.")) > 500
    quarantined = {name: number for name, number in counts.items() if name.startswith("quarantined.")}
    codes = ("TRUNCATED", "TRAILING_BYTES", "BAD_UTF8", "BAD_LENGTH", "UNKNOWN_VERSION", "OFFSET_REWRITTEN")
    assert quarantined.keys() >= {f"quarantined.{code}" for code in codes}
    assert 200 < sum(quarantined.values()) < 1_000, "some mutants are good records of another content"


@pytest.mark.slow
def test_broken_facts_of_a_group_change_no_other_group_of_the_bucket():
    assert check_buckets(seed=7, buckets=8).total() > 400


def test_absurd_lengths_take_no_memory():
    assert check_memory(seed=7, logs=SMALL[1:]) < 64 << 20


def test_a_seed_says_which_records_are_broken():
    once, again, other = (next(rounds(seed, 200, LOGS)) for seed in (3, 3, 4))
    assert once == again != other
    good = {row for rows in log_rows(once.log).values() for row in rows}
    assert len(set(once.rows) - good) == once.mutants == 200
    assert {group_key(row.key) for row in set(once.rows) - good} <= once.touched


def test_a_key_that_breaks_behind_its_group_is_a_hole_there_even_if_it_comes_alone():
    """Ingested by itself the record named no group: what came later had no hole, all at once it had one."""
    log, group = "edge/offsets", "stale-java"
    rows = list(log_rows(log)[group])
    broken = rows[3]._replace(key=(rows[3].key or b"") + b"\0")
    made = Round(log, [*rows[:3], broken, *rows[4:]], {group.encode()}, 1)
    whole = in_pieces(made, [made.rows]).state()
    same(in_pieces(made, [[broken], [row for row in made.rows if row != broken]]).state(), whole)
    alone = fold_group(CLUSTER, [broken], None, catalog("edge"), group_id=group)
    assert [each.group_id for each in alone.quarantine] == [group]
    assert [each.kind for each in alone.coverage] == ["record-unreadable"]
    assert alone.head is not None


def test_the_check_sees_a_state_that_depends_on_the_order():
    made = one_round("dev/offsets", random.Random(1), 50)  # noqa: S311 seeded on purpose, nothing secret
    whole = in_pieces(made, [made.rows]).state()
    with pytest.raises(AssertionError, match="group_heads"):
        same(in_pieces(made, [made.rows[:-40]]).state(), whole)
