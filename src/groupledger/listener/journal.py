"""What a rehearsal's journal tells: actions of listeners, and what came of them."""

from __future__ import annotations

from typing import NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.callbacks import Callback
from groupledger.listener.view import OffsetAndMetadata

UNCOMMITTED = "left uncommitted"
READ_AGAIN = "reads again"
SKIPPED = "skips"
EXPELLED = "expelled"


class Entry(NamedTuple):
    """An action of a listener, or its consequence: `error` is None if it succeeded.

    `offsets` are those of a commit or a seek, in the order of `partitions`. Consequences of a hand-over have a `did` of
    their own: "left uncommitted" if the callback returned without committing what was read; "reads again" and "skips"
    if the next owner does not continue where the last one stopped.
    """

    member: str
    callback: Callback
    did: str
    partitions: tuple[TopicPartition, ...]
    error: str | None = None
    offsets: tuple[OffsetAndMetadata, ...] = ()
    generation: int | None = None
    at_ms: int | None = None  # if the group has times
