"""What groupledger ships to try it out: a commented configuration, and logs captured from a real broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).with_name("template.yaml")
"""Every key with its default and meaning, for `groupledger new-config`."""
CAPTURES = Path(__file__).parents[1] / "sample" / "captures"
"""A folder for each cluster, with `offsets.jsonl.gz` and `topics.jsonl.gz`; its README says how they were made."""
CLUSTERS = ("dev", "edge", "compacted", "storm")


def sample_settings() -> dict[str, Any]:
    """Return the demo's settings without its ledger: four logs, each a cluster of its own, into one ledger."""
    files = {"topics-jsonl": "topics.jsonl.gz", "offsets-jsonl": "offsets.jsonl.gz"}
    sources = [
        {"kind": kind, "cluster_id": cluster, "path": str(CAPTURES / cluster / name)}
        for cluster in CLUSTERS
        for kind, name in files.items()
    ]
    return {
        "cluster_id": CLUSTERS[0],
        "sources": sources,
        "assign": {"snapshots": "every"},
        "spark": {"profile": "small"},
    }
