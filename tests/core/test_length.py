from datetime import UTC, datetime, timedelta

import pytest

from groupledger.core.text import length, stretch

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (timedelta(), "0.000 s"),
        (timedelta(milliseconds=59_999), "59.999 s"),
        (timedelta(seconds=60), "1 min 0 s"),
        (timedelta(hours=1, seconds=5), "1 h 0 min"),
        (timedelta(days=3, hours=2, minutes=50), "3 d 2 h"),
    ],
)
def test_a_length_has_its_two_largest_units(of, text):
    assert length(of) == text


@pytest.mark.parametrize(
    ("until", "text"),
    [
        (timedelta(), "2026-11-21 12:00:00"),
        (timedelta(milliseconds=900), "2026-11-21 12:00:00"),
        (timedelta(minutes=5), "2026-11-21 12:00:00 - 12:05:00"),
        (timedelta(hours=12), "2026-11-21 12:00:00 - 2026-11-22 00:00:00"),
    ],
)
def test_a_stretch_says_its_date_once(until, text):
    assert stretch(NOON, NOON + until) == text
