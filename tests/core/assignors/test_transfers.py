"""What the sticky assignors tell besides: rows that kafka-clients 4.4.0 gave, and why `is_sticky` cannot be false."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.arrays.batch import NONE
from groupledger.core.assignors.balance import no_movements, record, to_move_instead
from groupledger.core.scenarios.solving import solve
from tests.examples import examples

FOUR = [["orders", number] for number in range(4)]


def group(assignor, *claims, generations=None, clicks=False):
    """Members m0, m1, .. over four partitions of orders; with `clicks` the first subscribes to that topic too."""
    members = [
        {"id": f"m{at}", "topics": ["orders", "clicks"] if clicks and not at else ["orders"], "owned": owned}
        for at, owned in enumerate(claims)
    ]
    for member, generation in zip(members, generations or [5] * len(claims), strict=True):
        member["generation"] = generation
    asked = {"transferring": True, "is_sticky": True}
    return {"id": "g", "assignor": assignor, "topics": {"orders": 4, "clicks": 1}, "members": members} | asked


TO_M1 = [["orders", 2, "m1"], ["orders", 3, "m1"]]


@pytest.mark.parametrize(
    ("scenario", "transferring", "is_sticky"),
    [
        pytest.param(group("sticky", FOUR, []), TO_M1, True, id="one joins, eager"),
        pytest.param(group("cooperative-sticky", FOUR, []), TO_M1, True, id="one joins, cooperative"),
        pytest.param(group("constrained-cooperative-sticky", FOUR, []), TO_M1, True, id="one joins, KIP-615"),
        pytest.param(group("sticky", FOUR[:2], FOUR[2:]), [], True, id="nothing changed"),
        pytest.param(group("cooperative-sticky", FOUR[:3], FOUR[2:]), [["orders", 2, "m1"]], True, id="disputed"),
        pytest.param(group("sticky", FOUR, [], clicks=True), None, True, id="the general algorithm keeps none"),
        pytest.param(group("range", FOUR, []), None, None, id="not a sticky assignor"),
    ],
)
def test_what_is_asked_for_is_answered(scenario, transferring, is_sticky):
    result = solve(scenario)
    assert result["transferring"] == transferring
    assert result["is_sticky"] is is_sticky


def test_what_is_not_asked_for_is_not_answered():
    plain = {
        name: value for name, value in group("sticky", FOUR, []).items() if name not in ("transferring", "is_sticky")
    }
    assert set(solve(plain)) == {"id", "assignment", "path"}


def test_a_failed_group_has_nothing_to_tell():
    assert set(solve(group("sticky"))) == {"id", "error"}


@pytest.mark.parametrize("mode", ["as-kafka", "safe"])
def test_a_claim_that_cannot_be_true_hands_over_nothing(mode):
    """The older claim loses in either mode; the partition stays with the newer."""
    assert solve(group("sticky", FOUR[:2], FOUR, generations=[6, 5]), mode=mode)["transferring"] == []


def test_a_kept_claim_to_a_partition_below_0_is_no_transfer():
    claims = [["orders", -1], ["orders", 0]], FOUR[:2]
    assert solve(group("cooperative-sticky", *claims))["transferring"] == [["orders", 0, "m0"]]


MOVES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=30)


@settings(max_examples=examples(100), deadline=None)
@given(MOVES)
def test_no_two_members_swap_partitions_of_a_topic(moves):
    """`is_sticky` is a constant only as long as this holds after every move: six partitions, three members."""
    mv, base, topic_hash = no_movements(6), np.array([0, 6]), np.array([7], np.int32)
    owner = [0, 0, 1, 1, 2, 2]
    for slot, target in moves:
        if owner[slot] != target:
            really = to_move_instead(mv, base, topic_hash, 0, slot, owner[slot], target)
            record(mv, base, topic_hash, 0, really, owner[really], target)
            owner[really] = target
        pairs = {(int(mv.set_source[of]), int(mv.set_target[of])) for of in mv.set_of if of != NONE}
        assert not pairs & {(target, source) for source, target in pairs}


def test_the_table_of_a_set_doubles_when_a_thirteenth_partition_goes_the_same_way():
    """Which partition moves back is the first in the set's table, so the table must be as large as Java's."""
    mv, base, topic_hash = no_movements(13), np.array([0, 13]), np.array([7], np.int32)
    sizes = []
    for slot in range(13):
        record(mv, base, topic_hash, 0, slot, 0, 1)
        sizes.append(int(mv.set_capacity[mv.set_of[slot]]))
    assert sizes == [16] * 12 + [32]
