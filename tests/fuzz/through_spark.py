"""The broken records of some rounds through real ingests: all at once, and the later half first, into two ledgers."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from groupledger.config.loading import CAPTURES
from groupledger.core.history import LogRow
from tests.faults.story import Content
from tests.fuzz.checks import LOGS
from tests.fuzz.records import rounds

ENDS = (0, 3)
"""Exit codes of a run that is done: without and with records in quarantine beyond the limit."""
FACTS = ("group_snapshots", "member_snapshots", "ownership_changes", "coverage", "quarantine", "violations")


def check_through_spark(seed: int, mutants: int) -> Iterator[str]:
    """What was done, line by line; an AssertionError where something does not hold."""
    rows = merged_rounds(seed, mutants)
    yield f"{len(rows):,} records, {mutants:,} of them broken"
    with tempfile.TemporaryDirectory() as folder:
        middle = sorted(row.offset for row in rows)[len(rows) // 2]
        pieces = ([rows], [[row for row in rows if row.offset >= middle], [row for row in rows if row.offset < middle]])
        found = []
        for number, own in enumerate(pieces):
            ledger = Path(folder) / f"ledger-{number}"
            yield from (ingested(ledger, at, piece) for at, piece in enumerate(own))
            digests = Content().digests(ledger)
            found.append({name: digests[name] for name in FACTS})
        assert found[0] == found[1], [name for name in FACTS if found[0][name] != found[1][name]]
        yield "the same facts from both ledgers"
        shown = command("show", "--config", str(Path(folder) / "ledger-0-0.yaml"))
        assert shown.returncode == 0, shown.stderr
        yield f"show: {len(shown.stdout.splitlines()):,} lines"


def merged_rounds(seed: int, mutants: int) -> list[LogRow]:
    """Rounds one after the other: each round's groups have names of their own, and offsets after those before."""
    rows: list[LogRow] = []
    for number, made in enumerate(rounds(seed, mutants, LOGS[:2])):
        shift = 1_000_000 * number
        rows += [renamed(row, number, shift) for row in made.rows]
    return rows


def renamed(row: LogRow, number: int, shift: int) -> LogRow:
    """The record as one of a group of this round; a key without a whole group id stays as it is."""
    key = row.key
    length = int.from_bytes(key[2:4], "big") if key is not None else 0
    if key is not None and 4 + length <= len(key) and length < 2**15 - 10:
        mark = f"-{number}".encode()
        key = key[:2] + (length + len(mark)).to_bytes(2, "big") + key[4 : 4 + length] + mark + key[4 + length :]
    return row._replace(key=key, offset=row.offset + shift)


def ingested(ledger: Path, at: int, rows: Iterable[LogRow]) -> str:
    """One ingest, as a command; what it said."""
    source = ledger.with_name(f"{ledger.name}-{at}.jsonl")
    source.write_text("".join(f"{json.dumps(line(row))}\n" for row in rows), encoding="utf-8")
    config = ledger.with_name(f"{ledger.name}-{at}.yaml")
    topics = CAPTURES / "edge" / "topics.jsonl.gz"
    sources = [{"kind": "topics-jsonl", "path": str(topics)}, {"kind": "offsets-jsonl", "path": str(source)}]
    told = {"cluster_id": "fuzz", "ledger": {"location": str(ledger)}, "sources": sources}
    config.write_text(json.dumps(told), encoding="utf-8")  # JSON is YAML
    if at == 0:
        made = command("init", "--config", str(config))
        assert made.returncode == 0, made.stderr
    done = command("ingest", "--config", str(config))
    assert done.returncode in ENDS, done.stderr
    return f"{ledger.name}, ingest {at}: exit {done.returncode}; {done.stdout.strip().splitlines()[0]}"


def line(row: LogRow) -> dict[str, Any]:
    """A line of an offsets dump."""
    key, value = (None if each is None else b64encode(each).decode() for each in (row.key, row.value))
    place = {"partition": row.log_partition, "offset": row.offset, "timestamp": row.timestamp_ms}
    return {**place, "key": key, "value": value}


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """A command of groupledger in a process of its own."""
    return subprocess.run([sys.executable, "-m", "groupledger", *words], capture_output=True, text=True, check=False)
