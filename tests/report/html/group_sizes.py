"""Ledgers with a group of a given size and some history: members come and go, partitions follow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.answers.histories import History, in_words, listed, rows_of
from tests.answers.ledgers import write

BEGIN = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)


def assigned(members, partitions):
    """Partitions in turns over the members: name -> numbers."""
    found = {name: [] for name in members}
    for number in range(partitions):
        found[members[number % len(members)]].append(number)
    return found


def kept(before, members, partitions):
    """The assignment after members came and went: who stays keeps what it has, within a balanced load."""
    most = -(-partitions // len(members))
    found = {name: before.get(name, [])[:most] for name in members}
    free = sorted(set(range(partitions)).difference(*map(set, found.values())))
    for name in sorted(found, key=lambda name: (len(found[name]), name)):
        while free and len(found[name]) < most:
            found[name].append(free.pop())
    return found


def history(members, partitions, states, group="payments", every=timedelta(seconds=20)):
    """A group in which, state after state, the oldest member goes, or a new one comes."""
    of = History(group, topics=("t",))
    names = [f"app-{number:04}" for number in range(members)]
    held = assigned(names, partitions)
    for number in range(1, states + 1):
        of.state(number, in_words(held), observed_at=BEGIN + number * every, state="Stable", complete=True)
        names = names[1:] if number % 2 else [*names, f"app-{members + number:04}"]
        held = kept(held, names, partitions)
    return of


def ledger(folder, *histories, partitions, **more):
    """A ledger of these groups, all of which read the topic `t`; gives its folder as text."""
    topics = [listed("t", partitions, 0, cluster) for cluster in sorted({each.cluster for each in histories})]
    return write(folder, **rows_of(*histories, topic_snapshots=topics, **more))
