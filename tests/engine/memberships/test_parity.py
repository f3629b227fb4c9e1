"""`assign` gives what `solve` gives, list for list, for the groups of tests/data/parity: many at once, in any order."""

import numpy as np
import pyarrow as pa
import pytest

from groupledger import assign
from tests.core.assignors.golden import PROFILES, pairs
from tests.engine.memberships.frames import lists_of, solved, tables

MOMENTS = 20


def shuffled(table, seed):
    return table.take(pa.array(np.random.default_rng(seed).permutation(len(table))))


@pytest.mark.parity
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"])
@pytest.mark.parametrize("profile", PROFILES)
def test_every_group_of_every_moment_has_solves_lists(profile, step):
    scenarios = [scenario for scenario, _ in pairs(profile, step)]
    members, topics = tables(scenarios, MOMENTS)
    found = assign(shuffled(members, 1), shuffled(topics, 2), "assignor")
    lists, expected = lists_of(found.members.to_pylist()), solved(scenarios, MOMENTS)
    fails = {key for key, of_members in expected.items() if of_members is None and key in set(keys(members))}
    assert {(row["group_id"], row["observed_at"].microsecond) for row in found.refused.to_pylist()} == fails
    assert lists == {key: of_members for key, of_members in expected.items() if of_members}


def keys(members):
    rows = zip(members["group_id"].to_pylist(), members["observed_at"].to_pylist(), strict=True)
    return ((group, at.microsecond) for group, at in rows)


def test_no_result_depends_on_the_order_of_rows_or_on_what_is_computed_together(monkeypatch):
    members, topics = tables([scenario for scenario, _ in pairs("chain", 20)], MOMENTS)
    whole = assign(members, topics, "assignor").result
    monkeypatch.setattr("groupledger.engine.memberships.bucket.GROUPS_A_BUCKET", 7)
    assert assign(shuffled(members, 3), shuffled(topics, 4), "assignor").result.equals(whole)


def test_rounds_are_those_after_which_nothing_changes():
    members, topics = tables([scenario for scenario, _ in pairs("hetero", 4)])
    rows = assign(members, topics, "assignor").groups.to_pylist()
    assert {row["rounds"] for row in rows if row["protocol"] == "EAGER"} == {1}
    assert {row["rounds"] for row in rows if row["protocol"] == "COOPERATIVE"} >= {1, 2}
    assert all((row["rounds"] == 1) == (row["to_revoke"] == []) for row in rows if row["protocol"] == "COOPERATIVE")
