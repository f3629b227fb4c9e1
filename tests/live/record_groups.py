"""Record `__consumer_offsets` of a share group, a Streams group and an online upgrade, as a real broker writes it.

    python -m tests.live.record_groups tests/data/groups <jars of kafka-streams, its kafka-clients and rocksdbjni>

Members are Kafka's own clients (GroupMember.java; needs a JDK). Each step waits until the broker has written something,
and then nothing for a while. Beside the log, `topics.jsonl.gz` lists the topics, and `story.jsonl.gz` says at which
offset each step began.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from groupledger.engine.jars import class_path
from groupledger.engine.java import java
from tests.kafka.groups import LOG, dump, ends
from tests.live.broker import Broker, stop
from tests.live.members import JAVA_OPTIONS

PROPERTIES = """\
group.coordinator.rebalance.protocols=classic,consumer,streams,share
group.consumer.migration.policy=bidirectional
group.streams.num.standby.replicas=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
"""
TOPICS = {"orders": 3, "payments": 2, "clicks": 4}
QUIET_SECONDS = 5.0
MOST_SECONDS = 120.0


class Recording:
    """A broker with members on it, and what was done when."""

    def __init__(self, folder: Path, streams: str) -> None:
        self._class_path = f"{folder}:{streams}:{class_path('broker')}"
        self._folder = folder
        source = Path(__file__).with_name("GroupMember.java")
        compiler = str(java().with_name("javac"))
        subprocess.run([compiler, "-cp", self._class_path, "-d", str(folder), str(source)], check=True)
        self.broker = Broker(folder, more=PROPERTIES)
        self.story: list[dict[str, object]] = []
        self._members: dict[str, subprocess.Popen[bytes]] = {}

    def step(self, words: str) -> None:
        """Say what comes next."""
        self.story.append({"offset": self._end(), "what": words})

    def join(self, kind: str, group: str, member: str, topics: str, **more: str) -> None:
        """Start a member, and wait until its group is quiet."""
        self.step(f"{member} joins {group} ({kind}{''.join(f', {value}' for value in more.values())}): {topics}")
        before = self._end()
        name = "application.id" if kind == "streams" else "group.id"
        config = {"bootstrap.servers": self.broker.address, name: group, "client.id": member}
        if kind == "consumer":
            config["enable.auto.commit"] = "false"
        if kind == "streams":
            config |= {"group.protocol": "streams", "state.dir": str(self._folder / member)}
        config |= {key.replace("_", "."): value for key, value in more.items()}
        command = [str(java()), *JAVA_OPTIONS, "-cp", self._class_path, "GroupMember", kind, topics]
        command += [f"{key}={value}" for key, value in config.items()]
        with (self._folder / f"{member}.log").open("ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self._members[member] = process
        self._quiet(before)

    def leave(self, member: str) -> None:
        """Close a member, and wait until its group is quiet."""
        self.step(f"{member} leaves")
        before = self._end()
        process = self._members.pop(member)
        process.communicate(b"\n", timeout=MOST_SECONDS)
        self._quiet(before)

    def delete(self, admin: AdminClient, *groups: str) -> None:
        """Delete groups of any type, and wait for the tombstones."""
        self.step(f"{', '.join(groups)} are deleted")
        before = self._end()
        for future in admin.delete_consumer_groups(list(groups)).values():
            future.result()
        self._quiet(before)

    def _quiet(self, before: int) -> None:
        """Until something was written, and then nothing for a while."""
        until, last, since = time.monotonic() + MOST_SECONDS, before, time.monotonic()
        while time.monotonic() < until:
            end = self._end()
            if end != last or end == before:
                last, since = end, time.monotonic()
            elif time.monotonic() - since > QUIET_SECONDS:
                return
            time.sleep(0.3)
        raise TimeoutError(f"the step {self.story[-1]} did not settle")

    def _end(self) -> int:
        """The log's end; before the first member there is no log."""
        try:
            return ends(self.broker.address)[0]
        except KafkaException:
            return 0

    def stop(self) -> None:
        """End every process."""
        for process in self._members.values():
            stop(process)
        self.broker.stop()


def play(recording: Recording, admin: AdminClient) -> None:
    """Everything that stands in the log but the groups' end."""
    for future in admin.create_topics([NewTopic(name, count, 1) for name, count in TOPICS.items()]).values():
        future.result()
    for member, topics in (("share-a", "payments"), ("share-b", "payments"), ("share-c", "orders,payments")):
        recording.join("share", "fanout", member, topics)
    recording.leave("share-a")
    recording.join("streams", "totals", "streams-a", "orders,payments,clicks")
    recording.join("streams", "totals", "streams-b", "orders,payments,clicks")
    recording.leave("streams-a")
    for member in ("classic-a", "classic-b"):
        recording.join("consumer", "upgrade", member, "clicks", group_protocol="classic")
    recording.leave("classic-a")
    recording.join("consumer", "upgrade", "modern-a", "clicks", group_protocol="consumer")
    recording.leave("classic-b")
    recording.join("consumer", "upgrade", "modern-b", "clicks", group_protocol="consumer")
    recording.join("consumer", "upgrade", "classic-c", "clicks", group_protocol="classic")
    for member in ("modern-a", "modern-b", "share-b", "share-c", "streams-b", "classic-c"):
        recording.leave(member)


def topics(admin: AdminClient, began_ms: int) -> list[dict[str, object]]:
    """A line of the kind `topics-jsonl` for each topic, as if all had been there from the beginning."""
    names = [name for name in admin.list_topics(timeout=30).topics if name != LOG]
    described = [each.result() for each in admin.describe_topics(TopicCollection(names)).values()]
    lines = [
        {"ts": began_ms, "topic": each.name, "topic_id": str(each.topic_id), "partitions": len(each.partitions)}
        for each in described
    ]
    return sorted(lines, key=lambda line: str(line["topic"]))


def main(out: Path, streams: str) -> None:
    """One log."""
    recording = Recording(Path(tempfile.mkdtemp()), streams)
    try:
        recording.broker.start()
        admin = AdminClient({"bootstrap.servers": recording.broker.address})
        play(recording, admin)
        recording.delete(admin, "fanout", "totals", "upgrade")
        seen = dump(recording.broker.address)
        listed = topics(admin, seen[0]["timestamp"])
    finally:
        recording.stop()
    out.mkdir(parents=True, exist_ok=True)
    _write(out / "offsets.jsonl.gz", seen)
    _write(out / "topics.jsonl.gz", listed)
    _write(out / "story.jsonl.gz", recording.story)


def _write(path: Path, lines: list[dict[str, object]]) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
