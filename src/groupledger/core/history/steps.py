"""What the records of many classic groups do to their groups, as kernels over columns.

A step is what one record does: a generation, a tombstone, or a hole where a record could not be read. A group's steps
stand together, by offset; where it goes on from a head, the first one is the head's generation, which writes nothing.
Indices are of steps, of groups, and of members in all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.batch import NONE
from groupledger.core.history.gaps import FIRST_GENERATION
from groupledger.core.history.kinds import Kind
from groupledger.core.kernels import kernel, run
from groupledger.core.ragged import starts

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray

HEAD, GENERATION, TOMBSTONE, HOLE = range(4)
"""What a step is."""

KINDS = (Kind.BIRTH, Kind.GENERATION, Kind.REWRITE, Kind.EMPTY, Kind.DELETED)
BIRTH_KIND, GENERATION_KIND, REWRITE_KIND, EMPTY_KIND, DELETED_KIND = range(5)
"""Kinds of snapshot, by number."""

REPEATED, UNDECIDED = 1, 2
"""Why a group is odd: a member id stands twice in a generation; or the last record is the tombstone of a group that had
members, which may be going on as a KIP-848 group."""

TOMBSTONE_MISSING, BEGINS_LATE, BEGINS_DELETED, SKIPPED, UNREADABLE = 1, 2, 4, 8, 16
"""What of a group's history is not there, as bits."""


class GroupSteps(NamedTuple):
    """S steps of G groups. Members of a step: `member_first` and so many after it."""

    group_start: LongArray  # [G+1]
    what: LongArray  # [S]
    offset: LongArray  # [S] of a head: of the first record of its generation
    generation: LongArray  # [S]
    member_first: LongArray  # [S]
    member_count: LongArray  # [S]


class MemberCodes(NamedTuple):
    """Who the members are, by codes."""

    member: LongArray  # [M]
    instance: LongArray  # [M], NONE for a member that is not static


class GroupStates(NamedTuple):
    """Where each group stands: at first as its head says, after `walk` behind its last step. [G] each."""

    incarnation: LongArray  # 0: before the first
    alive: LongArray
    number: LongArray  # the last generation seen
    has_number: LongArray
    previous: LongArray  # offset of the snapshot before; NONE: there is none
    hole: LongArray
    first: LongArray  # offset of the first record of the last generation
    last: LongArray  # the step of the last generation; NONE: there is none
    odd: LongArray  # not 0: a case for the fold of one group at a time


class Walked(NamedTuple):
    """What each step made of its group. [S] each, the last three [M]."""

    incarnation: LongArray
    kind: LongArray  # of the snapshot; NONE: there is none
    previous: LongArray  # offset of the snapshot before; NONE: there is none, or a hole is between
    first: LongArray  # offset of the first record of this generation
    last: LongArray  # the step of the generation before, of an incarnation that ended here too; NONE: there is none
    gaps: LongArray
    has_since: LongArray  # 1: the records before are there, so that whoever gets a partition has it since now
    ended: LongArray  # 1: the incarnation before ended here, unseen
    compared: LongArray  # 1: the member's claim is measured by what it held
    before: LongArray  # the same member in the generation before; NONE: it was not there
    predecessor: LongArray  # the static member there whose instance id this one has; NONE: nobody


class Seen(NamedTuple):
    """Where a name was seen last: the step, and the member. [codes] each."""

    member_step: LongArray
    member_row: LongArray
    instance_step: LongArray
    instance_row: LongArray


def walk(steps: GroupSteps, names: MemberCodes, states: GroupStates) -> Walked:
    """Take every group through its steps; `states` are changed in place."""
    size, members = len(steps.what), len(names.member)
    empty = {"gaps": 0, "has_since": 0, "ended": 0, "compared": 0}
    of_members = ("compared", "before", "predecessor")
    walked = Walked._make(
        np.full(members if name in of_members else size, empty.get(name, NONE), np.int64) for name in Walked._fields
    )
    lengths = [int(codes.max(initial=NONE)) + 1 for codes in (names.member, names.instance)]
    seen = Seen(*(np.full(length, NONE, np.int64) for length in lengths for _ in range(2)))
    run(walk_each, steps, names, states, walked, seen, cells=8 * (len(steps.what) + len(names.member)))
    return walked


def group_starts(group: LongArray, groups: int) -> LongArray:
    """Where each group's steps start, of steps in order of their groups."""
    return starts(np.bincount(group, minlength=groups))


@kernel
def walk_each(steps: GroupSteps, names: MemberCodes, states: GroupStates, walked: Walked, seen: Seen) -> None:
    """Fill `walked`."""
    for group in range(len(steps.group_start) - 1):
        for step in range(steps.group_start[group], steps.group_start[group + 1]):
            what = steps.what[step]
            if what == HEAD:
                remember(steps, names, states, seen, group, step)
                continue
            if what == HOLE:
                walked.gaps[step] = UNREADABLE
                walked.last[step] = states.last[group]
                states.hole[group] = 1
            elif what == TOMBSTONE:
                delete(steps, states, walked, group, step)
            else:
                take_generation(steps, names, states, walked, seen, group, step)
            walked.incarnation[step] = states.incarnation[group]


@kernel
def delete(steps: GroupSteps, states: GroupStates, walked: Walked, group: int, step: int) -> None:
    """The tombstone; of a group that is not alive it says nothing."""
    if states.incarnation[group] == 0:
        states.incarnation[group] = 1
        states.alive[group] = 1
        walked.gaps[step] = BEGINS_DELETED
    if states.alive[group]:
        last = states.last[group]
        if last != NONE and steps.member_count[last] > 0:
            states.odd[group] |= UNDECIDED
        walked.kind[step] = DELETED_KIND
        walked.previous[step] = NONE if states.hole[group] else states.previous[group]
        end(states, group)


@kernel
def end(states: GroupStates, group: int) -> None:
    """End the incarnation."""
    states.alive[group] = 0
    states.previous[group] = NONE
    states.hole[group] = 0
    states.last[group] = NONE


@kernel
def take_generation(
    steps: GroupSteps, names: MemberCodes, states: GroupStates, walked: Walked, seen: Seen, group: int, step: int
) -> None:
    """One whole snapshot."""
    number = steps.generation[step]
    states.odd[group] &= ~UNDECIDED
    enter(steps, states, walked, group, step)
    last = states.last[group]
    kind = kind_of(steps, states, group, step)
    if last != NONE and number > steps.generation[last] + 1:
        walked.gaps[step] |= SKIPPED
    if last != NONE and kind in (GENERATION_KIND, REWRITE_KIND):
        compare(steps, names, walked, seen, last, step, kind == REWRITE_KIND, states.hole[group] == 1)
    walked.kind[step] = kind
    if last != NONE:
        walked.last[step] = last
    walked.has_since[step] = 0 if states.hole[group] or (last == NONE and number > FIRST_GENERATION) else 1
    walked.previous[step] = NONE if states.hole[group] else states.previous[group]
    walked.first[step] = states.first[group] if kind == REWRITE_KIND else steps.offset[step]
    states.previous[group] = steps.offset[step]
    states.hole[group] = 0
    states.first[group] = walked.first[step]
    states.number[group] = number
    states.has_number[group] = 1
    states.last[group] = step
    remember(steps, names, states, seen, group, step)


@kernel
def enter(steps: GroupSteps, states: GroupStates, walked: Walked, group: int, step: int) -> None:
    """Start an incarnation where the generation before does not lead to this one."""
    number = steps.generation[step]
    if states.alive[group]:
        last = states.last[group]
        if last == NONE or number >= steps.generation[last]:
            return
        walked.gaps[step] |= TOMBSTONE_MISSING
        walked.last[step] = last
        walked.ended[step] = 1
        end(states, group)
    states.incarnation[group] += 1
    states.alive[group] = 1
    if number > FIRST_GENERATION:
        walked.gaps[step] |= BEGINS_LATE


@kernel
def kind_of(steps: GroupSteps, states: GroupStates, group: int, step: int) -> int:
    """Which kind of snapshot the record makes."""
    last, number = states.last[group], steps.generation[step]
    if steps.member_count[step] == 0:
        return BIRTH_KIND if last == NONE and number == 0 else EMPTY_KIND
    if last != NONE and steps.member_count[last] > 0 and steps.generation[last] == number:
        return REWRITE_KIND
    return GENERATION_KIND


@kernel
def compare(
    steps: GroupSteps, names: MemberCodes, walked: Walked, seen: Seen, last: int, step: int, rewrite: bool, hole: bool
) -> None:
    """Find each member in the generation before; in a rewrite only the member that came back has spoken anew."""
    first = steps.member_first[step]
    for member in range(first, first + steps.member_count[step]):
        name, instance = names.member[member], names.instance[member]
        if seen.member_step[name] == last:
            walked.before[member] = seen.member_row[name]
        elif instance != NONE and seen.instance_step[instance] == last:
            walked.predecessor[member] = seen.instance_row[instance]
        if not hole and not (rewrite and walked.before[member] != NONE):
            walked.compared[member] = 1


@kernel
def remember(steps: GroupSteps, names: MemberCodes, states: GroupStates, seen: Seen, group: int, step: int) -> None:
    """Note the members of a generation; a member id that stands in it twice is an odd case."""
    first = steps.member_first[step]
    for member in range(first, first + steps.member_count[step]):
        name, instance = names.member[member], names.instance[member]
        if seen.member_step[name] == step:
            states.odd[group] |= REPEATED
        seen.member_step[name] = step
        seen.member_row[name] = member
        if instance != NONE:
            seen.instance_step[instance] = step
            seen.instance_row[instance] = member
