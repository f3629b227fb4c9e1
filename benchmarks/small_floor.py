"""The floor of `small_job`: Spark starts, and rows known beforehand go into as many Delta commits.

python -m benchmarks.small_floor keep|write CONFIG ROWS
"""

from __future__ import annotations

import sys
from pathlib import Path

from groupledger.config import load
from groupledger.engine.session import session
from groupledger.tables import ASSIGNMENTS, QUARANTINE, REBALANCES, RUNS, VIOLATIONS

RESULTS = (REBALANCES, ASSIGNMENTS, VIOLATIONS, QUARANTINE)


def main(what: str, config: str, folder: str) -> None:
    """Keep the rows of the last run as Parquet, or write them."""
    settings = load(Path(config))
    spark = session(settings.spark, "floor")
    ledger, rows = Path(str(settings.ledger.location)), Path(folder)
    if what == "keep":
        runs = spark.read.format("delta").load(str(ledger / RUNS.name)).where("kind = 'assign'")
        for status in ("planned", "committed"):
            runs.where(runs.status == status).write.parquet(str(rows / status))
        attempt = runs.select("attempt_id").collect()[0]["attempt_id"]
        for table in RESULTS:
            written = spark.read.format("delta").load(str(ledger / table.name))
            written = written.where(written.attempt_id == attempt)
            if not written.isEmpty():
                written.write.parquet(str(rows / table.name))
        return
    tables = [("planned", RUNS), *((table.name, table) for table in RESULTS), ("committed", RUNS)]
    for name, table in tables:
        if (rows / name).exists():
            kept = spark.read.schema(table.schema).parquet(str(rows / name))
            kept.write.format("delta").mode("append").save(str(ledger / table.name))


if __name__ == "__main__":
    main(*sys.argv[1:])
