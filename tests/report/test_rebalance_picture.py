from dataclasses import replace
from datetime import UTC, datetime

import pytest

from groupledger.answers.rebalance import MemberMove, Rebalance
from groupledger.core.faults import Fault
from groupledger.report.rebalance_picture import COLOURS, EMPTY, GAINED, GIVEN_UP, KEPT, cells, draw
from tests.hostile_ids import RAW


def orders(*numbers):
    return tuple(("orders", number) for number in numbers)


MEMBERS = (
    MemberMove("m1-id", "m1", None, True, orders(0, 1, 2), orders(0)),
    MemberMove("m2-id", "m2", None, True, (), orders(1)),
    MemberMove("m3-id", None, "static-3", False, orders(3), ()),
)
REBALANCE = Rebalance(
    "dev", "payments", "classic", "log/dev/0/9", "generation", 0, 3, "log/dev/0/7", "range", "Stable", True,
    datetime(2026, 11, 21, 14, 3, tzinfo=UTC), MEMBERS, (), (), (),
)  # fmt: skip


@pytest.mark.parametrize(
    ("here", "there", "moved", "expected"),
    [
        (orders(0, 1), orders(0), GIVEN_UP, [KEPT, GIVEN_UP, EMPTY]),
        (orders(0, 2), (), GAINED, [GAINED, EMPTY, GAINED]),
        ((), orders(0), GAINED, [EMPTY, EMPTY, EMPTY]),
    ],
)
def test_a_cell_says_what_became_of_the_partition(here, there, moved, expected):
    assert cells(here, there, list(orders(0, 1, 2)), moved) == expected


def test_the_picture_names_members_and_partitions_and_is_written(tmp_path):
    figure = draw(REBALANCE)
    before, after = figure.axes
    assert [label.get_text() for label in before.get_yticklabels()] == ["m1", "m2", "static-3 (left)", "(nobody)"]
    assert [label.get_text() for label in after.get_xticklabels()] == [f"orders-{number}" for number in range(4)]
    figure.savefig(tmp_path / "rebalance.png")
    assert (tmp_path / "rebalance.png").stat().st_size > 5_000


def test_names_that_steer_a_terminal_or_look_like_mathematics_are_text(tmp_path):
    name = "\x1b\u202e$x^{$"
    member = MemberMove(name, name, None, True, ((name, 0),), ())
    figure = draw(replace(REBALANCE, group_id=name, members=(member,)))
    labels = [label.get_text() for axes in figure.axes for label in (*axes.get_yticklabels(), *axes.get_xticklabels())]
    assert any(r"\u202e" in label for label in labels)
    assert [label for label in [*labels, figure.get_suptitle()] if RAW.search(label)] == []
    figure.savefig(tmp_path / "rebalance.png")


def test_moved_partitions_and_those_of_nobody_stand_out():
    before, after = (axes.collections[0].get_array().reshape(4, 4).tolist() for axes in draw(REBALANCE).axes)
    assert before == [[1, 2, 2, 0], [0, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, 0]]
    assert after == [[1, 0, 0, 0], [0, 3, 0, 0], [0, 0, 0, 0], [0, 0, 4, 4]]
    assert len(set(COLOURS)) == len(COLOURS)


def test_a_group_without_members_is_an_empty_picture():
    assert len(draw(replace(REBALANCE, members=())).axes) == 2


def test_a_giant_group_is_refused():
    giant = MemberMove("m", "m", None, True, orders(*range(20_001)), ())
    with pytest.raises(Fault, match="no readable picture"):
        draw(replace(REBALANCE, members=(giant,)))
