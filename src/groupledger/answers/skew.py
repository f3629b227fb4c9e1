"""How unevenly partitions, or what they weigh, lie on the members of a group."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from groupledger.answers.answer_columns import CLUSTER, GROUP, computed, shown
from groupledger.answers.queries import (
    NamedPartition,
    Reader,
    Record,
    from_row,
    gathered,
    members_of,
    newest,
    one_of,
    partitions,
    ranked,
    records,
)
from groupledger.answers.scope import Ranking, RequestedScope, Scope, scope, why_empty
from groupledger.answers.spoken import spans
from groupledger.answers.states import ASSIGNED, loads
from groupledger.core.faults import Fault

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa


Weights = Mapping["NamedPartition", float]
NO_MEMBERS_NOW = (
    "no group has members at the end of this period; ask for an earlier end with --until. Share and streams groups are "
    "not ranked: a partition of theirs may have several owners, or be known by its task alone"
)
NO_REPLICAS = "members name racks, but no listing names those of the replicas (topic_snapshots.racks)"
NO_RACKS = "no member names a rack (client.rack) in the last state of these groups"


@dataclass(frozen=True, slots=True)
class Load:
    """What a member has. `weight` is None where no weights were given."""

    member_id: str = field(metadata=shown("member", named=True))
    client_id: str | None = field(metadata=shown("client", detail=True))
    partitions: tuple[NamedPartition, ...] = field(metadata=shown("partitions", text=len))
    weight: float | None = field(metadata=shown("weight", optional=True))

    @property
    @computed("which")
    def which(self) -> str:
        """Name the partitions."""
        return spans(self.partitions)


@dataclass(frozen=True, slots=True)
class Skew:
    """A group's last state: the most and the least that a member has, and how many members have nothing.

    `loads` are the members, the heaviest first. `unweighted`: partitions that the weights do not name; they weigh 0.
    """

    cluster_id: str = field(metadata=CLUSTER)
    group_id: str = field(metadata=GROUP)
    observed_at: datetime
    snapshot_id: str
    assignor: str | None = field(metadata=shown("assignor"))
    members: int = field(metadata=shown("members"))
    idle: int = field(metadata=shown("idle"))
    most: int = field(metadata=shown("most"))
    least: int = field(metadata=shown("least"))
    most_weight: float | None = field(metadata=shown("heaviest", optional=True))
    least_weight: float | None = field(metadata=shown("lightest", optional=True))
    unweighted: int
    loads: tuple[Load, ...]


Skews = Annotated[Ranking[Skew], "The most uneven groups first; `total` counts those left off."]


def skew(reader: Reader, asked: RequestedScope, limit: int, weights: Weights | None = None) -> Skews:
    """Rank groups by the difference between the member with most and the one with least, in weight where there is one.

    Raises as `scope.scope`.
    """
    within = scope(reader, asked)
    if weights is None:
        rows, total = _most_uneven(reader, within, limit)
    else:
        rows = records(reader, last_states(within))
        total = len(rows)
    members = members_of(reader, rows, ["recorded"])
    found = [_skew(row, members.get(row["snapshot_id"], ()), weights) for row in rows]
    found.sort(
        key=lambda of: (
            *((of.least_weight or 0) - (of.most_weight or 0), of.least - of.most, -of.most, -of.members),
            *(of.cluster_id, of.group_id),
        )
    )
    notes = () if found else (why_empty(reader, within.from_the_beginning, with_members=NO_MEMBERS_NOW),)
    return Ranking(Skew, within, tuple(found[:limit]), total, notes)


def _most_uneven(reader: Reader, within: Scope, limit: int) -> tuple[list[Record], int]:
    """Return the states of the most uneven groups, and how many groups there are."""
    of_states = last_states(within)
    spread = "coalesce(l.most, 0) - CASE WHEN coalesce(l.owners, 0) < s.members THEN 0 ELSE l.least END"
    loaded = (
        f"SELECT s.*, {spread} AS spread, coalesce(l.most, 0) AS most FROM ({of_states}) s "
        f"LEFT JOIN ({loads(within, of_states)}) l ON l.snapshot_id = s.snapshot_id"
    )
    return ranked(reader, loaded, "q.spread DESC, q.most DESC, q.members DESC, q.cluster_id, q.group_id", limit)


def _skew(row: Record, members: Sequence[Record], weights: Weights | None) -> Skew:
    found = []
    for each in members:
        places = partitions(each["recorded"])
        weight = None if weights is None else sum(weights.get(place, 0.0) for place in places)
        found.append(from_row(Load, each, partitions=places, weight=weight))
    found.sort(key=lambda load: (-(load.weight or 0), -len(load.partitions), load.member_id))
    counts = [len(load.partitions) for load in found]
    heavy = [load.weight for load in found if load.weight is not None]
    return from_row(
        Skew,
        row,
        idle=counts.count(0),
        most=max(counts, default=0),
        least=min(counts, default=0),
        most_weight=max(heavy, default=None),
        least_weight=min(heavy, default=None),
        unweighted=0 if weights is None else sum(place not in weights for load in found for place in load.partitions),
        loads=tuple(found),
    )


# How much members read in their own rack, where racks are known.

Replicas = Mapping[tuple[str, str], Sequence[tuple["datetime", Sequence[Sequence[str]] | None]]]
"""(cluster, topic) -> from when on, the racks of each partition's replicas."""


@dataclass(frozen=True, slots=True)
class RackMember:
    """A member in a rack: partitions with a replica there, and those without one."""

    member_id: str = field(metadata=shown("member", named=True))
    client_id: str | None
    rack_id: str = field(metadata=shown("rack"))
    local: int = field(metadata=shown("local"))
    remote: tuple[NamedPartition, ...] = field(metadata=shown("remote", text=len))

    @property
    @computed("which")
    def which(self) -> str:
        """Name the remote partitions."""
        return spans(self.remote)


@dataclass(frozen=True, slots=True)
class RackShare:
    """A group's last state: of the partitions whose racks are known on both sides, how many are local.

    `possible`: how many have a replica in the rack of any member. `unknown`: a member or a replica names no rack.
    """

    cluster_id: str = field(metadata=CLUSTER)
    group_id: str = field(metadata=GROUP)
    observed_at: datetime
    snapshot_id: str
    local: int = field(metadata=shown("local"))
    remote: int = field(metadata=shown("remote"))
    possible: int = field(metadata=shown("possible"))
    unknown: int = field(metadata=shown("unknown"))
    members: tuple[RackMember, ...]

    @property
    @computed("local %", place=-1, text=lambda share: round(100 * share), in_frames=True)
    def share(self) -> float:
        """Local ones of those that are known."""
        return self.local / (self.local + self.remote)


RackShares = Annotated[
    Ranking[RackShare], "The groups with the least local share first; `total` counts those left off."
]


def racks(reader: Reader, asked: RequestedScope, limit: int) -> RackShares:
    """Rank groups whose members name racks. Raises as `scope.scope`."""
    within = scope(reader, asked)
    rows = _in_racks(reader, within)
    members = members_of(reader, rows, ["rack_id", "recorded"])
    replicas = _replicas(reader, within, rows)
    shares = (_share(row, members.get(row["snapshot_id"], ()), replicas) for row in rows)
    found = sorted(
        (each for each in shares if each.local + each.remote),
        key=lambda each: (each.share, -each.remote, each.cluster_id, each.group_id),
    )
    why = () if found else (NO_REPLICAS if rows else why_empty(reader, within.from_the_beginning, NO_RACKS),)
    return Ranking(RackShare, within, tuple(found[:limit]), len(found), why)


def _in_racks(reader: Reader, within: Scope) -> list[Record]:
    """Return the last states of groups of which a member names a rack."""
    named = (
        "SELECT DISTINCT m.cluster_id, m.group_id, m.snapshot_id FROM current_member_snapshots m "
        f"WHERE {within.of_groups('m.')} AND m.rack_id IS NOT NULL AND m.rack_id <> ''"
    )
    return records(
        reader,
        f"SELECT l.* FROM ({last_states(within)}) l JOIN ({named}) n ON n.cluster_id = l.cluster_id "
        "AND n.group_id = l.group_id AND n.snapshot_id = l.snapshot_id ORDER BY l.cluster_id, l.group_id",
    )


def _replicas(reader: Reader, within: Scope, rows: Sequence[Record]) -> Replicas:
    topics = sorted({topic for row in rows for topic in row["shared_topics"] or row["subscribed_topics"] or ()})
    query = "SELECT t.cluster_id, t.topic, t.racks, t.valid_from FROM current_topic_snapshots t "
    query += f"WHERE {one_of('t.topic', topics)}"
    listings = records(reader, f"{query} ORDER BY t.valid_from, t.topic_id")
    return gathered(((row["cluster_id"], row["topic"]), (row["valid_from"], row["racks"])) for row in listings)


def _share(row: Record, members: Sequence[Record], replicas: Replicas) -> RackShare:
    inside = {each["rack_id"] for each in members if each["rack_id"]}
    found, counted = [], Counter[str]()
    for member in members:
        remote, local = [], 0
        for place in partitions(member["recorded"]):
            there = _racks_of(replicas.get((row["cluster_id"], place[0]), ()), place[1], row["observed_at"])
            if not there or not member["rack_id"]:
                counted["unknown"] += 1
                continue
            counted["possible"] += bool(there & inside)
            if member["rack_id"] in there:
                local += 1
            else:
                remote.append(place)
        if member["rack_id"]:
            found.append(from_row(RackMember, member, local=local, remote=tuple(remote)))
    found.sort(key=lambda each: (-len(each.remote), each.member_id))
    return from_row(
        RackShare,
        row,
        local=sum(each.local for each in found),
        remote=sum(len(each.remote) for each in found),
        possible=counted["possible"],
        unknown=counted["unknown"],
        members=tuple(found),
    )


def _racks_of(
    known: Sequence[tuple[datetime, Sequence[Sequence[str]] | None]], partition: int, at: datetime
) -> set[str]:
    """Return the racks of a partition's replicas as last listed; a listing after the state is better than none."""
    before = [racks_then for when, racks_then in known if when <= at]
    of_topic = (before or [racks_then for _, racks_then in known[:1]] or [None])[-1]
    if of_topic is None or partition >= len(of_topic):
        return set()
    return {each for each in of_topic[partition] or () if each}


# The last assignment of each group in a period: who has which partitions.


def last_states(within: Scope) -> str:
    """Select the last state of each group in the period, if it has members and the ledger its whole assignment."""
    condition = within.from_the_beginning.where("t.")
    return f"SELECT s.* FROM ({newest(condition, 't.*')}) s WHERE {ASSIGNED}"


# What each partition weighs (lag, bytes a second, ...), from a file that somebody names.

KEYS = ("topic", "partition")


def read_weights(name: str) -> dict[NamedPartition, float]:
    """Read a CSV file with a header, a Parquet file or a Delta table: columns topic, partition and one number.

    Raises Fault("BAD_WEIGHTS") for another file, for a partition named twice, and for a value that is no weight.
    """
    import pyarrow as pa

    try:
        table = _table(Path(name))
    except (OSError, pa.ArrowException, ImportError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _fault(name, f"cannot be read: {said}") from error
    others = [column for column in table.schema.names if column not in KEYS]
    if len(others) != 1 or not set(KEYS) <= set(table.schema.names):
        raise _fault(name, f"has the columns {', '.join(table.schema.names)}")
    found: dict[NamedPartition, float] = {}
    for topic, number, weight in zip(*(table[column].to_pylist() for column in (*KEYS, *others)), strict=True):
        place = f"{topic}-{number}"
        if not isinstance(topic, str) or not isinstance(number, int):
            raise _fault(name, f"names a partition {place}")
        if not isinstance(weight, int | float) or not math.isfinite(weight) or weight < 0:
            raise _fault(name, f"gives {place} the {others[0]} {weight}")
        if (topic, number) in found:
            raise _fault(name, f"names {place} twice")
        found[topic, number] = float(weight)
    return found


def _table(path: Path) -> pa.Table:
    import pyarrow as pa

    if path.is_dir():
        from deltalake import DeltaTable, QueryBuilder
        from deltalake.exceptions import DeltaError

        try:
            engine = QueryBuilder()
            engine.register("weights", DeltaTable(str(path)))
            return pa.RecordBatchReader.from_stream(engine.execute("SELECT * FROM weights")).read_all()
        except DeltaError as error:
            raise OSError(str(error)) from error
    if path.suffix == ".parquet":
        from pyarrow.parquet import ParquetFile  # read_table would import pandas, and so would Delta's own reader

        with ParquetFile(path) as file:
            return file.read()
    from pyarrow import csv

    return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types={"topic": pa.string()}))


def _fault(name: str, what: str) -> Fault:
    expected = "expected the columns topic, partition and one number that is not negative, a row a partition"
    return Fault(
        "BAD_WEIGHTS", f"{name} {what}; {expected} (CSV with a header, .parquet, or the folder of a Delta table)"
    )
