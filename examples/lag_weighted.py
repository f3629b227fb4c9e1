"""A custom assignor that balances lag instead of partition counts; members keep what they own while that is fair.

Members report the lag of what they own in their user data, as JSON: {"orders": {"0": 1200, "1": 30}}. A partition
that nobody reports counts as one record.

    PYTHONPATH=. groupledger assign --config ledger.yaml --set assign.assignor=examples.lag_weighted:assign
"""

from __future__ import annotations

import json

from groupledger.custom import (
    Answer,
    Group,
    Protocol,
    TopicPartition,
    assignor,
    cooperative_step,
    validate_subscription,
)

TOLERATED = 1.1
"""A member keeps what it owns up to this multiple of the mean lag: a small imbalance is cheaper than a move."""

LEAST_LAG_RECORDS = 1


@assignor(name="lag-weighted", supported_protocols=[Protocol.COOPERATIVE])
def assign(group: Group) -> Answer:
    """Assign the heaviest partition first: to its owner while its load is fair, else to the least loaded subscriber.

    Lags 6, 3, 2, 1 over A and B, nothing owned -> A: 6; B: 3, 2, 1.
    """
    lags = lag_records(group)
    subscribers = _subscribers(group)
    owners = _owners(group)
    fair = TOLERATED * sum(lags[each] for each in lags if subscribers[each.topic]) / max(len(group.members), 1)
    load = dict.fromkeys(sorted(member.member_id for member in group.members), 0)
    target: dict[str, list[TopicPartition]] = {member_id: [] for member_id in load}
    for partition in sorted(lags, key=lambda each: (-lags[each], each)):
        able = subscribers[partition.topic]
        chosen = min(able, key=lambda member_id: (load[member_id], member_id))
        owner = owners.get(partition)
        if owner in able and load[owner] + lags[partition] <= fair:
            chosen = owner
        target[chosen].append(partition)
        load[chosen] += lags[partition]
    return cooperative_step(group, target)


def user_data(lags: dict[str, dict[int, int]]) -> bytes:
    """Encode what a member sends: lag in records by topic and partition."""
    return json.dumps(lags, sort_keys=True).encode()


def lag_records(group: Group) -> dict[TopicPartition, int]:
    """Return the lag of every partition of a subscribed topic: the greatest that any member reports."""
    partitions = [TopicPartition(topic, number) for topic, count in group.topics.items() for number in range(count)]
    lags = dict.fromkeys(partitions, LEAST_LAG_RECORDS)
    for member in group.members:
        for partition, lag in _reported(member.user_data).items():
            if partition in lags:
                lags[partition] = max(lags[partition], lag)
    return lags


def _reported(data: bytes | None) -> dict[TopicPartition, int]:
    """Return nothing if the bytes are not ours: in a what-if, members joined with another assignor's user data."""
    try:
        topics = json.loads(data or b"{}").items()
        return {TopicPartition(topic, int(number)): int(lag) for topic, lags in topics for number, lag in lags.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def _subscribers(group: Group) -> dict[str, list[str]]:
    return {topic: sorted(each.member_id for each in group.members if topic in each.topics) for topic in group.topics}


def _owners(group: Group) -> dict[TopicPartition, str]:
    """Return who owns what; of two claimants, the one of the higher generation, if there is one (KIP-792)."""
    overlaps = {overlap.partition: overlap.owner for overlap in validate_subscription(group.members)}
    claimed = {partition: member.member_id for member in group.members for partition in member.owned}
    settled = {partition: overlaps.get(partition, member_id) for partition, member_id in claimed.items()}
    return {partition: owner for partition, owner in settled.items() if owner is not None}
