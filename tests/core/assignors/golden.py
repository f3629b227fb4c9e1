"""What Kafka's own assignors answered (kafka-clients 4.4.0): the pairs of tests/data/parity."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

PARITY = Path(__file__).parents[2] / "data" / "parity"
PROFILES = ("chain", "conflict", "edge", "hetero", "homog", "racks", "static", "user-data", "wide")


def pairs(profile, step=1):
    """Every `step`-th (scenario, result) of a profile; the result without the user data, which assignors do not see."""
    with gzip.open(PARITY / f"{profile}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in list(lines)[::step]:
            pair = json.loads(line)
            yield pair["scenario"], {key: value for key, value in pair["result"].items() if key != "user_data"}
