"""What a client library's consumer does otherwise than Kafka's Java client, whose ways the form `as-kafka` has.

Found by running them (tests/live) and by reading them: librdkafka 2.16.1, `rdkafka_cgrp.c`; kafka-python 3.0.12,
`coordinator/consumer.py`. The form `kip` has none of these.

Worked example: a cooperative consumer of librdkafka that owns t-0 learns that t was deleted, and calls
onPartitionsLost(t-0) at once. Java claims t-0 until the leader leaves it out, and then calls onPartitionsRevoked(t-0).
"""

from __future__ import annotations

from dataclasses import dataclass

from groupledger.core.registry import LIBRDKAFKA
from groupledger.core.step import Form

KAFKA_PYTHON = "kafka-python"


@dataclass(frozen=True, slots=True)
class Habits:
    """Where a consumer differs; the defaults are those of Java's.

    `revokes_at_first`: eager, it calls onPartitionsRevoked with nothing when it joins for the first time, too.
    `silent`: cooperative, it does not call onPartitionsAssigned where nothing was added.
    `loses_unknown`: cooperative, it calls onPartitionsLost for what it owns of topics that it has no metadata of, when
    it learns so: those of a deleted topic, and those that left its subscription where it has to ask for
    metadata of the new one first (`Subscribe.known`: it need not).
    `asks`: leading, it asks for metadata before it assigns, and so does not assign by what it knew.
    `all_join`: any member joins again when its own metadata changes, not the leader alone.
    `refreshes`: subscribed by a pattern, it fetches metadata before each JoinGroup (Java since 2.1, KAFKA-7126;
        librdkafka takes what it has, unless that is old).
    """

    revokes_at_first: bool = False
    silent: bool = False
    loses_unknown: bool = False
    asks: bool = False
    all_join: bool = False
    refreshes: bool = True


JAVAS = Habits()
OF_LIBRARY = {
    LIBRDKAFKA: Habits(loses_unknown=True, asks=True, all_join=True, refreshes=False),
    KAFKA_PYTHON: Habits(revokes_at_first=True, silent=True),
}


def habits_of(library: str, form: Form) -> Habits:
    """Those of a client library in this form."""
    return JAVAS if form is Form.KIP else OF_LIBRARY.get(library, JAVAS)
