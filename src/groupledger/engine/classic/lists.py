"""Lists of partitions by topic as columns, with the topics' ids of a time, as sets, and as Arrow has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from groupledger.core.batch import NONE
from groupledger.core.history.payloads import TopicIds
from groupledger.core.ragged import owners, starts, take
from groupledger.engine.arrow_types import arrow_type
from groupledger.tables.declaration import TOPIC_ID_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from groupledger.core.batch import LongArray
    from groupledger.core.history.topics import TopicHistory
    from groupledger.engine.classic.log import BoolArray, LogColumns

HOLDING = arrow_type(TOPIC_ID_PARTITIONS)
_NUMBER_BITS = 32


@dataclass(frozen=True, slots=True)
class PartitionLists:
    """N lists of E topics in all, by number of their names, and their partitions."""

    start: LongArray  # [N+1]
    name: LongArray  # [E]
    number_start: LongArray  # [E+1]
    number: LongArray

    def chosen(self, lists: LongArray) -> PartitionLists:
        """Some of the lists, in that order."""
        start, topic = take(self.start, lists)
        number_start, number = take(self.number_start, topic)
        return PartitionLists(start, self.name[topic], number_start, self.number[number])

    @property
    def topic_of_number(self) -> LongArray:
        """Of each partition its topic among E."""
        return owners(self.number_start)

    @property
    def list_of_topic(self) -> LongArray:
        """Of each topic its list."""
        return owners(self.start)


@dataclass(frozen=True, slots=True)
class IdentifiedLists:
    """Lists with the topic ids of their times."""

    lists: PartitionLists
    topic_id: LongArray  # [E] code; NONE: not known
    topic_ids: list[str]

    def arrow(self, names: list[str]) -> Any:
        """The lists as a column of HOLDING."""
        lists, (entry, numbers) = self.lists, (HOLDING.value_type, HOLDING.value_type.field(2).type)
        ids = pa.array(self.topic_ids, pa.string()).take(pa.array(self.topic_id, mask=self.topic_id == NONE))
        topics = pa.array(names, pa.string()).take(pa.array(lists.name))
        partitions = pa.ListArray.from_arrays(_narrow(lists.number_start), _narrow(lists.number), type=numbers)
        structs = pa.StructArray.from_arrays([ids, topics, partitions], fields=list(entry))
        return pa.ListArray.from_arrays(_narrow(lists.start), structs, type=HOLDING)


def _narrow(numbers: LongArray) -> Any:
    return pa.array(numbers.astype(np.int32))


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

    def identified(
        self, code: LongArray, of_record: LongArray, lists: PartitionLists, names: list[str]
    ) -> tuple[LongArray, IdentifiedLists]:
        """Of each code and its record a list with topic ids: which one (NONE: no code), and the distinct ones."""
        count = max(1, len(self._ids))
        pairs, found = distinct(code * count + self._of_record[of_record], code != NONE)
        chosen = lists.chosen(pairs // count)
        of_topic = (pairs % count)[chosen.list_of_topic] * max(1, len(names)) + chosen.name
        keys, places = np.unique(of_topic, return_inverse=True)
        known: dict[str, int] = {}
        ids = np.empty(len(keys), np.int64)
        for place, key in enumerate(keys.tolist()):
            topic_id = self._ids[key // len(names)][names[key % len(names)]]
            ids[place] = NONE if topic_id is None else known.setdefault(topic_id, len(known))
        return found, IdentifiedLists(chosen, ids[places], list(known))


def distinct(codes: LongArray, there: BoolArray) -> tuple[LongArray, LongArray]:
    """The distinct codes where there are any, and each one's place among them; NONE elsewhere."""
    values, places = np.unique(codes[there], return_inverse=True)
    found = np.full(len(codes), NONE, np.int64)
    found[there] = places
    return values, found


@dataclass(frozen=True, slots=True)
class PartitionSets:
    """Sets of partitions, each in order: the topic's number and the partition in one integer."""

    start: LongArray
    partition: LongArray

    @classmethod
    def of(cls, lists: PartitionLists) -> PartitionSets:
        """The lists without order and repeats."""
        topic = lists.topic_of_number
        return cls.of_partitions(lists.list_of_topic[topic], lists.name[topic], lists.number, len(lists.start) - 1)

    @classmethod
    def of_partitions(cls, owner: LongArray, name: LongArray, number: LongArray, sets: int) -> PartitionSets:
        """The sets that each partition's owner, topic and number tell."""
        partition = name << _NUMBER_BITS | number & ((1 << _NUMBER_BITS) - 1)
        order = np.lexsort((partition, owner))
        owner, partition = owner[order], partition[order]
        kept = np.ones(len(order), bool)
        kept[1:] = (owner[1:] != owner[:-1]) | (partition[1:] != partition[:-1])
        return cls(starts(np.bincount(owner[kept], minlength=sets)), partition[kept])

    def and_(self, other: PartitionSets) -> PartitionSets:
        """These sets, and the others behind them."""
        start = np.concatenate([self.start, self.start[-1] + other.start[1:]])
        return PartitionSets(start, np.concatenate([self.partition, other.partition]))

    def read(self, index: int) -> Iterator[tuple[int, int]]:
        """Topic and partition of one set."""
        for partition in self.partition[self.start[index] : self.start[index + 1]].tolist():
            number = partition & ((1 << _NUMBER_BITS) - 1)
            yield partition >> _NUMBER_BITS, number - ((number >> (_NUMBER_BITS - 1)) << _NUMBER_BITS)

    def equal(self, mine: LongArray, other: PartitionSets, others: LongArray) -> BoolArray:
        """Whether each of these sets equals the one beside it of the others."""
        same: BoolArray = np.diff(self.start)[mine] == np.diff(other.start)[others]
        alike = np.flatnonzero(same)
        start, at = take(self.start, mine[alike])
        _, beside = take(other.start, others[alike])
        differs = self.partition[at] != other.partition[beside]
        same[alike[owners(start)[differs]]] = False
        return same
