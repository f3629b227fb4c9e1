r"""Make foreign text safe for a terminal and exact for a program.

Ids of groups, members and topics may hold anything: escape sequences, a bell, marks that change the direction of
writing. A person sees each of them as `\x1b`, `\u202e`; JSON escapes them in its own way, so that a decoder gets the
exact id.
"""

from __future__ import annotations

import json
from typing import Any


def visible(text: str) -> str:
    r"""Escape invisible characters: controls, format and bidirectional marks, separators, lone surrogates.

    `"a\x1b[2J"` -> `a\x1b[2J` in plain characters. Letters of every script, and the blank, are kept.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def json_text(value: Any) -> str:
    """Return the value as one line of JSON, which escapes the same characters as `visible`, in JSON's way."""
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
