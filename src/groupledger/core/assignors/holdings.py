"""Keep the general sticky algorithm's working state: who holds what, in which order, and who could hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from groupledger.core.assignors.sorting import first_at_least
from groupledger.core.batch import NONE
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from groupledger.core.assignors.group import GroupView
    from groupledger.core.batch import IntArray, LongArray


class Holdings(NamedTuple):
    """The state of one group. A member's place is its position in the order of member ids (`member_at`).

    Slots are partitions as in `claims`. A list entry ("node") is its slot, or, for a partition that Kafka hands out
    although a member keeps it, one of the numbers after the slots.
    """

    g: GroupView
    member_at: IntArray  # [places]
    walk: IntArray  # places in iteration order of the leader's map
    base: LongArray  # [topics + 1]
    total: int  # partitions that exist
    slots: int  # number of those and the phantoms
    topics: IntArray  # fewest subscribers first, then by name
    subscriber_count: IntArray  # [topics], subscription entries that name it; a topic listed twice counts twice
    heads: LongArray  # [topics + 1]
    seats: IntArray  # places of the subscribers of each topic, ascending
    most: LongArray  # [places], partitions of all the member's topics
    racked: bool
    size: LongArray  # [places]
    first: IntArray  # [places], nodes
    last: IntArray  # [places]
    after: IntArray  # [nodes]
    before: IntArray  # [nodes]
    slot_of_extra: IntArray
    topic_at: IntArray  # [total], topic of each partition
    owner: IntArray  # [slots], place that received it last
    kept: NDArray[np.bool_]  # [slots], some member keeps it
    fresh: NDArray[np.bool_]  # [total], to be handed out
    previous: IntArray  # [total], place of the latest claim of an older generation; empty if there is none
    active: NDArray[np.bool_]  # [places], takes part in reassignment
    flag: LongArray  # see below


REVOCATION = 0  # a claim was dropped because its member may not keep it
EXTRAS = 1  # entries handed out twice so far
STRICT = 2  # the group is irregular: follow Kafka step by step
STATUS = 3


@kernel
def append(h: Holdings, place: int, node: int) -> None:
    """Add an entry at the end of the member's list."""
    h.after[node] = NONE
    h.before[node] = h.last[place]
    if h.last[place] == NONE:
        h.first[place] = node
    else:
        h.after[h.last[place]] = node
    h.last[place] = node
    h.size[place] += 1


@kernel
def slot_at(h: Holdings, node: int) -> int:
    """Return the partition of a list entry."""
    return node if node < h.slots else int(h.slot_of_extra[node - h.slots])


@kernel
def hand_out(h: Holdings, place: int, slot: int) -> None:
    """Give a partition to a member, whether or not another member keeps it."""
    node = slot
    if h.kept[slot]:
        node = int(h.slots + h.flag[EXTRAS])
        h.slot_of_extra[h.flag[EXTRAS]] = slot
        h.flag[EXTRAS] += 1
    append(h, place, node)
    h.owner[slot] = place


@kernel
def move(h: Holdings, slot: int, target: int) -> None:
    """Take the partition from the list of its owner and add it to the target's."""
    source = h.owner[slot]
    node = _find(h, source, slot)
    _unlink(h, source, node)
    append(h, target, node)
    h.owner[slot] = target


@kernel
def _find(h: Holdings, place: int, slot: int) -> int:
    """Return the first entry of the partition in the member's list."""
    if h.flag[EXTRAS] == 0:
        return slot
    node = h.first[place]
    while slot_at(h, node) != slot:
        node = h.after[node]
    return int(node)


@kernel
def _unlink(h: Holdings, place: int, node: int) -> None:
    before = h.before[node]
    after = h.after[node]
    if before == NONE:
        h.first[place] = after
    else:
        h.after[before] = after
    if after == NONE:
        h.last[place] = before
    else:
        h.before[after] = before
    h.size[place] -= 1


@kernel
def subscribes(h: Holdings, place: int, topic: int) -> bool:
    """Return whether the member at `place` names the topic."""
    high = h.heads[topic + 1]
    at = first_at_least(h.seats, h.heads[topic], high, place)
    return bool(at < high and h.seats[at] == place)
