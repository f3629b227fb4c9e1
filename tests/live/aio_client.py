"""One member of a classic group over aiokafka; takes the arguments and orders of client.py, but for `subscribe`.

python -m tests.live.aio_client aiokafka '{"group_id": .., "client_id": .., ..}' topic ..
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from groupledger.core.user_code import client_module
from tests.live.client import COMMIT_MS, HEARTBEAT_MS, METADATA_MS, orders_given

ASSIGNORS = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
}


def consumer(told: dict[str, Any], topics: tuple[str, ...]) -> Any:
    """A consumer of aiokafka; it must be made where an event loop runs."""
    module, assignor = ASSIGNORS[told["assignor"]]
    module = client_module(f"aiokafka.coordinator.assignors.{module}", "aiokafka")
    return client_module("aiokafka", "aiokafka").AIOKafkaConsumer(
        *topics,
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
    )


async def main(_library: str, settings: str, *topics: str) -> None:
    """Poll until told to close."""
    made = consumer(json.loads(settings), topics)
    orders = orders_given()
    await made.start()
    while orders.empty():
        await made.getmany(timeout_ms=100)
    await made.stop()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
