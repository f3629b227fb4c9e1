"""Digests of what drawn histories of simulated groups come to, held against those of `settlements.json`.

    python -m tests.frozen.settlements                      # compare: 1,000 histories of each kind, some minutes
    python -m tests.frozen.settlements --only rounds --most 200
    python -m tests.frozen.settlements --write              # a difference that was decided
    python -m tests.frozen.settlements --show rounds 17     # the settlements of one history, a line each

The manifest has a digest for each hundred histories, so that a difference is located by its seed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import KAFKA_PYTHON, ByteCode
from groupledger.core.protocol.consumer import Callback, MemberTimes, Times
from groupledger.core.protocol.script_json import settlement_json
from groupledger.core.protocol.settlement import Pace, Settlement
from groupledger.core.protocol.simulator import Script, simulate_all
from groupledger.core.rebalance.registry import JAVA, LIBRDKAFKA
from groupledger.core.rebalance.step import Form
from groupledger.core.text import json_text
from tests.core.protocol.drawn import Story
from tests.core.protocol.drawn import script as drawn_script
from tests.core.protocol.drawn_consumer_groups import History
from tests.core.protocol.drawn_streams_groups import StreamsHistory
from tests.core.protocol.drawn_times import consumer_script, hasty_script, mixed_script, timed_script

MANIFEST = Path(__file__).with_suffix(".json")
HUNDRED = 100
HISTORIES = 1_000
FEWER = {"clock": 200}
"""Histories by a clock take five times as long: members whose timeouts are hardly enough rebalance all the time."""
EVENTS = 30
ASSIGNORS = (("range",), ("roundrobin",), ("sticky",), ("cooperative-sticky",), ("cooperative-sticky", "range"))
CALLBACK_MS = (0, 0, 3, 40, 900, 7_000)

Played = Iterable[Settlement] | Fault


class WideStory(Story):
    """A story with all events, libraries and byte codes there are, and listeners that take their time."""

    now_ms: int = 0

    def next(self) -> e.Event:
        """One event, soon after the last one or long after it, some of them together with the next one."""
        event = super().next() if self.random.random() < 0.7 or len(self.talking) < 2 else self.rare()
        self.now_ms += self.random.choice((0, 0, 10, 2_000, 60_000))
        return replace(event, at_ms=self.now_ms, together=self.random.random() < 0.1)

    def rare(self) -> e.Event:
        """An event that `Story` does not draw."""
        name = self.random.choice(self.talking)
        kinds: tuple[Callable[[], e.Event], ...] = (
            lambda: e.Restart(name),
            lambda: e.Restart(name),
            lambda: e.MissTopic(self.random.choice(sorted(self.topics)), self.random.randint(1, 2)),
            lambda: e.LoseAssignment(name),
            lambda: e.MissAssignment(name, 1),
            lambda: e.FreezeMetadata(name, self.random.randint(1, 2)),
            lambda: e.Subscribe(name, self.some_topics(), known=True),
            e.Wait,
        )
        return self.random.choice(kinds)()

    def join(self) -> e.Event:
        """Each of another library."""
        event = super().join()
        if not isinstance(event, e.Join):
            return event
        regex = self.random.choice(("or.*", "clicks|views", ".*s")) if self.random.random() < 0.15 else None
        return replace(
            event,
            topics=() if regex else event.topics,
            topic_regex=regex,
            byte_code=self.random.choice(list(ByteCode)),
            library=self.random.choice((JAVA, JAVA, LIBRDKAFKA, KAFKA_PYTHON)),
            rebalance_timeout_ms=self.random.choice((10_000, 300_000)),
        )


class ShareHistory(History):
    """The events of a share group (KIP-932), which has no static members and no patterns."""

    def join(self) -> e.Event:
        """A member of a share group."""
        joined = super().join()
        if isinstance(joined, e.Join):
            topics = joined.topics or self.some_topics()
            joined = e.Join(joined.member, topics, group_protocol=e.GroupProtocol.SHARE, at_ms=joined.at_ms)
            self.started[joined.member] = joined
        return joined


def wide_script(seed: int) -> Script:
    """A classic group without times: half of them as `tests.core.protocol.drawn` has them."""
    random = Random(-1 - seed)  # noqa: S311 - the same seed gives the same group
    form, assignors = random.choice(list(Form)), random.choice(ASSIGNORS)
    if seed % 4 == 0:
        return drawn_script(seed, EVENTS, form, assignors)
    topics = {"clicks": random.randint(1, 12), "orders": random.randint(1, 12), "views": random.randint(1, 12)}
    story = WideStory(random, assignors, dict(topics))
    events = [story.next() for _ in range(EVENTS)]
    pace = Pace(random.choice((0, 15, 900)), {each: random.choice(CALLBACK_MS) for each in Callback})
    return Script(topics, [*events[:-1], replace(events[-1], together=False)], form, pace)


def clocked_script(seed: int) -> Script:
    """A classic group with times: of one kind, of several, or of members whose timeouts are hardly enough."""
    if seed % 4 == 0:
        return hasty_script(seed, EVENTS)
    if seed % 4 == 1:
        return mixed_script(seed, EVENTS, zombies=seed % 3 != 0)
    drawn = timed_script(seed, EVENTS, zombies=seed % 3 != 0, records_per_second=(7, None)[seed % 5 == 0])
    return drawn if seed % 4 == 2 else widened(drawn, Random(-1 - seed))  # noqa: S311


def widened(script: Script, random: Random) -> Script:
    """Return the script with members of all libraries, and with rare events right after some of them have joined."""
    events = list[e.Event]()
    for each in script.events:
        if not isinstance(each, e.Join):
            events.append(each)
            continue
        library, code = random.choice((JAVA, JAVA, LIBRDKAFKA, KAFKA_PYTHON)), random.choice(list(ByteCode))
        events.append(replace(each, library=library, byte_code=code))
        rare = (
            e.FreezeMetadata(each.member, random.randint(0, 2), at_ms=each.at_ms),
            e.MissTopic("t", random.randint(1, 2), at_ms=each.at_ms),
            e.LoseAssignment(each.member, at_ms=each.at_ms),
            e.MissAssignment(each.member, 1, at_ms=each.at_ms),
            e.Subscribe(each.member, ("u",), known=True, at_ms=each.at_ms),
        )
        events += [random.choice(rare)] if random.random() < 0.3 else []
    return replace(script, events=events)


def hybrid(seed: int) -> History:
    """A group with times that may have members of both protocols."""
    each = MemberTimes(round_trip_ms=(0, 4)[seed % 3 == 0], processing_ms=(0, 50, 700)[seed % 5 % 3])
    return History(seed, EVENTS, classic=seed % 4 != 0, times=Times(each, records_per_second=9))


def histories(history: Callable[[int], History], seeds: Iterable[int]) -> Iterator[Played]:
    """Play histories that are drawn as they happen; one that cannot be played is a Fault."""
    for seed in seeds:
        try:
            yield list(history(seed).play())
        except Fault as fault:
            yield fault


def played_again(seeds: Iterable[int]) -> Iterator[Played]:
    """Play what `hybrid` drew as scripts: sessions end by themselves, and the last event is played to its end."""
    for seed in seeds:
        history = hybrid(seed)
        drawn = [each.event for each in history.play()]
        events = [each for each in drawn if not isinstance(each, e.Expire)]
        yield from simulate_all([replace(hybrid(seed).script(), events=events)])


def scripts(script: Callable[[int], Script], seeds: Iterable[int]) -> Iterator[Played]:
    """Play scripts side by side."""
    yield from simulate_all([script(seed) for seed in seeds])


KINDS: dict[str, Callable[[Iterable[int]], Iterator[Played]]] = {
    "rounds": lambda seeds: scripts(wide_script, seeds),
    "clock": lambda seeds: scripts(clocked_script, seeds),
    "consumer-clock": lambda seeds: scripts(lambda seed: consumer_script(seed, EVENTS, zombies=seed % 3 != 0), seeds),
    "both-clock": lambda seeds: histories(hybrid, seeds),
    "both-script": played_again,
    "consumer": lambda seeds: histories(lambda at: History(at, EVENTS, classic=False, far=at % 3 == 0), seeds),
    "both": lambda seeds: histories(lambda at: History(at, EVENTS, classic=True, far=at % 3 == 0), seeds),
    "streams": lambda seeds: histories(lambda at: StreamsHistory(at, EVENTS), seeds),
    "share": lambda seeds: histories(lambda at: ShareHistory(at, EVENTS, classic=False), seeds),
}


def plain(settled: Settlement) -> dict[str, Any]:
    """Return a settlement as JSON: what `simulate` prints, and all that it does not."""
    return {
        **settlement_json(settled),
        "owners": [[*each, name] for each, name in settled.owners.items()],
        "running": dict(settled.running),
        "topics": dict(sorted(settled.topics.items())),
        "consumed": [[*each.partition, *each[1:]] for each in settled.consumed],
        "ends": None if settled.timed is None or settled.timed.read is None else _pairs(settled.timed.read.ends),
        "took": [[each.started_ms, each.ended_ms, each.failure] for each in settled.rounds],
        "called": [[*each[:4], *each[5:], each.call.topics] for each in settled.calls],
        "reconciled": [] if settled.coordinated is None else [list(each) for each in settled.coordinated.reconciled],
    }


def _pairs(counts: Any) -> list[list[Any]]:
    return [[*each, count] for each, count in sorted(counts.items())]


def lines(played: Played) -> Iterator[str]:
    """Return a history as lines: one for each settlement, or what is wrong with it."""
    if isinstance(played, Fault):
        yield f"{played.code}: {played.message}"
        return
    for settled in played:
        yield json_text(plain(settled))


def digests(kind: str, most: int) -> Iterator[tuple[str, str]]:
    """Return, for each hundred histories of a kind, their seeds and their digest."""
    for first in range(0, most, HUNDRED):
        digest = hashlib.sha256()
        for played in KINDS[kind](range(first, first + HUNDRED)):
            for line in lines(played):
                digest.update(line.encode() + b"\n")
            digest.update(b"\n")
        yield f"{first}-{first + HUNDRED - 1}", digest.hexdigest()[:16]


def compare(most: int = HISTORIES, kinds: Iterable[str] = tuple(KINDS), *, write: bool = False) -> list[str]:
    """Return the differences from the manifest, a line each; with `write`, put today's digests into it."""
    known = json.loads(MANIFEST.read_text()) if MANIFEST.exists() else {}
    different = []
    for kind in kinds:
        for seeds, digest in digests(kind, min(most, FEWER.get(kind, most))):
            before = known.get(kind, {}).get(seeds)
            if before is not None and before != digest:
                different.append(f"settlements: {kind} {seeds}: {before} -> {digest}")
                sys.stderr.write(different[-1] + "\n")
            if write:
                known.setdefault(kind, {})[seeds] = digest
    if write:
        MANIFEST.write_text(json.dumps(known, indent=1) + "\n")
    return different


def main() -> None:
    """Compare, write the manifest, or print one history."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--most", type=int, default=HISTORIES, help="histories of each kind")
    parser.add_argument("--only", choices=KINDS, action="append", help="these kinds alone")
    parser.add_argument("--write", action="store_true", help="put today's digests into the manifest")
    parser.add_argument("--show", nargs=2, metavar=("KIND", "SEED"), help="print one history, a settlement a line")
    given = parser.parse_args()
    if given.show:
        kind, seed = given.show
        for played in KINDS[kind]([int(seed)]):
            sys.stdout.writelines(f"{line}\n" for line in lines(played))
        return
    different = compare(given.most, given.only or tuple(KINDS), write=given.write)
    sys.stdout.write(f"settlements: {len(different)} of the hundreds differ\n")
    sys.exit(bool(different) and not given.write)


if __name__ == "__main__":
    main()
