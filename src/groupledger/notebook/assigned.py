"""Run assignors over tables of members and topics: Spark's, pandas', Polars' or Arrow's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groupledger.engine.memberships import declared as d

if TYPE_CHECKING:
    from groupledger.core.custom.limits import CustomLimits
    from groupledger.engine.memberships.plan import StepMode
    from groupledger.engine.memberships.tables import ResultTables


def assign(
    members: Any,
    topics: Any,
    assignor: str = "cooperative-sticky",
    by: Sequence[str] = d.BY,
    columns: Mapping[str, str] | None = None,
    *,
    mode: StepMode = "as-kafka",
    limits: CustomLimits | None = None,
) -> Assigned:
    """Assign the partitions of many consumer groups: who owns, is assigned, must revoke what.

    `members` has a row a member (`groupledger.MEMBERS`: `group_id`, `member_id`, `topics`, and what else is known),
    `topics` a row a topic (`groupledger.TOPICS`: `topic`, `partitions`, `racks`). Both are DataFrames of Spark (classic
    or Connect), pandas or Polars, or tables of Arrow; results are of the same kind. Only with Spark's is Spark used:
    nothing runs until a result is asked for, and nothing is cached unless `Assigned.persist` is called.

    `assignor`: one of `groupledger.assignors()`, its Java class, `module:function`
    (docs/guides/decide/write-an-assignor.md), or the column of members that names each group's. `by`: the columns that
    tell groups apart; of the default those that members have. A topic is of the groups with which it shares those of
    these columns that topics have. `columns`: the frames' names of columns, by ours. `mode`: `kip` computes the
    cooperative step by KIP-429's text.

    Raises Fault, before anything runs: COLUMN_MISSING, COLUMN_TYPE, UNKNOWN_ASSIGNOR, ASSIGNOR_NOT_FOUND, USAGE. Rows
    that cannot be used refuse their group alone: `Assigned.refused`.

    >>> import pandas as pd
    >>> members = pd.DataFrame({
    ...     "group_id": ["payments", "payments"],
    ...     "member_id": ["a", "b"],
    ...     "topics": [["orders"], ["orders"]],
    ...     "owned": [["orders-0", "orders-1", "orders-2"], None],
    ... })
    >>> found = assign(members, pd.DataFrame({"topic": ["orders"], "partitions": [3]}))
    >>> found.members[["member_id", "assigned", "awaiting"]].to_dict("records")[1]["awaiting"]
    [{'topic': 'orders', 'partitions': [2]}]
    >>> found.groups[["group_id", "moved", "least_moves", "rounds"]].to_dict("records")
    [{'group_id': 'payments', 'moved': 1, 'least_moves': 1, 'rounds': 2}]
    """
    from groupledger.core.custom.limits import DEFAULT
    from groupledger.engine.memberships.plan import chosen_assignor, planned
    from groupledger.engine.memberships.tables import source_of

    source = source_of(members, topics)
    chosen = chosen_assignor(assignor, source.schemas[0].names, mode, limits or DEFAULT)
    plan = planned(*source.schemas, chosen, by, columns)
    return Assigned(plan.by, source.assigned(plan))


@dataclass(frozen=True)
class Assigned:
    """What `assign` found: three tables of the kind that it was given.

    Spark computes each of them when it is used; after `persist()` all of them share one computation.
    """

    by: tuple[str, ...]
    _result: ResultTables

    @property
    def result(self) -> Any:
        """Return the one table that the others are selected from: a row a group, with its members in it."""
        return self._result.whole()

    @property
    def members(self) -> Any:
        """Return a row a member of each group that was not refused: the columns of `by`, then `ASSIGNED_MEMBERS`'."""
        return self._result.members()

    @property
    def groups(self) -> Any:
        """Return a row a group that was not refused: the columns of `by`, then `ASSIGNED_GROUPS`'."""
        return self._result.groups(d.GROUP_NAMES, refused=False)

    @property
    def refused(self) -> Any:
        """Return a row a group whose rows cannot be used: the columns of `by`, `code` and `message`."""
        return self._result.groups(d.REFUSAL_NAMES, refused=True)

    def persist(self) -> Assigned:
        """Return the same, with a result that Spark keeps when it is first computed; nothing runs now.

        `result.unpersist()` frees it. Tables without Spark are computed already.
        """
        return Assigned(self.by, self._result.persisted())

    def __repr__(self) -> str:
        return f"Assigned(by={', '.join(self.by)}; members, groups, refused: tables of {self._result.kind})"
