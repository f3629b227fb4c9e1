"""What a type declares of its columns decides what each surface shows."""

from dataclasses import dataclass, field

import pytest

from groupledger.answers.answer_columns import (
    CLUSTER,
    GROUP,
    WIDE,
    Column,
    columns_of,
    computed,
    details,
    differing,
    listed,
    rows_in,
    selected,
    shown,
    table,
)


@dataclass(frozen=True, slots=True)
class Line:
    """A row of an answer."""

    cluster_id: str = field(metadata=CLUSTER)
    group_id: str = field(metadata=GROUP)
    count: int = field(metadata=shown("count", sql="count(*)"))
    hidden: int
    member: str | None = field(metadata=shown("member", named=True))
    weight: float | None = field(metadata=shown("weight", optional=True))
    causes: tuple[str, ...] = field(metadata=shown("causes", text=", ".join, detail=True, place=1))
    findings: tuple[str, ...] = field(metadata=shown("findings", text=len, detail=True, on_pages=False))

    @property
    @computed("double", text=str)
    def double(self) -> int:
        """Twice the count."""
        return 2 * self.count


@dataclass(frozen=True, slots=True)
class Lines:
    """An answer."""

    title: str
    lines: tuple[Line, ...] = field(metadata=listed(Line))


ONE = Line("dev", "pay", 3, 0, "consumer-1", None, ("joined", "gone"), ())
OTHER = Line("dev", "both", 4, 0, None, None, (), ("DOUBLE_OWNED",))


def test_a_table_has_the_declared_columns_in_their_order():
    heads, rows = table(Line, [ONE, OTHER], {"consumer-1": "1"})
    assert heads == ["group", "cluster", "count", "member", "double"]
    assert rows == [["pay", "dev", 3, "1", "6"], ["both", "dev", 4, None, "8"]]


def test_a_page_has_the_details_as_columns():
    heads, rows = table(Line, [ONE], page=True)
    assert heads == ["group", "cluster", "count", "member", "double", "causes"]
    assert rows == [["pay", "dev", 3, "consumer-1", "6", "joined, gone"]]


def test_an_optional_column_is_there_with_a_value_only():
    weighed = Line("dev", "pay", 3, 0, None, 2.5, (), ())
    assert table(Line, [ONE, weighed])[0] == ["group", "cluster", "count", "member", "weight", "double"]


def test_a_table_without_rows_has_its_heads():
    assert table(Line, []) == (["group", "cluster", "count", "member", "double"], [])


@pytest.mark.parametrize(("line", "found"), [(ONE, [("causes", "joined, gone")]), (OTHER, [("findings", 1)])])
def test_details_without_a_value_are_left_out(line, found):
    assert list(details(line)) == found


def test_an_answer_names_the_type_of_its_rows():
    assert rows_in(Lines("of today", (ONE,))) == (Line, (ONE,))
    assert rows_in(Lines("of today", ())) == (Line, ())


def test_a_query_selects_what_has_an_expression():
    assert selected(Line) == {"count": "count(*)"}


def test_a_column_that_differs_is_always_shown():
    assert differing("cluster", ["dev", "eu"], 8) == Column("cluster", 0, 8)
    assert differing("cluster", ["dev", "dev"], 8) == Column("cluster", WIDE, 8)
    assert dict(columns_of(Line))["count"].sql == "count(*)"
