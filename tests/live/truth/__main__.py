"""Play a day on a broker of its own, and keep what was true and what a reader saw: `make live-truth`.

    python -m tests.live.truth build/live-truth [--release 4.4.0] [--only librdkafka]

Leaves a folder for each release with `truth.jsonl.gz` (the clients and the conductor), `offsets.jsonl.gz` (each record
as it was written), `topics.jsonl.gz` (listed every few seconds) and `compacted.jsonl.gz` (what the log held at last).
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.live.broker import KAFKA_4, KAFKA_40, KAFKA_42, Broker
from tests.live.members import Programs
from tests.live.topics import Topics
from tests.live.truth import day, log, releases
from tests.live.truth.group import SESSION_MS, Scene
from tests.live.truth.journal import Journal
from tests.live.truth.observers import Listings, Tail

LOG_PARTITIONS = 4
PROPERTIES = f"""\
offsets.topic.num.partitions={LOG_PARTITIONS}
log.cleaner.enable=true
log.cleaner.backoff.ms=2000
log.cleaner.dedupe.buffer.size=16777216
group.consumer.migration.policy=bidirectional
group.consumer.min.heartbeat.interval.ms=100
group.consumer.heartbeat.interval.ms=500
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms={SESSION_MS}
"""
"""Compaction has nothing to do until segments are small."""
EVERY_TYPE = f"""\
group.coordinator.rebalance.protocols=classic,consumer,streams,share
group.share.min.heartbeat.interval.ms=100
group.share.heartbeat.interval.ms=500
group.share.min.session.timeout.ms=1000
group.share.session.timeout.ms={SESSION_MS}
group.streams.min.heartbeat.interval.ms=100
group.streams.heartbeat.interval.ms=500
group.streams.min.session.timeout.ms=1000
group.streams.session.timeout.ms={SESSION_MS}
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
"""
TWO_TYPES = """\
group.coordinator.rebalance.protocols=classic,consumer
"""
FILES = ("truth.jsonl", "offsets.jsonl", "topics.jsonl", "compacted.jsonl")


class Release(NamedTuple):
    """What is played on a broker of a release. `restarts`: it is killed once, and its log compacted afterwards."""

    jars: str
    properties: str
    plays: tuple[day.Play, ...]
    restarts: bool = False


RELEASES = {
    "4.4.0": Release(KAFKA_4, PROPERTIES + EVERY_TYPE, day.PLAYS, restarts=True),
    "4.2.0": Release(KAFKA_42, PROPERTIES + TWO_TYPES, releases.PLAYS),
    "4.0.0": Release(KAFKA_40, PROPERTIES + TWO_TYPES, releases.PLAYS),
}


def main() -> None:
    """A day on each release."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.truth", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--release", nargs="*", choices=[*RELEASES], default=[*RELEASES])
    parser.add_argument("--only", nargs="*", default=[""], help="plays whose name begins so")
    options = parser.parse_args()
    for name in options.release:
        release, out = RELEASES[name], options.out / name
        plays = tuple(each for each in release.plays if each.__qualname__.startswith(tuple(options.only)))
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="groupledger-day-") as folder:
            record(Path(folder), out, release._replace(plays=plays))


def record(folder: Path, out: Path, release: Release) -> None:
    """Play, and leave the files."""
    programs = Programs(folder)
    programs.prepare()
    broker = Broker(folder, more=release.properties, jars=release.jars)
    truth, offsets, topics, compacted = (out / name for name in FILES)
    try:
        broker.start()
        Topics(broker.address).create({"tool": 1})
        log.make(broker.address, "tool")
        with (
            truth.open("w", encoding="ascii") as journal,
            Tail(broker.address, LOG_PARTITIONS, offsets) as tail,
            Listings(broker.address, topics),
        ):
            scene = Scene(broker, Journal(journal), tail, programs, folder)
            day.play(scene, release.plays, restarts=release.restarts)
        log.write(broker.address, LOG_PARTITIONS, compacted)
    finally:
        broker.stop()
    for path in (offsets, compacted):
        path.write_text(
            "".join(log.thinned(path.read_text(encoding="ascii").splitlines(keepends=True))), encoding="ascii"
        )
    for path in (truth, offsets, topics, compacted):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


if __name__ == "__main__":
    main()
