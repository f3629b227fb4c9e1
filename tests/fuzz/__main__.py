"""Break captured records by seed and hold decoder, fold, ingest and assign against what they promise.

    python -m tests.fuzz --records 100000 --seed 1 [--spark 5000] [--buckets 2000]

Of every round: no exception; every record counted once; groups without a broken record have exactly the facts
they have in the log as it was; every order of arrival and split into ingests, late pieces among them, ends alike.
`--spark`: so many broken records besides through real ingests, in two orders, into two ledgers. `--buckets`: so many
buckets of broken facts through the kernels that assign. Ends with status 1 where something does not hold, and with the
seed that shows it.
"""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.buckets import check_buckets
from tests.fuzz.checks import check, check_memory


def main() -> int:
    """Run what is asked for, print what was counted."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--records", type=int, default=100_000, help="broken records through the decoder and the fold")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spark", type=int, default=0, help="broken records through Spark")
    parser.add_argument("--buckets", type=int, default=0, help="buckets of broken facts to assign")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    if asked.buckets:
        rows = check_buckets(asked.seed, asked.buckets).total()
        print(f"{asked.buckets:,} buckets of broken facts, {rows:,} result rows: all held", flush=True)
    counts = check(asked.seed, asked.records)
    for name, number in sorted(counts.items()):
        print(f"{number:>12,}  {name}")
    print(f"{check_memory(asked.seed) >> 20:>12,}  MB of memory at most", flush=True)
    if asked.spark:
        from tests.fuzz.through_spark import check_through_spark

        for line in check_through_spark(asked.seed, asked.spark):
            print(line, flush=True)
    print(f"{counts['broken']:,} broken records: all held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
