"""Write the rows that count as SQL that Spark and delta-rs's engine both run: a view for each table of the ledger.

python -m groupledger.tables.views > src/groupledger/answers/views.sql

In Spark `unnest` is `explode`. The text is kept in a file, so that a reader without Spark need not import the
declarations. `sinks.current` runs the same queries for jobs. The rule, as `docs/guides/use/sql.md` has it for readers:

- A row counts once `runs` commits its attempt.
- A *fact* of a group is superseded if a later attempt folded the group again (late data): its row in `group_heads`
  says `refolded`, and its offsets (`from_offset`, `offset`] are the later attempt's alone. Folded again from the
  beginning (`from_offset` -1), the group is the later attempt's alone, in whichever log partition it was before.
- *Ownership changes* of users' own snapshot tables are, of each group, those of the last attempt that derived them:
  each derives all, since a snapshot may come late.
- The *snapshot before* one of users' own tables is, unless its table names another, the one before it by offset, of the
  same group and incarnation: a snapshot may come late, so this is decided when they are read.
- A *result* is superseded by that of the latest attempt for the same snapshot and scenario, whatever its configuration,
  and counts only while its snapshot does: one that a read had cut is no longer there once the group was folded again.
- *Calls* and their metrics are those of the last commit that derived them: each derives all.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from groupledger.tables import (
    ASSIGNMENTS,
    CALLBACKS,
    COVERAGE,
    GROUP_HEADS,
    GROUP_SNAPSHOTS,
    LOG_RECORDS,
    MEMBER_SNAPSHOTS,
    METRICS,
    OWNERSHIP_CHANGES,
    QUARANTINE,
    REBALANCES,
    RUNS,
    TABLES,
    TOPIC_SNAPSHOTS,
    VIOLATIONS,
    Table,
)
from groupledger.tables import columns as c

CURRENT = "current_{}"
REFOLDS, LATEST_RESULTS, NOT_LISTED = "current_refolds", "latest_results", "topics_not_listed"
_HEAD = """\
-- What counts in a ledger, a view for each table. Written by `python -m groupledger.tables.views`; the rule in words is
-- in docs/guides/use/sql.md. Tables stand behind FROM and JOIN alone, under their own names.
"""
_COMMENTS = {
    REFOLDS: "Offsets of a group that a later attempt folded again: earlier facts of them do not count.",
    LATEST_RESULTS: "The attempt that counts for each scenario and each snapshot that counts.",
    NOT_LISTED: "Topics that a snapshot's members subscribe to, deleted at its time or in no listing at all.",
}
_RESULT_KEY = (c.CLUSTER_ID, c.GROUP_ID, c.SNAPSHOT_ID, c.SCENARIO)
_FROM_LOG = "t.snapshot_id LIKE 'log/%'"
_OF_LOG = "t.source = 'log'"
_WITH_TIMES = (c.OBSERVED_AT, c.STATE, c.SNAPSHOT_KIND)
"""What a reader of results wants to know of their snapshot."""


class Cut(NamedTuple):
    """What a reader knows of a ledger's commits: parts of a query that change nothing by this are left out.

    `refolds`: groups were folded again. `given`: snapshots came from users' own tables. `counted`: no; the tables that
    are read hold rows of committed attempts alone, and results are wanted without the times of their snapshot.
    """

    refolds: bool = True
    given: bool = True
    counted: bool = False


def _same(side: str, names: tuple[str, ...]) -> str:
    return " AND ".join(f"{side}.{name} = t.{name}" for name in names)


_THERE = f"SELECT 1 FROM {CURRENT.format(GROUP_SNAPSHOTS.name)} s WHERE {_same('s', _RESULT_KEY[:3])}"
"""The snapshot of a result counts."""


def views(cut: Cut = Cut()) -> dict[str, str]:  # noqa: B008 a constant
    """Map each name to its query, ordered so that a view only uses those before it."""
    made = {
        CURRENT.format(RUNS.name): f"SELECT {_columns(RUNS)} FROM runs t WHERE t.status = 'committed'",
        REFOLDS: (
            "SELECT t.cluster_id, t.group_id, t.log_partition, t.from_offset, t.offset AS to_offset, r.sequence "
            "FROM group_heads t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE t.refolded"
        ),
    }
    for table in (LOG_RECORDS, TOPIC_SNAPSHOTS):
        made[CURRENT.format(table.name)] = _committed(table, "", cut)
    for table in (MEMBER_SNAPSHOTS, GROUP_HEADS, COVERAGE):
        made[CURRENT.format(table.name)] = _fact(table, "", cut)
    made[CURRENT.format(OWNERSHIP_CHANGES.name)] = _ownership(cut)
    made[CURRENT.format(GROUP_SNAPSHOTS.name)] = _group_snapshots(cut)
    made[LATEST_RESULTS] = _latest_results(cut)
    for table in (REBALANCES, ASSIGNMENTS):
        made[CURRENT.format(table.name)] = _result(table, cut)
    made[CURRENT.format(QUARANTINE.name)] = _both(QUARANTINE, "t.stage = 'assign'", "t.stage <> 'assign'", cut)
    made[CURRENT.format(VIOLATIONS.name)] = _both(VIOLATIONS, "t.scenario IS NOT NULL", "t.scenario IS NULL", cut)
    newest = "SELECT max(x.sequence) FROM current_runs x WHERE x.kind = 'callbacks'"
    for table in (CALLBACKS, METRICS):
        made[CURRENT.format(table.name)] = _committed(table, f"r.sequence = ({newest})", Cut())
    made[NOT_LISTED] = _not_listed()
    return made


def page() -> str:
    """Return the text of views.sql."""
    comments = {CURRENT.format(table.name): table.comment for table in TABLES} | _COMMENTS
    return _HEAD + "".join(
        f"\n-- {comments[name]}\nCREATE VIEW {name} AS\n{query};\n" for name, query in views().items()
    )


def _columns(of: Table | tuple[str, ...], **instead: str) -> str:
    names = of.columns if isinstance(of, Table) else of
    return ", ".join(f"{instead[name]} AS {name}" if name in instead else f"t.{name}" for name in names)


def _with_run(table: Table) -> str:
    return f"FROM {table.name} t JOIN current_runs r ON r.attempt_id = t.attempt_id"


def _committed(table: Table, where: str, cut: Cut, *, numbered: bool = False) -> str:
    """Select committed rows; `numbered`: the condition names the number `r.sequence` of the commit."""
    source = f"FROM {table.name} t" if cut.counted and not numbered else _with_run(table)
    return f"SELECT {_columns(table)} {source}" + (f" WHERE {where}" if where else "")


def _fact(table: Table, where: str, cut: Cut) -> str:
    """Select committed rows of groups that no later attempt folded again."""
    if not cut.refolds:
        return _committed(table, where, cut)
    known = " AND ".join(filter(None, (where, f"NOT EXISTS (SELECT 1 FROM {REFOLDS} m WHERE {_superseded(table)})")))
    return _committed(table, known, cut, numbered=True)


def _superseded(table: Table) -> str:
    inside = "t.offset > m.from_offset AND t.offset <= m.to_offset"
    if c.LOG_PARTITION in table.columns:
        of_log, inside = "t.log_partition IS NOT NULL", f"t.log_partition = m.log_partition AND {inside}"
    else:
        of_log = _FROM_LOG
    conditions = ["m.cluster_id = t.cluster_id", "m.group_id = t.group_id", "r.sequence < m.sequence", of_log]
    conditions += ["t.stage = 'fold'"] if table.name == QUARANTINE.name else []
    return " AND ".join([*conditions, f"(m.from_offset < 0 OR ({inside}))"])


def _ranked(table: Table, key: tuple[str, ...], where: str = "") -> str:
    """Select committed rows, with `newest` = 1 for those of the last attempt with this key."""
    order = f"rank() OVER (PARTITION BY {_columns(key)} ORDER BY r.sequence DESC) AS newest"
    return f"SELECT {_columns(table)}, {order} {_with_run(table)}" + (f" WHERE {where}" if where else "")


def _ownership(cut: Cut) -> str:
    if not cut.given:
        return _fact(OWNERSHIP_CHANGES, "", cut)
    given = _ranked(OWNERSHIP_CHANGES, (c.CLUSTER_ID, c.GROUP_ID), "t.log_partition IS NULL")
    logged = _fact(OWNERSHIP_CHANGES, "t.log_partition IS NOT NULL", cut)
    return f"{logged}\nUNION ALL\nSELECT {_columns(OWNERSHIP_CHANGES)} FROM ({given}) t WHERE t.newest = 1"


def _group_snapshots(cut: Cut) -> str:
    if not cut.given:
        return _fact(GROUP_SNAPSHOTS, "", cut)
    order = "PARTITION BY t.cluster_id, t.group_id, t.incarnation ORDER BY t.offset, t.snapshot_id"
    before = f"coalesce(t.previous_snapshot_id, lag(t.snapshot_id) OVER ({order}))"
    given = f"SELECT {_columns(GROUP_SNAPSHOTS, **{c.PREVIOUS_SNAPSHOT_ID: before})} {_with_run(GROUP_SNAPSHOTS)}"
    # not by the snapshot id: ten million different texts are read to find that all begin alike
    return f"{_fact(GROUP_SNAPSHOTS, _OF_LOG, cut)}\nUNION ALL\n{given} WHERE NOT {_OF_LOG}"


def _few(table: Table, is_result: str) -> str:
    """Select the results that count of a table that has few: those that no later attempt computed again.

    `latest_results` ranks all results of a ledger, which takes a minute and gigabytes for ten million. Here the engine
    in delta-rs looks for later results of these few alone. For all results, ranking needs less memory.
    """
    again = (
        f"SELECT 1 FROM {REBALANCES.name} n JOIN current_runs q ON q.attempt_id = n.attempt_id "
        f"WHERE {_same('n', _RESULT_KEY)} AND q.sequence > r.sequence"
    )
    return f"{_committed(table, f'{is_result} AND EXISTS ({_THERE})', Cut())} AND NOT EXISTS ({again})"


def _latest_results(cut: Cut) -> str:
    return (
        f"SELECT DISTINCT {_columns(_RESULT_KEY)}, t.attempt_id FROM ({_ranked(REBALANCES, _RESULT_KEY)}) t "
        "WHERE t.newest = 1" + (f" AND EXISTS ({_THERE})" if cut.refolds else "")
    )


def _result(table: Table, cut: Cut) -> str:
    """Select the newest results, with the time, state and kind of their snapshot."""
    if cut.counted:
        latest = f"SELECT 1 FROM {LATEST_RESULTS} l WHERE {_same('l', (*_RESULT_KEY, c.ATTEMPT_ID))}"
        return f"SELECT {_columns(table)} FROM {table.name} t WHERE EXISTS ({latest})"
    latest, of_snapshot = _same("l", (*_RESULT_KEY, c.ATTEMPT_ID)), _same("s", _RESULT_KEY[:3])
    times = ", ".join(f"s.{name}" for name in _WITH_TIMES)
    return (
        f"SELECT {_columns(table)}, {times} FROM {table.name} t JOIN {LATEST_RESULTS} l ON {latest} "
        f"LEFT JOIN {CURRENT.format(GROUP_SNAPSHOTS.name)} s ON {of_snapshot}"
    )


def _both(table: Table, is_result: str, is_fact: str, cut: Cut) -> str:
    """Select the facts of a table together with the results stored in it."""
    if c.SCENARIO in table.columns:
        results = _few(table, is_result)
    else:
        latest = f"SELECT 1 FROM {LATEST_RESULTS} l WHERE {_same('l', (*_RESULT_KEY[:3], c.ATTEMPT_ID))}"
        results = f"SELECT {_columns(table)} FROM {table.name} t WHERE {is_result} AND EXISTS ({latest})"
    return f"{_fact(table, is_fact, cut)}\nUNION ALL\n{results}"


def _not_listed() -> str:
    """Select topics that no listing counts at a snapshot's time, changes ordered as in `core.log.topic_partitions`.

    A topic that is listed later for the first time is judged by that listing.
    """
    of_snapshot = (c.CLUSTER_ID, c.GROUP_ID, c.INCARNATION, c.OFFSET, c.SNAPSHOT_ID, c.GENERATION, c.GROUP_EPOCH)
    wanted = (
        f"SELECT {_columns(of_snapshot)}, t.observed_at, unnest(coalesce(t.shared_topics, t.subscribed_topics)) AS "
        f"topic FROM {CURRENT.format(GROUP_SNAPSHOTS.name)} t"
    )
    order = (
        "l.valid_from DESC NULLS LAST, CASE WHEN l.partition_count IS NULL THEN 0 ELSE 1 END DESC, "
        "coalesce(l.topic_id, '') DESC, coalesce(l.partition_count, 0) DESC"
    )
    newest = (
        f"row_number() OVER (PARTITION BY t.cluster_id, t.group_id, t.snapshot_id, t.topic ORDER BY {order}) AS newest"
    )
    known = (
        f"SELECT {_columns(of_snapshot)}, t.topic, l.partition_count, l.valid_from, {newest} FROM ({wanted}) t "
        f"LEFT JOIN {CURRENT.format(TOPIC_SNAPSHOTS.name)} l ON l.cluster_id = t.cluster_id AND l.topic = t.topic "
        "AND l.valid_from <= t.observed_at WHERE t.topic IS NOT NULL"
    )
    return (
        f"SELECT {_columns((*of_snapshot, c.TOPIC))} FROM ({known}) t LEFT JOIN (SELECT DISTINCT l.cluster_id, l.topic "
        f"FROM {CURRENT.format(TOPIC_SNAPSHOTS.name)} l WHERE l.partition_count IS NOT NULL) f ON f.cluster_id = "
        "t.cluster_id AND f.topic = t.topic WHERE t.newest = 1 AND t.partition_count IS NULL "
        "AND (t.valid_from IS NOT NULL OR f.topic IS NULL)"
    )


if __name__ == "__main__":
    sys.stdout.write(page())
