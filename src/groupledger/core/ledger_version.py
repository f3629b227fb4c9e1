"""Define the version of a ledger's tables, for readers with and without Spark."""

from __future__ import annotations

import re
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path

from groupledger.core.secrets import without_secrets

SCHEMA_VERSION = 6
"""The version of all declarations together; stored in `runs` and in the ledger's table properties.

2: `runs.removed`; statistics of moments; constraints. 4: previous_member_epoch, member_state, subscribed_regex and
tasks of `member_snapshots`. 5: least_moves_certainty, fewest_rounds, attributed_to and attribution of `rebalances`.
6: leader_epoch of `log_records`.
"""
VERSION_PROPERTY = "groupledger.schemaVersion"
"""The property of each table that holds it."""


def version_problem(place: str, got: int) -> tuple[str, str] | None:
    """Return what is wrong with a ledger of this version, as a code and a message; None if nothing is."""
    if got > SCHEMA_VERSION:
        message = f"the ledger at {place} has schema version {got}, this groupledger knows {SCHEMA_VERSION}"
        return "LEDGER_NEWER", f"{message}: use a groupledger that knows version {got}"
    if got < SCHEMA_VERSION:
        message = f"the ledger at {place} has schema version {got}, this groupledger writes {SCHEMA_VERSION}"
        return "LEDGER_OLDER", f"{message}: `groupledger migrate` brings it forward"
    return None


def no_ledger(place: str, table: str) -> tuple[str, str]:
    """Return the code and message for a ledger in which a table is missing."""
    found = [
        each for each in ledgers_near(place) if Path(each).resolve() != Path(place).resolve()
    ]  # it may lack a table
    more = f" (others: {', '.join(found[1:])})" if len(found) > 1 else ""
    near = f"--ledger {found[0]} names one nearby{more}; " if found else ""
    return "LEDGER_MISSING", f"there is no ledger at {place} (no table {table}): {near}`groupledger ingest` makes one"


_LOOKED_AT, _NAMED = 1_000, 3


def ledgers_near(place: str) -> list[str]:
    """Return ledgers beside the given one, and in the current folder to the second level; the likeliest come first."""
    found: set[str] = set()
    for folder, pattern in ((Path(place).parent, "*"), (Path(), "*"), (Path(), "*/*")):
        with suppress(OSError, ValueError):
            some = islice(folder.glob(pattern), 0 if "://" in place else _LOOKED_AT)
            # where no run ever began, the table `runs` has only its log
            found |= {str(each) for each in some if {one.name for one in each.glob("runs/*")} > {"_delta_log"}}
    return sorted(found, key=lambda name: (-SequenceMatcher(None, name, place).ratio(), name))[:_NAMED]


# Shorten delta-rs's errors for a person.

_LAYER = re.compile(
    r"^(?:DeltaError|DataFusion error|Generic DeltaTable error|Error during planning|[A-Z]\w+ error): ", re.IGNORECASE
)
_IN_A_TYPE = re.compile(r'^[A-Z]\w+Error\("(?P<said>.*)"\)$')
_NESTED = re.compile(r"^\s*(?:\x1b\[\d*m)*\u21b3(?:\x1b\[\d*m)*\s*(?P<said>.+)$", re.MULTILINE)
"""A cause below an error, as delta-rs draws it: an arrow and a deeper indent for each."""
_FROM_STORE = re.compile(r"<Code>(?P<code>\w+)</Code>\s*<Message>(?P<said>[^<]*)</Message>")
_WORDS = 400


def first_words(error: Exception) -> str:
    """Return the first meaningful line of an error, without the names of the engine's layers."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    while (shorter := _LAYER.sub("", text)) != text:
        text = shorter
    text = _IN_A_TYPE.sub(r"\g<said>", text)
    cause = _cause(str(error))
    text = f"{text}: {cause}" if cause else text
    return without_secrets(text if len(text) <= _WORDS else f"{text[:_WORDS]}...")


def _cause(text: str) -> str | None:
    """Return the innermost cause of an error that lists several: a store's own code and message if it has them."""
    answered = _FROM_STORE.search(text)
    if answered is not None:
        return f"{answered['code']}: {answered['said']}"
    below: str | None = None
    for found in _NESTED.finditer(text):
        below = found["said"].strip()
    return below
