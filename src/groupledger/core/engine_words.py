"""Shorten delta-rs's errors for a person."""

from __future__ import annotations

import re

from groupledger.core.secrets import without_secrets

_LAYER = re.compile(
    r"^(?:DeltaError|DataFusion error|Generic DeltaTable error|Error during planning|[A-Z]\w+ error): ", re.IGNORECASE
)
_IN_A_TYPE = re.compile(r'^[A-Z]\w+Error\("(?P<said>.*)"\)$')
_WORDS = 400


def first_words(error: Exception) -> str:
    """Return the first meaningful line of an error, without the names of the engine's layers."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    while (shorter := _LAYER.sub("", text)) != text:
        text = shorter
    text = _IN_A_TYPE.sub(r"\g<said>", text)
    return without_secrets(text if len(text) <= _WORDS else f"{text[:_WORDS]}...")
