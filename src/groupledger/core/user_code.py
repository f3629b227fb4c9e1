"""Code of users by the name they gave it, `module:name`: from configuration or a command, never from data."""

from __future__ import annotations

import importlib
from typing import Any

from groupledger.core.faults import Fault


def imported(name: str, code: str, expected: str) -> Any:
    """What `module:name` stands for. Raises Fault(code), which says what failed and what was `expected`."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a module of others may fail in any way while it is imported
        told = f"{type(error).__name__}: {error}"
        raise Fault(code, f"cannot import {name}: {told}; expected {expected}") from error
