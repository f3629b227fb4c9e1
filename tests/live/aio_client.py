"""One member of a classic group over aiokafka; takes the arguments and orders of client.py, and says what it says.

python -m tests.live.aio_client aiokafka '{"group_id": .., "client_id": .., ..}' topic ..
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from groupledger.core.faults import client_module
from tests.live.client import COMMIT_MS, HEARTBEAT_MS, METADATA_MS, orders_given, said_by, say

ASSIGNORS = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
}
POLL_SECONDS = 0.1


def consumer(told: dict[str, Any]) -> Any:
    """A consumer of aiokafka; it must be made where an event loop runs."""
    module, assignor = ASSIGNORS[told["assignor"]]
    module = client_module(f"aiokafka.coordinator.assignors.{module}", "aiokafka")
    longest_poll = {} if told["max_poll_ms"] is None else {"max_poll_interval_ms": told["max_poll_ms"]}
    return client_module("aiokafka", "aiokafka").AIOKafkaConsumer(
        bootstrap_servers=told["address"],
        group_id=told["group_id"],
        client_id=told["client_id"],
        group_instance_id=told["instance"],
        partition_assignment_strategy=(getattr(module, assignor),),
        session_timeout_ms=told["session_ms"],
        heartbeat_interval_ms=HEARTBEAT_MS,
        metadata_max_age_ms=METADATA_MS,
        enable_auto_commit=told["commits"],
        auto_commit_interval_ms=COMMIT_MS,
        auto_offset_reset="earliest" if told["commits"] else "latest",
        **longest_poll,
    )


def listener(made: Any) -> Any:
    """Says what it is told; the library tells a member its id nowhere else."""

    class Telling(client_module("aiokafka.abc", "aiokafka").ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked):
            if revoked:
                self._tell("revoked", revoked)

        async def on_partitions_assigned(self, assigned):
            self._tell("assigned", assigned)

        def _tell(self, call, partitions):
            said_by(made._coordinator.member_id, call, sorted((each.topic, each.partition) for each in partitions))

    return Telling()


async def main(_library: str, settings: str, *topics: str) -> None:
    """Poll until told to close."""
    made = consumer(json.loads(settings))
    orders = orders_given()
    telling = listener(made)
    polls = bool(topics)
    if topics:
        made.subscribe(topics, listener=telling)
    await made.start()
    say({"call": "ready"})
    while True:
        if polls:
            await made.getmany(timeout_ms=int(POLL_SECONDS * 1_000))
        else:
            await asyncio.sleep(POLL_SECONDS)
        if orders.empty():
            continue
        order, *words = orders.get()
        if order == "close":
            break
        polls = order != "hang"
        if order == "subscribe":
            made.subscribe(words, listener=telling)
    await made.stop()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
