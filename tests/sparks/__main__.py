"""Run the demonstration on every Spark of the table, and compare its facts and digests with those on the newest.

    python -m tests.sparks            # all; part of `make prove`
    python -m tests.sparks 4.0 4.1    # some

One line a Spark; ends with status 1 where any answer differs. Each has a ledger of its own. Beside the demonstration,
all of recorded history is assigned under another assignor, and the doctor reads every row of the ledger.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groupledger.core.spark_versions import NEWEST, RELEASES, SparkRelease
from tests.sparks.answers import differences, digests
from tests.sparks.environments import python

COMMANDS = (
    ("demo",),
    ("assign", "--assignor", "cooperative-sticky", "--snapshots", "every"),
)
NAMED = 10
SECONDS = 3600


def run(release: SparkRelease) -> list[dict[str, Any]]:
    """What each command answered on this Spark. Raises AssertionError with what it said where it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYSPARK_PYTHON")}
    command = (str(python(release)), "-m", "groupledger")
    with tempfile.TemporaryDirectory() as folder:
        ledger = ("--ledger", str(Path(folder, "ledger")))
        answers = [_answer((*command, *words, *ledger, "--json"), environment, folder) for words in COMMANDS]
        checked = _answer((*command, "doctor", "--deep", *ledger, "--json"), environment, folder)
    (found,) = (check["detail"] for check in checked["checks"] if check["name"] == "pyspark")
    if not found.startswith(release.pyspark + " "):
        raise AssertionError(f"pyspark {found} was run; expected {release.pyspark}")
    return answers


def _answer(command: Sequence[str], environment: dict[str, str], folder: str) -> dict[str, Any]:
    ran = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    if ran.returncode != 0:
        raise AssertionError(f"{' '.join(command[2:])}: status {ran.returncode}: {ran.stderr[-2000:]} {ran.stdout}")
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def main(minors: Sequence[str]) -> int:
    """Print a line a Spark; 1 where one differs from the newest, or fails."""
    unknown = set(minors) - {release.minor for release in RELEASES}
    if unknown:
        print(f"no such Spark: {', '.join(sorted(unknown))}; there are: {', '.join(r.minor for r in RELEASES)}")
        return 2
    expected = run(NEWEST)
    print(_line(NEWEST, expected, "what the others are held against"), flush=True)
    wrong = False
    for release in (each for each in RELEASES if each != NEWEST and each.minor in (minors or [each.minor])):
        try:
            answers = run(release)
        except AssertionError as error:
            wrong = True
            print(f"pyspark {release.pyspark} with Delta {release.delta}: {error}", flush=True)
            continue
        found = differences(answers, expected)
        wrong |= bool(found)
        print(_line(release, answers, "; ".join(found[:NAMED]) or "equal"), flush=True)
    return int(wrong)


def _line(release: SparkRelease, answers: list[dict[str, Any]], verdict: str) -> str:
    told = " ".join(digest[:12] for answer in answers for digest in digests(answer))
    return f"pyspark {release.pyspark} with Delta {release.delta}: {told}: {verdict}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
