"""Logs of classic groups, drawn: what a coordinator writes, and what it never should."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from groupledger.core.history import LogRow, TopicChange
from groupledger.core.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    UserData,
    UserDataForm,
    encode_assignment,
    encode_subscription,
    encode_user_data,
)
from groupledger.core.wire.offsets_log import RecordKind
from groupledger.core.wire.records import ClassicGroupMember, GroupMetadata, OffsetCommit
from groupledger.engine.arrow_lists import arrow_schema
from groupledger.engine.fold_schema import GROUP_KEY, HEAD, INPUT, RECORD, TOPICS
from groupledger.engine.fold_slices import FoldedBucket
from groupledger.tables import columns as c
from tests.core.history.records import CLICKS, GROW, Log

CLUSTER = "eu-1"
SCHEMA = arrow_schema(INPUT)
NAMES = ("clicks", "grow", "orders", "unlisted")
CHANGES = [
    TopicChange("clicks", CLICKS, 6, None, 0),
    TopicChange("grow", GROW, 2, None, 4_000_000),
    TopicChange("orders", "AAAAAAAAAAAAAAAAAAAAAQ", 3, None, 0),
    TopicChange("orders", None, None, None, 5_000_000),
    TopicChange("orders", "AAAAAAAAAAAAAAAAAAAAAg", 3, None, 9_000_000),
]
"""`clicks` is always there, `grow` was listed late, `orders` was deleted and made again, `unlisted` never was."""

partitions = st.lists(
    st.tuples(st.sampled_from(NAMES), st.lists(st.integers(0, 3), max_size=3).map(tuple)), max_size=3
).map(tuple)
generations = st.one_of(st.none(), st.integers(-2, 8))


@st.composite
def subscriptions(draw: st.DrawFn) -> bytes:
    """What a member says, in any version."""
    version = draw(st.integers(0, 3))
    user_data = draw(
        st.one_of(
            st.none(),
            st.just(b""),
            st.builds(
                lambda owned, generation: encode_user_data(UserData(UserDataForm.OWNED_GENERATION, owned, generation)),
                partitions,
                generations,
            ),
        )
    )
    topics = tuple(draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True)))
    owned = draw(partitions) if version >= 1 else ()
    generation = draw(generations) if version >= 2 else None
    rack = draw(st.sampled_from([None, "", "r1"])) if version >= 3 else None
    return encode_subscription(ConsumerProtocolSubscription(version, topics, user_data, owned, generation, rack))


@st.composite
def members(draw: st.DrawFn) -> tuple[ClassicGroupMember, ...]:
    """Members of one generation; now and then one id stands twice, or bytes are none."""
    ids = draw(st.lists(st.sampled_from(["a", "b", "c", "ü", ""]), max_size=4, unique=draw(st.integers(0, 49)) > 0))
    found = []
    for member_id in ids:
        told = encode_assignment(ConsumerProtocolAssignment(3, draw(partitions)))
        found.append(
            ClassicGroupMember(
                member_id,
                draw(st.sampled_from([None, None, "i", "j"])),
                "client",
                "/h",
                300_000,
                10_000,
                draw(st.one_of(subscriptions(), subscriptions(), st.sampled_from([b"", b"\0", b"\0\0"]))),
                draw(st.one_of(st.just(told), st.just(told), st.just(told), st.sampled_from([b"", b"\xff"]))),
            )
        )
    return tuple(found)


@st.composite
def logs(draw: st.DrawFn, group: str = "payments") -> list[LogRow]:
    """The records of one group."""
    log, generation = Log(group), draw(st.integers(0, 2))
    for event in draw(st.lists(st.sampled_from(_EVENTS), min_size=1, max_size=14)):
        if event == "generation":
            generation += draw(st.sampled_from([0, 0, 1, 1, 1, 2, -3]))
            _generation(draw, log, generation)
        elif event == "deleted":
            log.deleted()
        elif event == "commit":
            value = OffsetCommit(1, None, "", 0, None, None)
            log.put(RecordKind.OFFSET_COMMIT, draw(st.sampled_from([value, None])), 3, topic="clicks", partition=0)
        elif event == "broken":
            log.broken()
        elif event == "cut":
            _generation(draw, log, generation)
            whole = log.rows[-1].value or b""
            log.rows[-1] = log.rows[-1]._replace(value=whole[: draw(st.integers(0, len(whole)))])
        elif event == "long":
            _generation(draw, log, generation)
            log.rows[-1] = log.rows[-1]._replace(value=(log.rows[-1].value or b"") + b"\0")
        elif event == "key":
            log.deleted()
            log.rows[-1] = log.rows[-1]._replace(key=(log.rows[-1].key or b"") + b"\0")
        elif event == "again":
            log.rows.append(draw(st.sampled_from(log.rows)) if log.rows else log.deleted())
        elif event == "epoch":
            log.epoch(generation)
    return log.rows


_EVENTS = [*["generation"] * 60, *("deleted", "commit", "broken", "cut", "long", "key") * 4, "again", "epoch"]
"""Few of those that leave the group to the other fold."""


def _generation(draw: st.DrawFn, log: Log, generation: int) -> None:
    protocol = draw(st.sampled_from([None, "range", "sticky", "cooperative-sticky"]))
    kind = draw(st.sampled_from(["consumer"] * 5 + ["connect"]))
    version = draw(st.sampled_from([0, 1, 2, 3, 3, 3, 4]))
    found = draw(members())
    if version < 3:
        found = tuple(_without_instance(member, version) for member in found)
    group = GroupMetadata(kind, generation, protocol, draw(st.sampled_from([None, "a"])), None, found)
    log.put(RecordKind.GROUP_METADATA, group, version)


def _without_instance(member: ClassicGroupMember, version: int) -> ClassicGroupMember:
    timeout = member.rebalance_timeout if version >= 1 else None
    return ClassicGroupMember(member.member_id, None, member.client_id, member.client_host, timeout, *_rest(member))


def _rest(member: ClassicGroupMember) -> tuple[int, bytes, bytes]:
    return member.session_timeout, member.subscription, member.assignment


def bucket(
    groups: dict[str, list[LogRow]],
    heads: dict[str, bytes] | None = None,
    changes: list[TopicChange] = CHANGES,
    kind: str = RECORD,
) -> pa.Table:
    """The rows of a bucket."""
    names = (c.TOPIC, c.TOPIC_ID, c.PARTITION_COUNT, c.VALID_FROM)
    listed = [{name: getattr(change, name) for name in names} for change in changes]
    rows: list[dict[str, Any]] = [{c.KIND: TOPICS, c.CLUSTER_ID: CLUSTER, TOPICS: listed}]
    for group, records in groups.items():
        own = {c.CLUSTER_ID: CLUSTER, GROUP_KEY: group.encode()}
        if group in (heads or {}):
            rows.append({c.KIND: HEAD, **own, c.STATE: (heads or {})[group], c.REFOLDED: False})
        for row in records:
            place = {c.LOG_PARTITION: row.log_partition, c.OFFSET: row.offset, c.TIMESTAMP: row.timestamp_ms}
            rows.append({c.KIND: kind, **own, **place, c.KEY: row.key, c.VALUE: row.value})
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def heads_of(folded: FoldedBucket) -> dict[str, bytes]:
    """The head of each group."""
    heads = folded.tables.get("group_heads")
    return {} if heads is None else {row[c.GROUP_ID]: row[c.STATE] for row in heads.to_pylist()}
