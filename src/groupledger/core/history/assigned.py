"""What is wrong with a recorded assignment by itself: findings that need no assignor."""

from __future__ import annotations

from typing import NamedTuple

from groupledger.core.findings import DOUBLE_OWNED, NOT_SUBSCRIBED, REPEATED_TOPIC, REWRITE_DIFFERS
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
    """REPEATED_TOPIC, NOT_SUBSCRIBED for each member and topic; DOUBLE_OWNED for the group."""
    topics, named = None, frozenset[str]()
    for wire, said, told, _ in members:
        if said is None or told is None:
            continue
        if said.topics != topics:
            topics, named = said.topics, frozenset(said.topics)
        for topic in told.repeated:
            evidence = f"topic {topic!r} stands twice in the assignment; its partitions are merged here"
            writer.found(REPEATED_TOPIC, row, evidence, member_id=wire.member_id, topic=topic)
        for topic, partitions in told.partitions:
            if topic not in named and partitions:
                evidence = f"assigned {topic} {spans(partitions)}, but its subscription does not name the topic"
                writer.found(NOT_SUBSCRIBED, row, evidence, member_id=wire.member_id, topic=topic)
    check_doubles(writer, row)


def check_doubles(writer: HistoryWriter, row: LogRow) -> None:
    """DOUBLE_OWNED for each topic and set of members that hold some partitions of it at once."""
    ownership = writer.state.ownership
    if not ownership.doubles:
        return
    for topic, holders, partitions in double_holdings(ownership):
        name = topic.name or topic.topic_id
        named = ", ".join(holders[:MOST_NAMED]) + (", ..." if len(holders) > MOST_NAMED else "")
        evidence = f"{name} {spans(partitions)} recorded for {len(holders)} members at once: {named}"
        single = partitions[0] if len(partitions) == 1 else None
        writer.found(DOUBLE_OWNED, row, evidence, member_id=holders[0], topic=topic.name, partition=single)


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
            evidence = (
                f"generation {last.number} was recorded again with another assignment: {change.topic} "
                f"{change.partition} went from {change.from_member_id} to {change.to_member_id}; the first record's "
                "verdict does not hold for this one"
            )
            writer.found(REWRITE_DIFFERS, row, evidence, topic=change.topic, partition=change.partition)
            return
