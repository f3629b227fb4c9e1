"""Shorten member ids for a person: cut the UUID in them to what distinguishes them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import takewhile

_UUID = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")


def shortened(names: Iterable[str]) -> dict[str, str]:
    """Map each name to itself with its UUID cut to 8 digits, if that is unique.

    `app-1-3f2504e0-4f89-11d3-9a0c-0305e82c3301` -> `app-1-3f2504e0`
    """
    distinct = set(names)
    short = {name: _UUID.sub(r"\1", name) for name in distinct}
    counted = Counter(short.values())
    return {name: cut if counted[cut] == 1 else name for name, cut in short.items()}


def common_start(names: Iterable[str]) -> str:
    """Return the common start of several names, up to a `-`, `_` or `.`; empty if a name would be left empty.

    `app-1-3f2504e0`, `app-2-9a0c0305` -> `app-`
    """
    distinct = set(names)
    if len(distinct) < 2:
        return ""
    first, last = min(distinct), max(distinct)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first[:-1], last, strict=False))
    shared = "".join(sign for sign, _ in same)
    return shared[: 1 + max(shared.rfind(sign) for sign in "-_.")]
