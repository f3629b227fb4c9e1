"""Replace names by surrogates that Kafka's assignors cannot distinguish from them.

An assignor sees of a member id only whether it equals another, its position among the others in Java's order (by
UTF-16 unit), and its 32-bit `String.hashCode`, which decides the order of hash maps. A surrogate preserves these three
and nothing else: a number for the position, and seven characters that produce the hash.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupledger.core.javaorder import hash_texts

MARK = "~"
"""First character of every surrogate."""

_WIDTH = 8
_LOWEST = ord("0")
_BASE = 31  # String.hashCode multiplies by this: 31 consecutive characters are the digits of a number, `0` to `N`
_DIGITS = 7  # the least with 31 ** 7 >= 2 ** 32: enough digits for every hash


def surrogates(names: Iterable[str], series: int) -> dict[str, str]:
    """Return a surrogate for each name: same hash code, same order among themselves, all distinct.

    Surrogates of another `series` (at least 0) differ. `{"b": "~0-00000002-...", "a": "~0-00000001-..."}`
    """
    in_order = sorted(set(names), key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    hashes = hash_texts(in_order)
    stems = (f"{MARK}{series:x}-{number:0{_WIDTH}x}-" for number in range(1, len(in_order) + 1))
    return {name: _with_hash(stem, int(code)) for name, stem, code in zip(in_order, stems, hashes, strict=True)}


def _with_hash(stem: str, code: int) -> str:
    """Append seven characters to the ASCII stem so that the result has this hash code."""
    reached = 0
    for character in stem + chr(_LOWEST) * _DIGITS:
        reached = reached * _BASE + ord(character)
    rest = (code - reached) % 2**32
    digits = []
    for _ in range(_DIGITS):
        rest, digit = divmod(rest, _BASE)
        digits.append(chr(_LOWEST + digit))
    return stem + "".join(reversed(digits))
