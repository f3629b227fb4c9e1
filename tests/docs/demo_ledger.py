"""The demo's ledger as a file of the tests, so that what the pages show is run without Spark.

`python -m tests.docs.demo_ledger build/demo-ledger` writes it anew from the ledger that `groupledger demo` made;
tests/demo holds the two against each other.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from groupledger.answers.queries import records
from groupledger.answers.reader import LedgerReader
from groupledger.tables import TABLES
from groupledger.tables import columns as c
from tests.answers.ledgers import write

ARCHIVE = Path(__file__).parents[1] / "data" / "ledgers" / "demo.tar.xz"
RUNS_OF_THE_DEMO = 2
"""An ingest and an assign; what a user ran on the ledger afterwards is left out."""
OF_A_RUN = {
    *(c.ATTEMPT_ID, c.STARTED_AT, c.FINISHED_AT, c.REMOVED),
    *(c.RUN_ID, c.CONFIG_DIGEST, c.CODE_DIGEST, c.INPUTS, c.INPUT_DIGEST, c.GUARDS),
}
"""Columns that say when, where and with which code a run was made, and so differ from demo to demo."""


def rows_of_the_demo(place):
    """The rows of each table by its name, of the demo's own runs."""
    reader = LedgerReader(str(place))
    committed = f"SELECT attempt_id FROM current_runs WHERE sequence <= {RUNS_OF_THE_DEMO}"
    attempts = {row[c.ATTEMPT_ID] for row in records(reader, committed)}
    found = {table.name: records(reader, f"SELECT * FROM {table.name}") for table in TABLES}
    return {name: [row for row in rows if row[c.ATTEMPT_ID] in attempts] for name, rows in found.items()}


def lasting_rows(place):
    """The same as sorted texts, without what differs from demo to demo."""
    return {
        name: sorted(repr([(key, _in_order(row[key])) for key in sorted(row.keys() - OF_A_RUN)]) for row in rows)
        for name, rows in rows_of_the_demo(place).items()
    }


def _in_order(value):
    """A map's entries by key: they have no order of their own."""
    return sorted(value.items()) if isinstance(value, dict) else value


def unpack(folder):
    """The ledger in a folder of this folder; gives its path."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "demo-ledger"


def main(place):
    """Write the archive; the same ledger gives the same rows."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "demo-ledger"
        write(made, **rows_of_the_demo(place))
        with tarfile.open(ARCHIVE, "w:xz") as archive:
            archive.add(made, made.name, filter=_of_nobody)


def _of_nobody(entry):
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main(*sys.argv[1:])
