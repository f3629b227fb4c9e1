"""Member ids as short as they can be told apart."""

import pytest

from groupledger.core.text import common_start, shortened, without_middle

ONE = "app-3f2504e0-4f89-11d3-9a0c-0305e82c3301"
OTHER = "app-3f2504e0-4f89-11d3-9a0c-0305e82c3302"


@pytest.mark.parametrize(
    ("names", "short"),
    [
        ([ONE], ["app-3f2504e0"]),
        ([ONE, OTHER], [ONE, OTHER]),
        ([ONE, "app-3f2504e0"], [ONE, "app-3f2504e0"]),
        ([ONE, ONE], ["app-3f2504e0"] * 2),
        (["0ugiZrgkSTeEHHlG7DZQWg", ""], ["0ugiZrgkSTeEHHlG7DZQWg", ""]),
        ([ONE + "\n"], [without_middle(ONE + "\n")]),
    ],
)
def test_a_name_is_cut_where_it_stays_the_only_one(names, short):
    assert [shortened(names)[name] for name in names] == short


@pytest.mark.parametrize(
    ("names", "start"),
    [
        (["app-1-a", "app-2-b"], "app-"),
        (["app-1-a", "app-1-b"], "app-1-"),
        (["app_1", "app_2", "other"], ""),
        (["app-", "app-x"], ""),
        (["app-1", "app-1-x"], "app-"),
        (["only-1"], ""),
        (["a.b", "a.b"], ""),
        (["", "-x"], ""),
        ([], ""),
    ],
)
def test_what_all_names_begin_with_leaves_something_of_each(names, start):
    assert common_start(names) == start
