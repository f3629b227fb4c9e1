"""Member ids as short as they can be told apart."""

import pytest

from groupledger.core.short_names import shortened

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
        ([ONE + "\n"], [ONE + "\n"]),
    ],
)
def test_a_name_is_cut_where_it_stays_the_only_one(names, short):
    assert [shortened(names)[name] for name in names] == short
