"""A surrogate is to an assignor what the name was, and to a reader nothing of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupledger.core.arrays.java_orders import hash_texts, rank_texts
from groupledger.engine.renaming import MARK, surrogates

NAMES = st.lists(st.text(max_size=40), max_size=60)


@given(NAMES, st.integers(0, 2**40))
def test_hash_order_and_identity_are_kept(names, series):
    stand_for = surrogates(names, series)
    kept = [stand_for[name] for name in names]
    assert hash_texts(kept).tolist() == hash_texts(names).tolist()
    assert rank_texts(kept).tolist() == rank_texts(names).tolist()
    assert len(set(stand_for.values())) == len(set(names))


@given(NAMES)
def test_what_stands_there_depends_on_the_set_alone(names):
    assert surrogates(names, 0) == surrogates(reversed(names), 0)


@given(NAMES)
def test_another_series_shares_no_surrogate(names):
    assert not set(surrogates(names, 1).values()) & set(surrogates(names, 2).values())


@pytest.mark.parametrize(
    ("first", "second"),
    [("a", "b"), ("", "a"), ("Aa", "BB"), ("z", "\U00010000"), ("\U0010ffff", "\ue000"), ("~0-00000001-", "~1")],
)
def test_java_s_order_is_by_utf_16_unit(first, second):
    stand_for = surrogates([second, first], 3)
    assert stand_for[first] < stand_for[second]
    assert all(name.startswith(f"{MARK}3-") and name.isascii() and len(name) == 19 for name in stand_for.values())
