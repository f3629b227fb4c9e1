"""`groupledger assign` on ten groups, start to exit, against a process that only makes the same commits.

python -m benchmarks.small_job [runs]

The floor starts the same Spark, reads the rows that `assign` wrote from Parquet, and appends them to the same number of
Delta tables in as many commits; it knows the rows beforehand and computes nothing. Each repetition has a ledger of its
own, copied from one that holds the facts of ten captured groups; the copying is not timed.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from benchmarks.timing import interleaved
from groupledger.config.loading import CAPTURES

CAPTURE = CAPTURES / "dev"
GROUPS = 10
_EMPTY_VALUE = 100
"""Characters of base64 that a GroupMetadata value without members stays below."""
COMMAND = (sys.executable, "-m", "groupledger")


def main(runs: int) -> None:
    """Print both figures and their difference."""
    with tempfile.TemporaryDirectory() as folder:
        bench = SmallJob(Path(folder))
        ours, floor = interleaved({"assign, ten groups": bench.ours, "floor": bench.floor}, runs)
        print(ours, floor, sep="\n")
        print(f"difference of medians: {ours.median - floor.median:.2f} s; commits of each: {bench.commits}")
        print(f"stages of the last assign: {bench.timings}")


class SmallJob:
    """The prepared ledger, and a copy of it for each repetition."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.config, self.ledger = folder / "bench.yaml", folder / "ledger"
        self.config.write_text(yaml.safe_dump(self._settings()), encoding="utf-8")
        for command in ("init", "ingest"):
            self._run(*COMMAND, command, "--config", str(self.config))
        shutil.copytree(self.ledger, folder / "prepared")
        self.commits, self.timings = self._written(), ""

    def _settings(self) -> dict[str, object]:
        lines = gzip.decompress((CAPTURE / "offsets.jsonl.gz").read_bytes()).decode().splitlines()
        log = self.folder / "offsets.jsonl"
        log.write_text("\n".join(_of_groups(lines, GROUPS)) + "\n", encoding="utf-8")
        sources = [
            {"kind": "topics-jsonl", "path": str(CAPTURE / "topics.jsonl.gz")},
            {"kind": "offsets-jsonl", "path": str(log)},
        ]
        ledger = {"location": str(self.folder / "ledger")}
        return {"cluster_id": "dev", "ledger": ledger, "sources": sources, "spark": {"profile": "small"}}

    def _written(self) -> int:
        """Let `assign` run once, keep its rows for the floor, and count its commits."""
        before = self._log_entries()
        self.ours()
        commits = self._log_entries() - before
        self._run(sys.executable, "-m", "benchmarks.small_floor", "keep", str(self.config), str(self.folder / "rows"))
        return commits

    def _log_entries(self) -> int:
        return len(list(self.ledger.glob("*/_delta_log/*.json")))

    def fresh(self) -> None:
        """The ledger as it was before the first assign."""
        shutil.rmtree(self.ledger)
        shutil.copytree(self.folder / "prepared", self.ledger)

    def ours(self) -> None:
        """One `groupledger assign`, process start to exit."""
        self.fresh()
        told = self._run(*COMMAND, "assign", "--config", str(self.config), "--json", "--timings")
        self.timings = json.dumps(json.loads(told.splitlines()[-1])["timings"])

    def floor(self) -> None:
        """The same Spark, the same commits."""
        self.fresh()
        self._run(sys.executable, "-m", "benchmarks.small_floor", "write", str(self.config), str(self.folder / "rows"))

    def _run(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))  # noqa: S603 - our own commands
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
        return done.stdout


def _of_groups(lines: list[str], count: int) -> list[str]:
    """The records of the first `count` classic groups by name that have members, and nothing else.

    A group's birth and its emptying are left out, so that the latest state of each has members to assign to.
    """
    lines = [line for line in lines if len(json.loads(line)["value"] or "") > _EMPTY_VALUE]
    keys = [base64.b64decode(json.loads(line)["key"]) for line in lines]
    names = [key[4 : 4 + int.from_bytes(key[2:4], "big")] for key in keys]
    kept = sorted({name for key, name in zip(keys, names, strict=True) if key[:2] == b"\x00\x02"})[:count]
    return [line for line, name in zip(lines, names, strict=True) if name in kept]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
