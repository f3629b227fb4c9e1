"""groupledger: flight recorder and simulator for Kafka consumer-group rebalances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groupledger.engine.grouped import ASSIGNOR_SCHEMA, assignor_udf

__all__ = ["ASSIGNOR_SCHEMA", "assignor_udf"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The notebook's functions, loaded when they are asked for: importing the package loads no engine."""
    if name in __all__:
        from groupledger.engine import grouped

        return getattr(grouped, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
