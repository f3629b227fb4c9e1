"""Parse times given as options, and say if a zone was assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.cli.output import say
from groupledger.core.moment import parse
from groupledger.core.since import bound, point

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.core.since import Bound, Point


def read_moment(text: str | None) -> datetime | None:
    """Parse a moment; None if the option is not given."""
    if text is None:
        return None
    moment, assumed = parse(text)
    _say_assumed(text, assumed)
    return moment


def read_time(text: str | None) -> Bound | None:
    """Parse a moment, or a length of time that counts back from one; None if the option is not given."""
    if text is None:
        return None
    time, assumed = bound(text)
    _say_assumed(text, assumed)
    return time


def read_point(text: str | None) -> Point | None:
    """Parse a generation, a moment, or a length of time; None if the option is not given."""
    if text is None:
        return None
    found, assumed = point(text)
    _say_assumed(text, assumed)
    return found


def _say_assumed(text: str, assumed: bool) -> None:
    if assumed:
        say(f"no time zone in {text!r}: UTC assumed")
