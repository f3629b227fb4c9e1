"""What members of a consumer group subscribe to, names and regular expressions, as its coordinator resolves them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from groupledger.core.protocol.consumer_group.group_member import GroupMember
from groupledger.core.protocol.topic_patterns import matching

LEAST_REFRESH_MS = 10_000
"""Between two resolutions of a group's expressions, however many topics are made meanwhile."""


@dataclass(slots=True)
class ResolvedExpressions:
    """Topics of each regular expression, as of the last resolution; a topic stays in it until the next one."""

    topics: dict[str, tuple[str, ...]] = field(default_factory=dict)
    resolved_ms: int | None = None
    created: int = 0  # topics that had been made by then

    def is_due(self, members: Iterable[GroupMember], created: int, now_ms: int, *, stable: bool) -> bool:
        """Whether to resolve: an expression is new, or topics were made, the group is stable and time has passed."""
        used = expressions(members)
        if not used <= self.topics.keys():
            return True
        return stable and self.is_stale(members, created) and now_ms >= self.next_ms

    def is_stale(self, members: Iterable[GroupMember], created: int) -> bool:
        """Whether topics were made since the last resolution of expressions that members use."""
        return created > self.created and bool(expressions(members))

    @property
    def next_ms(self) -> int:
        """When topics that were made may be looked for."""
        return 0 if self.resolved_ms is None else self.resolved_ms + LEAST_REFRESH_MS

    def resolve(self, members: Iterable[GroupMember], names: Iterable[str], created: int, now_ms: int) -> bool:
        """Match all topics there are; whether that changed anything."""
        there = tuple(sorted(names))
        found = {each: matching(each, there) for each in sorted(expressions(members))}
        changed = found != self.topics
        self.topics, self.resolved_ms, self.created = found, now_ms, created
        return changed


def expressions(members: Iterable[GroupMember]) -> set[str]:
    """Regular expressions that members subscribe by."""
    return {each.regex for each in members if each.regex}


def topics_of(member: GroupMember, resolved: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Names that a member subscribes to, those of its expression among them."""
    return tuple(sorted({*member.topics, *resolved.get(member.regex or "", ())}))
