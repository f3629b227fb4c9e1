"""A hand-over rehearsed: what one member commits before it gives a partition up is what the next one reads."""

from __future__ import annotations

from typing import ClassVar

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.recorded import recorded_calls
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.listener import OffsetAndMetadata, RebalanceListener, rehearse_history, rehearse_simulation
from tests.core.history.captured import folded


class Counting(RebalanceListener):
    """Commits how often each partition was handed over so far; what it reads of it stands in `read`."""

    read: ClassVar[list[tuple[str, int | None]]] = []

    def on_partitions_assigned(self, partitions, consumer):
        committed = consumer.committed(partitions)
        self.read.extend((f"{topic}-{at}", told and told.offset) for (topic, at), told in sorted(committed.items()))

    def on_partitions_revoked(self, partitions, consumer):
        known = consumer.committed(partitions)
        offsets = {each: 1 if told is None else told.offset + 1 for each, told in known.items()}
        consumer.commit_sync({each: OffsetAndMetadata(offset, "by hand") for each, offset in offsets.items()})


def read_by(rehearse):
    Counting.read = []
    journal = rehearse(Counting)
    assert [entry for entry in journal if entry.error is not None] == []
    return Counting.read


def script(assignor, *events):
    joins = [e.Join(name, ("t",), (assignor,)) for name in "abc"]
    settled = simulate(Script({"t": 3}, [*joins, *events]))
    return lambda make: rehearse_simulation(settled, make)


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range"])
def test_the_next_owner_reads_what_the_last_one_committed(assignor):
    """Under `range` all give up before anybody is assigned, in one round; each commit is there before it is read."""
    read = read_by(script(assignor, e.Leave("c")))
    assert read[:3] == [("t-0", None), ("t-1", None), ("t-2", None)]
    assert {offset for _, offset in read[3:]} >= {1, 2}
    for partition in ("t-0", "t-1", "t-2"):
        offsets = [offset for each, offset in read if each == partition]
        assert offsets == [None, *range(1, len(offsets))]


def test_history_has_one_group_behind_all_its_members():
    rows = folded("dev/offsets", "java-range")
    calls = list(recorded_calls(rows.group_snapshots, rows.member_snapshots))
    read = read_by(lambda make: rehearse_history(calls, make))
    for partition in {each for each, _ in read}:
        offsets = [offset for each, offset in read if each == partition]
        assert offsets == [None, *range(1, len(offsets))]
    assert max(offset or 0 for _, offset in read) > 3


def test_groups_of_one_history_know_nothing_of_one_another():
    calls = [
        call._replace(group_id=name)
        for name in ("one", "two")
        for rows in [folded("dev/offsets", "java-range")]
        for call in recorded_calls(rows.group_snapshots, rows.member_snapshots)
    ]
    read = read_by(lambda make: rehearse_history(calls, make))
    assert read[: len(read) // 2] == read[len(read) // 2 :]
