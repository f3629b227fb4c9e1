"""Run Kafka's client-side assignors over whole batches of groups; results equal kafka-clients 4.4.0, list for list.

`assign("cooperative-sticky", batch)` is the only entry. To add an assignor, write its function in a file here, and a
record in `core.rebalance.registry` that names it. Read `answer` and `sticky`, then `constrained` (all members
subscribe alike), `general` and `balance` (they do not), `claims` (KIP-792); `range_`, `roundrobin`, `kip615`,
`kip315`, `librdkafka` stand alone; `clients` and `server` are other libraries' and KIP-848's. Called by
`core.rebalance`, `core.scenarios` and `core.protocol`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Literal

from groupledger.core.arrays.batch import GroupBatch
from groupledger.core.assignors.answer import AssignmentBatch
from groupledger.core.assignors.group import MESSAGES, Path, Status
from groupledger.core.assignors.safe import Doubt, among_subscribers, assign_safely, doubts, settle_in_two_rounds
from groupledger.core.faults import Fault, expected_one_of
from groupledger.core.log.lines import ScenarioCode
from groupledger.core.rebalance.registry import BY_NAME, RECORDS

__all__ = ["ASSIGNORS", "MESSAGES", "Doubt", "Mode", "Path", "Status", "assign", "doubts"]

Mode = Literal["as-kafka", "safe"]


def assign(name: str, batch: GroupBatch, *, mode: Mode = "as-kafka") -> AssignmentBatch:
    """Assign every group of the batch with one of ASSIGNORS.

    `as-kafka` returns what Kafka returns, its failures included (see `Status`). `safe` first drops claims that cannot
    be true (see `doubts`), gives nothing to members without topics (see `among_subscribers`), and makes every
    cooperative group settle in two rounds (see `settle_in_two_rounds`).
    Raises Fault("UNKNOWN_ASSIGNOR") for a name that is not in ASSIGNORS.
    """
    if name not in ASSIGNORS:
        raise Fault(ScenarioCode.UNKNOWN_ASSIGNOR, f"assignor is {name!r}; {expected_one_of(name, ASSIGNORS)}")
    assignor = ASSIGNORS[name]
    if mode == "as-kafka" or BY_NAME[name].always_safe:
        return assignor(batch)
    assignor = among_subscribers(assignor)
    if BY_NAME[name].cooperative:
        return settle_in_two_rounds(assignor, batch, assign_safely(assignor, batch, cooperative=True))
    return assign_safely(assignor, batch, cooperative=False)


def _function(named: str) -> Callable[[GroupBatch], AssignmentBatch]:
    module, _, name = named.partition(".")
    found: Callable[[GroupBatch], AssignmentBatch] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


ASSIGNORS = {each.name: _function(each.function) for each in RECORDS}
