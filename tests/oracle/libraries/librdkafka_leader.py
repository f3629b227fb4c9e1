"""A consumer over librdkafka that leads a group, until stdin ends: the coordinator it joins is `coordinator.py`.

    python librdkafka_leader.py PORT CLIENT_ID ASSIGNOR

The first line out is librdkafka's version. It imports nothing of ours.
"""

from __future__ import annotations

import json
import select
import sys

import confluent_kafka

POLL_SECONDS = 1.0
"""It never has an assignment; it polls so as not to be thought dead."""


def main() -> None:
    """Join, and join again whenever the coordinator says so."""
    port, client_id, assignor = sys.argv[1:]
    print(json.dumps({"version": confluent_kafka.libversion()[0]}), flush=True)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "client.id": client_id,
            "group.id": client_id,
            "partition.assignment.strategy": assignor,
            "log_level": 0,
        }
    )
    consumer.subscribe(["any"])
    while not select.select([sys.stdin], [], [], POLL_SECONDS)[0]:
        consumer.poll(0)


if __name__ == "__main__":
    main()
