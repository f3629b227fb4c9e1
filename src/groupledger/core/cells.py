"""Format a value for a table, on a terminal or in a page."""

from __future__ import annotations

from datetime import datetime

from groupledger.core.moment import iso
from groupledger.core.secrets import without_values
from groupledger.core.visible_text import visible


def cell(value: object) -> str:
    """Return None as '-', a moment in UTC to the millisecond, True as 'yes', all on one line and without a secret."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return iso(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.2f}"
    return visible(without_values(str(value)))
