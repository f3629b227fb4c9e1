"""Kafka's own broker from pinned jars: on loopback, in a folder of its own, gone when its block ends."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from groupledger.engine.jars import class_path
from groupledger.engine.java import java

OPTIONS = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
OWN_PORTS = (10_000, 32_768)
"""Linux gives connections ports from 32,768 on."""
KAFKA_4, KAFKA_42, KAFKA_40, KAFKA_3 = "broker", "broker-kafka42", "broker-kafka40", "broker-kafka3"
"""Sets of jars (engine/ivy.xml)."""
CLUSTER_ID = "Z3JvdXBsZWRnZXItdGVzdA"
START_SECONDS = 120
PROPERTIES = """\
process.roles={roles}
node.id={node}
controller.quorum.voters=1@{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{clients}{controls}{listeners}
advertised.listeners=PLAINTEXT://127.0.0.1:{clients}{listeners}
log.dirs={logs}
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.cleaner.enable=false
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
{more}
"""


class Broker:
    """Kafka in KRaft mode in a folder of its own, with further listeners by name and further properties.

    `formatting` are arguments of Kafka's storage tool, `jars` the set of jars. `first`: the broker of whose cluster it
    is the second node, one that controls nothing; None: it is the first of its own. Stopped and started again, it is
    the same broker at the same address.
    """

    def __init__(
        self,
        folder: Path,
        listeners: Sequence[str] = (),
        more: str = "",
        formatting: Sequence[str] = (),
        jars: str = KAFKA_4,
        first: Broker | None = None,
    ) -> None:
        self._folder = folder
        self.logs = folder / "logs"
        self._clients, control, *others = (free_port() for _ in range(2 + len(listeners)))
        self._controller: str = f"127.0.0.1:{control}" if first is None else first._controller
        self.address = f"127.0.0.1:{self._clients}"
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip(listeners, others, strict=True)}
        self._properties = folder / "server.properties"
        text = PROPERTIES.format(
            roles="broker,controller" if first is None else "broker",
            node=1 if first is None else 2,
            clients=self._clients,
            controller=self._controller,
            controls=f",CONTROLLER://{self._controller}" if first is None else "",
            logs=self.logs.as_posix(),
            listeners="".join(f",{name}://{address}" for name, address in self.addresses.items()),
            more=more,
        )
        self._properties.write_text(text, encoding="ascii")
        self._command = [str(java()), *OPTIONS, "-cp", class_path(jars)]
        format_ = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._properties), *formatting]
        subprocess.run([*self._command, *format_], check=True, capture_output=True)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        log = self._folder / "broker.log"
        with log.open("ab") as written:
            command = [*self._command, "kafka.Kafka", str(self._properties)]
            self._process = subprocess.Popen(command, stdout=written, stderr=written)
        _wait(self._process, self._clients, log)

    def kill(self) -> None:
        """End it with no time to write anything more."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it hold its connections and answer nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def stop(self) -> None:
        """End it, if it runs."""
        if self._process is not None:
            stop(self._process)
            self._process = None


@contextmanager
def broker(folder: Path, more: str = "") -> Iterator[str]:
    """A running broker; gives its `host:port`."""
    made = Broker(folder, more=more)
    try:
        made.start()
        yield made.address
    finally:
        made.stop()


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process: politely, then surely."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """One below those that connections are given: none of them takes it before the broker does, or while it is down."""
    while True:
        port = random.SystemRandom().randrange(*OWN_PORTS)
        with socket.socket() as asked:
            try:
                asked.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


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
