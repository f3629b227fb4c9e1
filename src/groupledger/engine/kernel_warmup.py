"""The kernels of the main job, compiled before the first job needs them.

    python -m groupledger.engine.kernel_warmup          # once a machine and user; part of `make setup`

A bucket is a few thousand groups: worth loading compiled kernels, never worth compiling them (`core.arrays.kernels`).
So a machine where nobody compiled them would stay with the interpreter.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.assignors.server.judgement import certainty
from groupledger.core.assignors.server.server_batch import assign
from groupledger.core.assignors.server.server_group import encode
from groupledger.core.history import FoldSettings
from groupledger.core.rebalance.step import Form
from groupledger.core.scenarios.solving import read
from groupledger.core.wire.offsets_log import LogKey, RecordKind, encode_key, encode_value
from groupledger.core.wire.records import GroupMetadata
from groupledger.engine import bucket_rows as r
from groupledger.engine import fold_schema
from groupledger.engine.arrow_lists import arrow_schema
from groupledger.engine.bucket_rows import SINCE, TopicCatalogue
from groupledger.engine.buckets import compute
from groupledger.engine.envelope import hash_sums
from groupledger.engine.fold_slices import fold_table
from groupledger.engine.group_arrays import Calculation
from groupledger.tables import BY_NAME
from groupledger.tables import columns as c

NAME = "warm-up"
MEMBERS = {"A": ["t", "u"], "B": ["t", "u"]}
OWNED: dict[str, list[dict[str, Any]]] = {"A": [{"topic": "t", "partitions": [0, 1, 2]}], "B": []}
"""B is to get some of it, and must wait."""


STICKY = ("cooperative-sticky", "sticky", "constrained-cooperative-sticky", "librdkafka-cooperative-sticky")
"""They share kernels, which a process compiles once; those of all others and of the fold take half of the time."""


def warm_up(assignors: Iterable[str] = ASSIGNORS, *, fold: bool = True) -> None:
    """Bring small groups to these assignors, with racks and without, as jobs do.

    With `fold` also records to the fold, and a group to the coordinator's assignors.
    """
    for racks in (None, [["r"], ["s"], ["r"]]):
        listed: dict[str, object] = {c.CLUSTER_ID: NAME, c.PARTITION_COUNT: 3, SINCE: 0, c.RACKS: racks}
        changes = [listed | {c.TOPIC: topic} for topic in "tu"]
        calculation = Calculation(NAME, Form.AS_KAFKA, topics=TopicCatalogue.of_rows(changes))
        for assignor in assignors:
            _hash(compute(_bucket(assignor, racks is not None), calculation))
    if fold:
        _hash(fold_table(_log(), FoldSettings()).tables)
        ids = {topic: {"id": f"{topic}{'A' * 21}", "partitions": 3} for topic in "tu"}
        members = [{"id": name, "topics": list(topics)} for name, topics in MEMBERS.items()]
        batch, _ = encode([read({"id": NAME, "assignor": "server-range", "topics": ids, "members": members})])
        for server in ("uniform", "range"):
            assign(server, batch)
            certainty(server, batch, [False])


def _hash(rows: Mapping[str, pa.Table]) -> None:
    for name, some in rows.items():
        hash_sums(BY_NAME[name], some)


def _log() -> pa.Table:
    """One generation of a classic group as a row of `fold_schema.INPUT`."""
    kind = RecordKind.GROUP_METADATA
    value = encode_value(kind, 3, GroupMetadata("consumer", 1, "range", None, None, ()))
    row: dict[str, Any] = {c.KIND: fold_schema.RECORD, c.CLUSTER_ID: NAME, fold_schema.GROUP_KEY: NAME.encode()}
    row |= {
        c.LOG_PARTITION: 0,
        c.TIMESTAMP: 0,
        c.OFFSET: 0,
        c.KEY: encode_key(LogKey(kind, 2, NAME, {})),
        c.VALUE: value,
    }
    return pa.Table.from_pylist([row], arrow_schema(fold_schema.INPUT))


def _bucket(assignor: str, racked: bool) -> pa.Table:
    """One group as rows of `rows.INPUT`."""
    one = {r.BUCKET: 0, c.CLUSTER_ID: NAME, c.GROUP_ID: NAME, c.SNAPSHOT_ID: f"{NAME}/0", c.MEMBERS: len(MEMBERS)}
    kind = {c.GROUP_TYPE: "classic", c.PROTOCOL_TYPE: "consumer", c.SNAPSHOT_KIND: "generation", c.COMPLETE: True}
    rows: list[dict[str, Any]] = [
        {r.ROW_KIND: r.GROUP_ROW, c.ASSIGNOR: assignor, r.CHOSEN: assignor, r.MOMENT: 1, **kind}
    ]
    for order, (name, topics) in enumerate(MEMBERS.items()):
        said = {c.TOPICS: topics, c.CLAIMED: OWNED[name], c.RECORDED: OWNED[name], c.SUBSCRIPTION_VERSION: 1}
        rack = "rs"[order] if racked else None
        rows.append({r.ROW_KIND: r.MEMBER_ROW, c.MEMBER_ORDER: order, c.MEMBER_ID: name, c.RACK_ID: rack, **said})
    return pa.Table.from_pylist([one | _never_null(row) for row in rows], to_arrow_schema(r.INPUT))


def _never_null(row: dict[str, Any]) -> dict[str, Any]:
    absent = sum(1 << place for place, name in enumerate(r.LISTS) if name not in row)
    return {name: [] for name in r.LISTS} | row | {r.ABSENT: absent}


if __name__ == "__main__":
    os.environ["GROUPLEDGER_KERNELS"] = "numba"
    print("compiling the kernels (once, a minute or two): jobs then run them compiled", file=sys.stderr)  # noqa: T201
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        others = [each for each in ASSIGNORS if each not in STICKY]
        parts = [processes.submit(warm_up, STICKY, fold=False), processes.submit(warm_up, others)]
        for part in parts:
            part.result()
