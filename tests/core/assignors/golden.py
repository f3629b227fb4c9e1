"""What Kafka's own assignors answered (kafka-clients 4.4.0): the pairs of tests/data/parity."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

PARITY = Path(__file__).parents[2] / "data" / "parity"
PROFILES = ("chain", "conflict", "edge", "hetero", "homog", "racks", "static", "user-data", "wide")


def gold(name):
    """All that a file of tests/data/parity holds, in its order."""
    with gzip.open(PARITY / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def pairs(profile, step=1):
    """Every `step`-th (scenario, result) of a profile; the result without the user data, which assignors do not see."""
    for pair in gold(profile)[::step]:
        yield pair["scenario"], {key: value for key, value in pair["result"].items() if key != "user_data"}
