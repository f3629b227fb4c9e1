"""Declare the columns of members and topics that `groupledger.assign` takes, and of what it returns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, LongArray
from groupledger.core.assignors import ASSIGNORS
from groupledger.core.custom.assignor_names import SOLVED_ALONE, find, may_be_custom
from groupledger.core.custom.custom_group import DEFAULT, CustomLimits
from groupledger.core.faults import Fault, expected_one_of, meant
from groupledger.core.log.lines import ScenarioCode
from groupledger.core.rebalance.registry import BY_CLASS, called
from groupledger.core.rebalance.step import Form
from groupledger.core.scenarios.solving import NAMES as SERVER_ASSIGNORS
from groupledger.engine.arrow_lists import Column, arrow_type, integers, list_starts, listed, valid
from groupledger.engine.group_arrays import Calculation
from groupledger.tables import REBALANCES
from groupledger.tables import columns as c
from groupledger.tables.declaration import STRING_LIST, TOPIC_ID_PARTITIONS, TOPIC_PARTITIONS

if TYPE_CHECKING:
    from groupledger.core.arrays.ragged import Mask


BY = (c.CLUSTER_ID, c.GROUP_ID, c.OBSERVED_AT)
"""What distinguishes groups, unless the caller says otherwise: those of these columns that the members have."""

OWNED, GENERATION, RACK, PARTITIONS, RACKS = "owned", "generation", "rack", "partitions", "racks"
ASSIGNOR = "assignor"
TOPIC_PARTITION_COUNTS = "topic_partition_counts"
MOVED, EXCESS, ROUNDS, TO_REVOKE = "moved", "excess", "rounds", "to_revoke"
MEMBERS_OF_GROUP = "members_of_group"
"""The column of one result row a group that has its rows of `ASSIGNED_MEMBERS`."""


def _field(name: str, kind: DataType, comment: str, *, required: bool = False) -> StructField:
    return StructField(name, kind, nullable=not required, metadata={"comment": comment})


_BY_FIELDS = (
    _field(c.CLUSTER_ID, StringType(), "cluster of the group; a column of `by`"),
    _field(c.GROUP_ID, StringType(), "the group; a column of `by` in any case", required=True),
    _field(c.OBSERVED_AT, TimestampType(), "when the group was looked at; a column of `by`"),
)
MEMBERS = StructType(
    [
        *_BY_FIELDS,
        _field(c.MEMBER_ID, StringType(), "member; once in a group", required=True),
        _field(c.TOPICS, STRING_LIST, "topics that it subscribes to", required=True),
        _field(
            OWNED,
            TOPIC_PARTITIONS,
            "partitions that it says it owns, in this form or as array<struct<topic, partition>>, "
            "map<string, array<int>> or array<string> of `topic-3`",
        ),
        _field(c.HELD, TOPIC_PARTITIONS, "partitions from which moves are counted, if others than `owned`; its forms"),
        _field(GENERATION, IntegerType(), "generation in which it owns them (KIP-792); null or negative: not stated"),
        _field(RACK, StringType(), "its `client.rack` (KIP-881)"),
        _field(c.GROUP_INSTANCE_ID, StringType(), "its `group.instance.id` (KIP-345)"),
        _field(
            c.MEMBER_ORDER,
            IntegerType(),
            "its place in the JoinGroup response, of all members of a group or of none; without: by `member_id`",
        ),
        _field(c.USER_DATA, BinaryType(), "bytes of its subscription's user data, as its assignor sent them"),
    ]
)
"""The columns of members: a row a member of a group. Those that may be null may be missing."""

TOPICS = StructType(
    [
        *(_field(f.name, f.dataType, "as of members; without it a row is of all") for f in _BY_FIELDS),
        _field(c.TOPIC, StringType(), "topic", required=True),
        _field(PARTITIONS, IntegerType(), "number of its partitions", required=True),
        _field(RACKS, ArrayType(STRING_LIST), "racks of the replicas of each partition, in order (KIP-881)"),
    ]
)
"""The columns of topics: a row a topic. A topic without a row has no metadata, so nobody is assigned any of it."""

_LISTS = {
    c.HELD: "what it had: `held`, else `owned`",
    c.TARGET: "what the assignor aims for",
    c.ASSIGNED: "what it is assigned in this round",
    c.ADDED: "assigned, and not held (EAGER: all that is assigned)",
    c.REVOKED: "held, and not assigned (EAGER: all that was held)",
    c.AWAITING: "in the target, withheld until another member has revoked it",
    c.LOST: "held, and gone without a revocation: the partition no longer exists",
}
_MEMBER_FIELDS = (
    _field(c.MEMBER_ID, StringType(), "member"),
    *(_field(name, TOPIC_PARTITIONS, comment) for name, comment in _LISTS.items()),
)
_KEYS = tuple(
    StructField(f.name, f.dataType, metadata=f.metadata) for f in _BY_FIELDS
)  # a group without one is refused
ASSIGNED_MEMBERS = StructType([*_KEYS, *_MEMBER_FIELDS])
"""The columns of `Assigned.members`: a row a member of a group that was not refused, after the columns of `by`."""

_ENTRY: Any = TOPIC_PARTITIONS.elementType
_TO_REVOKE = StructType([StructField(c.MEMBER_ID, StringType()), *_ENTRY.fields])
_GROUP_FIELDS = (
    _field(c.ASSIGNOR, StringType(), "assignor that ran"),
    _field(c.PROTOCOL, StringType(), "EAGER: members revoke all before they rejoin; COOPERATIVE: they keep it"),
    _field(c.OUTCOME, StringType(), "ASSIGNED, or UNCHANGED where every member is assigned what it held"),
    _field(c.MEMBERS, IntegerType(), "members"),
    _field(c.PARTITIONS, IntegerType(), "partitions of subscribed topics"),
    _field(MOVED, IntegerType(), "partitions that a member held and the target gives to another"),
    _field(c.LEAST_MOVES, LongType(), "fewest moves of any balanced target; null: a topic without metadata"),
    _field(c.LEAST_MOVES_CERTAINTY, StringType(), "exact, lower-bound, or not-applicable and why"),
    _field(EXCESS, LongType(), "moves above the fewest, where that is exact"),
    _field(c.UNASSIGNED_PARTITIONS, REBALANCES.schema[c.UNASSIGNED_PARTITIONS].dataType, "nobody's now, and why"),
    _field(TO_REVOKE, ArrayType(_TO_REVOKE), "what members must revoke before the next round"),
    _field(ROUNDS, IntegerType(), "rounds until nothing changes any more; null: more than 4"),
)
ASSIGNED_GROUPS = StructType([*_KEYS, *_GROUP_FIELDS])
"""The columns of `Assigned.groups`: a row a group that was not refused, after the columns of `by`."""

_REFUSAL_FIELDS = (
    _field(c.CODE, StringType(), "code of the refusal (docs/reference/codes.md)"),
    _field(c.MESSAGE, StringType(), "what was found, and what is expected"),
)
REFUSED = StructType([*_KEYS, *_REFUSAL_FIELDS])
"""The columns of `Assigned.refused`: a row a group that was refused, after the columns of `by`."""

_NESTED = _field(MEMBERS_OF_GROUP, ArrayType(StructType([*_MEMBER_FIELDS])), "rows of members")
FIELDS = {field.name: field for field in (*_MEMBER_FIELDS, *_GROUP_FIELDS, *_REFUSAL_FIELDS, _NESTED)}
GROUP_NAMES, REFUSAL_NAMES, MEMBER_NAMES = (
    tuple(field.name for field in fields) for fields in (_GROUP_FIELDS, _REFUSAL_FIELDS, _MEMBER_FIELDS)
)
RESULT_NAMES = (*GROUP_NAMES, *REFUSAL_NAMES, MEMBERS_OF_GROUP)
"""Of `Assigned.result`: a row a group with its members in it, refused or not, after the columns of `by`."""

# State what a column of any table may be, and bring it into one Arrow form: no Python object a row.

t = pa.types
INT32_MAX = 2**31 - 1
WIRE = arrow_type(TOPIC_ID_PARTITIONS)
NUMBERS = WIRE.value_type.field(c.PARTITIONS).type
_TEXT_PARTITION = r"^(?P<topic>.+)-(?P<number>[0-9]{1,10})$"


class ColumnKind(Enum):
    """What values of a column mean, with the words for what its type may be."""

    TEXT = "string"
    WHOLE = "a whole number (int, or bigint)"
    BYTES = "binary"
    TEXTS = "array<string>"
    RACKS = "array<array<string>>"
    COUNTS = "map<string,int>"
    OWNED = (
        "array<struct<topic:string,partitions:array<int>>>, array<struct<topic:string,partition:int>>, "
        "map<string,array<int>>, or array<string> of 'topic-3'"
    )
    KEY = "string, a whole number, boolean, date or timestamp"


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type without dictionaries, views, 64-bit offsets and fixed sizes."""
    if t.is_dictionary(kind):
        return plain(kind.value_type)
    if t.is_large_string(kind) or t.is_string_view(kind):
        return pa.string()
    if t.is_large_binary(kind) or t.is_binary_view(kind):
        return pa.binary()
    if t.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if is_list(kind):
        return pa.list_(plain(kind.value_type))
    if t.is_struct(kind):
        return pa.struct([pa.field(each.name, plain(each.type)) for each in kind])
    return kind


def is_list(kind: pa.DataType) -> bool:
    """Return whether values are lists of any layout."""
    tests: tuple[Callable[[Any], bool], ...] = (t.is_list, t.is_large_list, t.is_fixed_size_list)
    views = (getattr(t, name, None) for name in ("is_list_view", "is_large_list_view"))  # pyarrow 18 has them
    return any(test(kind) for test in (*tests, *filter(None, views)))


def may_be(kind: pa.DataType, wanted: ColumnKind) -> bool:
    """Return whether a column of this type can be of the kind; one of nulls alone can be of any."""
    return t.is_null(kind) or _MAY_BE[wanted](plain(kind))


def _is_whole(kind: pa.DataType) -> bool:
    return bool(t.is_integer(kind) or t.is_floating(kind))  # pandas has floats where a number is missing


def _is_texts(kind: pa.DataType) -> bool:
    return is_list(kind) and bool(t.is_string(kind.value_type) or t.is_null(kind.value_type))


def _is_numbers(kind: pa.DataType) -> bool:
    return is_list(kind) and bool(t.is_integer(kind.value_type) or t.is_null(kind.value_type))


def _is_owned(kind: pa.DataType) -> bool:
    if t.is_map(kind):
        return bool(t.is_string(kind.key_type)) and _is_numbers(kind.item_type)
    if not is_list(kind):
        return False
    entry = kind.value_type
    if not t.is_struct(entry):
        return bool(t.is_string(entry) or t.is_null(entry))
    fields = {each.name: each.type for each in entry}
    named = c.TOPIC in fields and bool(t.is_string(fields[c.TOPIC]))
    if c.PARTITIONS in fields:
        return named and _is_numbers(fields[c.PARTITIONS])
    return named and c.PARTITION in fields and bool(t.is_integer(fields[c.PARTITION]))


_KEY_TESTS = (t.is_string, t.is_integer, t.is_boolean, t.is_date, t.is_timestamp)
_MAY_BE: dict[ColumnKind, Callable[[pa.DataType], bool]] = {
    ColumnKind.TEXT: t.is_string,
    ColumnKind.WHOLE: _is_whole,
    ColumnKind.BYTES: lambda kind: bool(t.is_binary(kind) or t.is_string(kind)),
    ColumnKind.TEXTS: _is_texts,
    ColumnKind.RACKS: lambda kind: is_list(kind) and (_is_texts(kind.value_type) or bool(t.is_null(kind.value_type))),
    ColumnKind.COUNTS: lambda kind: bool(t.is_map(kind) and t.is_string(kind.key_type) and _is_whole(kind.item_type)),
    ColumnKind.OWNED: _is_owned,
    ColumnKind.KEY: lambda kind: any(test(kind) for test in _KEY_TESTS),
}
_PLAIN_TYPES = {
    ColumnKind.TEXT: pa.string(),
    ColumnKind.BYTES: pa.binary(),
    ColumnKind.TEXTS: pa.list_(pa.string()),
    ColumnKind.RACKS: pa.list_(pa.list_(pa.string())),
    ColumnKind.COUNTS: pa.map_(pa.string(), pa.float64()),
}


def as_plain(array: Column, kind: ColumnKind) -> Column:
    """Return the column in the plain type of its kind, which `may_be` has agreed to; numbers and keys as they are."""
    wanted = _PLAIN_TYPES.get(kind, plain(array.type))
    return array if array.type == wanted else array.cast(wanted)


def whole_numbers(array: Column) -> tuple[Column, Mask]:
    """Return numbers as int64, and where one is none: NaN, a fraction, or beyond 32 bits. Null stays null."""
    if t.is_null(array.type):
        return pa.nulls(len(array), pa.int64()), np.zeros(len(array), np.bool_)
    values = integers(array, 0)
    fits = (values >= -INT32_MAX) & (values <= INT32_MAX)  # NaN is not
    if t.is_floating(array.type):
        fits &= values == np.floor(values)
    wrong = ~fits & valid(array)
    numbers = np.where(fits, values, 0).astype(np.int64)
    return pa.array(numbers, mask=~valid(array) | wrong), wrong


def any_of(start: LongArray, mask: Mask) -> Mask:
    """Return which lists have a value in the mask: [n]."""
    found: Mask = np.bincount(ragged.owners(start)[mask], minlength=len(start) - 1) > 0
    return found


def numbered(keys: list[Column]) -> tuple[LongArray, LongArray]:
    """Assign numbers to rows by their keys: numbers rise with the keys, null first; and a row of each number."""
    number = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        dictionary = key.dictionary_encode()
        rank = np.empty(len(dictionary.dictionary) + 1, np.int64)
        rank[pc.sort_indices(dictionary.dictionary).to_numpy()] = np.arange(1, len(rank))
        rank[-1] = 0
        combined = number * len(rank) + rank[integers(dictionary.indices, NONE)]
        _, number = np.unique(combined, return_inverse=True)
    _, first, number = np.unique(number, return_index=True, return_inverse=True)
    return number, first


class OwnedLists(NamedTuple):
    """Partitions of R rows as `array<struct<topic_id, topic, partitions>>`, and the rows that have something wrong."""

    lists: Column
    null_inside: Mask
    negative: Mask
    unreadable: Mask  # a text without a partition, or a number beyond 32 bits


def owned_lists(array: Column) -> OwnedLists:
    """Bring partitions of any of the forms into one. Of a map, which has no order, topics stand by name."""
    if t.is_null(array.type):
        none = np.zeros(len(array), np.bool_)
        return OwnedLists(pa.nulls(len(array), WIRE), none, none, none)
    array = as_plain(array, ColumnKind.OWNED)
    start = list_starts(array.cast(pa.list_(array.type.field(0).type)) if t.is_map(array.type) else array)
    topic, part_start, partition, unreadable, null_inside = _entries(array, start)
    numbers, beyond = whole_numbers(partition)
    low = integers(numbers, 0) < 0
    unsaid, negative, wide = (any_of(part_start, each) for each in (~valid(numbers) & ~beyond, low, beyond))
    null_inside = null_inside | unsaid | ~valid(topic) & ~unreadable
    masks = (any_of(start, each) for each in (null_inside, negative, unreadable | wide))
    values = np.where(low, 0, integers(numbers, 0)).astype(np.int32)
    topics = pc.fill_null(topic, "")
    fields = [pa.nulls(len(topics)), topics, listed(part_start, pa.array(values), NUMBERS)]
    return OwnedLists(listed(start, fields, WIRE, valid(array)), *masks)


def _entries(array: Column, start: LongArray) -> tuple[Column, LongArray, Column, Mask, Mask]:
    """Return of all entries: topics, where partitions begin, partitions, which are unreadable, which are null."""
    if t.is_map(array.type):
        low, high = array.offsets[0].as_py() if len(array) else 0, array.offsets[-1].as_py() if len(array) else 0
        topic, lists = array.keys.slice(low, high - low), array.items.slice(low, high - low)
        if array.null_count:  # what lies under a null is not its own
            inside = np.repeat(valid(array), np.diff(integers(array.offsets, 0)))
            topic, lists = (each.filter(pa.array(inside)) for each in (topic, lists))
        order = pc.sort_indices(
            pa.table({"row": ragged.owners(start), "topic": topic}), [("row", "ascending"), ("topic", "ascending")]
        )
        topic, lists = topic.take(order), lists.take(order)
        return topic, list_starts(lists), pc.list_flatten(lists), _none(topic), ~valid(lists)
    entries = pc.list_flatten(array)
    if not t.is_struct(entries.type):
        return _of_texts(as_plain(entries, ColumnKind.TEXT))
    fields = dict(zip((field.name for field in entries.type), entries.flatten(), strict=True))
    topic = fields[c.TOPIC]
    if c.PARTITIONS in fields:
        lists = fields[c.PARTITIONS]
        return topic, list_starts(lists), pc.list_flatten(lists), _none(topic), ~valid(lists)
    return topic, np.arange(len(topic) + 1), fields[c.PARTITION], _none(topic), _none(topic)


def _of_texts(texts: Column) -> tuple[Column, LongArray, Column, Mask, Mask]:
    found = pc.extract_regex(texts, _TEXT_PARTITION)
    topic, number = (pc.struct_field(found, name) for name in ("topic", "number"))
    unreadable = valid(texts) & ~valid(found)
    return topic, np.arange(len(texts) + 1), pc.fill_null(number, "0").cast(pa.int64()), unreadable, ~valid(texts)


def _none(array: Column) -> Mask:
    return np.zeros(len(array), np.bool_)


# Check the columns of members and topics, before anything runs, and keep what a worker needs to know.

StepMode = Literal["as-kafka", "kip"]

MEMBER_KINDS = {
    c.MEMBER_ID: ColumnKind.TEXT,
    c.TOPICS: ColumnKind.TEXTS,
    OWNED: ColumnKind.OWNED,
    c.HELD: ColumnKind.OWNED,
    GENERATION: ColumnKind.WHOLE,
    RACK: ColumnKind.TEXT,
    c.GROUP_INSTANCE_ID: ColumnKind.TEXT,
    c.MEMBER_ORDER: ColumnKind.WHOLE,
    c.USER_DATA: ColumnKind.BYTES,
}
TOPIC_KINDS = {c.TOPIC: ColumnKind.TEXT, PARTITIONS: ColumnKind.WHOLE, RACKS: ColumnKind.RACKS}
UDF_KINDS = {**MEMBER_KINDS, TOPIC_PARTITION_COUNTS: ColumnKind.COUNTS}
REQUIRED = {c.MEMBER_ID, c.TOPICS, c.TOPIC, PARTITIONS, TOPIC_PARTITION_COUNTS}
COLUMN_MISSING, COLUMN_TYPE = "COLUMN_MISSING", "COLUMN_TYPE"


@dataclass(frozen=True, slots=True)
class AssignPlan:
    """What a worker needs beside the rows: which columns are what, and what to compute."""

    by: tuple[str, ...]
    join: tuple[str, ...]  # those of `by` that topics have
    members: Mapping[str, str]  # our name -> the frame's, of the columns that are there
    topics: Mapping[str, str]
    assignor: str | None  # of all groups; None: that of the column
    calculation: Calculation


class Chosen(NamedTuple):
    """The assignor of all groups, or the column of members that names each group's; and what is computed."""

    name: str | None
    column: str | None
    calculation: Calculation


def planned(
    members: pa.Schema,
    topics: pa.Schema | None,
    chosen: Chosen,
    by: Sequence[str] = BY,
    columns: Mapping[str, str] | None = None,
) -> AssignPlan:
    """Return the plan for frames with these columns; `topics` None: members bring `topic_partition_counts`.

    Raises Fault: COLUMN_MISSING, COLUMN_TYPE, USAGE.
    """
    kinds = UDF_KINDS if topics is None else MEMBER_KINDS
    names = _names(columns or {}, {*kinds, *TOPIC_KINDS}, by, members, topics)
    by = _by(by, names, members)
    of_members = _found("members", members, kinds, by, names)
    if chosen.column is not None:
        _require_kind("members", chosen.column, members.field(chosen.column).type, ColumnKind.TEXT)
        of_members[ASSIGNOR] = chosen.column
    join, of_topics = by, {name: name for name in (*by, c.TOPIC, PARTITIONS)}
    if topics is not None:
        of_topics = _found("topics", topics, TOPIC_KINDS, (), names)
        join = tuple(name for name in by if _in(name, names, topics) is not None)
        of_topics |= {name: str(_in(name, names, topics)) for name in join}
        for name in join:
            _require_same(name, members.field(of_members[name]).type, topics.field(of_topics[name]).type)
    return AssignPlan(by, join, of_members, of_topics, chosen.name, chosen.calculation)


def _names(
    columns: Mapping[str, str], known: set[str], by: Iterable[str], members: pa.Schema, topics: pa.Schema | None
) -> Mapping[str, str]:
    if isinstance(by, str):
        raise Fault("USAGE", f"by is the text {by!r}; expected a list of columns, such as ('cluster_id', 'group_id')")
    known = {*known, *BY, *by}
    there = {*members.names, *(topics.names if topics is not None else ())}
    for ours, theirs in dict(columns).items():
        if ours not in known:
            raise Fault("USAGE", f"columns renames {ours!r}, no column here; {expected_one_of(ours, sorted(known))}")
        if theirs not in there:
            raise Fault(COLUMN_MISSING, f"column {theirs} (columns[{ours!r}]) is missing; {_got(there)}")
    return columns


def _by(by: Sequence[str], names: Mapping[str, str], members: pa.Schema) -> tuple[str, ...]:
    found = tuple(name for name in by if _in(name, names, members) is not None)
    missing = [name for name in by if name not in found]
    if c.GROUP_ID not in by:
        raise Fault("USAGE", f"by is {tuple(by)!r}; expected group_id among them; columns={{'group_id': ..}} renames")
    if tuple(by) == BY:
        missing = [name for name in missing if name == c.GROUP_ID]
    if missing:
        raise Fault(COLUMN_MISSING, f"members: {_columns(missing)} missing (by); {_got(members.names)}")
    if len(set(found)) < len(found):
        raise Fault("USAGE", f"by is {tuple(by)!r}; expected each column once")
    return found


def _in(name: str, names: Mapping[str, str], schema: pa.Schema | None) -> str | None:
    """Return the frame's name of a column; None where it has none."""
    there = () if schema is None else schema.names
    return next((each for each in (names.get(name), name) if each is not None and each in there), None)


def _found(
    frame: str, schema: pa.Schema, kinds: Mapping[str, ColumnKind], by: tuple[str, ...], names: Mapping[str, str]
) -> dict[str, str]:
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise Fault("USAGE", f"{frame}: column {', '.join(twice)} stands twice; expected each once")
    places = {name: _in(name, names, schema) for name in (*by, *kinds)}
    missing = [name for name in kinds if name in REQUIRED and places[name] is None]
    if missing:
        renamed = "; columns={'ours': 'yours'} renames" if not names else ""
        raise Fault(COLUMN_MISSING, f"{frame}: {_columns(missing)} missing; {_got(schema.names)}{renamed}")
    found = {name: place for name, place in places.items() if place is not None}
    for name, place in found.items():
        _require_kind(frame, place, schema.field(place).type, ColumnKind.KEY if name in by else kinds[name])
    return found


def _require_kind(frame: str, name: str, kind: pa.DataType, wanted: ColumnKind) -> None:
    if not may_be(kind, wanted):
        raise Fault(COLUMN_TYPE, f"{frame}: column {name} is {_word(kind)}; expected {wanted.value}")


def _require_same(name: str, one: pa.DataType, other: pa.DataType) -> None:
    """Refuse columns of `by` that the two frames have in different types: no row of theirs would meet."""
    a, b = plain(one), plain(other)
    alike = a == b or all(map(pa.types.is_integer, (a, b))) or all(map(pa.types.is_timestamp, (a, b)))
    if not (alike or pa.types.is_null(a) or pa.types.is_null(b)) or getattr(a, "tz", "") is None != getattr(
        b, "tz", ""
    ):
        expected = "one type in both"
        raise Fault(
            COLUMN_TYPE, f"column {name} is {_word(one)} in members, {_word(other)} in topics; expected {expected}"
        )


def _word(kind: pa.DataType) -> str:
    """Name a type as Spark does, where it has a name for it."""
    try:
        return str(from_arrow_type(plain(kind)).simpleString())
    except Exception:  # noqa: BLE001 - a type of Arrow's that Spark lacks: any name of it will do
        return str(kind)


def _columns(missing: Sequence[str]) -> str:
    return f"columns {', '.join(missing)} are" if len(missing) > 1 else f"column {missing[0]} is"


def _got(names: Iterable[str]) -> str:
    return f"got {', '.join(sorted(names)) or 'none'}"


def chosen_assignor(name: str, members: Collection[str], mode: StepMode, limits: CustomLimits = DEFAULT) -> Chosen:
    """Return the assignor that is called `name`, by it or its Java class, or the column of members that is.

    Raises Fault: UNKNOWN_ASSIGNOR, ASSIGNOR_NOT_FOUND, USAGE.
    """
    if mode not in ("as-kafka", "kip"):
        raise Fault("USAGE", f"mode is {mode!r}; expected 'as-kafka' or 'kip'")
    if not isinstance(name, str):
        raise Fault("USAGE", f"assignor is {name!r}; expected a name")
    calculation = Calculation("assign", Form(mode), attributes=False, stated=True)
    known = known_assignor(name)
    if known is not None:
        return Chosen(known, None, calculation)
    if name in members:
        return Chosen(None, name, calculation)
    if not may_be_custom(name):
        raise Fault(ScenarioCode.UNKNOWN_ASSIGNOR, unknown_assignor(name))
    return Chosen(name, None, replace(calculation, custom=(find(name, limits),)))


def known_assignor(name: str) -> str | None:
    """Return our name of an assignor that is called by it or by its Java class."""
    return found if (found := called(name)) in ASSIGNORS else None


def unknown_assignor(name: str, *, in_rows: bool = False) -> str:
    """Say what else would be an assignor."""
    servers = {each.removeprefix("server-") for each in SERVER_ASSIGNORS}
    if name in servers or name in SERVER_ASSIGNORS:
        solved = name if name in SERVER_ASSIGNORS else f"server-{name}"
        return (
            f"assignor is {name!r}, which a KIP-848 coordinator runs; expected one that consumers run: "
            f"{', '.join(sorted(ASSIGNORS))}; groupledger.solve computes {solved} for one group"
        )
    guess = f"{meant(name, (*ASSIGNORS, *BY_CLASS))}expected one of {', '.join(sorted(ASSIGNORS))}"
    others = "" if in_rows else ", module:function, or a column of members"
    return f"assignor is {name!r}; {guess}{others}; {SOLVED_ALONE}"
