"""Compute the leader's part of an incremental cooperative rebalance (KIP-429, "Proposed changes", step 2), in bulk.

Members' partitions and an assignor's target give three exclusive sets of partitions; from them follow what each member
is assigned in this round, what it gains and revokes, and what waits until its old owner has revoked it. The step is
derived from (owned, target) alone, never from an algorithm's internal state.

Worked example: A owns t-0 and t-1, the target gives t-1 to B. t-1 is *maybe revoking* and changes its owner, so B
does not get it yet: A is assigned t-0 and revokes t-1, B awaits t-1, and a further rebalance must follow.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.ragged import MemberSlots, Slots

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import IntArray, LongArray
    from groupledger.core.arrays.ragged import Mask


class Form(enum.StrEnum):
    """Two readings of the step: the KIP's text, and the behaviour of Kafka's own client."""

    KIP = "kip"  # unknown-but-owned partitions are given back to their claimant
    AS_KAFKA = "as-kafka"  # they are not: only maybe-revoking partitions are adjusted


class Reason(enum.IntEnum):
    """Why a partition of a subscribed topic has no owner in this round."""

    AWAITING_REVOCATION = 0
    ASSIGNOR_LEFT_OUT = 1
    TOPIC_UNKNOWN = 2  # no partition can be named of a topic without metadata
    BEYOND_LEAST_COUNT = 3  # KIP-315: a topic of the join has fewer partitions
    OWNER_NOT_SUBSCRIBED = 4  # KIP-315: the member that has this number does not subscribe to the topic

    @property
    def text(self) -> str:
        """Return the text written to the ledger."""
        return self.name.lower().replace("_", "-")


class Sets(NamedTuple):
    """KIP-429's three exclusive sets, as masks over the slots: [N] each. Their union: owned or targeted."""

    maybe_revoking: Mask
    ready_to_migrate: Mask
    unknown_but_owned: Mask


class GroupMembership(NamedTuple):
    """The members of each group: G groups, M members."""

    member_start: LongArray  # [G+1]
    incremental: Mask  # [G], true: members keep what they own while they rejoin, whatever the protocol's name

    @property
    def group(self) -> LongArray:
        """Return the group of each member: [M]."""
        return ragged.owners(self.member_start)


@dataclass(frozen=True, slots=True)
class Step:
    """The effect of one round. For each member: assigned = kept + added; held = kept + revoked + lost."""

    assigned: MemberSlots  # given in this round, in the target's order
    added: MemberSlots  # assigned, but not held (eager: all that is assigned)
    revoked: MemberSlots  # held, but not assigned (eager: all that was held)
    awaiting: MemberSlots  # in the target, withheld until another member has revoked it
    lost: MemberSlots  # held, not assigned, and no longer existing: gone without a revocation
    follow_up: Mask  # [G], a member revokes what it claimed to own: it will join again
    unassigned: LongArray  # slots without an owner, ascending
    reason: IntArray  # of each of them, a `Reason`


def three_sets(owned: MemberSlots, target: MemberSlots, slots: Slots) -> Sets:
    """Split all owned and targeted partitions into the three sets of KIP-429, step 2.3."""
    is_owned = owned.mask(len(slots))
    is_target = target.mask(len(slots))
    return Sets(is_owned & is_target, is_target & ~is_owned, is_owned & ~is_target)


def believed(owned: MemberSlots, generation: LongArray, slots: Slots) -> MemberSlots:
    """Remove claims of an older generation than another member's claim of that partition (KIP-792): [M] generations.

    Worked example: m0 claims t-1 in generation 5, m7 in generation 4. The claim of m7 is out of date.
    """
    dated = generation[owned.member]
    newest = np.full(len(slots), np.iinfo(np.int64).min)
    np.maximum.at(newest, owned.slot, dated)
    return owned.only(dated == newest[owned.slot])


def withhold(owned: MemberSlots, target: MemberSlots, slots: Slots, generation: LongArray | None = None) -> MemberSlots:
    """Remove from the target what another member owns and its new owner does not (KIP-429, step 2.4).

    A claim that a later generation contradicts makes nobody an owner: its partition waits until the owner revokes it.
    """
    free = owned.holders(len(slots))[target.slot] == 0
    true = owned if generation is None else believed(owned, generation, slots)
    return target.only(free | contains(true, target.member, target.slot, slots))


def give_back(owned: MemberSlots, target: MemberSlots, assigned: MemberSlots, slots: Slots) -> MemberSlots:
    """Add to `assigned` each unknown-but-owned partition of its one owner (KIP-429, step 2.6).

    If two members claim it, one of the claims is wrong and no member gets it.
    """
    unknown = three_sets(owned, target, slots).unknown_but_owned
    back = owned.only(unknown[owned.slot] & (owned.holders(len(slots))[owned.slot] == 1))
    return assigned.joined(back)


def assign_round(
    form: Form, owned: MemberSlots, target: MemberSlots, slots: Slots, generation: LongArray | None = None
) -> MemberSlots:
    """Return what the leader may assign in this round, in one of the two forms. Lists are `distinct`.

    `generation` [M] dates what each member says it owns; None: all of one generation.
    """
    assigned = withhold(owned, target, slots, generation)
    return give_back(owned, target, assigned, slots) if form is Form.KIP else assigned


def hold_back(assigned: MemberSlots, target: MemberSlots, offered: MemberSlots, slots: Slots) -> MemberSlots:
    """Remove from `assigned` what the target gives a member but the assignor does not offer yet.

    In mode `safe` an assignor may offer less than all unowned partitions, so that no later round takes any away again.
    """
    wanted = contains(target, assigned.member, assigned.slot, slots)
    return assigned.only(~wanted | contains(offered, assigned.member, assigned.slot, slots))


def measure(
    party: GroupMembership,
    slots: Slots,
    held: MemberSlots,
    owned: MemberSlots,
    target: MemberSlots,
    assigned: MemberSlots,
) -> Step:
    """Measure a round for each member: moves are measured from `held`; `owned` is what members kept.

    A member that owned nothing any more when it rejoined has revoked everything first (KIP-429, "Eager"), even in a
    group where others are incremental. In an eager group all `owned` lists are empty.
    """
    kept = _kept(slots, held, owned, assigned)
    stays = contains(kept, held.member, held.slot, slots)
    gone = ~stays & ~slots.exists[held.slot] & party.incremental[party.group[held.member]]
    awaiting = target.only(~contains(assigned, target.member, target.slot, slots))
    unassigned, reason = _unassigned(slots, assigned, awaiting)
    return Step(
        assigned=assigned,
        added=assigned.only(~contains(kept, assigned.member, assigned.slot, slots)),
        revoked=held.only(~stays & ~gone),
        awaiting=awaiting,
        lost=held.only(gone),
        follow_up=_follow_up(party, slots, owned, assigned) | (by_group(party, awaiting) > 0),
        unassigned=unassigned,
        reason=reason,
    )


def settled(first: Step, last: Step, held: MemberSlots, slots: Slots) -> Step:
    """Measure a rebalance from its first round to its last, in which every member has its target.

    `added` is what a member had not held, whatever the protocol revokes in between. `follow_up`: it took two rounds.
    """
    fresh = last.assigned.only(~contains(held, last.assigned.member, last.assigned.slot, slots))
    return replace(last, added=fresh, follow_up=first.follow_up)


def _kept(slots: Slots, held: MemberSlots, owned: MemberSlots, assigned: MemberSlots) -> MemberSlots:
    """Return what was held before and is assigned now, by a member that did not revoke everything in between."""
    stated = ragged.lengths(owned.start) > 0
    return assigned.only(stated[assigned.member] & contains(held, assigned.member, assigned.slot, slots))


def _follow_up(party: GroupMembership, slots: Slots, owned: MemberSlots, assigned: MemberSlots) -> Mask:
    """Mark groups in which a consumer must revoke something it owns and so rejoins (KIP-429, step 3.3)."""
    leaves = ~contains(assigned, owned.member, owned.slot, slots)
    counted = np.bincount(party.group[owned.member[leaves]], minlength=len(party.incremental))
    return counted > 0


def _unassigned(slots: Slots, assigned: MemberSlots, awaiting: MemberSlots) -> tuple[LongArray, IntArray]:
    left = np.flatnonzero(slots.wanted & ~assigned.mask(len(slots)))
    waits = awaiting.mask(len(slots))[left]
    return left, np.where(waits, Reason.AWAITING_REVOCATION, Reason.ASSIGNOR_LEFT_OUT).astype(np.int32)


def contains(lists: MemberSlots, member: LongArray, slot: LongArray, slots: Slots) -> Mask:
    """Return, for each (member, slot), whether that member's list holds that slot."""
    last = np.full(len(slots), -1, np.int64)
    last[lists.slot] = lists.member
    found: Mask = last[slot] == member
    shared = lists.holders(len(slots)) > 1  # with several claimants `last` knows only one of them
    doubtful = shared[slot] & ~found if shared.any() else np.zeros(0, np.bool_)
    if doubtful.any():
        among = shared[lists.slot]
        keys = lists.member[among] * len(slots) + lists.slot[among]
        found[doubtful] = np.isin(member[doubtful] * len(slots) + slot[doubtful], keys)
    return found


def moves(party: GroupMembership, slots: Slots, held: MemberSlots, target: MemberSlots) -> LongArray:
    """Count, per group, partitions whose target is not the member that holds them: [G]."""
    elsewhere = held.holders(len(slots))[target.slot] > 0
    elsewhere &= ~contains(held, target.member, target.slot, slots)
    return by_group(party, target.only(elsewhere))


def by_group(party: GroupMembership, lists: MemberSlots) -> LongArray:
    """Count the entries of all members of each group: [G]."""
    return np.diff(lists.start[party.member_start])


def load_range(party: GroupMembership, target: MemberSlots) -> tuple[LongArray, LongArray]:
    """Return the least and the most partitions of a member of each group: [G], [G]. Groups without members: 0, 0."""
    load = ragged.lengths(target.start)
    least, most = (np.zeros(len(party.incremental), np.int64) for _ in range(2))
    peopled = np.flatnonzero(ragged.lengths(party.member_start) > 0)
    if len(peopled) > 0:
        first = party.member_start[peopled]
        least[peopled] = np.minimum.reduceat(load, first)
        most[peopled] = np.maximum.reduceat(load, first)
    return least, most
