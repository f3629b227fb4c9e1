"""Subscriptions and assignments of classic members, each distinct blob read once.

Columns hold what they say. What the columns do not read (other forms of user data, bytes that are cut, topics that
stand twice) is read by the careful decoders, and what these find is written again for the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from struct import error as StructError
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from groupledger.core.arrays.batch import NONE, LongArray
from groupledger.core.arrays.ragged import owners, repeated, take
from groupledger.core.history.classic import CONSUMER_PROTOCOL
from groupledger.core.history.members import ReadAssignment, ReadSubscription, read_assignment, read_subscription
from groupledger.core.rebalance.registry import READING_CLAIMS
from groupledger.core.wire import group_metadata as g
from groupledger.core.wire.codec import DecodeFault
from groupledger.core.wire.consumer_protocol import (
    COOPERATIVE_STICKY,
    FIRST_VERSION_WITH_OWNED,
    INT32_BYTES,
    NO_GENERATION,
    STICKY,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_assignment,
    encode_subscription,
)
from groupledger.core.wire.group_metadata import (
    NO_VERSION,
    SubscriptionColumns,
    TopicLists,
    read_assignments,
    read_subscriptions,
)
from groupledger.core.wire.offsets_log import RecordKind, decode_value, encode_value
from groupledger.core.wire.records import GroupMetadata
from groupledger.engine.arrow_lists import named
from groupledger.engine.classic.record_columns import (
    CodedBytes,
    CodedTexts,
    IdentifiedLists,
    LogColumns,
    PartitionLists,
    TopicTimes,
    blobs,
    distinct,
    strings,
    texts,
    written_again,
)

if TYPE_CHECKING:
    from groupledger.core.arrays.checksums import ByteArray
    from groupledger.core.arrays.ragged import Mask
    from groupledger.core.log.listings import TopicHistory
    from groupledger.engine.arrow_lists import ByteColumn


@dataclass(frozen=True, slots=True)
class DistinctAssignments:
    """T distinct assignments, each topic and each partition once, and those in which a topic stood twice."""

    blobs: ByteColumn
    code: LongArray  # [T] of the blobs
    lists: PartitionLists
    repeated: Mask
    faults: dict[int, DecodeFault]

    def read(self, index: int) -> ReadAssignment:
        """One of them, in words."""
        return read_assignment(self.blobs[int(self.code[index])] or b"")


@dataclass(frozen=True, slots=True)
class DistinctSubscriptions:
    """P distinct pairs of a subscription and the assignor under which it is read."""

    blobs: ByteColumn
    code: LongArray  # [P] of the blobs
    assignor: LongArray  # [P] code
    assignors: list[str | None]
    version: LongArray  # NO_VERSION for no bytes
    topics: LongArray  # code of the topics
    topic_lists: list[tuple[str, ...]]
    rack: Any  # a string array
    user_data: Any  # a binary array
    claim: PartitionLists
    states_claim: Mask
    is_compared: Mask
    generation: LongArray  # of the claim
    has_generation: Mask
    subscription_generation: LongArray  # NONE without
    faults: dict[int, DecodeFault]

    def read(self, index: int) -> ReadSubscription:
        """One of them, in words."""
        return read_subscription(self.blobs[int(self.code[index])] or b"", self.assignors[int(self.assignor[index])])


@dataclass(frozen=True, slots=True)
class Payloads:
    """Codes of M members, NONE where the protocol type is not the consumer's or the record is refused.

    `recorded` and `claimed` are the assignments and claims with the topic ids of their times; the code of a claim is
    NONE where the member states none. `names` are all topics, in order.
    """

    of_subscription: LongArray
    of_assignment: LongArray
    recorded_code: LongArray
    claimed_code: LongArray
    said: DistinctSubscriptions
    assignment: DistinctAssignments
    names: list[str]
    recorded: IdentifiedLists
    claimed: IdentifiedLists

    def are_beyond(self, said: LongArray, assignment: LongArray) -> Mask:
        """Whether each of these assignments gives partitions of a topic that the subscription beside it leaves out."""
        number = {name: code for code, name in enumerate(self.names)}
        lists, assigned = self.said.topic_lists, self.assignment.lists
        of_lists = ((code, number.get(topic)) for code, topics in enumerate(lists) for topic in topics)
        named = {code * len(number) + topic for code, topic in of_lists if topic is not None}
        start, topic = take(assigned.start, assignment)
        pair = owners(start)
        key = self.said.topics[said][pair] * len(number) + assigned.name[topic]
        is_named = np.isin(key, np.fromiter(named, np.int64, len(named)))
        has_any = np.diff(assigned.number_start)[topic] > 0
        return np.bincount(pair[~is_named & has_any], minlength=len(said)) > 0


def read_payloads(log: LogColumns, records: GroupRecords, catalogues: dict[str, TopicHistory]) -> Payloads:
    """Read the members' bytes; records with bytes that do not decode are refused, for the first fault in them."""
    of_record = records.record_of_member
    is_read = records.protocol_type.is_(CONSUMER_PROTOCOL)
    is_read &= ~np.isin(records.record, np.fromiter(records.refused, np.int64, len(records.refused)))
    read = is_read[of_record]
    assignors = [None, *records.protocol.values.to_pylist()]
    protocol = records.protocol.codes[of_record] + 1
    pairs, of_subscription = distinct(records.subscription.codes * len(assignors) + protocol, read)
    assignments, of_assignment = distinct(records.assignment.codes, read)
    topics = TopicNumbers()
    assignment = _distinct_assignments(records.assignment.values, assignments, topics)
    under = pairs % len(assignors), assignors
    said = _distinct_subscriptions(records.subscription.values, pairs // len(assignors), *under, topics)
    refused = _refuse(records, (of_subscription, said.faults), (of_assignment, assignment.faults))
    for codes in (of_subscription, of_assignment):
        codes[refused[of_record]] = NONE
    assignment.lists.name[:], said.claim.name[:] = (
        topics.numbers(assignment.lists.name),
        topics.numbers(said.claim.name),
    )
    times, names = TopicTimes(log, records.record, catalogues), topics.names()
    of_claim = np.where(np.append(said.states_claim, False)[of_subscription], of_subscription, NONE)
    recorded_code, recorded = times.identified(of_assignment, of_record, assignment.lists, names)
    claimed_code, claimed = times.identified(of_claim, of_record, said.claim, names)
    return Payloads(
        of_subscription, of_assignment, recorded_code, claimed_code, said, assignment, names, recorded, claimed
    )


class TopicNumbers:
    """Topics, numbered as they come, and in the end in order of their names."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def codes(self, names: CodedTexts) -> LongArray:
        """Return the topics as they are numbered so far."""
        of_code = [self._known.setdefault(name, len(self._known)) for name in names.values.to_pylist()]
        return np.array([*of_code, NONE], np.int64)[names.codes]

    def names(self) -> list[str]:
        """All, in order."""
        return sorted(self._known)

    def numbers(self, codes: LongArray) -> LongArray:
        """Their places in that order."""
        place = np.empty(len(self._known), np.int64)
        place[[self._known[name] for name in self.names()]] = np.arange(len(self._known))
        return np.asarray(place[codes])


def _distinct_assignments(blobs: ByteColumn, code: LongArray, topics: TopicNumbers) -> DistinctAssignments:
    bytes_of = blobs.data, blobs.start[code], blobs.end[code]
    lists, unread = read_assignments(*bytes_of)
    names = texts(bytes_of[0], lists.name_at, lists.name_size)
    doubtful = {*unread.tolist(), *_doubtful(lists, names).tolist()}
    faults: dict[int, DecodeFault] = {}
    repeated = np.zeros(len(code), bool)
    again: dict[int, bytes] = {}
    for index in sorted(doubtful):
        assignment = _decode_or_fault(read_assignment, blobs[int(code[index])])
        if isinstance(assignment, DecodeFault):
            faults[index], again[index] = assignment, b""
        else:
            repeated[index] = bool(assignment.repeated)
            again[index] = encode_assignment(ConsumerProtocolAssignment(0, assignment.partitions))
    if again:
        bytes_of = written_again(*bytes_of, again)
        lists, _ = read_assignments(*bytes_of)
        names = texts(bytes_of[0], lists.name_at, lists.name_size)
    partitions = PartitionLists(lists.start, topics.codes(names), lists.number_start, lists.number)
    return DistinctAssignments(blobs, code, partitions, repeated, faults)


def _doubtful(lists: TopicLists, names: CodedTexts) -> LongArray:
    """Return assignments in which a topic is no text or stands twice, or a partition is negative or repeated."""
    of_topic, topic = owners(lists.start), owners(lists.number_start)
    return np.unique(
        np.concatenate(
            [
                of_topic[names.are_bad],
                of_topic[repeated(of_topic, names.codes)],
                of_topic[topic[lists.number < 0]],
                of_topic[topic[repeated(topic, lists.number)]],
            ]
        )
    )


def _distinct_subscriptions(
    blobs: ByteColumn, code: LongArray, assignor: LongArray, assignors: list[str | None], topics: TopicNumbers
) -> DistinctSubscriptions:
    data, start, end = blobs.data, blobs.start[code], blobs.end[code]
    said, unread = read_subscriptions(data, start, end)
    cooperative = _is_among(assignor, assignors, {COOPERATIVE_STICKY})
    carries_more = cooperative & (said.user_data_size > 0) & (said.user_data_size != INT32_BYTES)
    in_user_data = np.flatnonzero(_is_among(assignor, assignors, {STICKY}) | carries_more)
    doubtful = sorted({*unread.tolist(), *in_user_data.tolist(), *_no_texts(data, said)})
    found = {
        at: _decode_or_fault(read_subscription, blobs[int(code[at])], assignors[int(assignor[at])]) for at in doubtful
    }
    if found:
        data, start, end = written_again(data, start, end, {index: _reencode(each) for index, each in found.items()})
        said, _ = read_subscriptions(data, start, end)
    careful = {index: each for index, each in found.items() if not isinstance(each, DecodeFault)}
    which = np.array(list(careful), np.int64)

    def with_careful(values: LongArray, absent: int, of: Iterable[int | None]) -> LongArray:
        values[which] = [absent if value is None else value for value in of]
        return values

    claims = [each.claim for each in careful.values()]
    carried = _carried(data, said, cooperative)
    own = np.where(said.generation >= 0, said.generation, NONE)
    has_generation = np.where(carried == NO_GENERATION, own != NONE, True)
    generation = np.where(carried == NO_GENERATION, own, carried)
    has_generation[which] = [each.generation is not None for each in claims]
    states_claim = said.version >= FIRST_VERSION_WITH_OWNED
    states_claim[which] = [each.states_claim for each in careful.values()]
    claim = _claims(data, said, topics)
    is_compared = (np.diff(claim.start) > 0) | _is_among(assignor, assignors, READING_CLAIMS)
    return DistinctSubscriptions(
        blobs,
        code,
        assignor,
        assignors,
        with_careful(said.version.copy(), NO_VERSION, (each.version for each in careful.values())),
        *_topic_lists(data, said),
        _replaced(_racks(data, said), which, [each.rack for each in careful.values()]),
        _replaced(_user_data(data, said), which, [each.user_data for each in careful.values()]),
        claim,
        states_claim,
        states_claim & is_compared,
        with_careful(generation, 0, (each.generation for each in claims)),
        has_generation,
        with_careful(own, NONE, (each.subscription_generation for each in claims)),
        {index: each for index, each in found.items() if isinstance(each, DecodeFault)},
    )


def _is_among(assignor: LongArray, assignors: list[str | None], names: Collection[str]) -> Mask:
    """Whether each assignor is one of these."""
    return np.array([name in names for name in assignors], bool)[assignor]


def _no_texts(data: ByteArray, said: SubscriptionColumns) -> Iterable[int]:
    """Those in which a topic or the rack is no UTF-8."""
    topics = texts(data, said.topic_at, said.topic_size)
    owned = texts(data, said.owned.name_at, said.owned.name_size)
    yield from owners(said.topic_start)[topics.are_bad].tolist()
    yield from owners(said.owned.start)[owned.are_bad].tolist()
    yield from np.flatnonzero(texts(data, said.rack_at, said.rack_size).are_bad).tolist()


def _reencode(said: ReadSubscription | DecodeFault) -> bytes:
    """Its topics and its claim as bytes that the columns are read from; no bytes for what does not decode."""
    if isinstance(said, DecodeFault):
        return b""
    return encode_subscription(ConsumerProtocolSubscription(1, said.topics, None, said.claim.owned))


def _carried(data: ByteArray, said: SubscriptionColumns, cooperative: Mask) -> LongArray:
    """Return the generation in the user data of Java's cooperative-sticky; NO_GENERATION where there is none."""
    carried = np.full(len(said.version), NO_GENERATION, np.int64)
    there = np.flatnonzero(cooperative & (said.user_data_size == INT32_BYTES))
    places = said.user_data_at[there][:, None] + np.arange(INT32_BYTES)
    carried[there] = np.ascontiguousarray(data[places]).view(">i4")[:, 0] if len(there) else 0
    return carried


def _claims(data: ByteArray, said: SubscriptionColumns, topics: TopicNumbers) -> PartitionLists:
    owned = said.owned
    names = topics.codes(texts(data, owned.name_at, owned.name_size))
    return PartitionLists(owned.start, names, owned.number_start, owned.number)


def _topic_lists(data: ByteArray, said: SubscriptionColumns) -> tuple[LongArray, list[tuple[str, ...]]]:
    """Of each subscription the code of its topics, and the distinct lists of these."""
    coded = strings(data, said.list_at, said.list_size).dictionary_encode()
    code = coded.indices.to_numpy()
    _, first = np.unique(code, return_index=True)
    names = texts(data, said.topic_at, said.topic_size)
    words = names.values.to_pylist()
    known: dict[tuple[str, ...], int] = {}
    of_code = []
    for at in first.tolist():
        topics = names.codes[said.topic_start[at] : said.topic_start[at + 1]].tolist()
        of_code.append(known.setdefault(tuple([words[topic] for topic in topics]), len(known)))
    return np.array(of_code, np.int64)[code], list(known)


def _racks(data: ByteArray, said: SubscriptionColumns) -> Any:
    """Return the racks; an empty one is none."""
    racks = texts(data, said.rack_at, np.where(said.rack_size > 0, said.rack_size, NONE))
    return named(racks.values, racks.codes)


def _user_data(data: ByteArray, said: SubscriptionColumns) -> Any:
    return strings(data, said.user_data_at, said.user_data_size).cast(pa.binary())


def _replaced(values: Any, which: LongArray, others: list[Any]) -> Any:
    """Return the values, at some places others."""
    place = np.arange(len(values))
    place[which] = len(values) + np.arange(len(others))
    return pa.concat_arrays([values, pa.array(others, values.type)]).take(pa.array(place)) if others else values


def _decode_or_fault(read: Callable[..., Any], data: bytes | None, *more: Any) -> Any:
    """Return the decoded bytes, or the fault in them."""
    try:
        return read(data or b"", *more)
    except DecodeFault as fault:
        return fault


def _refuse(records: GroupRecords, *payloads: tuple[LongArray, dict[int, DecodeFault]]) -> Mask:
    """Refuse records in which a member's bytes do not decode; whether each record is."""
    found: dict[tuple[int, int], DecodeFault] = {}
    for order, (codes, faults) in enumerate(payloads):
        faulty = np.isin(codes, np.fromiter(faults, np.int64, len(faults)))
        found |= {(member, order): faults[int(codes[member])] for member in np.flatnonzero(faulty).tolist()}
    refused = np.zeros(len(records.record), bool)
    of_record = records.record_of_member
    for (member, _), fault in sorted(found.items(), key=lambda each: each[0]):
        refused[of_record[member]] = True
        records.refused.setdefault(int(records.record[of_record[member]]), fault)
    return refused


# GroupMetadata records as columns, parsed where they stand; what only the careful decoder reads is encoded again.


@dataclass(frozen=True, slots=True)
class GroupRecords:
    """N records with M members, those that could be read. Rejected records are added to `refused`: record -> fault.

    `odd` are records that the columns cannot hold.
    """

    record: LongArray  # [N] of the log
    member_start: LongArray  # [N+1]
    generation: LongArray
    protocol_type: CodedTexts
    protocol: CodedTexts
    leader: CodedTexts
    member_id: CodedTexts
    instance_id: CodedTexts
    client_id: CodedTexts
    client_host: CodedTexts
    subscription: CodedBytes
    assignment: CodedBytes
    refused: dict[int, DecodeFault]
    odd: list[int]

    @property
    def record_of_member(self) -> LongArray:
        """Of each member, its record among these: [M]."""
        return owners(self.member_start)


def read_records(log: LogColumns, record: LongArray) -> GroupRecords:
    """Return the records of the log (none of them a tombstone) that hold a group's generation."""
    values = log.values
    data, start, end = values.data, values.start[record], values.end[record]
    counts = g.count_members(data, start, end)
    refused: dict[int, DecodeFault] = {}
    odd: list[int] = []
    again = _decoded(log, record, counts == g.UNREAD, refused, odd)
    if again:
        data, start, end = written_again(data, start, end, again)
        added = np.array(list(again), np.int64)
        counts[added] = g.count_members(data, start[added], end[added])
    read = counts != g.UNREAD
    found = _columns(data, record[read], g.group_columns(data, start[read], end[read], counts[read]), refused, odd)
    _refuse_texts(log, found)
    return found


def _decoded(
    log: LogColumns, record: LongArray, unread: Mask, refused: dict[int, DecodeFault], odd: list[int]
) -> dict[int, bytes]:
    """Encode what only the careful decoder reads, by place, in a version that the columns are read from."""
    again: dict[int, bytes] = {}
    for place in np.flatnonzero(unread).tolist():
        index = int(record[place])
        try:
            _, value = decode_value(RecordKind.GROUP_METADATA, log.values[index])
        except DecodeFault as fault:
            refused[index] = fault
            continue
        assert isinstance(value, GroupMetadata)
        try:
            again[place] = _plain(value)
        except StructError:  # a text of more bytes than fit behind a short length
            odd.append(index)
    return again


def _plain(group: GroupMetadata) -> bytes:
    members = tuple(replace(member, tagged=()) for member in group.members)
    data = encode_value(RecordKind.GROUP_METADATA, g.NEWEST_PLAIN, replace(group, members=members, tagged=()))
    assert data is not None
    return data


def _columns(
    data: ByteArray, record: LongArray, c: g.GroupColumns, refused: dict[int, DecodeFault], odd: list[int]
) -> GroupRecords:
    def of_group(field: int) -> CodedTexts:
        return texts(data, c.group_at[field], c.group_size[field])

    def of_member(field: int) -> CodedTexts:
        return texts(data, c.member_at[field], c.member_size[field])

    return GroupRecords(
        record,
        c.member_start,
        c.generation,
        of_group(g.PROTOCOL_TYPE),
        of_group(g.PROTOCOL),
        of_group(g.LEADER),
        of_member(g.MEMBER_ID),
        of_member(g.INSTANCE_ID),
        of_member(g.CLIENT_ID),
        of_member(g.CLIENT_HOST),
        blobs(data, c.member_at[g.SUBSCRIPTION], c.member_size[g.SUBSCRIPTION]),
        blobs(data, c.member_at[g.ASSIGNMENT], c.member_size[g.ASSIGNMENT]),
        refused,
        odd,
    )


def _refuse_texts(log: LogColumns, found: GroupRecords) -> None:
    """Refuse the records in which a text is no UTF-8."""
    bad = np.zeros(len(found.record), bool)
    for column in (found.protocol_type, found.protocol, found.leader):
        bad |= column.are_bad
    for column in (found.member_id, found.instance_id, found.client_id, found.client_host):
        bad[found.record_of_member[column.are_bad]] = True
    for index in found.record[bad].tolist():
        try:
            decode_value(RecordKind.GROUP_METADATA, log.values[index])
        except DecodeFault as fault:
            found.refused[index] = fault
        else:
            raise AssertionError(f"the value of record {index} has a text that is no UTF-8, and decodes")
