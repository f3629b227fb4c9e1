"""Processes of live members: started, ordered about, killed; what they said is read as it comes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.callbacks import Callback
from groupledger.engine.jars import class_path
from groupledger.engine.java import java
from tests.live.broker import stop
from tests.live.client import HEARTBEAT_MS, METADATA_MS

ROOT = Path(__file__).parents[2]
JAVA_SOURCE = Path(__file__).with_name("LiveClient.java")
JAVA_OPTIONS = (
    "-Xmx64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
)
JAVA_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
SAID = {"revoked": Callback.REVOKED, "assigned": Callback.ASSIGNED, "lost": Callback.LOST}
Said = tuple[Callback, tuple[TopicPartition, ...]]


@dataclass(frozen=True)
class Settings:
    """How a member is configured, whatever its library."""

    address: str
    group_id: str
    client_id: str
    assignor: str
    session_ms: int
    instance: str | None


class Member:
    """A running process: `calls` and `member_ids` grow while it says something."""

    def __init__(self, command: list[str]) -> None:
        self.calls: list[Said] = []
        self.member_ids: list[str] = []
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def order(self, *words: str) -> None:
        """Send one line."""
        assert self.process.stdin is not None
        self.process.stdin.write((" ".join(words) + "\n").encode())
        self.process.stdin.flush()

    def kill(self) -> None:
        """End it without a word."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it surely; all it said is there."""
        stop(self.process)
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told = json.loads(line)
            if told["member_id"] and told["member_id"] not in self.member_ids:
                self.member_ids.append(told["member_id"])
            partitions = tuple(sorted(TopicPartition(*each) for each in told["partitions"]))
            self.calls.append((SAID[told["call"]], partitions))


def python_command(library: str, settings: Settings, topics: tuple[str, ...]) -> list[str]:
    """A member over one of our adaptors."""
    return [sys.executable, "-m", "tests.live.client", library, json.dumps(asdict(settings)), *topics]


def java_command(classes: Path, settings: Settings, topics: tuple[str, ...]) -> list[str]:
    """A member over Kafka's own client."""
    config: dict[str, Any] = {
        "bootstrap.servers": settings.address,
        "group.id": settings.group_id,
        "client.id": settings.client_id,
        "partition.assignment.strategy": f"org.apache.kafka.clients.consumer.{JAVA_ASSIGNORS[settings.assignor]}",
        "session.timeout.ms": settings.session_ms,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "metadata.max.age.ms": METADATA_MS,
        "enable.auto.commit": "false",
    }
    if settings.instance is not None:
        config["group.instance.id"] = settings.instance
    class_paths = f"{classes}:{class_path('broker')}"
    listed = [f"{name}={value}" for name, value in config.items()]
    return [str(java()), *JAVA_OPTIONS, "-cp", class_paths, "LiveClient", ",".join(topics), *listed]


def compile_java(classes: Path) -> Path:
    """The Java member's class files; needs a JDK."""
    command = [str(java().with_name("javac")), "-cp", class_path("broker"), "-d", str(classes), str(JAVA_SOURCE)]
    subprocess.run(command, check=True)
    return classes
