"""Regular expressions over topic names: what they match, and which of them are refused.

Python's `re` tries one way of matching after the other, and some expressions have more of them than can be tried: of
`(a+)+` each `a` of a name doubles their number. So an expression is refused by an upper bound of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from groupledger.core.faults import Fault
from groupledger.core.protocol.events import BAD_EVENT

LONGEST_NAME = 249
"""Characters of a topic's name, at most."""
LONGEST_PATTERN = 1_000
MOST_WAYS = 20_000_000
"""In which an expression may match a name: enough for `.*` three times."""

_PARTS = re.compile(
    r"\\. | \[\^?\]?(?:\\.|[^\]\\])*\] | \((?:\?(?:P?<\w+>|<?[=!]|[:>]|[a-zA-Z-]*:?))? | [*+?][+?]? |"
    r"\{\d*,?\d*\}[+?]? | .",
    re.DOTALL | re.VERBOSE,
)
_BOUNDS = re.compile(r"\{(\d*)(,?)(\d*)\}")


@lru_cache(maxsize=1_000)
def matching(expression: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Topics whose whole name an expression matches, in their order."""
    pattern = re.compile(expression)
    return tuple(name for name in names if pattern.fullmatch(name))


def require_quick(member: str, expression: str) -> None:
    """Raise Fault(BAD_EVENT) for an expression that could take too long to match."""
    got = f"{member!r} subscribes by the regular expression {expression[:80]!r}"
    if len(expression) > LONGEST_PATTERN:
        raise Fault(BAD_EVENT, f"{got}, of {len(expression):,} characters; expected at most {LONGEST_PATTERN:,}")
    if most_ways(expression) > MOST_WAYS:
        expected = "at most three of .*, and no repetition of what repeats or chooses itself"
        hint = r"([a-z]+\.)+ may be written [a-z.]+"
        raise Fault(BAD_EVENT, f"{got}, which can match in too many ways to try all; expected {expected}: {hint}")


def require_pattern(member: str, expression: str, names: Iterable[str]) -> None:
    """Raise Fault(BAD_EVENT) for what a classic client cannot subscribe by: a bad expression, or names beside it.

    In the consumer protocol the coordinator judges that.
    """
    got = f"{member!r} subscribes by the regular expression {expression[:80]!r}"
    named = sorted(names)
    if named:
        expected = "one of both in the classic protocol; there topics is []"
        raise Fault(BAD_EVENT, f"{got} and by name ({', '.join(named)[:80]}); expected {expected}")
    require_quick(member, expression)
    try:
        re.compile(expression)
    except (re.error, OverflowError) as error:
        raise Fault(BAD_EVENT, f"{got}, which does not compile: {error}; expected one that does") from error


def most_ways(expression: str) -> int:
    """Return an upper bound of the ways in which an expression can match a name; beyond MOST_WAYS it is not exact.

    `(a|b)x?.*` -> 2 * 2 * 250.
    """
    around: list[tuple[int, int]] = []
    others, before, last = 0, 1, 1  # of earlier alternatives; of this one up to its last part; of that
    for part in _PARTS.findall(expression):
        if part.startswith("("):
            around.append((others, min(before * last, MOST_WAYS + 1)))
            others, before, last = 0, 1, 1
        elif part == ")" and around:
            last = others + before * last
            others, before = around.pop()
        elif part == "|":
            others, before, last = others + before * last, 1, 1
        elif part[0] in "*+?" or (part[0] == "{" and part not in ("{", "{}")):
            last = _repeated(last, part)
        else:
            before, last = before * last, 1
        before, last = min(before, MOST_WAYS + 1), min(last, MOST_WAYS + 1)
    return others + before * last


def _repeated(ways: int, quantifier: str) -> int:
    """Ways of a part that may come so many times."""
    least, most = _bounds(quantifier)
    return int(ways**most) * (most - least + 1)


def _bounds(quantifier: str) -> tuple[int, int]:
    if quantifier[0] == "?":
        return 0, 1
    if quantifier[0] != "{":
        return int(quantifier[0] == "+"), LONGEST_NAME
    found = _BOUNDS.match(quantifier)
    least, comma, most = found.groups() if found is not None else ("", ",", "")
    low = _number(least or "0")
    high = low if not comma else _number(most or str(LONGEST_NAME))
    return low, max(low, high)


def _number(digits: str) -> int:
    """Read a bound, even with zeros before it or with more digits than Python reads."""
    return min(int(digits.lstrip("0")[:4] or "0"), LONGEST_NAME)
