"""Members that a group has before the first event, as JSON: the key `seat` of a join.

Worked example: {"member_id": "m1-7f", "assigned": [["orders", 0]], "claimed": [["orders", 0]], "claimed_generation": 4,
"leads": true}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol import events as e
from groupledger.core.protocol.script_checks import MOST_PARTITIONS, require, require_one_of, require_whole

MOST_GENERATION = 2**31 - 1
SEAT_KEYS = ("member_id", "assigned", "claimed", "claimed_generation", "leads")


def read_seat(found: Any, place: str) -> e.RecordedSeat:
    """Read a seat. Raises Fault("BAD_SCRIPT"), which says where it is wrong."""
    require(isinstance(found, dict), place, found, "an object")
    for key in found:
        require_one_of(key, SEAT_KEYS, f"a key of {place}")
    member_id, dated, leads = found.get("member_id"), found.get("claimed_generation"), found.get("leads", False)
    require(isinstance(member_id, str) and member_id != "", f"{place}.member_id", member_id, "a text that is not empty")
    require(isinstance(leads, bool), f"{place}.leads", leads, "true or false")
    if dated is not None:
        require_whole(dated, f"{place}.claimed_generation", MOST_GENERATION)
    assigned, claimed = (_partitions(found.get(key, []), f"{place}.{key}") for key in ("assigned", "claimed"))
    return e.RecordedSeat(str(member_id), assigned, claimed, dated, leads)


def _partitions(found: Any, place: str) -> tuple[TopicPartition, ...]:
    require(isinstance(found, list), place, found, "a list of [topic, partition]")
    for at, each in enumerate(found):
        pair = isinstance(each, list) and len(each) == 2 and isinstance(each[0], str)
        require(pair, f"{place}.{at}", each, "[topic, partition]")
        require_whole(each[1], f"{place}.{at}.1", MOST_PARTITIONS)
    return tuple(TopicPartition(topic, number) for topic, number in found)


def write_seat(seat: e.RecordedSeat) -> dict[str, Any]:
    """Return the JSON object of a seat: `read_seat` gives the seat again."""
    return {
        "member_id": seat.member_id,
        "assigned": [list(each) for each in seat.assigned],
        "claimed": [list(each) for each in seat.claimed],
        "claimed_generation": seat.claimed_generation,
        "leads": seat.leads,
    }


def require_seats_first(events: Sequence[e.Event]) -> None:
    """Raise Fault("BAD_SCRIPT") where a member is recorded after something has happened, or twice."""
    seats = {at: each.seat for at, each in enumerate(events) if isinstance(each, e.Join) and each.seat is not None}
    known: set[str] = set()
    for place, (at, seat) in enumerate(seats.items()):
        require(at == place, f"events.{at}.seat", seat.member_id, "recorded members before all other events")
        require(seat.member_id not in known, f"events.{at}.seat.member_id", seat.member_id, "an id of its own")
        known.add(seat.member_id)
    leaders = [each.member_id for each in seats.values() if each.leads]
    require(len(leaders) < 2, "seat.leads", ", ".join(leaders), "one leader")
