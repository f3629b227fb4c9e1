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


def long_name(number):
    """A member id as Java's client makes it."""
    return f"app-{number % 97}-{number * 2654435761 % 2**32:08x}-0000-4000-8000-{number:012x}"


def cooperative(members, partitions, rebalances, group="payments", forgotten=()):
    """A group whose partitions have nobody for 3 s before another member has them; at last the `forgotten` stay so."""
    of, at, number = History(group, topics=("t",)), BEGIN, 0
    names = [long_name(member) for member in range(members)]
    held = assigned(names, partitions)
    of.state(0, in_words(held), observed_at=at, state="Stable", complete=True)
    for number in range(1, rebalances + 1):
        names = names[1:] if number % 2 else [*names, long_name(members + number)]
        target = kept(held, names, partitions)
        first = {name: [each for each in target[name] if each in held.get(name, [])] for name in names}
        lost = forgotten if 2 * number >= rebalances else ()
        held = {name: [each for each in target[name] if each not in lost] for name in names}
        at += timedelta(seconds=97)
        of.state(2 * number - 1, in_words(first), observed_at=at, state="Stable", complete=True)
        at += timedelta(seconds=3)
        of.state(2 * number, in_words(held), observed_at=at, state="Stable", complete=True)
    return of


def ledger(folder, *histories, partitions, **more):
    """A ledger of these groups, all of which read the topic `t`; gives its folder as text."""
    topics = [listed("t", partitions, 0, cluster) for cluster in sorted({each.cluster for each in histories})]
    return write(folder, **rows_of(*histories, topic_snapshots=topics, **more))
