"""Partitions in words."""

import pytest

from groupledger.core.history.fold_rows import spans, topic_spans


@pytest.mark.parametrize(
    ("partitions", "text"),
    [([], ""), ([3], "3"), ([0, 1], "0-1"), ([7, 2, 0, 1], "0-2,7"), ([5, 5, 6], "5-6"), ([0, 2, 4], "0,2,4")],
)
def test_runs_are_spans(partitions, text):
    assert spans(partitions) == text


def test_a_hostile_number_of_spans_or_topics_is_cut_and_counted():
    assert spans(range(0, 100, 2)).endswith("76,78,... (10 more)")
    assert topic_spans({f"t{number:02}": [0] for number in range(50)}).endswith("t39 0; ... (10 more topics)")


def test_topics_stand_in_order_and_nothing_is_said():
    assert topic_spans({"grow": {4}, "clicks": {0, 1}}) == "clicks 0-1; grow 4"
    assert topic_spans({}) == "nothing"
