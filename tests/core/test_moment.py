from datetime import UTC, datetime, timedelta

import pytest

from groupledger.core.faults import Fault
from groupledger.core.moments import clock, dates_once, from_millis, iso, millis, parse

AFTERNOON = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment", "zone_assumed"),
    [
        ("2026-11-21T14:03Z", AFTERNOON, False),
        ("2026-11-21T14:03", AFTERNOON, True),
        ("2026-11-21 14:03", AFTERNOON, True),
        ("2026-11-21T15:03+01:00", AFTERNOON, False),
        ("2026-11-21T14:03:00.000000Z", AFTERNOON, False),
        ("2026-11-21", datetime(2026, 11, 21, tzinfo=UTC), True),
        ("1795269780000", AFTERNOON, False),
        ("1795269780", AFTERNOON, False),
        ("0", datetime(1970, 1, 1, tzinfo=UTC), False),
    ],
)
def test_a_moment_is_read(text, moment, zone_assumed):
    assert parse(text) == (moment, zone_assumed)
    assert parse(text)[0].tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "noon",
        "14:03",
        "2026-13-01",
        "99999999999999999999",
        "-5",
        "\u0663",
        "0001-01-01T00:00+14:00",
        "24",
        "20261121",
    ],
)
def test_what_is_no_moment_is_a_fault(text):
    with pytest.raises(Fault) as raised:
        parse(text)
    assert raised.value.code == "BAD_TIME"
    assert repr(text) in raised.value.message


@pytest.mark.parametrize("value", [0, 1, 999, 1795262898320])
def test_milliseconds_come_back(value):
    assert millis(from_millis(value)) == value


def test_print_is_utc_with_milliseconds():
    assert iso(from_millis(1795262898320)) == "2026-11-21T12:08:18.320Z"


def test_a_date_is_said_once():
    later, next_day = AFTERNOON + timedelta(milliseconds=1), AFTERNOON + timedelta(days=1)
    assert dates_once([AFTERNOON, later]) == ("2026-11-21", ["14:03:00.000", "14:03:00.001"])
    assert dates_once([AFTERNOON, later, next_day]) == (
        "",
        ["2026-11-21 14:03:00.000", "           14:03:00.001", "2026-11-22 14:03:00.000"],
    )
    assert dates_once([]) == ("", [])
    assert clock(AFTERNOON, None) == "2026-11-21 14:03:00.000"
