"""The times of a script as JSON: {"session_timeout_ms": 45000, "members": {"slow": {"processing_ms": 20000}}}."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from groupledger.core.protocol.script_checks import MOST_MS, require, require_one_of, require_whole
from groupledger.core.protocol.times import MemberTimes, Times

MOST_RECORDS = 1_000_000
MEMBERS = "members"
POSITIVE = frozenset({"session_timeout_ms", "heartbeat_interval_ms", "rebalance_timeout_ms"})
OF_MEMBER = tuple(each.name for each in fields(MemberTimes))
OF_GROUP = {
    "initial_rebalance_delay_ms": MOST_MS,
    "auto_commit_interval_ms": MOST_MS,
    "records_per_second": MOST_RECORDS,
}


def read_times(found: Any) -> Times:
    """Read the times of a script; raises Fault("BAD_SCRIPT")."""
    require(isinstance(found, dict), "times", found, "an object of milliseconds")
    for name in found:
        require_one_of(name, [*OF_MEMBER, *OF_GROUP, MEMBERS], "times")
    for name, most in OF_GROUP.items():
        if name in found:
            require_whole(found[name], f"times.{name}", most)
    each = _member(found, "times", MemberTimes())
    members = found.get(MEMBERS, {})
    require(isinstance(members, dict), f"times.{MEMBERS}", members, "an object of the times of members")
    of = {name: _of_member(told, f"times.{MEMBERS}.{name}", each) for name, told in members.items()}
    return Times(each, of, **{name: found[name] for name in OF_GROUP if name in found})


def _of_member(found: Any, place: str, each: MemberTimes) -> MemberTimes:
    require(isinstance(found, dict), place, found, "an object of milliseconds")
    for name in found:
        require_one_of(name, OF_MEMBER, place)
    return _member(found, place, each)


def _member(found: Mapping[str, Any], place: str, each: MemberTimes) -> MemberTimes:
    """These times, and otherwise those of `each`."""
    told = {name: found[name] for name in OF_MEMBER if name in found}
    for name, value in told.items():
        require_whole(value, f"{place}.{name}", MOST_MS, least=int(name in POSITIVE))
    times = replace(each, **told)
    expected = f"less than session_timeout_ms, which is {times.session_timeout_ms:,}"
    for name in ("heartbeat_interval_ms", "round_trip_ms"):
        value = getattr(times, name)
        require(value < times.session_timeout_ms, f"{place}.{name}", value, expected)
    return times


def write_times(times: Times) -> dict[str, Any]:
    """The JSON object of these times: `read_times` gives them again."""
    told = {name: getattr(times, name) for name in OF_GROUP if getattr(times, name) is not None}
    of = {name: asdict(member) for name, member in times.of.items()}
    return {**asdict(times.each), **told, **({MEMBERS: of} if of else {})}
