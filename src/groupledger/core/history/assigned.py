"""What is wrong with a recorded assignment by itself: findings that need no assignor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from groupledger.core.findings import (
    ASSIGNED_WITHOUT_TOPICS,
    DOUBLE_OWNED,
    NOT_SUBSCRIBED,
    REPEATED_TOPIC,
    REWRITE_DIFFERS,
    Invariant,
)
from groupledger.core.history.ownership import HeldTopic, Ownership, OwnershipChange
from groupledger.core.history.payloads import ReadAssignment, ReadSubscription
from groupledger.core.history.rows import Assignment, LogRow
from groupledger.core.history.spans import spans
from groupledger.core.history.writer import Generation, HistoryWriter
from groupledger.core.wire.offsets_log import ClassicGroupMember

MOST_NAMED = 20
"""Members named in an evidence."""


class ClassicMember(NamedTuple):
    """A member with its words; none of them where the protocol type is not the consumer's."""

    wire: ClassicGroupMember
    said: ReadSubscription | None
    told: ReadAssignment | None
    recorded: Assignment | None


def check_assignment(writer: HistoryWriter, row: LogRow, members: list[ClassicMember]) -> None:
    """Find what is wrong with each member's assignment (`faults`), and DOUBLE_OWNED for the group."""
    for wire, said, told, _ in members:
        if said is not None and told is not None:
            for broken, topic, evidence in faults(said, told):
                writer.found(broken, row, evidence, member_id=wire.member_id, topic=topic)
    check_doubles(writer, row)


def faults(said: ReadSubscription, told: ReadAssignment) -> Iterator[tuple[Invariant, str, str]]:
    """What is wrong with one member's assignment, the topic, and the evidence."""
    for topic in told.repeated:
        yield REPEATED_TOPIC, topic, f"topic {topic!r} stands twice in the assignment; its partitions are merged here"
    subscribed = _as_set(said.topics)
    for topic, partitions in told.partitions:
        if topic not in subscribed and partitions:
            evidence = f"assigned {topic} {spans(partitions)}, but its subscription does not name "
            broken = NOT_SUBSCRIBED if subscribed else ASSIGNED_WITHOUT_TOPICS
            yield broken, topic, evidence + ("the topic" if subscribed else "any topic")


@lru_cache(maxsize=1)
def _as_set(topics: tuple[str, ...]) -> frozenset[str]:
    """The topics that members of one group subscribe to, one member after the other."""
    return frozenset(topics)


def check_doubles(writer: HistoryWriter, row: LogRow) -> None:
    """DOUBLE_OWNED for each topic and set of members that hold some partitions of it at once."""
    ownership = writer.state.ownership
    if not ownership.doubles:
        return
    for topic, holders, partitions in double_holdings(ownership):
        evidence, single = double_evidence(topic.name or topic.topic_id, holders, partitions)
        writer.found(DOUBLE_OWNED, row, evidence, member_id=holders[0], topic=topic.name, partition=single)


def double_evidence(topic: str | None, holders: list[str], partitions: list[int]) -> tuple[str, int | None]:
    """The evidence, and the partition where it is only one."""
    named = ", ".join(holders[:MOST_NAMED]) + (", ..." if len(holders) > MOST_NAMED else "")
    evidence = f"{topic} {spans(partitions)} recorded for {len(holders)} members at once: {named}"
    return evidence, partitions[0] if len(partitions) == 1 else None


def double_holdings(ownership: Ownership) -> list[tuple[HeldTopic, list[str], list[int]]]:
    """(topic, members, partitions) held by more than one, in a total order."""
    together: dict[tuple[HeldTopic, tuple[str, ...]], list[int]] = {}
    for topic, partition in ownership.doubles:
        together.setdefault((topic, tuple(ownership.holders(topic, partition))), []).append(partition)
    held = [(topic, list(holders), sorted(partitions)) for (topic, holders), partitions in together.items()]
    return sorted(held, key=lambda hold: (hold[0].name or "", hold[0].topic_id or "", hold[1]))


def check_rewrite(
    writer: HistoryWriter, row: LogRow, members: list[ClassicMember], last: Generation, changes: list[OwnershipChange]
) -> None:
    """REWRITE_DIFFERS, unless all that changed is that static members have new member ids."""
    instances = {member.wire.member_id: member.wire.group_instance_id for member in members}
    for change in changes:
        before = None if change.from_member_id is None else last.members.get(change.from_member_id)
        after = None if change.to_member_id is None else instances.get(change.to_member_id)
        if before is None or before != after:
            moved = (change.topic, change.partition, change.from_member_id, change.to_member_id)
            evidence = rewrite_evidence(last.number, *moved)
            writer.found(REWRITE_DIFFERS, row, evidence, topic=change.topic, partition=change.partition)
            return


def rewrite_evidence(generation: int, topic: str | None, partition: int, giver: str | None, taker: str | None) -> str:
    """How the second record of a generation differs."""
    return (
        f"generation {generation} was recorded again with another assignment: {topic} {partition} went from {giver} to "
        f"{taker}; the first record's verdict does not hold for this one"
    )
