"""One member of a group in a process of its own, over our adaptor of a client library.

    python -m tests.live.client confluent-kafka '{"group_id": .., "client_id": .., ..}' topic ..

Reads orders on stdin, a line each: `subscribe topic ..`, `hang` (poll no more), `resume`, `close`. Without topics it
joins when it is told to subscribe. Writes a line of JSON once it takes orders, `{"call": "ready"}`, and one for each
call of its listener: `{"call": "assigned", "ms": 1764, "member_id": "a-1", "partitions": [["t", 0]]}`, `ms` by the
clock of the wall. LiveClient.java speaks the same.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from typing import Any

from groupledger.core.faults import client_module
from groupledger.listener import RebalanceListener
from groupledger.listener.confluent import ConfluentConsumer
from groupledger.listener.kafka_python import KafkaPythonConsumer

HEARTBEAT_MS = 300
METADATA_MS = 500
COMMIT_MS = 500
POLL_SECONDS = 0.1
KAFKA_PYTHON_POLL_SECONDS = (1.0, 5.0)
"""A poll of kafka-python, and the first after it subscribed: it loses track of a rebalance that it begins itself and
that outlasts a poll (`tests.live.ways`).
"""
KAFKA_PYTHON = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
    "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor"),
}


class Telling(RebalanceListener):
    """Says what it is told, and takes its time over what is revoked."""

    def __init__(self, revoking_ms: int) -> None:
        self._revoking_ms = revoking_ms

    def on_partitions_assigned(self, partitions, consumer):
        tell("assigned", partitions, consumer)

    def on_partitions_revoked(self, partitions, consumer):
        tell("revoked", partitions, consumer)
        time.sleep(self._revoking_ms / 1_000)

    def on_partitions_lost(self, partitions, consumer):
        tell("lost", partitions, consumer)


def tell(call, partitions, consumer):
    """One line about a call."""
    said_by(consumer.group_metadata().member_id, call, partitions)


def said_by(member_id, call, partitions):
    """The same of a member that is known by its id."""
    listed = [[topic, number] for topic, number in partitions]
    say({"call": call, "ms": time.time_ns() // 1_000_000, "member_id": member_id, "partitions": listed})


def say(line):
    """One line."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def confluent(told: dict[str, Any]) -> ConfluentConsumer:
    """A consumer of confluent-kafka."""
    config = {
        "bootstrap.servers": told["address"],
        "group.id": told["group_id"],
        "client.id": told["client_id"],
        "topic.metadata.refresh.interval.ms": METADATA_MS,
        "enable.auto.commit": told["commits"],
    }
    if told["protocol"] == "consumer":
        config |= {"group.protocol": "consumer"} | (
            {"group.remote.assignor": told["assignor"]} if told["assignor"] else {}
        )
    else:
        config |= {"partition.assignment.strategy": told["assignor"], "session.timeout.ms": told["session_ms"]}
        config["heartbeat.interval.ms"] = HEARTBEAT_MS
    if told["max_poll_ms"] is not None:
        config["max.poll.interval.ms"] = told["max_poll_ms"]
    if told["commits"]:
        config |= {"auto.offset.reset": "earliest", "auto.commit.interval.ms": COMMIT_MS}
    return ConfluentConsumer(config | ({"group.instance.id": told["instance"]} if told["instance"] else {}))


def kafka_python(told: dict[str, Any]) -> KafkaPythonConsumer:
    """A consumer of kafka-python."""
    module, assignor = KAFKA_PYTHON[told["assignor"]]
    module = client_module(f"kafka.coordinator.assignors.{module}", "kafka-python")
    longest_poll = {} if told["max_poll_ms"] is None else {"max_poll_interval_ms": told["max_poll_ms"]}
    return KafkaPythonConsumer(
        bootstrap_servers=told["address"],
        group_id=told["group_id"],
        client_id=told["client_id"],
        group_instance_id=told["instance"],
        partition_assignment_strategy=[getattr(module, assignor)],
        session_timeout_ms=told["session_ms"],
        heartbeat_interval_ms=HEARTBEAT_MS,
        metadata_max_age_ms=METADATA_MS,
        enable_auto_commit=told["commits"],
        auto_commit_interval_ms=COMMIT_MS,
        auto_offset_reset="earliest" if told["commits"] else "latest",
        **longest_poll,
    )


def main(library: str, settings: str, *topics: str) -> None:
    """Poll until told to close."""
    make, waits = (
        (confluent, (POLL_SECONDS, POLL_SECONDS))
        if library == "confluent-kafka"
        else (kafka_python, KAFKA_PYTHON_POLL_SECONDS)
    )
    told = json.loads(settings)
    consumer = make(told)
    consumer.set_rebalance_listener(Telling(told["revoking_ms"]))
    if topics:
        consumer.subscribe(topics)
    orders, polls, subscribed = orders_given(), bool(topics), bool(topics)
    say({"call": "ready"})
    while True:
        if polls:
            poll(consumer, waits[subscribed])
            subscribed = False
        if polls and orders.empty():
            continue
        order, *words = orders.get()
        if order == "close":
            break
        polls = order != "hang"
        if order == "subscribe":
            consumer.subscribe(words)
            subscribed = True
    consumer.close()


def poll(consumer, seconds):
    """Poll once; kafka-python raises where the broker is down, and a member that lives on asks again."""
    try:
        consumer.poll(seconds)
    except Exception as error:
        if type(error).__name__ != "KafkaConnectionError":
            raise
        time.sleep(seconds)


def orders_given() -> queue.SimpleQueue[list[str]]:
    """Orders as they come on stdin; without whoever gives them the process is to end too."""
    orders: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            orders.put(line.split())
        orders.put(["close"])

    threading.Thread(target=read, daemon=True).start()
    return orders


if __name__ == "__main__":
    main(*sys.argv[1:])
