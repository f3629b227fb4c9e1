"""Convert a server-side assignment to names: the coordinator's records, and Kafka's error if it fails."""

from __future__ import annotations

from groupledger.core.assignors.server.group import Names
from groupledger.core.assignors.server.spec import ServerAssignment, ServerBatch, ServerPath, ServerStatus

TargetRows = dict[str, list[tuple[str, list[int]]]]
"""Topics and partitions of each member, in the order of its record."""

PATHS = {ServerPath.HOMOGENEOUS: "homogeneous", ServerPath.HETEROGENEOUS: "heterogeneous"}


def written(batch: ServerBatch, names: Names, result: ServerAssignment, group: int) -> TargetRows:
    """Return each member's topics and partitions in the order of its target record: {"m": [("orders", [0, 2])]}."""
    first_topic = int(batch.topic_start[group])
    records: TargetRows = {}
    for member in range(batch.member_start[group], batch.member_start[group + 1]):
        record: list[tuple[str, list[int]]] = []
        mine = slice(result.assigned_start[member], result.assigned_start[member + 1])
        pairs = zip(result.assigned_topic[mine].tolist(), result.assigned_partition[mine].tolist(), strict=True)
        for local, partition in pairs:
            topic = names.topics[first_topic + local] or ""
            if not record or record[-1][0] != topic:
                record.append((topic, []))
            record[-1][1].append(partition)
        records[names.members[member]] = record
    return records


def path_word(result: ServerAssignment, group: int) -> str:
    """Return `homogeneous` or `heterogeneous`."""
    return PATHS[ServerPath(int(result.path[group]))]


def failure(batch: ServerBatch, result: ServerAssignment, group: int) -> str | None:
    """Return the class and message of what Kafka throws; None if it answers."""
    status = ServerStatus(int(result.status[group]))
    if status == ServerStatus.OK:
        return None
    if status == ServerStatus.LEFT_UNASSIGNED:
        return "PartitionAssignorException: Partitions were left unassigned"
    partition = int(result.bad_partition[group])
    count = int(batch.topic_partitions[batch.topic_start[group] + result.bad_topic[group]])
    return f"ArrayIndexOutOfBoundsException: Index {partition} out of bounds for length {count}"
