from dataclasses import replace
from datetime import UTC, datetime

import pytest

from groupledger.answers.explanation import MemberMove, Rebalance
from groupledger.report.pictures import COLOURS, EMPTY, GAINED, GIVEN_UP, KEPT, cells, draw
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


def member(name, held, assigned):
    return MemberMove(name, name, None, True, orders(*held), orders(*assigned))


def labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()], [x.get_text() for x in axes.get_xticklabels()]


def test_of_a_large_group_what_moves_is_drawn_and_the_rest_is_counted():
    idle = [member(f"idle-{number:03}", [100 + number], [100 + number]) for number in range(200)]
    moving = [member("loses", [0, 1, 2], [1, 2]), member("gains", [3], [0, 3])]
    figure = draw(replace(REBALANCE, members=(*idle, *moving)))
    assert [labels(axes)[0] for axes in figure.axes] == [["loses", "gains", "(nobody)"]] * 2
    assert labels(figure.axes[1])[1] == ["orders-0"]
    assert "what moves: 1 of 204 partitions, 2 of 202 members" in figure.get_suptitle()


def test_of_a_giant_group_the_members_with_most_changes_have_a_bar():
    some = [member(f"m-{number:03}", range(number * 100, number * 101 + 1), []) for number in range(1_000)]
    figure = draw(replace(REBALANCE, members=tuple(some)))
    [axes] = figure.axes
    assert labels(axes)[0] == [f"m-{number}" for number in range(999, 959, -1)]
    assert [bar.get_width() for bar in axes.containers[1]] == [number + 1 for number in range(999, 959, -1)]
    assert "1,000 of 1,000 members gain or lose partitions, the 40 with most are shown" in figure.get_suptitle()


@pytest.mark.parametrize("moved", [0, 1, 100, 20_000])
@pytest.mark.parametrize("size", [3, 50, 1_000])
def test_a_picture_is_no_larger_than_a_screen_scrolls(size, moved):
    members = [member(f"m-{n:04}", range(n, 10_000, size), range(n, 10_000 - moved, size)) for n in range(size)]
    width, height = draw(replace(REBALANCE, members=tuple(members))).get_size_inches()
    assert width <= 30
    assert height <= 30


def test_member_ids_in_a_picture_are_as_short_as_they_can_be_told_apart():
    name = "app-1-3f2504e0-4f89-11d3-9a0c-0305e82c3301"
    figure = draw(replace(REBALANCE, members=(replace(MEMBERS[0], member_id=name, client_id=None),)))
    assert labels(figure.axes[0])[0] == ["app-1-3f2504e0", "(nobody)"]
