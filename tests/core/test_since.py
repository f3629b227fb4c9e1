from datetime import UTC, datetime, timedelta

import pytest

from groupledger.core.faults import Fault
from groupledger.core.moments import EPOCH, bound, placed, point

NEWEST = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment", "zone_assumed"),
    [
        ("24h", NEWEST - timedelta(days=1), False),
        ("0s", NEWEST, False),
        (" 90m ", NEWEST - timedelta(minutes=90), False),
        ("2w", NEWEST - timedelta(days=14), False),
        ("24 hours", NEWEST - timedelta(days=1), False),
        ("24H", NEWEST - timedelta(days=1), False),
        ("10m ago", NEWEST - timedelta(minutes=10), False),
        ("90 seconds ago", NEWEST - timedelta(seconds=90), False),
        ("now", NEWEST, False),
        ("1795269780", datetime(2026, 11, 21, 14, 3, tzinfo=UTC), False),
        ("9999999w", EPOCH, False),
        ("2026-11-21T13:00", datetime(2026, 11, 21, 13, 0, tzinfo=UTC), True),
        ("2026-11-21T14:00+01:00", datetime(2026, 11, 21, 13, 0, tzinfo=UTC), False),
        ("1795269780000", datetime(2026, 11, 21, 14, 3, tzinfo=UTC), False),
    ],
)
def test_a_bound_is_a_moment_or_how_long_before_the_newest_one(text, moment, zone_assumed):
    found, assumed = bound(text)
    assert (placed(found, NEWEST), assumed) == (moment, zone_assumed)


@pytest.mark.parametrize(
    "text",
    ["", "h", "24 fortnights", "-1h", "1.5h", "\u0661h", "ago", "1h30m", "99999999s", "24", "yesterday", "12:09"],
)
def test_what_is_neither_is_refused(text):
    with pytest.raises(Fault, match="or now, or how long before now: 90s, 15m, 24h, 7d, 2w; got '"):
        bound(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("12", 12),
        ("0", 0),
        (" 99999999 ", 99_999_999),
        ("100000000", datetime(1973, 3, 3, 9, 46, 40, tzinfo=UTC)),
        ("1795269780000", datetime(2026, 11, 21, 14, 3, tzinfo=UTC)),
        ("24h", timedelta(days=1)),
    ],
)
def test_a_point_is_a_generation_too(text, found):
    assert point(text) == (found, False)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "generation 12", "\u0661", "9" * 5000, "9" * 17])
def test_what_is_no_point_is_refused(text):
    with pytest.raises(Fault, match="or a generation: 12"):
        point(text)
