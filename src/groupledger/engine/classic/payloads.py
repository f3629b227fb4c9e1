"""What classic members said and were told: each distinct blob decoded once, its topics with their ids of each time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from groupledger.core.batch import NONE
from groupledger.core.history.classic import CONSUMER_PROTOCOL
from groupledger.core.history.payloads import ReadAssignment, ReadSubscription, TopicIds, read_said, read_told
from groupledger.core.wire.faults import DecodeFault

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.core.history.rows import Assignment
    from groupledger.core.history.topics import TopicHistory
    from groupledger.core.wire.consumer_protocol import TopicPartitions
    from groupledger.engine.classic.log import LogColumns
    from groupledger.engine.classic.records import GroupRecords


@dataclass(frozen=True, slots=True)
class Payloads:
    """Codes of M members, NONE where the protocol type is not the consumer's or the record is refused.

    A subscription is read under its group's assignor: `said` are distinct pairs of both. `recorded` and `claimed` are
    distinct assignments and claims with the topic ids of their times; `claim` is NONE where the member states none.
    """

    of_said: LongArray
    of_told: LongArray
    recorded_code: LongArray
    claimed_code: LongArray
    said: list[ReadSubscription]
    assignors: list[str | None]  # of each of `said`
    told: list[ReadAssignment]
    recorded: list[Assignment]
    claimed: list[Assignment]


def read_payloads(log: LogColumns, records: GroupRecords, catalogues: dict[str, TopicHistory]) -> Payloads:
    """Read the members' bytes; records with bytes that do not decode are refused, for the first fault in them."""
    of_record = records.record_of_member
    is_read = records.protocol_type.is_(CONSUMER_PROTOCOL)
    is_read &= ~np.isin(records.record, np.fromiter(records.refused, np.int64, len(records.refused)))
    read = is_read[of_record]
    protocol = records.protocol.codes[of_record] + 1
    pairs, of_said = _distinct(records.subscription.codes * (len(records.protocol.values) + 1) + protocol, read)
    assignments, of_told = _distinct(records.assignment.codes, read)
    names = [None, *records.protocol.values.to_pylist()]
    assignors = [names[pair % len(names)] for pair in pairs]
    texts = [records.subscription.values[pair // len(names)] for pair in pairs]
    said = [_read(read_said, text, name) for text, name in zip(texts, assignors, strict=True)]
    told = [_read(read_told, records.assignment.values[code]) for code in assignments]
    refused = _refuse(records, (of_said, said), (of_told, told))
    for codes in (of_said, of_told):
        codes[refused[of_record]] = NONE
    times = TopicTimes(log, records.record, catalogues)
    recorded_code, recorded = times.with_ids(of_told, of_record, [_partitions_told(each) for each in told])
    claimed_code, claimed = times.with_ids(of_said, of_record, [_partitions_claimed(each) for each in said])
    return Payloads(
        *(of_said, of_told, recorded_code, claimed_code),
        *(_without_faults(said, _NOTHING_SAID), assignors, _without_faults(told, _NOTHING_TOLD)),
        *(recorded, claimed),
    )


class TopicTimes:
    """The topic listings as of each record: records between two changes of a cluster's topics are of one time."""

    def __init__(self, log: LogColumns, record: LongArray, catalogues: dict[str, TopicHistory]) -> None:
        group = log.group[record]
        self._ids: list[TopicIds] = []
        self._of_record = np.zeros(len(record), np.int64)
        for cluster_id, topics in catalogues.items():
            mine = np.flatnonzero(np.array([name == cluster_id for name in log.cluster_ids], bool)[group])
            time = log.time[record[mine]]
            _, first, code = np.unique(topics.epochs(time), return_index=True, return_inverse=True)
            self._of_record[mine] = code + len(self._ids)
            self._ids += [TopicIds(topics, moment) for moment in time[first].tolist()]

    def with_ids(
        self, code: LongArray, of_record: LongArray, partitions: list[TopicPartitions | None]
    ) -> tuple[LongArray, list[Assignment]]:
        """Each member's partitions with the topic ids of its record's time: codes, and the distinct ones.

        NONE: its code is, or has no partitions to tell."""
        has = np.array([each is not None for each in partitions], bool)
        there = code != NONE
        there[there] = has[code[there]]
        count = max(1, len(self._ids))
        pairs, found = _distinct(code * count + self._of_record[of_record], there)
        known: dict[tuple[int, tuple[str | None, ...]], int] = {}
        views: list[Assignment] = []
        of_pair = np.empty(len(pairs) + 1, np.int64)
        of_pair[-1] = NONE
        for place, pair in enumerate(pairs):
            listed, ids = partitions[pair // count] or (), self._ids[pair % count]
            view = tuple([(ids[topic], topic, numbers) for topic, numbers in listed])
            key = pair // count, tuple([topic_id for topic_id, _, _ in view])
            if key not in known:
                known[key] = len(views)
                views.append(view)
            of_pair[place] = known[key]
        return of_pair[found], views


def _distinct(codes: LongArray, there: Any) -> tuple[list[int], LongArray]:
    """The distinct codes where there are any, and each one's place among them; NONE elsewhere."""
    values, places = np.unique(codes[there], return_inverse=True)
    found = np.full(len(codes), NONE, np.int64)
    found[there] = places
    return values.tolist(), found


def _read(read: Callable[..., Any], *data: Any) -> Any:
    """What the bytes say, or the fault in them."""
    try:
        return read(*data)
    except DecodeFault as fault:
        return fault


def _refuse(records: GroupRecords, *payloads: tuple[LongArray, list[Any]]) -> Any:
    """Refuse records in which a member's bytes do not decode; whether each record is."""
    found: dict[tuple[int, int], DecodeFault] = {}
    for order, (codes, values) in enumerate(payloads):
        faulty = np.array([isinstance(value, DecodeFault) for value in values] + [False], bool)
        found |= {(member, order): values[codes[member]] for member in np.flatnonzero(faulty[codes]).tolist()}
    refused = np.zeros(len(records.record), bool)
    of_record = records.record_of_member
    for (member, _), fault in sorted(found.items(), key=lambda each: each[0]):
        refused[of_record[member]] = True
        records.refused.setdefault(int(records.record[of_record[member]]), fault)
    return refused


def _partitions_told(told: ReadAssignment | DecodeFault) -> TopicPartitions | None:
    return None if isinstance(told, DecodeFault) else told.partitions


def _partitions_claimed(said: ReadSubscription | DecodeFault) -> TopicPartitions | None:
    return None if isinstance(said, DecodeFault) or not said.states_claim else said.claim.owned


_NOTHING_SAID = read_said(b"", None)
_NOTHING_TOLD = read_told(b"")


def _without_faults(values: list[Any], nothing: Any) -> list[Any]:
    """The values, where no record that counts has one `nothing`."""
    return [nothing if isinstance(value, DecodeFault) else value for value in values]
