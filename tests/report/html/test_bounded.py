"""What pictures are made of: bounded whatever the history's size, and nothing of it invented."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from groupledger.answers.audit import Found
from groupledger.answers.causes import Moved
from groupledger.answers.group_owners import Counted, GroupLine, unit_of
from groupledger.answers.owners import OwnerSpan
from groupledger.answers.scope import Scope
from groupledger.core.rebalance.findings import Severity
from groupledger.report.html.charts import (
    COLUMNS,
    LONGEST_NAME,
    MOST_COLUMNS,
    heat,
    heat_picture,
    label,
    moves_of,
    top_of,
)
from groupledger.report.html.gathering import worst_first
from groupledger.report.html.group_page import NOBODY, OTHERS, SEVERAL, UNKNOWN, owner_matrix
from groupledger.report.html.page_parts import PAGE_NAME, command, page_of, some
from tests.answers.rows import at

BEGIN, END = at(0), at(8)  # a minute is 60 columns of 480


def owned(*spans):
    """The owners of a partition by spans of (member, from minute, to minute)."""
    return tuple(_span(*each) for each in spans)


def _span(member, since, until):
    return OwnerSpan("c", "g", None, member, None if since is None else at(since), None if until is None else at(until))


def runs(*partitions, names=None, named=7):
    matrix = owner_matrix({("t", number): of for number, of in enumerate(partitions)}, names or {}, BEGIN, END, named)
    return [[(number / 60, code) for _, number, code in matrix.runs(row)] for row in range(len(partitions))]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([("a", 0, 2), ("b", 2, None)], [(2, 1), (6, 0)]),
        ([("a", None, 4), (None, 4, 6), ("a", 6, None)], [(4, 0), (2, NOBODY), (2, 0)]),
        ([("a", 2, 3)], [(2, UNKNOWN), (1, 0), (5, UNKNOWN)]),
        ([("a", 0, 5), ("b", 3, None)], [(3, 0), (2, SEVERAL), (3, 1)]),
        ([], [(8, UNKNOWN)]),
    ],
)
def test_a_row_shows_who_had_the_partition(spans, expected):
    assert runs(owned(*spans)) == [expected]


def test_members_are_named_by_what_outlives_a_restart_and_only_some_of_them():
    matrix = owner_matrix(
        {("t", 0): owned(("a-1", 0, 2), ("a-2", 2, 6), ("b", 6, 7), ("c", 7, None))},
        {"a-1": "i", "a-2": "i"},
        BEGIN,
        END,
        1,
    )
    assert (matrix.members, matrix.others) == (("i",), 2)
    assert [(number, code) for _, number, code in matrix.runs(0)] == [(360, 0), (120, OTHERS)]


def test_a_column_is_of_whoever_had_most_of_it():
    assert COLUMNS == 480
    short = OwnerSpan("c", "g", None, "b", BEGIN + timedelta(seconds=0.3), BEGIN + timedelta(seconds=0.6))
    rest = OwnerSpan("c", "g", None, "a", BEGIN + timedelta(seconds=0.6), None)
    first = OwnerSpan("c", "g", None, "a", BEGIN, BEGIN + timedelta(seconds=0.3))
    assert runs((first, short, rest)) == [[(8, 0)]]


def test_heat_has_the_rows_with_most_and_few_columns():
    minutes = [
        Counted((f"g{number}",), BEGIN + minute * timedelta(minutes=1), number)
        for number in (1, 2, 3)
        for minute in range(500)
    ]
    of = heat(minutes, "minute", 2)
    assert of is not None
    assert of.rows == (("g3",), ("g2",))
    assert of.left_off == 1
    assert len(of.counts[0]) <= MOST_COLUMNS
    assert [sum(row) for row in of.counts] == [1_500, 1_000]
    assert of.width == timedelta(minutes=7)
    assert "1 more rows with fewer are left off" in heat_picture(of, ["a", "b"], "rebalances").caption


def test_heat_in_order_has_9_before_10():
    counted = [Counted(("t", str(number)), BEGIN, number) for number in (10, 9, 100)]
    assert heat(counted, "second").rows == (("t", "100"), ("t", "10"), ("t", "9"))
    assert heat(counted, "second", in_order=True).rows == (("t", "9"), ("t", "10"), ("t", "100"))


@pytest.mark.parametrize(
    ("totals", "top"), [([], 1), ([0, 0], 1), ([10_000, 10, 9], 10), ([40, 10], 40), ([7], 7), ([7, 0], 7)]
)
def test_only_a_bar_far_above_the_others_is_cut(totals, top):
    assert top_of(totals) == top


def test_heat_of_one_moment_is_one_cell_and_of_none_none():
    assert heat([Counted(("g",), BEGIN, 4)], "second").counts == ((4,),)
    assert heat([], "second") is None


@pytest.mark.parametrize(
    ("period", "unit"),
    [(0, "second"), (2_000, "second"), (2_001, "minute"), (10 * 86_400, "hour"), (400 * 86_400, "day")],
)
def test_periods_are_counted_in_units_of_their_size(period, unit):
    assert unit_of(timedelta(seconds=period)) == unit


def line(group, records):
    return GroupLine("c", group, records, BEGIN, END, "classic", 1, "range", "Stable", 1)


def test_the_worst_groups_come_first():
    coded = (("A", "warning", "w"), ("B", "error", "e"), ("C", "info", "i"), ("D", "warning", "w"))
    found = [Found(code, Severity(severity), "c", group, 1, None, None, "", None) for code, severity, group in coded]
    lines = [line(group, records) for group, records in (("i", 9), ("busy", 99), ("w", 1), ("e", 1))]
    assert [each.group_id for each in worst_first(lines, found)] == ["e", "w", "busy", "i"]


@pytest.mark.parametrize("group", ["pay", "", "A" * 300, "<b>/../x", "\u202e", "é", "PAY", "\ud800"])
def test_a_page_has_a_plain_file_name_of_its_own(group):
    others = {page_of("c", other) for other in ("pay", "", "A" * 300, "PAY", "é", "\u202e") if other != group}
    assert PAGE_NAME.fullmatch(page_of("c", group))
    assert page_of("c", group) not in others | {page_of("d", group)}


def test_a_table_says_how_many_rows_it_lacks_and_where_they_are():
    assert some([(1,), (2,), (3,)], ("n",), 2, "groupledger show").left_off == "... and 1 more: groupledger show"
    assert some([(1,)], ("n",), 2, "groupledger show").left_off == ""


def test_a_command_can_be_pasted_whatever_the_names_are():
    scope = Scope(None, None, at(0), None, None)
    told = command("audit", scope, "my cluster", "a;rm -rf *")
    assert told == "groupledger audit 'a;rm -rf *' --cluster 'my cluster' --since 2026-11-21T14:00:00.000Z"


def entry(*moved):
    return SimpleNamespace(moved=[Moved("t", *each) for each in moved])


def test_moves_are_told_by_kind():
    assert moves_of([entry((0, "a", "b"), (1, None, "b"), (2, "a", None), (3, "a", None))]) == [(1, 1, 2)]


def test_a_hand_over_of_two_steps_is_one_move_in_the_second():
    revoked, taken = entry((0, "a", None), (1, "a", None), (2, "a", None)), entry((0, None, "b"), (1, None, "a"))
    assert moves_of([revoked, taken, entry((2, None, "c"), (0, "b", None))]) == [(0, 0, 1), (1, 1, 0), (1, 0, 1)]


def test_a_long_name_is_cut_in_the_middle_and_controls_are_seen():
    cut = label("begin-" + "x" * 300 + "-end")
    assert len(cut) == LONGEST_NAME
    assert (cut[:6], cut[-4:]) == ("begin-", "-end")
    assert label("a\x1b") == r"a\x1b"
