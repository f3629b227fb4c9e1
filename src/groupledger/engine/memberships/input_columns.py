"""Check the columns of members and topics, before anything runs, and keep what a worker needs to know."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.custom.assignor_names import SOLVED_ALONE, find, may_be_custom
from groupledger.core.custom.custom_group import DEFAULT, CustomLimits
from groupledger.core.faults import Fault
from groupledger.core.log.input_codes import ScenarioCode
from groupledger.core.rebalance.registry import BY_CLASS, called
from groupledger.core.rebalance.step import Form
from groupledger.core.scenarios.solving import NAMES as SERVER_ASSIGNORS
from groupledger.engine.group_arrays import Calculation
from groupledger.engine.memberships import declared as d
from groupledger.engine.memberships.declared import ColumnKind, may_be, plain
from groupledger.tables import columns as c

StepMode = Literal["as-kafka", "kip"]

MEMBER_KINDS = {
    c.MEMBER_ID: ColumnKind.TEXT,
    c.TOPICS: ColumnKind.TEXTS,
    d.OWNED: ColumnKind.OWNED,
    c.HELD: ColumnKind.OWNED,
    d.GENERATION: ColumnKind.WHOLE,
    d.RACK: ColumnKind.TEXT,
    c.GROUP_INSTANCE_ID: ColumnKind.TEXT,
    c.MEMBER_ORDER: ColumnKind.WHOLE,
    c.USER_DATA: ColumnKind.BYTES,
}
TOPIC_KINDS = {c.TOPIC: ColumnKind.TEXT, d.PARTITIONS: ColumnKind.WHOLE, d.RACKS: ColumnKind.RACKS}
UDF_KINDS = {**MEMBER_KINDS, d.TOPIC_PARTITION_COUNTS: ColumnKind.COUNTS}
REQUIRED = {c.MEMBER_ID, c.TOPICS, c.TOPIC, d.PARTITIONS, d.TOPIC_PARTITION_COUNTS}
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
    by: Sequence[str] = d.BY,
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
        of_members[d.ASSIGNOR] = chosen.column
    join, of_topics = by, {name: name for name in (*by, c.TOPIC, d.PARTITIONS)}
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
    known = {*known, *d.BY, *by}
    there = {*members.names, *(topics.names if topics is not None else ())}
    for ours, theirs in dict(columns).items():
        if ours not in known:
            raise Fault("USAGE", f"columns renames {ours!r}, which is no column here; expected {_near(ours, known)}")
        if theirs not in there:
            raise Fault(COLUMN_MISSING, f"column {theirs} (columns[{ours!r}]) is missing; {_got(there)}")
    return columns


def _by(by: Sequence[str], names: Mapping[str, str], members: pa.Schema) -> tuple[str, ...]:
    found = tuple(name for name in by if _in(name, names, members) is not None)
    missing = [name for name in by if name not in found]
    if c.GROUP_ID not in by:
        raise Fault("USAGE", f"by is {tuple(by)!r}; expected group_id among them; columns={{'group_id': ..}} renames")
    if tuple(by) == d.BY:
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


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return near[0] if near else f"one of {', '.join(sorted(known))}"


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
    near = difflib.get_close_matches(name, (*ASSIGNORS, *BY_CLASS), n=1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    others = "" if in_rows else ", module:function, or a column of members"
    return f"assignor is {name!r}; {guess}expected one of {', '.join(sorted(ASSIGNORS))}{others}; {SOLVED_ALONE}"
