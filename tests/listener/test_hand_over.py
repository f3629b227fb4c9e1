"""A hand-over rehearsed: what one member commits before it gives a partition up is what the next one reads."""

from __future__ import annotations

from typing import ClassVar

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback
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
    return lambda make: rehearse_simulation(settled, make, records=0)


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range"])
def test_the_next_owner_reads_what_the_last_one_committed(assignor):
    """Under `range` all give up before anybody is assigned, in one round; each commit is there before it is read."""
    read = read_by(script(assignor, e.Leave("c")))
    assert read[:3] == [("t-0", None), ("t-1", None), ("t-2", None)]
    assert {offset for _, offset in read[3:]} >= {1, 2}
    for partition in ("t-0", "t-1", "t-2"):
        offsets = [offset for each, offset in read if each == partition]
        assert offsets == [None, *range(1, len(offsets))]


class Silent(RebalanceListener):
    """Never commits."""

    def on_partitions_assigned(self, partitions, consumer): ...

    def on_partitions_revoked(self, partitions, consumer): ...


class Careful(Silent):
    """Commits what it read."""

    def on_partitions_revoked(self, partitions, consumer):
        consumer.commit_sync({each: OffsetAndMetadata(consumer.position(each)) for each in partitions})

    def on_partitions_lost(self, partitions, consumer): ...


class Late(Careful):
    """Raises before it commits."""

    def on_partitions_revoked(self, partitions, consumer):
        raise TimeoutError


class Behind(Silent):
    """Commits one record too few."""

    def on_partitions_revoked(self, partitions, consumer):
        consumer.commit_sync({each: OffsetAndMetadata(consumer.position(each) - 1) for each in partitions})


class Ahead(Silent):
    """Commits two records more than it read."""

    def on_partitions_revoked(self, partitions, consumer):
        consumer.commit_sync({each: OffsetAndMetadata(consumer.position(each) + 2) for each in partitions})


class Outside(Silent):
    """Keeps its offsets elsewhere, and seeks to them."""

    kept: ClassVar[dict[tuple[str, int], int]] = {}

    def on_partitions_assigned(self, partitions, consumer):
        for each in partitions:
            consumer.seek(each, self.kept.get(each, 0))

    def on_partitions_revoked(self, partitions, consumer):
        self.kept.update((each, consumer.position(each)) for each in partitions)


def found(make, *events, assignor="cooperative-sticky", records=5):
    """What went wrong: (member, what, partitions, offsets); raised errors apart."""
    joins = [e.Join(name, ("t",), (assignor,)) for name in "ab"]
    journal = rehearse_simulation(simulate(Script({"t": 4}, [*joins, *events])), make, records=records)
    wrong = [entry for entry in journal if entry.error is not None and not entry.did.startswith("raised")]
    told = [(*each.partitions[0], each.offsets[0].offset) for each in wrong if len(each.partitions) == 1]
    return [(each.member, each.did, f"{at}@{offset}") for each, (_, at, offset) in zip(wrong, told, strict=True)]


CONVICTED = {
    "never commits": (
        Silent,
        [
            *[("a", "left uncommitted", "2@5"), ("a", "left uncommitted", "3@5")],
            *[("b", "reads again", "2@0"), ("b", "reads again", "3@0")],
        ],
    ),
    "raises first": (
        Late,
        [
            *[("a", "left uncommitted", "2@5"), ("a", "left uncommitted", "3@5")],
            *[("b", "reads again", "2@0"), ("b", "reads again", "3@0")],
        ],
    ),
    "commits too little": (
        Behind,
        [
            *[("a", "left uncommitted", "2@5"), ("a", "left uncommitted", "3@5")],
            *[("b", "reads again", "2@4"), ("b", "reads again", "3@4")],
        ],
    ),
    "commits too much": (Ahead, [("b", "skips", "2@7"), ("b", "skips", "3@7")]),
    "commits what it read": (Careful, []),
    "keeps offsets elsewhere": (Outside, []),
}


@pytest.mark.parametrize(("make", "wrong"), CONVICTED.values(), ids=CONVICTED.keys())
def test_a_listener_is_proven_to_commit_before_it_hands_over_or_convicted(make, wrong):
    Outside.kept.clear()
    assert found(make) == wrong


def test_a_commit_of_what_nobody_read_is_a_gap_only_where_there_are_records():
    assert found(Ahead, records=0) == []


def test_who_reads_what_a_crashed_member_did_not_commit_is_not_convicted():
    """No callback was called, so no listener could have committed; nor could the zombie's."""
    assert found(Careful, e.Crash("a"), e.Expire("a")) == []
    assert found(Careful, e.Pause("a"), e.Expire("a"), e.Resume("a")) == []


def test_who_stands_still_or_is_gone_reads_nothing():
    read = {}

    class Reading(Silent):
        def on_partitions_revoked(self, partitions, consumer):
            name = consumer.group_metadata().member_id
            read[name] = {f"{topic}-{at}": consumer.position((topic, at)) for topic, at in partitions}

    events = [e.Pause("a"), e.SetPartitions("u", 1), e.Resume("a"), e.Leave("a")]
    found(Reading, *events)
    assert read == {"a-1": {"t-0": 5 + 5 + 3 * 5, "t-1": 5 + 5 + 3 * 5}}
    found(Reading, *events, records=0)
    assert read == {"a-1": {"t-0": 0, "t-1": 0}}


def test_the_journal_has_offsets_and_the_generation():
    joins = [e.Join(name, ("t",), ("range",)) for name in "ab"]
    journal = rehearse_simulation(simulate(Script({"t": 2}, joins)), Careful, records=7)
    (commit,) = [entry for entry in journal if entry.partitions]
    assert (commit.member, commit.callback, commit.did, commit.generation) == ("a", Callback.REVOKED, "commit", 1)
    assert dict(zip(commit.partitions, commit.offsets, strict=True)) == {
        ("t", 0): OffsetAndMetadata(7),
        ("t", 1): OffsetAndMetadata(7),
    }


def test_history_convicts_who_commits_nothing_and_nobody_else():
    """It knows no records, so any commit will do, of whatever offset."""
    rows = folded("dev/offsets", "java-cooperative-sticky")
    calls = list(recorded_calls(rows.group_snapshots, rows.member_snapshots))
    told = {make: rehearse_history(calls, make) for make in (Silent, Behind, Careful, Counting)}
    wrong = {make: {each.did for each in journal if each.error is not None} for make, journal in told.items()}
    assert wrong == {Silent: {"left uncommitted"}, Behind: set(), Careful: set(), Counting: set()}


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
