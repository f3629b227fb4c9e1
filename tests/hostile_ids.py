"""Ids that would steer a terminal, and the pattern that finds any such character."""

from __future__ import annotations

import re

HOSTILE = ("\x1b", "\x07", "\x7f", "\x85", "\x9b", "\u202e", "\u2066", "\u200b", "\u200e", "\u2028", "\ufeff", "\ud800")
"""ESC, BEL, DEL, C1 controls, a bidirectional override and isolate, zero width, a separator, BOM, half a surrogate."""

RAW = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Any of them in what was printed; the newline ends a line there."""

HOSTILE_ID = "id" + "".join(HOSTILE) + "]0;gone"
