"""Segments that a real broker wrote; see `tests/data/segments/README.md`."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "data" / "segments"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LOG = "__consumer_offsets-0"


def files(codec: str) -> dict[str, bytes]:
    """The bytes of each segment by its file's name, in the order of their offsets."""
    found = sorted((FOLDER / codec / LOG).glob("*.gz"))
    return {file.name.removesuffix(".gz"): gzip.decompress(file.read_bytes()) for file in found}


def written(codec: str, folder: Path) -> Path:
    """The folder, with the log partition in it as it was on the broker's disk."""
    (folder / LOG).mkdir(parents=True)
    for name, data in files(codec).items():
        (folder / LOG / name).write_bytes(data)
    return folder


def consumed(codec: str) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """What a consumer read of it (read_committed): offset, timestamp, key, value."""
    lines = gzip.decompress((FOLDER / codec / "offsets.jsonl.gz").read_bytes()).splitlines()
    found = map(json.loads, lines)
    return [(each["offset"], each["timestamp"], _bytes(each["key"]), _bytes(each["value"])) for each in found]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
