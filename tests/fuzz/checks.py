"""What must hold of a log with broken records in it; a breach is an AssertionError that says where."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from functools import cache

from groupledger.core.history import LogRow
from tests.core.history.captured import log_rows
from tests.fuzz.records import Round, rounds
from tests.fuzz.replay import Ledger, State

LOGS = ("edge/offsets", "dev/offsets", "storm/offsets", "compacted/offsets", "compacted/offsets-before")
MOST_BYTES = 512 << 20
"""Of memory, over what a round's records take: an absurd length allocates nothing."""


def check(seed: int, records: int, logs: tuple[str, ...] = LOGS) -> Counter[str]:
    """Break so many records, hold every round against all that is promised; how all records were counted."""
    counts: Counter[str] = Counter()
    for number, made in enumerate(rounds(seed, records, logs)):
        dice = random.Random(f"{seed}-{number}-order")  # noqa: S311 seeded on purpose, nothing secret
        try:
            counts += check_round(made, dice)
        except Exception as failure:
            failure.add_note(f"round {number} of seed {seed}: {made.log}, {made.mutants} broken records")
            raise
        counts["broken"] += made.mutants
    return counts


def check_round(made: Round, dice: random.Random) -> Counter[str]:
    """One round: all at once, then in other orders and pieces."""
    whole = in_pieces(made, [shuffled(made.rows, dice)])
    found = whole.state()
    check_untouched(made, found)
    for pieces in (in_order(made.rows, dice), at_random(made.rows, dice), backwards(made.rows)):
        same(in_pieces(made, pieces).state(), found)
    return whole.counts


def in_pieces(made: Round, pieces: list[list[LogRow]]) -> Ledger:
    """A ledger that got these pieces one after the other."""
    ledger = Ledger(made.log)
    for piece in pieces:
        if piece:
            ledger.ingest(piece)
    return ledger


def check_untouched(made: Round, found: State) -> None:
    """Groups without a broken record have exactly the facts that they have in the log as it was."""
    clean = {place: rows for place, rows in clean_state(made.log).items() if place[1] not in made.touched}
    same({place: rows for place, rows in found.items() if place[1] not in made.touched | {None}}, clean)


@cache
def clean_state(log: str) -> State:
    """The facts of the log as it was captured."""
    ledger = Ledger(log)
    ledger.ingest([row for rows in log_rows(log).values() for row in rows])
    return ledger.state()


def same(one: State, other: State) -> None:
    """Assert that two states are equal; the message names the first group that is not."""
    for place in sorted(one.keys() | other.keys(), key=repr):
        assert one.get(place) == other.get(place), place


def shuffled(rows: list[LogRow], dice: random.Random) -> list[LogRow]:
    """All rows, in any order."""
    return dice.sample(rows, len(rows))


def in_order(rows: list[LogRow], dice: random.Random) -> list[list[LogRow]]:
    """Pieces as scheduled ingests get them: by time of arrival."""
    ordered = sorted(rows, key=lambda row: row.offset)
    cuts = sorted(dice.randrange(len(rows) + 1) for _ in range(3))
    return [ordered[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def at_random(rows: list[LogRow], dice: random.Random) -> list[list[LogRow]]:
    """Each row in any piece: most pieces are late."""
    pieces: list[list[LogRow]] = [[] for _ in range(dice.randint(2, 5))]
    for row in shuffled(rows, dice):
        dice.choice(pieces).append(row)
    return pieces


def backwards(rows: list[LogRow]) -> list[list[LogRow]]:
    """The second half first."""
    ordered = sorted(rows, key=lambda row: row.offset)
    half = len(ordered) // 2
    return [ordered[half:], ordered[:half]]


def check_memory(seed: int, logs: tuple[str, ...] = LOGS) -> int:
    """The most memory, in bytes, that a fold of some rounds took at a time."""
    some = list(rounds(seed, 600, logs))
    tracemalloc.start()
    try:
        for made in some:
            in_pieces(made, [made.rows])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES, f"{peak:,} bytes"
    return peak
