"""The assignors of kafka-python and aiokafka: a group a line in, what its leader would send a line out.

    python python_assignors.py aiokafka

The first line out is the library's version. It imports nothing of ours.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

Lists = dict[str, list[tuple[str, int]]]
Asked = dict[str, Any]


class Cluster:
    """What an assignor asks of the client's metadata."""

    def __init__(self, topics: dict[str, int]) -> None:
        self._topics = topics

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Partition numbers; None for a topic that the leader does not know."""
        return set(range(self._topics[topic])) if topic in self._topics else None

    def topics(self) -> set[str]:
        """All topics that the leader knows, in the order of a set."""
        return set(self._topics)


def kafka_python(asked: Asked) -> Lists:
    """As `ConsumerCoordinator._perform_assignment` asks."""
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

    known = (CooperativeStickyAssignor, RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)
    members = [
        SimpleNamespace(
            member_id=each["id"],
            group_instance_id=each["instance_id"],
            metadata=ConsumerProtocolSubscription.decode(base64.b64decode(each["subscription"])),
        )
        for each in asked["members"]
    ]
    chosen = next(each for each in known if each.name == asked["assignor"])
    given = chosen().assign(Cluster(asked["topics"]), members)
    return {
        member_id: _pairs((each[0], each[1]) for each in mine.assigned_partitions) for member_id, mine in given.items()
    }


def aiokafka(asked: Asked) -> Lists:
    """As `GroupCoordinator._perform_assignment` asks."""
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.coordinator.protocol import ConsumerProtocol

    known = (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)
    members = {
        each["id"]: ConsumerProtocol.METADATA.decode(base64.b64decode(each["subscription"]))
        for each in asked["members"]
    }
    chosen = next(each for each in known if each.name == asked["assignor"])
    given = chosen.assign(Cluster(asked["topics"]), members)
    return {member_id: _pairs(mine.assignment) for member_id, mine in given.items()}


def _pairs(topics: Iterable[tuple[str, Iterable[int]]]) -> list[tuple[str, int]]:
    return [(topic, number) for topic, numbers in topics for number in numbers]


def answers(lines: Iterable[str], assign: Callable[[Asked], Lists]) -> Iterator[dict[str, Any]]:
    """Whatever the assignor fails with is the answer: the leader would die of it."""
    for line in lines:
        try:
            yield {"lists": assign(json.loads(line))}
        except Exception as error:  # noqa: BLE001 the library's, whatever it is
            yield {"error": f"{type(error).__name__}: {error}"}


LIBRARIES = {"kafka-python": kafka_python, "aiokafka": aiokafka}


def main() -> None:
    """Answer until stdin ends."""
    library = sys.argv[1]
    print(json.dumps({"version": version(library)}), flush=True)
    for each in answers(sys.stdin, LIBRARIES[library]):
        print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
