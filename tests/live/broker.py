"""Kafka's own broker from the pinned jars: one node on loopback, in a folder of its own, gone when its block ends."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from groupledger.engine.jars import class_path
from groupledger.engine.java import java

OPTIONS = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
CLUSTER_ID = "Z3JvdXBsZWRnZXItdGVzdA"
START_SECONDS = 120
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{clients},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{clients}
log.dirs={folder}/logs
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.cleaner.enable=false
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
"""


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Kafka 4.4.0 in KRaft mode; gives its `host:port` once it listens."""
    with started(folder) as (address, _):
        yield address


@contextmanager
def started(folder: Path, more: str = "") -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The same with `more` lines of properties; gives its process too."""
    clients, controller = _free_port(), _free_port()
    properties = folder / "server.properties"
    written = PROPERTIES.format(clients=clients, controller=controller, folder=folder.as_posix()) + more
    properties.write_text(written, encoding="ascii")
    command = [str(java()), *OPTIONS, "-cp", class_path("broker")]
    formatted = [*command, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
    subprocess.run(formatted, check=True, capture_output=True)
    with (folder / "broker.log").open("wb") as log:
        process = subprocess.Popen([*command, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
        try:
            _wait(process, clients, folder / "broker.log")
            yield f"127.0.0.1:{clients}", process
        finally:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process: politely, then surely."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until the port answers; a broker that ended says why in its log."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"the broker did not start: {log.read_text(encoding='utf-8', errors='replace')[-2_000:]}")
