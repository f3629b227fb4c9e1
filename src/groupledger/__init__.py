"""groupledger: flight recorder and simulator for Kafka consumer-group rebalances.

`import groupledger as gl; ledger = gl.open("build/demo-ledger")`: docs/guides/use/notebook.md. The names in `__all__`
are public; importing the package loads nothing else, each name what it needs when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groupledger.core.faults import Fault
    from groupledger.engine.grouped import ASSIGNOR_SCHEMA, assignor_udf
    from groupledger.notebook.groups import LedgerGroup
    from groupledger.notebook.ledger import Ledger
    from groupledger.notebook.ledger import open_ledger as open
    from groupledger.notebook.replies import Picture, Reply

__all__ = ["ASSIGNOR_SCHEMA", "Fault", "Ledger", "LedgerGroup", "Picture", "Reply", "assignor_udf", "open"]
__version__ = "0.2.0"

_PLACES = {
    "ASSIGNOR_SCHEMA": ("engine.grouped", "ASSIGNOR_SCHEMA"),
    "Fault": ("core.faults", "Fault"),
    "Ledger": ("notebook.ledger", "Ledger"),
    "LedgerGroup": ("notebook.groups", "LedgerGroup"),
    "Picture": ("notebook.replies", "Picture"),
    "Reply": ("notebook.replies", "Reply"),
    "assignor_udf": ("engine.grouped", "assignor_udf"),
    "open": ("notebook.ledger", "open_ledger"),
}


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is asked for: importing the package loads no engine."""
    if name in _PLACES:
        module, there = _PLACES[name]
        return getattr(import_module(f"{__name__}.{module}"), there)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted([*globals(), *__all__])
