"""Names that stand for other names, and that Kafka's assignors cannot tell from them.

An assignor sees of a member id only whether it equals another, where it stands among the others in Java's order (by
UTF-16 unit), and its 32-bit `String.hashCode`, which decides the order of hash maps. A surrogate keeps these three and
nothing else: a number that stands where the name stood, and seven characters that bring the hash about.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupledger.core.javaorder import hash_texts

MARK = "~"
"""What every surrogate begins with."""

_WIDTH = 8
_LOWEST = ord("0")
_BASE = 31  # what String.hashCode multiplies by: 31 characters in a row are the digits of a number, `0` to `N`
_DIGITS = 7  # the least with 31 ** 7 >= 2 ** 32: every hash has its digits


def surrogates(names: Iterable[str], series: int) -> dict[str, str]:
    """A surrogate for each name: same hash code, same order among themselves, no two alike.

    Surrogates of another `series` (at least 0) are others. `{"b": "~0-00000002-...", "a": "~0-00000001-..."}`
    """
    in_order = sorted(set(names), key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    hashes = hash_texts(in_order)
    stems = (f"{MARK}{series:x}-{number:0{_WIDTH}x}-" for number in range(1, len(in_order) + 1))
    return {name: _with_hash(stem, int(code)) for name, stem, code in zip(in_order, stems, hashes, strict=True)}


def _with_hash(stem: str, code: int) -> str:
    """The stem and seven characters more, with this hash code. The stem is ASCII."""
    reached = 0
    for character in stem + chr(_LOWEST) * _DIGITS:
        reached = reached * _BASE + ord(character)
    rest = (code - reached) % 2**32
    digits = []
    for _ in range(_DIGITS):
        rest, digit = divmod(rest, _BASE)
        digits.append(chr(_LOWEST + digit))
    return stem + "".join(reversed(digits))
