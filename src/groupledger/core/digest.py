"""Compute digests that tell whether two things are equal, independent of their order and of the time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from groupledger.core.version import __version__


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no blanks, ASCII only: `{"b": 1, "a": None}` -> `{"a":null,"b":1}`.

    Raises TypeError for what JSON cannot express, ValueError for NaN and the infinities.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON, as hexadecimal text."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def rows_digest(count: int, sums: Iterable[int]) -> str:
    """Return the digest of a multiset of rows from their number and the sums of their hashes, independent of order."""
    return digest([count, *sums])


def result_digest(by_table: Mapping[str, str]) -> str:
    """Return the digest of a whole result from the digests of its tables."""
    return digest(dict(by_table))


def short_digest(text: str) -> int:
    """Return the first 60 bits of a hexadecimal digest, as a number that fits into a count."""
    return int(text[:15], 16)


def code_digest(package: Traversable | None = None, version: str = __version__) -> str:
    """Return `<version>+<digest of every Python and JSON file of the package>`, as in `0.1.0+9f86d081884c7d65`."""
    found = _files(files("groupledger") if package is None else package, "")
    return f"{version}+{digest({name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in found})[:16]}"


def _files(folder: Traversable, prefix: str) -> Iterable[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith((".py", ".json")):
            yield prefix + entry.name, entry
