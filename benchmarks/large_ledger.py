"""A large ledger as `maintain` leaves it, written without Spark: many groups, a snapshot an hour each.

python -m benchmarks.large_ledger FOLDER [--groups 10000] [--snapshots 1000] [--members 2]

Each classic group reads one of 100 topics of 6 partitions; a member is replaced every ten hours, and what it had goes
to the new one. Once a day an ingest and an assign were committed. Files are those of liquid clustering: some MiB, one
row group, a range of the clustering columns each, and within it rows in the order in which they were appended; their
statistics are those that the ledger's tables ask for. `assignments` and `log_records` are left empty: no answer that is
measured reads them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction
from numpy.typing import NDArray
from pyarrow import parquet
from pyspark.sql.pandas.types import to_arrow_schema

from groupledger.tables import (
    COVERAGE,
    GROUP_HEADS,
    GROUP_SNAPSHOTS,
    MEMBER_SNAPSHOTS,
    OWNERSHIP_CHANGES,
    REBALANCES,
    RUNS,
    TOPIC_SNAPSHOTS,
    VIOLATIONS,
)
from groupledger.tables import columns as c
from groupledger.tables.declaration import FILTERED_BY
from tests.answers.ledgers import write as write_empty

CLUSTER = "bench"
START = datetime(2026, 1, 1, tzinfo=UTC)
HOURS_OF_A_RUN = 24
TOPICS, PARTITIONS, LOG_PARTITIONS = 100, 6, 50
REPLACED_EVERY = 10
"""Hours that a member lives."""
FOUND_IN = 997
"""One state in so many has a finding of ingest's."""
ROWS_OF_A_FILE = 300_000
"""Of `group_snapshots`, as `benchmarks.history` has them in a file after `maintain`."""
ROWS_OF_A_PAGE = 20_000
"""As parquet-mr writes them, with an index by which readers leave pages out."""
Numbers = NDArray[np.int64]
Columns = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Extent:
    """How large it is."""

    groups: int
    snapshots: int
    members: int


def write(folder: Path, extent: Extent) -> None:
    """Write the ledger into a folder that does not exist yet."""
    write_empty(folder, **{RUNS.name: list(_runs(extent))})
    every = np.arange(extent.groups)
    for table, rows, of_group in (
        (GROUP_SNAPSHOTS, _group_snapshots, extent.snapshots),
        (MEMBER_SNAPSHOTS, _member_snapshots, extent.snapshots * extent.members),
        (REBALANCES, _rebalances, extent.snapshots),
        (GROUP_HEADS, _group_heads, -(-extent.snapshots // HOURS_OF_A_RUN)),
        (COVERAGE, _coverage, 1),
        (VIOLATIONS, _violations, -(-extent.snapshots // FOUND_IN)),
    ):
        _add(folder, table, (rows(extent, some) for some in _ranges(every, of_group)))
    by_topic = every[np.argsort(every % TOPICS, kind="stable")]
    changes = extent.snapshots * PARTITIONS * 2 // REPLACED_EVERY
    _add(folder, OWNERSHIP_CHANGES, (_ownership_changes(extent, some) for some in _ranges(by_topic, changes)))
    _add(folder, TOPIC_SNAPSHOTS, [_topic_snapshots()])


def _ranges(groups: Numbers, rows_of_a_group: int) -> list[Numbers]:
    """The groups of each file."""
    return [
        groups[begin : begin + max(1, ROWS_OF_A_FILE // rows_of_a_group)]
        for begin in range(0, len(groups), max(1, ROWS_OF_A_FILE // rows_of_a_group))
    ]


def _add(folder: Path, table: Any, files: Iterator[Columns] | list[Columns]) -> None:
    """Write the files and commit them all at once, as OPTIMIZE does."""
    schema, place = to_arrow_schema(table.schema, timezone="UTC"), folder / table.name
    actions: list[AddAction | RemoveAction] = []
    for number, columns in enumerate(files):
        rows = _table(schema, columns)
        if not len(rows):
            continue
        path = f"part-{number:05}.snappy.parquet"
        pages = {"write_page_index": True, "max_rows_per_page": ROWS_OF_A_PAGE}
        parquet.write_table(rows, place / path, row_group_size=len(rows), store_schema=False, **pages)
        size = (place / path).stat().st_size
        actions.append(AddAction(path, size, {}, int(START.timestamp()) * 1000, data_change=True, stats=_stats(rows)))
    if actions:
        DeltaTable(str(place)).create_write_transaction(actions, "append", DeltaTable(str(place)).schema())


def _table(schema: pa.Schema, columns: Columns) -> pa.Table:
    """The columns in the table's types; those that are not given are null, one value stands for all rows."""
    length = next(len(each) for each in columns.values() if isinstance(each, np.ndarray | pa.Array))
    arrays = []
    for field in schema:
        given = columns.get(field.name)
        if isinstance(given, np.ndarray | pa.Array):
            arrays.append(pa.array(given).cast(field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(given, field.type), length))
    return pa.Table.from_arrays(arrays, schema=schema)


def _stats(rows: pa.Table) -> str:
    """The file's statistics as Delta has them."""
    names = [name for name in rows.column_names if name in FILTERED_BY]
    bounds = {name: pc.min_max(rows[name]).as_py() for name in names}
    return json.dumps(
        {
            "numRecords": len(rows),
            "minValues": {name: _told(each["min"]) for name, each in bounds.items() if each["min"] is not None},
            "maxValues": {name: _told(each["max"]) for name, each in bounds.items() if each["max"] is not None},
            "nullCount": {name: rows[name].null_count for name in names},
        }
    )


def _told(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"
    return value


def _text(*parts: Any) -> pa.Array:
    """Texts put together from texts and numbers, row by row."""
    return pc.binary_join_element_wise(*(_as_text(each) for each in parts), "")


def _as_text(part: Any) -> Any:
    return pc.cast(pa.array(part), pa.string()) if isinstance(part, np.ndarray) else part


def _in_turn(groups: Numbers, snapshots: Numbers, members: int = 1) -> tuple[Numbers, Numbers, Numbers]:
    """Group, snapshot and member of each row, in the order in which they were appended: snapshot by snapshot."""
    of_one = np.tile(np.repeat(groups, members), len(snapshots))
    return (
        of_one,
        np.repeat(snapshots, len(groups) * members),
        np.tile(np.arange(members), len(snapshots) * len(groups)),
    )


def _place(extent: Extent, group: Numbers, snapshot: Numbers) -> Columns:
    """What every fact says of where it stands."""
    return {
        c.CLUSTER_ID: CLUSTER,
        c.GROUP_ID: group_id(group),
        c.SNAPSHOT_ID: _snapshot_id(extent, group, snapshot),
        c.OFFSET: snapshot * extent.groups + group,
        c.LOG_PARTITION: group % LOG_PARTITIONS,
        c.INCARNATION: 1,
        c.ATTEMPT_ID: _text("ingest-", snapshot // HOURS_OF_A_RUN),
    }


def group_id(group: Numbers) -> pa.Array:
    """`group-00017`."""
    return _text("group-", pc.utf8_lpad(_as_text(group), 5, "0"))


def _snapshot_id(extent: Extent, group: Numbers, snapshot: Numbers) -> pa.Array:
    return _text(f"log/{CLUSTER}/", group % LOG_PARTITIONS, "/", snapshot * extent.groups + group)


def _moments(group: Numbers, snapshot: Numbers) -> pa.Array:
    seconds = int(START.timestamp()) + snapshot * 3_600 + group % 3_600
    return pa.array(seconds * 1_000_000).cast(pa.timestamp("us", tz="UTC"))


def _topic(group: Numbers) -> pa.Array:
    return _text("topic-", group % TOPICS)


def _lists(values: pa.Array, length: int = 1) -> pa.Array:
    return pa.ListArray.from_arrays(np.arange(0, len(values) + 1, length, dtype=np.int32), values)


def _life(extent: Extent, snapshot: Numbers, member: Numbers) -> Numbers:
    """Which life of a member it is: they are replaced in turn."""
    return (snapshot + member * REPLACED_EVERY // extent.members) // REPLACED_EVERY


def _member_id(extent: Extent, group: Numbers, snapshot: Numbers, member: Numbers) -> pa.Array:
    return _text("consumer-", group, "-", member, "-5f3c9a10-7e42-4b1d-8f60-", _life(extent, snapshot, member))


def _group_snapshots(extent: Extent, groups: Numbers) -> Columns:
    group, snapshot, _ = _in_turn(groups, np.arange(extent.snapshots))
    before = _snapshot_id(extent, group, snapshot - 1)
    return _place(extent, group, snapshot) | {
        c.SOURCE: "log",
        c.GROUP_TYPE: "classic",
        c.PROTOCOL_TYPE: "consumer",
        c.SNAPSHOT_KIND: "generation",
        c.GENERATION: snapshot + 1,
        c.ASSIGNOR: "range",
        c.LEADER: _member_id(extent, group, snapshot, np.zeros_like(group)),
        c.STATE: "Stable",
        c.COMPLETE: True,
        c.SHARED_TOPICS: _lists(_topic(group)),
        c.MEMBERS: extent.members,
        c.PREVIOUS_SNAPSHOT_ID: pc.if_else(pa.array(snapshot > 0), before, None),
        c.OBSERVED_AT: _moments(group, snapshot),
    }


def _member_snapshots(extent: Extent, groups: Numbers) -> Columns:
    group, snapshot, member = _in_turn(groups, np.arange(extent.snapshots), extent.members)
    each = PARTITIONS // extent.members
    numbers = (member[:, None] * each + np.arange(each)[None, :]).reshape(-1).astype(np.int32)
    topics = [pa.nulls(len(group), pa.string()), _topic(group), _lists(pa.array(numbers), each)]
    return _place(extent, group, snapshot) | {
        c.MEMBER_ORDER: member,
        c.MEMBER_ID: _member_id(extent, group, snapshot, member),
        c.CLIENT_ID: _text("consumer-", group),
        c.HOST: _text("/10.0.0.", member),
        c.SUBSCRIPTION_VERSION: 1,
        c.RECORDED: _lists(pa.StructArray.from_arrays(topics, ["topic_id", "topic", "partitions"])),
    }


def _rebalances(extent: Extent, groups: Numbers) -> Columns:
    group, snapshot, _ = _in_turn(groups, np.arange(extent.snapshots))
    same = dict.fromkeys((c.ADDED, c.REVOKED, c.LOST, c.UNASSIGNED, c.MOVES, c.LEAST_MOVES), 0)
    return _place(extent, group, snapshot) | same | {
        c.SCENARIO: "baseline",
        c.ROUND: 1,
        c.GROUP_TYPE: "classic",
        c.GENERATION: snapshot + 1,
        c.ASSIGNOR: "range",
        c.PROTOCOL: "EAGER",
        c.OUTCOME: "ASSIGNED",
        c.VERDICT: "exact",
        c.MEMBERS: extent.members,
        c.PARTITIONS: PARTITIONS,
        c.KEPT: PARTITIONS,
        c.LOAD_MIN: PARTITIONS // extent.members,
        c.LOAD_MAX: PARTITIONS // extent.members,
        c.FOLLOW_UP: False,
        c.UNASSIGNED_PARTITIONS: [],
        c.LEAST_MOVES_CERTAINTY: "exact",
        c.FEWEST_ROUNDS: 1,
        c.ATTRIBUTED_TO: ["range"],
        c.ATTRIBUTION: "exact",
        c.ATTEMPT_ID: _text("assign-", snapshot // HOURS_OF_A_RUN),
    }  # fmt: skip


def _ownership_changes(extent: Extent, groups: Numbers) -> Columns:
    """A replaced member gives its partitions to the one that comes; at first nobody had them."""
    group, snapshot, member = _in_turn(groups, np.arange(extent.snapshots), extent.members)
    begins = (snapshot == 0) | (_life(extent, snapshot, member) > _life(extent, snapshot - 1, member))
    group, snapshot, member = (
        np.repeat(each[begins], PARTITIONS // extent.members) for each in (group, snapshot, member)
    )
    number = member * (PARTITIONS // extent.members) + np.arange(len(group)) % (PARTITIONS // extent.members)
    known = pa.array(snapshot > 0)
    born = np.maximum(0, snapshot - REPLACED_EVERY)
    return _place(extent, group, snapshot) | {
        c.TOPIC: _topic(group),
        c.PARTITION: number,
        c.FROM_MEMBER_ID: pc.if_else(known, _member_id(extent, group, snapshot - 1, member), None),
        c.TO_MEMBER_ID: _member_id(extent, group, snapshot, member),
        c.AT: _moments(group, snapshot),
        c.HELD_SINCE: pc.if_else(known, _moments(group, born), None),
    }


def _group_heads(extent: Extent, groups: Numbers) -> Columns:
    group, snapshot, _ = _in_turn(groups, np.arange(0, extent.snapshots, HOURS_OF_A_RUN))
    state = _text('{"alive":true,"group_id":"group-', group, '","held":[', "1," * 100, '1],"number":', snapshot, "}")
    return _place(extent, group, snapshot) | {c.FROM_OFFSET: -1, c.REFOLDED: False, c.STATE: state.cast(pa.binary())}


def _coverage(extent: Extent, groups: Numbers) -> Columns:
    reason = "the log begins after the group did"
    told = {c.KIND: "log-start-moved", c.FROM_VALUE: 0, c.REASON: reason}
    return _place(extent, groups, np.zeros_like(groups)) | told


def _violations(extent: Extent, groups: Numbers) -> Columns:
    group, snapshot, _ = _in_turn(groups, np.arange(extent.snapshots))
    some = (snapshot * extent.groups + group) % FOUND_IN == 0
    evidence = "the member's subscription names a topic twice"
    told = {c.CODE: "REPEATED_TOPIC", c.SEVERITY: "warning", c.EVIDENCE: evidence}
    return _place(extent, group[some], snapshot[some]) | told


def _topic_snapshots() -> Columns:
    number = np.arange(TOPICS)
    listed = {c.CLUSTER_ID: CLUSTER, c.TOPIC: _topic(number), c.PARTITION_COUNT: PARTITIONS, c.ATTEMPT_ID: "ingest-0"}
    return listed | {c.VALID_FROM: START - timedelta(days=1)}


def _runs(extent: Extent) -> Iterator[Mapping[str, Any]]:
    for number in range(-(-extent.snapshots // HOURS_OF_A_RUN)):
        for half, kind in enumerate(("ingest", "assign")):
            at = START + timedelta(hours=HOURS_OF_A_RUN * (number + 1), minutes=half)
            yield {
                c.RUN_ID: f"{kind}-{number}",
                c.ATTEMPT_ID: f"{kind}-{number}",
                c.KIND: kind,
                c.STATUS: "committed",
                c.SEQUENCE: 2 * number + half + 1,
                c.GUARDS: [f"{CLUSTER}/{kind}"],
                c.COUNTS_IN: {},
                c.COUNTS_OUT: {},
                c.INPUTS: "{}",
                c.STARTED_AT: at,
                c.FINISHED_AT: at,
            }


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--groups", type=int, default=10_000)
    options.add_argument("--snapshots", type=int, default=1_000)
    options.add_argument("--members", type=int, default=2, choices=(1, 2, 3, 6))
    asked = options.parse_args()
    seconds = _timed(lambda: write(asked.folder, Extent(asked.groups, asked.snapshots, asked.members)))
    size = sum(each.stat().st_size for each in asked.folder.rglob("*.parquet"))
    print(f"{asked.groups:,} groups x {asked.snapshots:,} snapshots: {size / 2**20:,.0f} MiB in {seconds:.0f} s")
