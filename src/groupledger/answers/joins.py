"""How often members joined, went and came back, by group and by the name that outlives a restart: the flapping pod."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING

from groupledger.answers.causes import CauseKind
from groupledger.answers.memberships import membership_changes
from groupledger.answers.scope import Scope, any_members, gaps, scope, why_empty

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.memberships import MembershipChange
    from groupledger.answers.rows import Reader
    from groupledger.answers.scope import RequestedScope


@dataclass(frozen=True, slots=True)
class HourOfChanges:
    """An hour (UTC, by its beginning) in which members joined, went or came back, and how many did."""

    hour: datetime
    changes: int


@dataclass(frozen=True, slots=True)
class MemberJoins:
    """What one name did in a period: several members may bear it, one after another or at once.

    `restarted`: a static member came back under a new id while the group still had the old one. `stay_seconds`: the
    median time from joining to going, of those that did both in the period; None where none did. `hosts` are all that
    it was seen on, `hours` all in which it changed, the busiest first.
    """

    name: str
    joined: int
    gone: int
    restarted: int
    first: datetime
    last: datetime
    stay_seconds: float | None
    hosts: tuple[str, ...]
    hours: tuple[HourOfChanges, ...]

    @property
    def changes(self) -> int:
        """How often it joined, went or came back."""
        return self.joined + self.gone + self.restarted


@dataclass(frozen=True, slots=True)
class GroupJoins:
    """The changes of a group's membership in a period; the members with most of them first."""

    cluster_id: str
    group_id: str
    joined: int
    gone: int
    restarted: int
    first: datetime
    last: datetime
    hours: tuple[HourOfChanges, ...]
    members: tuple[MemberJoins, ...]

    @property
    def changes(self) -> int:
        """How often a member joined, went or came back."""
        return self.joined + self.gone + self.restarted


@dataclass(frozen=True, slots=True)
class Joins:
    """The groups with most changes first; `total` counts those left off."""

    scope: Scope
    groups: tuple[GroupJoins, ...]
    total: int
    notes: tuple[str, ...]


def joins(reader: Reader, asked: RequestedScope, limit: int) -> Joins:
    """Rank groups, and the members of each, by how often they joined, went or came back. Raises as `scope.scope`."""
    within = scope(reader, asked)
    changes = membership_changes(reader, within)
    found = [
        _group(key, tuple(of_group))
        for key, of_group in groupby(changes, lambda each: (each.cluster_id, each.group_id))
    ]
    found.sort(key=lambda each: (-each.changes, each.cluster_id, each.group_id))
    notes = (() if found else (_why_none(reader, within),)) + gaps(reader, within)
    return Joins(within, tuple(found[:limit]), len(found), notes)


def _group(key: tuple[str, str], changes: Sequence[MembershipChange]) -> GroupJoins:
    by_name = defaultdict(list)
    for each in changes:
        by_name[each.name].append(each)
    members = [_member(name, of_name) for name, of_name in by_name.items()]
    members.sort(key=lambda member: (-member.changes, member.name))
    return GroupJoins(*key, *_counted(changes), *_bounds(changes), _hours(changes), tuple(members))


def _member(name: str, changes: Sequence[MembershipChange]) -> MemberJoins:
    stays = [(each.at - each.since).total_seconds() for each in changes if each.since is not None]
    hosts = sorted({each.host for each in changes if each.host})
    return MemberJoins(
        name, *_counted(changes), *_bounds(changes), median(stays) if stays else None, tuple(hosts), _hours(changes)
    )


def _counted(changes: Iterable[MembershipChange]) -> tuple[int, int, int]:
    kinds = Counter(each.kind for each in changes)
    return kinds[CauseKind.MEMBER_JOINED], kinds[CauseKind.MEMBER_GONE], kinds[CauseKind.MEMBER_RESTARTED]


def _bounds(changes: Iterable[MembershipChange]) -> tuple[datetime, datetime]:
    moments = [each.at for each in changes]
    return min(moments), max(moments)


def _hours(changes: Iterable[MembershipChange]) -> tuple[HourOfChanges, ...]:
    counted = Counter(each.at.replace(minute=0, second=0, microsecond=0) for each in changes)
    return tuple(HourOfChanges(*each) for each in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def _why_none(reader: Reader, within: Scope) -> str:
    if any_members(reader, within):
        return "no member joined, went or came back in this period; who was in a group's first record joined before it"
    return why_empty(reader, within)
