"""What ledgers say of a day that was kept, however they were read, against what was true (part of `make live-truth`).

    python -m tests.live.truth.report build/live-truth

A line for each way to read it; then all that is false. Exits with 1 where anything is, or much is not known.
"""

from __future__ import annotations

import argparse
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from groupledger.answers.reader import LedgerReader
from groupledger.config import AssignSettings, Config, LedgerSettings, SparkSettings
from groupledger.engine.session import session
from groupledger.pipeline.assign import assign
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks.ledger_tables import LedgerLocation, init
from tests.live.truth.facts import Facts
from tests.live.truth.replay import Kept, replay, turns
from tests.live.truth.score import Outcome, Score, quiet_moments, score

MOST_NOT_KNOWN = 0.1
WAYS = ("whole", "week", "turns:8", "turns:60")
DAY = "4.4.0"


def main() -> int:
    """Read a day in every way, and the earlier releases in one."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.truth.report", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ways", nargs="*", default=WAYS)
    options = parser.parse_args()
    spark = session(SparkSettings(profile="small", master="local[2]"), "groupledger live truth")
    failed = False
    print(f"{'read as':<24}{'causes: right, not known, false':>34}{'owners':>16}{'numbers':>16}")
    for way in options.ways:
        found = scored(spark, options.folder / DAY, way)
        print(line(way, found), *found.false, sep="\n", flush=True)
        failed |= bool(found.false) or not_known(found) > MOST_NOT_KNOWN
    for release in sorted(each.name for each in options.folder.iterdir() if each.name != DAY):
        counted = verdicts(spark, options.folder / release)
        told = ", ".join(f"{verdict} {number}" for verdict, number in sorted(counted.items()))
        print(f"{release}: {told}", flush=True)
        failed |= any(not each.startswith("exact") for each in counted)
    return int(failed)


def line(way: str, found: Score) -> str:
    """The counts of one ledger."""
    texts = [
        ", ".join(str(counts[each]) for each in Outcome) for counts in (found.counted(), found.owners, found.numbers)
    ]
    return f"{way:<24}{texts[0]:>34}{texts[1]:>16}{texts[2]:>16}"


def not_known(found: Score) -> float:
    """The share of rebalances of which the answers say that their cause is not known."""
    counts = found.counted()
    return counts[Outcome.NOT_KNOWN] / max(1, counts.total())


def scored(spark: Any, folder: Path, way: str) -> Score:
    """Read a day into a new ledger, and ask that."""
    kept = Kept(folder)
    day = Facts(kept.truth)
    location = ledger(spark, folder / "ledgers" / way.replace(":", "-"))
    replay(spark, location, turns(kept, way))
    return score(LedgerReader(str(location.path)), day, quiet_moments(day))


def ledger(spark: Any, folder: Path) -> LedgerLocation:
    """An empty one."""
    shutil.rmtree(folder, ignore_errors=True)
    location = LedgerLocation(path=str(folder))
    init(spark, location)
    return location


def verdicts(spark: Any, folder: Path) -> Counter[str]:
    """What `assign` finds of each state with members of a group that the coordinator assigns."""
    location = ledger(spark, folder / "ledgers" / "whole")
    replay(spark, location, turns(Kept(folder), "whole"))
    return judged_states(spark, location)


def judged_states(spark: Any, location: LedgerLocation) -> Counter[str]:
    """The same of a ledger that is there."""
    settings = AssignSettings(snapshots="every")
    config = Config(ledger=LedgerSettings(location=location.path), assign=settings)
    moment = datetime(2026, 11, 28, tzinfo=UTC)
    assign(spark, config, Invocation(attempt_id="judged", now=lambda: moment, seconds=lambda: 0.0))
    rows = LedgerReader(str(location.path)).query(
        "SELECT r.verdict FROM current_rebalances r JOIN current_group_snapshots s "
        "ON s.cluster_id = r.cluster_id AND s.snapshot_id = r.snapshot_id AND s.group_id = r.group_id "
        "WHERE s.members > 0 AND r.round = 1"
    )
    return Counter(rows["verdict"].to_pylist())


if __name__ == "__main__":
    raise SystemExit(main())
