"""Record `__consumer_offsets` of a share group, a Streams group and an online upgrade, as a real broker writes it.

    python -m tests.live.record_groups tests/data/groups

Members are Kafka's own clients (needs a JDK). Each step waits until the broker has written something,
and then nothing for a while. Beside the log, `topics.jsonl.gz` lists the topics, and `story.jsonl.gz` says at which
offset each step began.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from tests.kafka.groups import LOG, dump, ends
from tests.live.broker import Broker
from tests.live.members import Member, Programs, Settings

PROPERTIES = """\
group.coordinator.rebalance.protocols=classic,consumer,streams,share
group.consumer.migration.policy=bidirectional
group.streams.num.standby.replicas=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
"""
TOPICS = {"orders": 3, "payments": 2, "clicks": 4}
SESSION_MS = 45_000
QUIET_SECONDS = 5.0
MOST_SECONDS = 120.0


class Recording:
    """A broker with members on it, and what was done when."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs = Programs(folder)
        self.broker = Broker(folder, more=PROPERTIES)
        self.story: list[dict[str, object]] = []
        self._members: dict[str, Member] = {}

    def step(self, words: str) -> None:
        """Say what comes next."""
        self.story.append({"offset": self._end(), "what": words})

    def join(self, protocol: str, group: str, member: str, *topics: str) -> None:
        """Start a member, and wait until its group is quiet."""
        self.step(f"{member} joins {group} ({protocol}): {','.join(topics)}")
        before = self._end()
        settings = Settings(self.broker.address, group, member, "", SESSION_MS, None, protocol)
        command = self._programs.command("java", settings, topics, self._folder / member)
        self._members[member] = Member(command, self._folder / f"{member}.log")
        self._quiet(before)

    def leave(self, member: str) -> None:
        """Close a member, and wait until its group is quiet."""
        self.step(f"{member} leaves")
        before = self._end()
        self._members.pop(member).leave(MOST_SECONDS)
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
        for member in self._members.values():
            member.stop()
        self.broker.stop()


def play(recording: Recording, admin: AdminClient) -> None:
    """Everything that stands in the log but the groups' end."""
    for future in admin.create_topics([NewTopic(name, count, 1) for name, count in TOPICS.items()]).values():
        future.result()
    for member, *topics in (("share-a", "payments"), ("share-b", "payments"), ("share-c", "orders", "payments")):
        recording.join("share", "fanout", member, *topics)
    recording.leave("share-a")
    recording.join("streams", "totals", "streams-a", *TOPICS)
    recording.join("streams", "totals", "streams-b", *TOPICS)
    recording.leave("streams-a")
    for member in ("classic-a", "classic-b"):
        recording.join("classic", "upgrade", member, "clicks")
    recording.leave("classic-a")
    recording.join("consumer", "upgrade", "modern-a", "clicks")
    recording.leave("classic-b")
    recording.join("consumer", "upgrade", "modern-b", "clicks")
    recording.join("classic", "upgrade", "classic-c", "clicks")
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


def main(out: Path) -> None:
    """One log."""
    recording = Recording(Path(tempfile.mkdtemp()))
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
    main(Path(sys.argv[1]))
