"""groupledger: flight recorder and simulator for Kafka consumer-group rebalances.

Over tables of your own (Spark, pandas, Polars, Arrow):

    assign(members, topics)     who owns, is assigned, must revoke what, for many groups at once
    assignor_udf, assignor_arrow, register    the same in groupBy().applyInPandas, applyInArrow and SQL
    MEMBERS, TOPICS             the columns that they take
    ASSIGNED_MEMBERS, ASSIGNED_GROUPS, REFUSED, ASSIGNOR_SCHEMA    the columns that they return

Of one group, in plain values:

    solve(scenario), simulate(script)    its assignment; its rebalances, event by event
    assignors()                 the assignors by name

Over a ledger:

    ingest(spark, members=...)  members and topics of your own into one
    open(location)              who owned what, why it rebalanced, and all else that the commands answer

For code of yours: `custom` (assignors), `listener` (rebalance listeners), `Fault` (the error that a user can fix).
Each name is loaded when it is first used: importing the package loads no engine. docs/reference/python-api.md has all.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from groupledger.core.version import __version__ as __version__

if _TYPE_CHECKING:
    from groupledger import custom, listener
    from groupledger.core.faults import Fault
    from groupledger.engine.memberships.declared import ASSIGNED_GROUPS, ASSIGNED_MEMBERS, MEMBERS, REFUSED, TOPICS
    from groupledger.engine.memberships.user_tables import ASSIGNOR_SCHEMA, assignor_arrow, assignor_udf, register
    from groupledger.notebook.assigned import Assigned, assign, ingest
    from groupledger.notebook.ledger import Ledger, LedgerGroup
    from groupledger.notebook.ledger import open_ledger as open
    from groupledger.notebook.plain import AssignorInfo, assignors, simulate, solve
    from groupledger.notebook.replies import Picture, Reply

_DECLARED, _UDFS = "engine.memberships.declared", "engine.memberships.user_tables"
_PLACES = {
    "assign": ("notebook.assigned", "assign"),
    "Assigned": ("notebook.assigned", "Assigned"),
    "MEMBERS": (_DECLARED, "MEMBERS"),
    "TOPICS": (_DECLARED, "TOPICS"),
    "ASSIGNED_MEMBERS": (_DECLARED, "ASSIGNED_MEMBERS"),
    "ASSIGNED_GROUPS": (_DECLARED, "ASSIGNED_GROUPS"),
    "REFUSED": (_DECLARED, "REFUSED"),
    "assignor_udf": (_UDFS, "assignor_udf"),
    "assignor_arrow": (_UDFS, "assignor_arrow"),
    "ASSIGNOR_SCHEMA": (_UDFS, "ASSIGNOR_SCHEMA"),
    "register": (_UDFS, "register"),
    "solve": ("notebook.plain", "solve"),
    "simulate": ("notebook.plain", "simulate"),
    "assignors": ("notebook.plain", "assignors"),
    "AssignorInfo": ("notebook.plain", "AssignorInfo"),
    "open": ("notebook.ledger", "open_ledger"),
    "Ledger": ("notebook.ledger", "Ledger"),
    "LedgerGroup": ("notebook.ledger", "LedgerGroup"),
    "Reply": ("notebook.replies", "Reply"),
    "ingest": ("notebook.assigned", "ingest"),
    "Picture": ("notebook.replies", "Picture"),
    "custom": ("custom", ""),
    "listener": ("listener", ""),
    "Fault": ("core.faults", "Fault"),
}
__all__ = [
    "ASSIGNED_GROUPS",
    "ASSIGNED_MEMBERS",
    "ASSIGNOR_SCHEMA",
    "MEMBERS",
    "REFUSED",
    "TOPICS",
    "Assigned",
    "AssignorInfo",
    "Fault",
    "Ledger",
    "LedgerGroup",
    "Picture",
    "Reply",
    "assign",
    "assignor_arrow",
    "assignor_udf",
    "assignors",
    "custom",
    "ingest",
    "listener",
    "open",
    "register",
    "simulate",
    "solve",
]


def __getattr__(name: str) -> object:
    """Load a public name when it is asked for. Raises Fault: SPARK_MISSING, if it needs the types of PySpark."""
    if name in _PLACES:
        module, there = _PLACES[name]
        try:
            loaded = _import_module(f"{__name__}.{module}")
        except ModuleNotFoundError as error:  # the wheel brings no Spark: on a cluster it is the cluster's
            from groupledger.core.spark_versions import spark_missing

            raise (spark_missing() if (error.name or "").partition(".")[0] == "pyspark" else error) from None
        return getattr(loaded, there) if there else loaded
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return sorted(__all__)
