"""What the assignors of other client libraries answered: the pairs of tests/data/parity-clients."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from groupledger.core.custom.custom_group import TopicPartition

PARITY = Path(__file__).parents[3] / "data" / "parity-clients"
RENAMED = {"kafkajs-roundrobin": "kafkajs-roundrobinassigner"}


def pairs(name, step=1):
    """Every `step`-th (scenario, result) of an assignor."""
    with gzip.open(PARITY / f"{RENAMED.get(name, name)}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in list(lines)[::step]:
            pair = json.loads(line)
            yield pair["scenario"], pair["result"]


def recorded(result):
    """All answers that were seen, as lists by member."""
    for answer in result.get("answers", [result["assignment"]]):
        yield {member: tuple(TopicPartition(*pair) for pair in mine) for member, mine in answer.items()}
