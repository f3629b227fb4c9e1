"""One step in a process of its own, which may not come to its end: `python -m tests.faults.killed <order as JSON>`."""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

from tests.faults.sessions import FileFaults, faulty_session, unpack_codecs
from tests.faults.story import Story

MOST_BYTES = 1_500


def main(order: dict[str, str]) -> None:
    """Take the step: killed with the JVM at a place, with a JVM that may write no large file, or undisturbed."""
    ledger = Path(order["ledger"])
    spark = faulty_session(Path(order["classes"]), Path(order["ambush"]), profile="small", seed=order.get("seed", "0"))
    files = FileFaults(spark)
    files.watch(ledger)
    if order["action"] == "killed":
        files.arm(order["place"], "kill", os.getpid())
    elif order["action"] == "limited":
        unpack_codecs(spark)
        resource.prlimit(files.process(), resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
    Story(Path(order["story"])).take(spark, ledger, order["step"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
