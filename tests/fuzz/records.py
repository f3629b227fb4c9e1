"""Captured groups of which half are broken: the records of a round."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from groupledger.core.history.fold_rows import LogRow
from groupledger.core.log.lines import LATEST_MS, NO_TIMESTAMP
from tests.core.history.captured import log_rows
from tests.fuzz.mutations import mutated

MOMENTS = (NO_TIMESTAMP, 0, LATEST_MS)


class Round(NamedTuple):
    """One captured log with broken records in it."""

    log: str
    rows: list[LogRow]
    touched: set[bytes | None]  # groups that a broken record was of, or names now
    mutants: int


def group_key(key: bytes | None) -> bytes | None:
    """The group by which the source sorts a record: behind type and length, if it is text."""
    length = int.from_bytes(key[2:4], "big") if key is not None and len(key) >= 4 else None
    if key is None or length is None or len(key) < 4 + length:
        return None
    name = key[4 : 4 + length]
    try:
        name.decode()
    except UnicodeDecodeError:
        return None
    return name


def rounds(seed: int, mutants: int, logs: tuple[str, ...]) -> Iterator[Round]:
    """Rounds until so many records are broken."""
    at = 0
    while mutants > 0:
        made = one_round(logs[at % len(logs)], random.Random(f"{seed}-{at}"), mutants)  # noqa: S311 seeded
        yield made
        mutants -= made.mutants
        at += 1


def one_round(log: str, dice: random.Random, most: int) -> Round:
    """Break most records of about half of the groups, in place; now and then beside the good one of that offset."""
    groups = log_rows(log)
    homes = {name.encode(): {row.log_partition for row in rows} for name, rows in groups.items()}
    good = [row for rows in groups.values() for row in rows]
    made = Round(log, [], set(), 0)
    for name, rows in groups.items():
        broken = dice.random() < 0.5
        for row in rows:
            changed = _broken(row, dice.choice(good), dice) if broken and made.mutants < most else row
            if changed == row or not _at_home(changed, homes):
                made.rows.append(row)
                continue
            made.touched.update((name.encode(), group_key(changed.key)))
            made.rows.append(changed)
            if dice.random() < 0.1:
                made.rows.append(row)
            made = made._replace(mutants=made.mutants + 1)
    return made


def _broken(row: LogRow, other: LogRow, dice: random.Random) -> LogRow:
    what = dice.random()
    if what < 0.15:
        return row
    if what < 0.2:
        return row._replace(timestamp_ms=dice.choice(MOMENTS))
    if what < 0.35 or not row.value:
        return row._replace(key=mutated(row.key or b"", other.key or b"", dice))
    return row._replace(value=mutated(row.value, other.value or b"\0", dice))


def _at_home(row: LogRow, homes: dict[bytes, set[int]]) -> bool:
    """Whether its group has no record in another log partition, which is a fault of another kind."""
    key = group_key(row.key)
    return key is None or homes.setdefault(key, {row.log_partition}) == {row.log_partition}
