"""The captured bytes, read from tests/data: log records and what DescribeGroups gave."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections.abc import Iterator
from functools import cache
from typing import Any

from groupledger.config.loading import CAPTURES

LOGS = {
    "dev/offsets": 428,
    "edge/offsets": 988,
    "compacted/offsets": 63,
    "compacted/offsets-before": 131,
    "storm/offsets": 38,
}
SNAPSHOTS = ("dev", "edge", "compacted", "storm")

Bytes = tuple[bytes, bytes | None]


def lines(name: str) -> Iterator[dict[str, Any]]:
    """The JSON lines of a capture's file: `lines("dev/offsets")`."""
    with gzip.open(CAPTURES / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


@cache
def log(name: str) -> tuple[Bytes, ...]:
    """Key and value bytes of each record of a log, in file order."""
    return tuple((b64decode(line["key"]), _optional(line["value"])) for line in lines(name))


def every_log() -> list[Bytes]:
    """The records of all logs, one after the other."""
    return [record for name in LOGS for record in log(name)]


def _optional(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def described_members(name: str) -> Iterator[tuple[str, bytes, bytes]]:
    """(selected protocol, subscription bytes, assignment bytes) of the classic members of a capture's snapshots."""
    for line in lines(f"{name}/snapshots"):
        for group in line.get("raw") or ():
            for member in group["members"]:
                yield group["protocol"], b64decode(member["metadata"]), b64decode(member["assignment"])
