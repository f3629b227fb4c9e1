"""Run assignors over tables of members and topics, Spark's, pandas', Polars' or Arrow's, and ingest into a ledger."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from groupledger.core.faults import Fault
from groupledger.engine.memberships import declared as d
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from groupledger.config import LedgerSettings
    from groupledger.core.custom.custom_group import CustomLimits
    from groupledger.engine.memberships.declared import StepMode
    from groupledger.engine.memberships.user_tables import ArrowResult, SparkResult
    from groupledger.pipeline.assign import AssignSummary
    from groupledger.pipeline.ingest import IngestSummary


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
    from groupledger.core.custom.custom_group import DEFAULT
    from groupledger.engine.memberships.declared import chosen_assignor, planned
    from groupledger.engine.memberships.user_tables import source_of

    source = source_of(members, topics)
    chosen = chosen_assignor(assignor, source.schemas[0].names, mode, limits or DEFAULT)
    plan = planned(*source.schemas, chosen, by, columns)
    given = _Given(members, topics, columns or {}, assignor, chosen.column is not None, mode, limits or DEFAULT)
    return Assigned(plan.by, source.assigned(plan), given)


@dataclass(frozen=True)
class _Given:
    """What `assign` was called with."""

    members: Any
    topics: Any
    columns: Mapping[str, str]
    assignor: str
    by_column: bool
    mode: StepMode
    limits: CustomLimits


@dataclass(frozen=True)
class Assigned:
    """What `assign` found: three tables of the kind that it was given.

    Spark computes each of them when it is used; after `persist()` all of them share one computation.
    """

    by: tuple[str, ...]
    _result: ArrowResult | SparkResult
    _given: _Given

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
        return replace(self, _result=self._result.persisted())

    def write(
        self,
        ledger: str | os.PathLike[str] | None = None,
        *,
        run_id: str,
        catalog: str | None = None,
        cluster_id: str = "default",
    ) -> AssignSummary:
        """Keep members, topics and what the assignor makes of them in a ledger, once under a run id; Spark only.

        `groupledger.open` reads it. `ledger`: a folder or URL; `catalog`: instead, a catalog and schema. `cluster_id`:
        the cluster of rows that name none. The facts are a run `<run_id>-facts`, the results one of `run_id`, under a
        scenario that is named after the assignor. A second call with the same `run_id` changes nothing, and completes
        one that broke off. Assignments are computed for the ledger as `groupledger assign` does: moves are counted
        from the previous snapshot of the group, which may differ from `held` here.

        Raises Fault, before anything is written: USAGE, FOREIGN_SCHEMA, and those of a ledger that cannot be used.
        """
        from groupledger.cli.options import new_invocation
        from groupledger.config import AssignSettings, Config, LimitSettings
        from groupledger.pipeline.both_jobs import Frames, write_assigned

        place, given = place_of(ledger, catalog), self._given
        spark = self._session(run_id)
        self._require_snapshots()
        frames = Frames(members=given.members, topics=given.topics, cluster_id=cluster_id, columns=given.columns)
        limits = LimitSettings(custom_seconds=given.limits.seconds, custom_memory_mb=given.limits.memory_mb)
        wanted = AssignSettings(assignor=given.assignor, mode=given.mode)
        config = Config(cluster_id=cluster_id, ledger=place, assign=wanted, limits=limits)
        return write_assigned(spark, frames, config, new_invocation(run_id))

    def write_tables(self, folder: str | os.PathLike[str], *, run_id: str) -> None:
        """Append the results to the Delta tables `members`, `groups`, `refused` in a folder, once a run id; Spark only.

        `folder` may be a URL. Tables that are missing are made; a column `run_id` comes first. A second call with the
        same `run_id` changes nothing, and completes one that broke off. Each table computes the result, unless
        `persist` was called.
        """
        from pyspark.sql import functions as F

        from groupledger.sinks.append import append_once

        self._session(run_id)
        if c.RUN_ID in self.by:
            raise Fault("USAGE", f"by is {self.by}; expected no run_id, which the tables have of the run: rename it")
        for name, rows in (("members", self.members), ("groups", self.groups), ("refused", self.refused)):
            stamped = rows.select(F.lit(run_id).alias(c.RUN_ID), "*")
            append_once(stamped, f"{os.fspath(folder).rstrip('/')}/{name}", run_id)

    def _session(self, run_id: str) -> Any:
        """Return the session of the frames. Raises Fault: USAGE, for tables without one and a run without a name."""
        if self._result.kind != "Spark":
            words = "expected DataFrames of Spark: pass spark.createDataFrame(...) of both to assign"
            raise Fault("USAGE", f"members and topics are of {self._result.kind}; {words}")
        if not run_id:
            raise Fault("USAGE", f"run_id is {run_id!r}; expected a name, such as the date, by which a repeat is known")
        return self._given.members.sparkSession

    def _require_snapshots(self) -> None:
        """Raise Fault, USAGE, unless a ledger distinguishes the groups, under one assignor."""
        given, instead = self._given, "write_tables() keeps the results as they are"
        if given.by_column:
            words = f"assignor is the column {given.assignor!r}; expected one assignor for all groups of a run"
            raise Fault("USAGE", f"{words}: assign and write those of each apart, or {instead}")
        there = [name for name in d.BY if given.columns.get(name, name) in given.members.columns]
        if c.OBSERVED_AT not in there:
            words = "members.withColumn('observed_at', lit(moment))"
            raise Fault("USAGE", f"members have no observed_at, which a ledger needs: {words}; or {instead}")
        if set(self.by) != set(there):
            raise Fault("USAGE", f"by is {self.by}; a ledger tells groups apart by {tuple(there)}: {instead}")

    def __repr__(self) -> str:
        return f"Assigned(by={', '.join(self.by)}; members, groups, refused: tables of {self._result.kind})"


def ingest(
    spark: SparkSession,
    *,
    members: Any,
    topics: Any = None,
    ledger: str | os.PathLike[str] | None = None,
    catalog: str | None = None,
    cluster_id: str = "default",
    columns: Mapping[str, str] | None = None,
    run_id: str | None = None,
) -> IngestSummary:
    """Ingest who was a member of which group, and had which partitions, into a ledger; one that is missing is made.

    `members` has a row a member of a group at a moment: `group_id`, `observed_at`, `member_id`, `topics`, and, as far
    as they are known, `cluster_id`, `owned` and the others of docs/operate/read-tables.md. `topics` has a row a topic:
    `topic`, `partitions`. Both are Spark DataFrames, or what `spark.createDataFrame` takes. `columns`: their names of
    columns, by ours. `cluster_id`: the cluster of rows that name none. `ledger`: a folder or URL; `catalog`: instead, a
    catalog and schema.

    A second call with the same `run_id` changes nothing. Without one, snapshots that the ledger has are duplicates:
    they are counted, and change nothing either. Rows that cannot be used send those of their group at that moment to
    `quarantine`.

    Raises Fault, before anything is written: USAGE, FOREIGN_SCHEMA, and those of a ledger that cannot be used.
    """
    from groupledger.cli.options import new_invocation
    from groupledger.pipeline.both_jobs import Frames, ingest_frames

    place = place_of(ledger, catalog)
    frames = Frames(
        members=_frame(spark, members),
        topics=None if topics is None else _frame(spark, topics),
        cluster_id=cluster_id,
        columns=columns or {},
    )
    return ingest_frames(spark, frames, place, new_invocation(run_id))


def place_of(ledger: str | os.PathLike[str] | None, catalog: str | None) -> LedgerSettings:
    """Return where the ledger is. Raises Fault: USAGE unless one of the two is given."""
    from groupledger.config import LedgerSettings

    if (ledger is None) == (catalog is None):
        raise Fault("USAGE", "a ledger is at a location or in a catalog: expected one of ledger and catalog")
    return LedgerSettings(location=None if ledger is None else os.fspath(ledger), catalog=catalog)


def _frame(spark: SparkSession, given: Any) -> DataFrame:
    from pyspark.sql import DataFrame

    return given if isinstance(given, DataFrame) else spark.createDataFrame(given)
