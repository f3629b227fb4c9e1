r"""Text that others wrote, safe for a terminal and exact for a program.

Ids of groups, members and topics may hold anything: escape sequences, a bell, marks that turn the direction of
writing. What a person reads shows each of them as `\x1b`, `\u202e`; JSON escapes them its own way, so that whoever
decodes it has the very id.
"""

from __future__ import annotations

import json
from typing import Any


def visible(text: str) -> str:
    r"""Escape all that has no shape of its own: controls, format and bidirectional marks, separators, lone surrogates.

    `"a\x1b[2J"` -> `a\x1b[2J` in plain characters. Letters of every script, and the blank, stay.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def json_text(value: Any) -> str:
    """The value as one line of JSON, in which the same characters as in `visible` are escaped as JSON does it."""
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
