"""When and for how long nobody consumed a partition that somebody subscribes to."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.settlement import Outage


@dataclass(slots=True)
class Outages:
    """Those that last, and those that ended since the last `take`."""

    _taken_ms: int = 0
    _lasting: dict[TopicPartition, int] = field(default_factory=dict)
    _ended: list[Outage] = field(default_factory=list)

    def see(self, now_ms: int, missing: AbstractSet[TopicPartition]) -> None:
        """From now on these are wanted, and nobody consumes them."""
        for each in [each for each in self._lasting if each not in missing]:
            since_ms = self._lasting.pop(each)
            if since_ms < now_ms:
                self._ended.append(Outage(each, since_ms, now_ms))
        for each in missing:
            self._lasting.setdefault(each, now_ms)

    def take(self, now_ms: int) -> tuple[tuple[Outage, ...], dict[TopicPartition, int]]:
        """Outages that were there since the last call, by partition and time; and how long since then, of each."""
        found = sorted([*self._ended, *(Outage(*each, None) for each in self._lasting.items() if each[1] < now_ms)])
        waited: dict[TopicPartition, int] = {}
        for each in found:
            until_ms = now_ms if each.until_ms is None else each.until_ms
            waited[each.partition] = waited.get(each.partition, 0) + until_ms - max(each.since_ms, self._taken_ms)
        self._ended, self._taken_ms = [], now_ms
        return tuple(found), {each: ms for each, ms in waited.items() if ms > 0}
