"""A reader beside the storm, through delta-rs: it must never see a part of a committed run. `python -m ... <order>`."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from groupledger.sinks.attempts import COMMITTED
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, RUNS, TABLES
from groupledger.tables import columns as c

if TYPE_CHECKING:
    import pandas as pd

STAMPED = tuple(table.name for table in TABLES if table is not RUNS)


def main(order: dict[str, str]) -> None:
    """Read until the end of the storm; after each look, write how many there were and what was torn."""
    looks, torn, read = 0, [], 0
    while True:
        last = Path(order["stop"]).exists()
        found, runs = look(Path(order["ledger"]))
        looks, read = looks + 1, read + runs
        torn += [f"look {looks}: {each}" for each in found]
        report = Path(order["report"])
        report.with_suffix(".new").write_text(json.dumps({"looks": looks, "runs": read, "torn": torn}), "utf-8")
        report.with_suffix(".new").replace(report)
        if last:
            return


def look(ledger: Path) -> tuple[list[str], int]:
    """What is wrong with the runs that are committed before the tables are read, and how many they are.

    Rows that a maintain removes are all there or all gone; it says in `runs` which, before it does. So `runs` is read
    once before the tables and once after them.
    """
    runs = committed(ledger)
    rows = {name: _rows(ledger, name) for name in STAMPED}
    removed = _removed(committed(ledger))
    torn = []
    for run in runs.to_dict("records"):
        counts, attempt = dict(run[c.COUNTS_OUT]), run[c.ATTEMPT_ID]
        for name in STAMPED:
            expected, got = counts.get(name, 0), int((rows[name].attempt_id == attempt).sum())
            if got != expected and not (got == 0 and attempt in removed[name]):
                torn.append(f"run {run[c.RUN_ID]} ({attempt}) has {got} rows of {expected} in {name}")
    torn += _numbering(runs)
    gone = removed[GROUP_SNAPSHOTS.name] | removed[MEMBER_SNAPSHOTS.name]
    torn += _members(rows, set(runs.attempt_id) - gone)
    return torn, len(runs)


def committed(ledger: Path) -> pd.DataFrame:
    """The rows of `runs` that count."""
    runs = DeltaTable(str(ledger / RUNS.name)).to_pandas()
    return runs[runs.status == COMMITTED]


def _rows(ledger: Path, name: str) -> pd.DataFrame:
    wanted = {
        GROUP_SNAPSHOTS.name: [c.ATTEMPT_ID, c.SNAPSHOT_ID, c.MEMBERS],
        MEMBER_SNAPSHOTS.name: [c.ATTEMPT_ID, c.SNAPSHOT_ID],
    }
    return DeltaTable(str(ledger / name)).to_pandas(columns=wanted.get(name, [c.ATTEMPT_ID]))


def _removed(runs: pd.DataFrame) -> defaultdict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for each in runs.removed:
        for name, attempts in dict(each if each is not None else ()).items():
            found[name].update(attempts)
    return found


def _numbering(runs: pd.DataFrame) -> list[str]:
    """Commits are numbered 1 to n, each run and attempt once."""
    if sorted(runs.sequence) != list(range(1, len(runs) + 1)):
        return [f"commits are numbered {sorted(map(int, runs.sequence))}"]
    return [f"a {name} is committed twice" for name in (c.RUN_ID, c.ATTEMPT_ID) if not runs[name].is_unique]


def _members(rows: dict[str, pd.DataFrame], attempts: set[str]) -> list[str]:
    """Each snapshot of a committed attempt has the members that it says it has."""
    groups, members = (rows[table.name] for table in (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS))
    groups, members = (each[each.attempt_id.isin(attempts)] for each in (groups, members))
    key = [c.ATTEMPT_ID, c.SNAPSHOT_ID]
    there = members.groupby(key).size()
    said = groups.groupby(key).members.sum()
    wrong = said.subtract(there, fill_value=0)
    return [
        f"snapshot {snapshot} of {attempt} lacks or doubles members" for attempt, snapshot in wrong[wrong != 0].index
    ]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
