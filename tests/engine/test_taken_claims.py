"""What a job's assignor is told that a member owned, from the rows that a fold writes: what Kafka's jar took."""

from __future__ import annotations

from base64 import b64decode

import numpy as np
import pytest

from groupledger.core.history.members import read_subscription
from groupledger.engine import group_arrays
from groupledger.engine.bucket_rows import parts_of
from groupledger.tables import columns as c
from tests.core.wire.test_member_data import expected, of, readable
from tests.engine.bucket_rows import AS_KAFKA, group_row, member_row, table
from tests.oracle.member_data import ASSIGNORS


def rows(pairs, assignor, cut):
    """A group a question; user data as ingest wrote them, or as a job is handed them (and a redaction leaves them)."""
    for at, pair in enumerate(pairs):
        said = read_subscription(b64decode(pair["subscription"]), assignor)
        snapshot = f"g{at:05}/0"
        yield group_row(snapshot, assignor=assignor, shared_topics=list(said.topics))
        owned = [{"topic_id": None, "topic": name, "partitions": list(at)} for name, at in said.claim.owned]
        values = {
            c.CLAIMED: owned if said.states_claim else None,
            c.CLAIMED_GENERATION: said.claim.generation,
            c.SUBSCRIPTION_GENERATION: said.claim.subscription_generation,
            c.SUBSCRIPTION_VERSION: said.version,
            c.USER_DATA: said.user_data[:cut] if said.user_data else said.user_data,
        }
        yield member_row(snapshot, 0, "m", **values)


@pytest.mark.parametrize("cut", [None, 4])
@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_job_takes_what_kafka_takes(assignor, cut):
    pairs = of(assignor)
    decoded = group_arrays.decode(parts_of(table(rows(pairs, assignor, cut))), AS_KAFKA)
    batch, names = decoded.snapshots.batch, decoded.topic_names.to_pylist()
    dated = np.where(batch.subscription_generation >= 0, batch.subscription_generation, batch.claim_generation)
    dated = batch.claim_generation if assignor == "sticky" else dated
    wrong = []
    for at, pair in enumerate(pairs):
        claims = range(*batch.claim_start[at : at + 2].tolist())
        first = batch.topic_start[at]
        owned = [(names[first + batch.claim_topic[each]], int(batch.claim_partition[each])) for each in claims]
        generation = None if dated[at] == -1 else int(dated[at])
        if (readable(owned), generation) != expected(pair):
            wrong.append((pair, owned, generation))
    assert wrong == []


def test_a_negative_generation_that_a_table_gives_is_none():
    told = member_row("g/0", 0, "m", topics=["t"], subscription_generation=-7, claimed_generation=3)
    decoded = group_arrays.decode(parts_of(table([group_row("g/0", assignor="cooperative-sticky"), told])), AS_KAFKA)
    assert decoded.snapshots.batch.subscription_generation.tolist() == [-1]
