"""Racks of members and of partition replicas as codes (KIP-881), only where both are known."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core import ragged
from groupledger.core.batch import NONE, GroupBatch
from groupledger.engine.arrow_lists import column, encode, list_starts
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.engine.topic_catalogue import TopicsAt


def with_racks(batch: GroupBatch, members: pa.Table, topics: TopicsAt) -> GroupBatch:
    """The batch with racks. An empty rack is none, as the Java client reads it (librdkafka sends "").

    A listing whose racks are not one list a partition says nothing of them.
    """
    rack = column(members, c.RACK_ID)
    rack = pc.if_else(pc.equal(rack, ""), None, rack)
    if rack.null_count == len(rack) or not topics.catalogue.has_racks():
        return batch
    topic_row = np.flatnonzero(topics.change != NONE)
    racks = topics.catalogue.racks(topics.change[topic_row])
    if racks.null_count == len(racks):
        return batch
    partitions = pc.list_flatten(racks)
    _, (member_rack, replica_rack) = encode([rack, pc.list_flatten(partitions)])
    counts = np.maximum(batch.topic_partitions, 0).astype(np.int64)
    listed, replicas = list_starts(racks), list_starts(partitions)
    first = np.full(len(counts), NONE, np.int64)
    complete = np.diff(listed) == counts[topic_row]
    first[topic_row[complete]] = listed[:-1][complete]
    topic_start = ragged.starts(counts)
    owner = ragged.owners(topic_start)
    known = first[owner] != NONE
    source = np.where(known, first[owner] + ragged.places(topic_start), len(replicas) - 1)
    start, at = ragged.take(np.append(replicas, replicas[-1]), source)
    return replace(
        batch,
        member_rack=member_rack,
        rack_topic_start=topic_start,
        rack_start=start,
        rack_code=replica_rack[at],
    )
