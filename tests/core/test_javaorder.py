"""Java's hashes and orders, against values Java 17 printed and against the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupledger.core.arrays.java_orders import (
    TREE,
    computed_map_order,
    hash_texts,
    map_order,
    partition_hash,
    rank_texts,
    rank_utf8,
    utf8,
)

java_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@pytest.fixture(params=["python", "numba"])
def _running(request, monkeypatch):
    monkeypatch.setenv("GROUPLEDGER_KERNELS", request.param)


@pytest.mark.usefixtures("_running")
def test_hash_codes_are_javas():
    texts = ["", "Aa", "BB", "polygenelubricants", "\U00010000", "\u00e9", "\u6d88", "orders"]
    assert hash_texts(texts).tolist() == [0, 2112, 2112, -2147483648, 1770496, 233, 28040, -1008770331]


ascii_runs = st.text(st.sampled_from("az09-~\x00\u00e9"), max_size=40)


@given(st.lists(java_text | ascii_runs))
def test_hash_codes_follow_the_definition(texts):
    def defined(text):
        hashed = 0
        for unit in memoryview(text.encode("utf-16-le")).cast("H") if text else ():
            hashed = (hashed * 31 + unit) % 2**32
        return hashed - (hashed >> 31 << 32)

    assert hash_texts(texts).tolist() == [defined(text) for text in texts]


@pytest.mark.usefixtures("_running")
def test_surrogates_sort_below_the_private_use_area():
    texts = ["\ue000", "\U00010000", "z", "\uffee", "", "z"]
    assert rank_texts(texts).tolist() == [3, 2, 1, 4, 0, 1]
    assert rank_utf8(*utf8(texts), np.array([0, 6])).tolist() == [3, 2, 1, 4, 0, 1]


prefixed = st.lists(
    st.sampled_from(["consumer-", "consumer-group-", "a", "b", "\x00", "\uffee", "\U00010000"]), max_size=5
)
likely_alike = prefixed.map("".join)


@given(st.lists(java_text | likely_alike, max_size=60), st.integers(0, 60))
def test_ranks_from_bytes_are_ranks_from_texts(texts, cut):
    cut = min(cut, len(texts))
    both = np.concatenate([rank_texts(texts[:cut]), rank_texts(texts[cut:])])
    assert rank_utf8(*utf8(texts), np.array([0, cut, len(texts)])).tolist() == both.tolist()


@pytest.mark.usefixtures("_running")
@pytest.mark.parametrize("count", [1, 2, 24, 25, 600])
def test_ranks_of_many_ids_with_long_prefixes(count):
    """Few are sorted by insertion, many by digits; ids that share seven bytes more are told apart by the next ones."""
    texts = [
        f"consumer-{number % 7}-of-a-group-{number * 7919 % count:05}-{'x' * (number % 3)}" for number in range(count)
    ]
    texts = [*texts, *texts[: count // 2]]
    assert rank_utf8(*utf8(texts), np.array([0, len(texts)])).tolist() == rank_texts(texts).tolist()


def walked(hashes):
    keys = np.arange(len(hashes), dtype=np.int32)
    return map_order(np.array(hashes, np.int32), keys, len(keys)), keys.tolist()


@pytest.mark.parametrize(
    ("hashes", "capacity", "order"),
    [
        ([3, 2, 1], 16, [2, 1, 0]),
        ([17, 1, 0], 16, [2, 0, 1]),  # one bucket: order of insertion
        ([0x10000, 0], 16, [1, 0]),  # the upper half counts
        (list(range(12)), 16, list(range(12))),
        ([16, *range(12)], 32, [*range(1, 13), 0]),  # the 13th key doubles the table
        ([16 * n for n in range(9)], 32, [0, 2, 4, 6, 8, 1, 3, 5, 7]),  # nine in one bucket double a small table
        ([16 * n for n in range(10)], 32, [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]),
        (list(range(100, 60, -1)), 64, [*range(36, -1, -1), 39, 38, 37]),
    ],
)
def test_a_map_is_walked_by_bucket_then_insertion(hashes, capacity, order):
    assert walked(hashes) == (capacity, order)


def test_a_tree_is_told():
    assert walked([64 * n for n in range(11)])[0] == TREE


def test_compute_if_absent_puts_newcomers_in_front():
    keys = np.arange(3, dtype=np.int32)
    computed_map_order(np.array([16, 1, 0], np.int32), keys, 3, False)
    assert keys.tolist() == [2, 0, 1]


@pytest.mark.parametrize(("called_again", "first"), [(False, [16, 0, 1]), (True, [0, 1, 2])])
def test_compute_if_absent_doubles_a_full_table_when_called_next(called_again, first):
    """13 keys fill a table of 16 over the brim; a call for a key that is there makes room."""
    hashes = np.array([*range(12), 16], np.int32)
    keys = np.arange(13, dtype=np.int32)
    computed_map_order(hashes, keys, 13, called_again)
    assert hashes[keys][:3].tolist() == first


def test_partition_hash_is_javas():
    assert partition_hash(hash_texts(["t0"])[0], 3) == 31 * (31 + 3) + 3644
