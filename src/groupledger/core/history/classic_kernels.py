"""What the records of many classic groups do to their groups, as kernels over columns.

A step is what one record does: a generation, a tombstone, or a hole where a record could not be read. A group's steps
stand together, by offset; where it continues from a head, the first one is the head's generation, which writes nothing.
Indices are of steps, of groups, and of members in all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from groupledger.core.arrays.batch import NONE, LongArray
from groupledger.core.arrays.kernels import kernel, run
from groupledger.core.arrays.ragged import starts
from groupledger.core.history.fold_rows import FIRST_GENERATION, Kind

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
    """Where each group stands: at first as its head says, after `apply_steps` behind its last step. [G] each."""

    incarnation: LongArray  # 0: before the first
    alive: LongArray
    number: LongArray  # the last generation seen
    has_number: LongArray
    previous: LongArray  # offset of the snapshot before; NONE: there is none
    hole: LongArray
    first: LongArray  # offset of the first record of the last generation
    last: LongArray  # the step of the last generation; NONE: there is none
    odd: LongArray  # not 0: a case for the fold of one group at a time


class StepResults(NamedTuple):
    """What each step made of its group. [S] each, the last three [M]."""

    incarnation: LongArray
    kind: LongArray  # of the snapshot; NONE: there is none
    previous: LongArray  # offset of the snapshot before; NONE: there is none, or a hole is between
    first: LongArray  # offset of the first record of this generation
    last: LongArray  # the step of the generation before, of an incarnation that ended here too; NONE: there is none
    gaps: LongArray
    has_since: LongArray  # 1: the records before are there, so a partition is held since now
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


def apply_steps(steps: GroupSteps, names: MemberCodes, states: GroupStates) -> StepResults:
    """Take every group through its steps; `states` are changed in place."""
    size, members = len(steps.what), len(names.member)
    empty = {"gaps": 0, "has_since": 0, "ended": 0, "compared": 0}
    of_members = ("compared", "before", "predecessor")
    results = StepResults._make(
        np.full(members if name in of_members else size, empty.get(name, NONE), np.int64)
        for name in StepResults._fields
    )
    lengths = [int(codes.max(initial=NONE)) + 1 for codes in (names.member, names.instance)]
    seen = Seen(*(np.full(length, NONE, np.int64) for length in lengths for _ in range(2)))
    run(apply_each, steps, names, states, results, seen, cells=8 * (len(steps.what) + len(names.member)))
    return results


def group_starts(group: LongArray, groups: int) -> LongArray:
    """Where each group's steps start, of steps in order of their groups."""
    return starts(np.bincount(group, minlength=groups))


@kernel
def apply_each(steps: GroupSteps, names: MemberCodes, states: GroupStates, results: StepResults, seen: Seen) -> None:
    """Fill `results`."""
    for group in range(len(steps.group_start) - 1):
        for step in range(steps.group_start[group], steps.group_start[group + 1]):
            what = steps.what[step]
            if what == HEAD:
                remember(steps, names, states, seen, group, step)
                continue
            if what == HOLE:
                results.gaps[step] = UNREADABLE
                results.last[step] = states.last[group]
                states.hole[group] = 1
            elif what == TOMBSTONE:
                delete(steps, states, results, group, step)
            else:
                take_generation(steps, names, states, results, seen, group, step)
            results.incarnation[step] = states.incarnation[group]


@kernel
def delete(steps: GroupSteps, states: GroupStates, results: StepResults, group: int, step: int) -> None:
    """Apply a tombstone; of a group that is not alive it says nothing."""
    if states.incarnation[group] == 0:
        states.incarnation[group] = 1
        states.alive[group] = 1
        results.gaps[step] = BEGINS_DELETED
    if states.alive[group]:
        last = states.last[group]
        if last != NONE and steps.member_count[last] > 0:
            states.odd[group] |= UNDECIDED
        results.kind[step] = DELETED_KIND
        results.previous[step] = NONE if states.hole[group] else states.previous[group]
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
    steps: GroupSteps, names: MemberCodes, states: GroupStates, results: StepResults, seen: Seen, group: int, step: int
) -> None:
    """One whole snapshot."""
    number = steps.generation[step]
    states.odd[group] &= ~UNDECIDED
    enter(steps, states, results, group, step)
    last = states.last[group]
    kind = kind_of(steps, states, group, step)
    if last != NONE and number > steps.generation[last] + 1:
        results.gaps[step] |= SKIPPED
    if last != NONE and kind in (GENERATION_KIND, REWRITE_KIND):
        compare(steps, names, results, seen, last, step, kind == REWRITE_KIND, states.hole[group] == 1)
    results.kind[step] = kind
    if last != NONE:
        results.last[step] = last
    results.has_since[step] = 0 if states.hole[group] or (last == NONE and number > FIRST_GENERATION) else 1
    results.previous[step] = NONE if states.hole[group] else states.previous[group]
    results.first[step] = states.first[group] if kind == REWRITE_KIND else steps.offset[step]
    states.previous[group] = steps.offset[step]
    states.hole[group] = 0
    states.first[group] = results.first[step]
    states.number[group] = number
    states.has_number[group] = 1
    states.last[group] = step
    remember(steps, names, states, seen, group, step)


@kernel
def enter(steps: GroupSteps, states: GroupStates, results: StepResults, group: int, step: int) -> None:
    """Start an incarnation where the generation before does not lead to this one."""
    number = steps.generation[step]
    if states.alive[group]:
        last = states.last[group]
        if last == NONE or number >= steps.generation[last]:
            return
        results.gaps[step] |= TOMBSTONE_MISSING
        results.last[step] = last
        results.ended[step] = 1
        end(states, group)
    states.incarnation[group] += 1
    states.alive[group] = 1
    if number > FIRST_GENERATION:
        results.gaps[step] |= BEGINS_LATE


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
    steps: GroupSteps,
    names: MemberCodes,
    results: StepResults,
    seen: Seen,
    last: int,
    step: int,
    rewrite: bool,
    hole: bool,
) -> None:
    """Find each member in the generation before; in a rewrite only the member that came back sent a new claim."""
    first = steps.member_first[step]
    for member in range(first, first + steps.member_count[step]):
        name, instance = names.member[member], names.instance[member]
        if seen.member_step[name] == last:
            results.before[member] = seen.member_row[name]
        elif instance != NONE and seen.instance_step[instance] == last:
            results.predecessor[member] = seen.instance_row[instance]
        if not hole and not (rewrite and results.before[member] != NONE):
            results.compared[member] = 1


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


# Who holds which partition since when, for many classic groups: the changes at each step, as a kernel over columns.
#
# A slot is a partition of a topic that somebody holds in one group at some time; the slots of a group stand together,
# in order of topic and partition. Members are numbered in order of their ids. A list is what one assignment gives in
# one group, as slots. Of the members that lose a slot and those that get it at one step, the least of the former hands
# over to the first of the latter in the record, and so on.

MOST_HOLDERS = 64
"""Of one slot at once; more are an odd case, as each is compared with each."""


class OwnedSlots(NamedTuple):
    """K slots of T topics of G groups."""

    group_start: LongArray  # [G+1]
    topic: LongArray  # [K]
    topic_id: LongArray  # [T] code of the id that the topic is held under, NONE without; changed in place


class SlotLists(NamedTuple):
    """L lists with C slots in all."""

    of_member: LongArray  # [M] the member's; NONE: it has none
    start: LongArray  # [L+1]
    slot: LongArray  # [C]
    topic_id: LongArray  # [C] code of the topic's id then, NONE without
    since: LongArray  # [C] of a head: since when it is held, ms
    has_since: LongArray  # [C] of a head: 0 where that is not known


class HandOvers(NamedTuple):
    """Partitions that changed hands, in order; room for all that may."""

    step: LongArray
    slot: LongArray
    topic_id: LongArray  # code, NONE without
    giver: LongArray  # member; NONE: nobody
    taker: LongArray  # member; NONE: nobody
    since: LongArray  # since when the giver had it, ms
    has_since: LongArray
    ending: LongArray  # 1: at the end of an incarnation that ended at this step


class FinalTenures(NamedTuple):
    """What is held behind each group's last step."""

    slot: LongArray
    member: LongArray
    since: LongArray
    has_since: LongArray


class Nodes(NamedTuple):
    """Holdings before and after a step, [2, n] each, as lists of each slot: from its `head`, each with its `next`."""

    head: LongArray  # by slot of the group
    tail: LongArray
    next: LongArray
    member: LongArray
    since: LongArray
    has_since: LongArray
    matched: LongArray  # 1: the member holds the slot on the other side too


class Transfers(NamedTuple):
    """What `transfer` gives."""

    changes: HandOvers
    held: FinalTenures
    held_start: LongArray  # [G+1]
    doubled: LongArray  # [S] 1: a slot is held by several behind the step


def transfer(
    steps: GroupSteps,
    time: LongArray,
    member: LongArray,
    results: StepResults,
    states: GroupStates,
    slots: OwnedSlots,
    lists: SlotLists,
) -> Transfers:
    """Move the holdings of every group through its steps; `member` are the members' numbers, `time` is in ms."""
    lengths = np.diff(lists.start)
    sizes = np.where(lists.of_member == NONE, 0, lengths[lists.of_member] if len(lengths) else 0)
    of_step = _sums(sizes, steps)
    total = int(of_step.sum())
    changes = HandOvers(*(np.empty(2 * total, np.int64) for _ in HandOvers._fields))
    held = FinalTenures(*(np.empty(total, np.int64) for _ in FinalTenures._fields))
    groups = len(steps.group_start) - 1
    most_slots, most_held = int(np.diff(slots.group_start).max(initial=0)), int(of_step.max(initial=0))
    nodes = Nodes(
        *(np.full((2, most_slots), NONE, np.int64) for _ in range(2)),
        *(np.empty((2, most_held), np.int64) for _ in range(5)),
    )
    held_start, doubled = np.zeros(groups + 1, np.int64), np.zeros(len(steps.what), np.int64)
    holders = np.zeros(len(slots.topic_id), np.int64)
    work = (steps, time, member, results, states, slots, holders, lists, nodes, changes, held, held_start, doubled)
    rows = int(run(transfer_each, *work, cells=8 * (total + len(steps.what))))
    return Transfers(HandOvers(*(column[:rows] for column in changes)), held, held_start, doubled)


def _sums(sizes: LongArray, steps: GroupSteps) -> LongArray:
    before = starts(sizes)
    return np.asarray(before[steps.member_first + steps.member_count] - before[steps.member_first])


@kernel
def transfer_each(
    steps: GroupSteps,
    time: LongArray,
    member: LongArray,
    results: StepResults,
    states: GroupStates,
    slots: OwnedSlots,
    holders: LongArray,
    lists: SlotLists,
    nodes: Nodes,
    changes: HandOvers,
    held: FinalTenures,
    held_start: LongArray,
    doubled: LongArray,
) -> int:
    """Fill `changes`, `held`, `held_start` and `doubled`; the number of changes."""
    row = 0
    for group in range(len(steps.group_start) - 1):
        first, end = slots.group_start[group], slots.group_start[group + 1]
        side = 0
        clear(nodes, side, end - first)
        for step in range(steps.group_start[group], steps.group_start[group + 1]):
            what = steps.what[step]
            if what == GENERATION and results.ended[step]:
                clear(nodes, 1 - side, end - first)
                row = exchange(nodes, 1 - side, slots, first, end, step, True, changes, row)
                side = 1 - side
                count_holders(nodes, side, slots, first, end, holders)
            if what in (HEAD, GENERATION) or results.kind[step] == DELETED_KIND:
                side = 1 - side
                clear(nodes, side, end - first)
                learn(steps, slots, holders, lists, step)
                place(steps, time[step], results.has_since[step], member, lists, nodes, side, first, step)
                doubled[step] = match(nodes, side, end - first)
                states.odd[group] |= doubled[step] > MOST_HOLDERS
                if what != HEAD:
                    row = exchange(nodes, side, slots, first, end, step, False, changes, row)
                count_holders(nodes, side, slots, first, end, holders)
        held_start[group + 1] = keep(nodes, side, first, end, held, held_start[group])
    return row


@kernel
def clear(nodes: Nodes, side: int, places: int) -> None:
    """Nobody holds anything."""
    for spot in range(places):
        nodes.head[side, spot] = NONE


@kernel
def learn(steps: GroupSteps, slots: OwnedSlots, holders: LongArray, lists: SlotLists, step: int) -> None:
    """Note the id that each topic is held under; of one that nobody holds, the id recorded now."""
    first = steps.member_first[step]
    for member in range(first, first + steps.member_count[step]):
        slot_list = lists.of_member[member]
        if slot_list == NONE:
            continue
        for cell in range(lists.start[slot_list], lists.start[slot_list + 1]):
            topic = slots.topic[lists.slot[cell]]
            if lists.topic_id[cell] != NONE or holders[topic] == 0:
                slots.topic_id[topic] = lists.topic_id[cell]


@kernel
def place(
    steps: GroupSteps,
    time: int,
    has_since: int,
    number: LongArray,
    lists: SlotLists,
    nodes: Nodes,
    side: int,
    first_slot: int,
    step: int,
) -> None:
    """List the holders of each slot in the order of the record."""
    first, count = steps.member_first[step], 0
    from_head = steps.what[step] == HEAD
    for member in range(first, first + steps.member_count[step]):
        slot_list = lists.of_member[member]
        if slot_list == NONE:
            continue
        for cell in range(lists.start[slot_list], lists.start[slot_list + 1]):
            spot = lists.slot[cell] - first_slot
            nodes.member[side, count] = number[member]
            nodes.since[side, count] = lists.since[cell] if from_head else time
            nodes.has_since[side, count] = lists.has_since[cell] if from_head else has_since
            nodes.matched[side, count] = 0
            nodes.next[side, count] = NONE
            if nodes.head[side, spot] == NONE:
                nodes.head[side, spot] = count
            else:
                nodes.next[side, nodes.tail[side, spot]] = count
            nodes.tail[side, spot] = count
            count += 1


@kernel
def match(nodes: Nodes, side: int, places: int) -> int:
    """Keep tenures of slots held before and after; return the most holders of one slot, 0: none has two."""
    most = 1
    for spot in range(places):
        new, holders = nodes.head[side, spot], 0
        while new != NONE and holders <= MOST_HOLDERS:
            holders += 1
            old = nodes.head[1 - side, spot]
            while old != NONE:
                if nodes.member[1 - side, old] == nodes.member[side, new]:
                    nodes.matched[side, new] = 1
                    nodes.matched[1 - side, old] = 1
                    nodes.since[side, new] = nodes.since[1 - side, old]
                    nodes.has_since[side, new] = nodes.has_since[1 - side, old]
                old = nodes.next[1 - side, old]
            new = nodes.next[side, new]
        most = max(most, holders)
    return most if most > 1 else 0


@kernel
def exchange(
    nodes: Nodes,
    side: int,
    slots: OwnedSlots,
    first: int,
    end: int,
    step: int,
    ending: bool,
    changes: HandOvers,
    row: int,
) -> int:
    """Write who lost and who got each slot; the next free row."""
    for spot in range(end - first):
        begin = row
        new = nodes.head[side, spot]
        while new != NONE:
            if not nodes.matched[side, new]:
                giver = least_giver(nodes, 1 - side, spot)
                write(nodes, slots, changes, row, step, first + spot, 1 - side, giver, nodes.member[side, new])
                changes.ending[row] = ending
                row += 1
            nodes.matched[side, new] = 0  # for the next step, whose givers these may be
            new = nodes.next[side, new]
        giver = least_giver(nodes, 1 - side, spot)
        while giver != NONE:
            write(nodes, slots, changes, row, step, first + spot, 1 - side, giver, NONE)
            changes.ending[row] = ending
            row += 1
            giver = least_giver(nodes, 1 - side, spot)
        if row - begin > 1:
            order(changes, begin, row)
    return row


@kernel
def least_giver(nodes: Nodes, side: int, spot: int) -> int:
    """Return the node of the least member that gives the slot up and has not handed it over; mark it as such."""
    least, node = NONE, nodes.head[side, spot]
    while node != NONE:
        if not nodes.matched[side, node] and (least == NONE or nodes.member[side, node] < nodes.member[side, least]):
            least = node
        node = nodes.next[side, node]
    if least != NONE:
        nodes.matched[side, least] = 1
    return least


@kernel
def write(
    nodes: Nodes,
    slots: OwnedSlots,
    changes: HandOvers,
    row: int,
    step: int,
    slot: int,
    side: int,
    giver: int,
    taker: int,
) -> None:
    """Write one change; `giver` is a node of `side`."""
    changes.step[row] = step
    changes.slot[row] = slot
    changes.topic_id[row] = slots.topic_id[slots.topic[slot]]
    changes.taker[row] = taker
    if giver == NONE:
        changes.giver[row] = NONE
        changes.has_since[row] = 0
        changes.since[row] = 0
    else:
        changes.giver[row] = nodes.member[side, giver]
        changes.since[row] = nodes.since[side, giver]
        changes.has_since[row] = nodes.has_since[side, giver]


@kernel
def order(changes: HandOvers, begin: int, end: int) -> None:
    """Order the changes of one slot by giver, then taker; all but these columns and the tenure are the same."""
    for row in range(begin + 1, end):
        giver, taker = changes.giver[row], changes.taker[row]
        since, has_since = changes.since[row], changes.has_since[row]
        at = row
        while at > begin and (changes.giver[at - 1], changes.taker[at - 1]) > (giver, taker):
            changes.giver[at], changes.taker[at] = changes.giver[at - 1], changes.taker[at - 1]
            changes.since[at], changes.has_since[at] = changes.since[at - 1], changes.has_since[at - 1]
            at -= 1
        changes.giver[at], changes.taker[at] = giver, taker
        changes.since[at], changes.has_since[at] = since, has_since


@kernel
def count_holders(nodes: Nodes, side: int, slots: OwnedSlots, first: int, end: int, holders: LongArray) -> None:
    """Of each topic of the group, the slots that somebody holds."""
    for slot in range(first, end):
        holders[slots.topic[slot]] = 0
    for slot in range(first, end):
        holders[slots.topic[slot]] += nodes.head[side, slot - first] != NONE


@kernel
def keep(nodes: Nodes, side: int, first: int, end: int, held: FinalTenures, row: int) -> int:
    """Write what is held at the end; the next free row."""
    for spot in range(end - first):
        node = nodes.head[side, spot]
        while node != NONE:
            held.slot[row] = first + spot
            held.member[row] = nodes.member[side, node]
            held.since[row] = nodes.since[side, node]
            held.has_since[row] = nodes.has_since[side, node]
            row += 1
            node = nodes.next[side, node]
    return row
