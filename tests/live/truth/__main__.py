"""Play a day on a broker of its own, and keep what was true and what a reader saw: `make live-truth`.

    python -m tests.live.truth build/live-truth [--only librdkafka]

Leaves `truth.jsonl` (the clients and the conductor), `offsets.jsonl` (each record as it was written), `topics.jsonl`
(listed every few seconds) and `compacted.jsonl` (what the log holds at the end) in the folder, gzipped.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from pathlib import Path

from tests.live.broker import KAFKA_4, Broker
from tests.live.members import Programs
from tests.live.topics import Topics
from tests.live.truth import day, log
from tests.live.truth.group import SESSION_MS, Scene
from tests.live.truth.journal import Journal
from tests.live.truth.observers import Listings, Tail

LOG_PARTITIONS = 4
PROPERTIES = f"""\
offsets.topic.num.partitions={LOG_PARTITIONS}
log.cleaner.enable=true
log.cleaner.backoff.ms=2000
log.cleaner.dedupe.buffer.size=16777216
group.coordinator.rebalance.protocols=classic,consumer,streams,share
group.consumer.migration.policy=bidirectional
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
group.consumer.min.heartbeat.interval.ms=100
group.consumer.heartbeat.interval.ms=500
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms={SESSION_MS}
"""
"""Compaction has nothing to do until segments are small."""
TRUTH, OFFSETS, TOPICS, COMPACTED = "truth.jsonl", "offsets.jsonl", "topics.jsonl", "compacted.jsonl"


def main() -> None:
    """One day."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.truth", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", help="groups whose play begins so")
    options = parser.parse_args()
    plays = tuple(each for each in day.PLAYS if chosen(each, options.only))
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="groupledger-day-") as folder:
        record(Path(folder), options.out, plays)


def chosen(play: day.Play, only: list[str] | None) -> bool:
    """Whether it is asked for."""
    return not only or any(play.__qualname__.startswith(each) for each in only)


def record(folder: Path, out: Path, plays: tuple[day.Play, ...], jars: str = KAFKA_4) -> None:
    """Play, and leave the files."""
    programs = Programs(folder)
    programs.prepare()
    broker = Broker(folder, more=PROPERTIES, jars=jars)
    try:
        broker.start()
        Topics(broker.address).create({"tool": 1})
        log.make(broker.address, "tool")
        with (
            (out / TRUTH).open("w", encoding="ascii") as truth,
            Tail(broker.address, LOG_PARTITIONS, out / OFFSETS) as tail,
            Listings(broker.address, out / TOPICS),
        ):
            scene = Scene(broker, Journal(truth), tail, programs, folder)
            day.play(scene, plays)
        log.write(broker.address, LOG_PARTITIONS, out / COMPACTED)
    finally:
        broker.stop()
    for name in (TRUTH, OFFSETS, TOPICS, COMPACTED):
        data = (out / name).read_bytes()
        (out / f"{name}.gz").write_bytes(gzip.compress(data, mtime=0))
        (out / name).unlink()


if __name__ == "__main__":
    main()
