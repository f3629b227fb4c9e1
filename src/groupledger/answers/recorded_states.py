"""The states of groups in a period, each with how long it lasted, and how many partitions its members had.

In joins the smaller side comes first: the engine in delta-rs keeps that one in memory, unless it takes the other for
smaller. Of lists that were taken apart it has no size to go by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.generations import CLASSIC
from groupledger.answers.rows import one_of, records
from groupledger.core.moment import EPOCH

if TYPE_CHECKING:
    from groupledger.answers.rows import Reader, Record, Value
    from groupledger.answers.scope import Scope
    from groupledger.answers.topic_partitions import NamedPartition

Query = tuple[str, dict[str, "Value"]]
"""SQL, and the values that it names."""

CONSUMER = "consumer"
RECORDED, TARGET = "recorded", "target"
"""Columns of a member: what it has, and what it is to have."""
SHARE = "share"
BEGINS_LATE = "history-begins-late"
"""A gap of a group's history (`core.history.gaps`, which loads the fold)."""
ASSIGNED = (
    f"s.group_type IN ('{CLASSIC}', '{CONSUMER}') AND s.members > 0 AND s.complete "
    "AND coalesce(s.protocol_type, 'consumer') = 'consumer'"
)
"""States of which the ledger has the whole assignment. Not those of share and streams groups: a partition of theirs
may have several owners, or be known by its task alone."""

_KEYS = "t.snapshot_id, t.cluster_id, t.group_id, t.offset, t.incarnation, t.observed_at, t.group_type, t.protocol_type"
_COLUMNS = (
    f"{_KEYS}, t.snapshot_kind, t.state, t.complete, t.members, t.assignor, t.shared_topics, t.subscribed_topics, "
    "coalesce(t.generation, t.group_epoch) AS number, t.target_epoch, t.previous_snapshot_id"
)


def states(within: Scope) -> Query:
    """The states that lasted into the period: its records, and the last one of each group before it.

    `until_at` is when the next one was recorded, null for a group's last one; `before` is the one before it, null for
    the first of these; `in_period` is false for what lasted into it only.
    """
    if within.since is None:
        return _lasting(within, None)
    before, values = _newest_before(within)
    of_states, more = _lasting(within, before)
    return of_states, values | more


def _newest_before(within: Scope) -> Query:
    """The offset of the last state of each group before the period."""
    of_groups, values = within.of_groups("t.")
    return (
        "SELECT t.cluster_id, t.group_id, max(t.offset) AS newest FROM current_group_snapshots t "
        f"WHERE {of_groups} AND t.observed_at < :since GROUP BY t.cluster_id, t.group_id"
    ), values | {"since": within.since or EPOCH}


def _lasting(within: Scope, newest_before: str | None, least: int = 0) -> Query:
    """The records of the period, and those that have these offsets, none of which is less than `least`."""
    condition, values = within.where("t.")
    rows = f"SELECT {_COLUMNS}, true AS in_period FROM current_group_snapshots t WHERE {condition}"
    if newest_before is not None:
        rows += (
            f" UNION ALL SELECT {_COLUMNS}, false AS in_period FROM ({newest_before}) b "
            "JOIN current_group_snapshots t ON b.cluster_id = t.cluster_id AND b.group_id = t.group_id "
            f"AND b.newest = t.offset WHERE t.offset >= {least}"
        )
    within_group = "OVER (PARTITION BY s.cluster_id, s.group_id ORDER BY s.offset)"
    until = f"lead(s.observed_at) {within_group} AS until_at, lag(s.snapshot_id) {within_group} AS before"
    return f"SELECT s.*, {until} FROM ({rows}) s", values


def _with_last_before(reader: Reader, within: Scope, kept: ExitStack) -> Query:
    """As `states`, where there is time for two queries: by a number in a query files and pages are left out."""
    if within.since is None:
        return states(within)
    query, values = _newest_before(within)
    before = f"SELECT * FROM {kept.enter_context(reader.kept(query, **values))}"
    [row] = records(reader, f"SELECT min(b.newest) AS least FROM ({before}) b")
    return _lasting(within, before, row["least"] or 0)


def recorded(within: Scope) -> Query:
    """The records of the period alone."""
    condition, values = within.where("t.")
    return f"SELECT {_COLUMNS} FROM current_group_snapshots t WHERE {condition}", values


@dataclass(frozen=True, slots=True)
class MeasuredStates:
    """The states of a period, worked out once for many questions, as SQL.

    `states` lasted into the period: the columns of `states`, and those of `expected` and `loads`, null where these have
    no row. `recorded` are those of the period alone, without the latter columns.
    """

    within: Scope
    states: str
    recorded: Query


@contextmanager
def measured(reader: Reader, within: Scope) -> Iterator[MeasuredStates]:
    """Work them out; they are there until the context ends."""
    with ExitStack() as kept:
        query, values = _with_last_before(reader, within, kept)
        of_states = f"SELECT * FROM {kept.enter_context(reader.kept(query, **values))}"
        [row] = records(reader, f"SELECT min(s.offset) AS oldest FROM ({of_states}) s")
        of_loads = loads(within, of_states, row["oldest"] or 0)
        of_listings, listed = listings(within)
        numbers = (
            "SELECT e.snapshot_id, e.fewest, e.greatest, l.total, l.most, l.least, l.owners "
            f"FROM ({expected(of_states, of_listings)}) e LEFT JOIN ({of_loads}) l ON l.snapshot_id = e.snapshot_id"
        )
        of_numbers = kept.enter_context(reader.kept(numbers, **(listed | within.of_groups("m.")[1])))
        beside = (
            "SELECT s.*, n.fewest, n.greatest, n.total, n.most, n.least, n.owners "
            f"FROM ({of_states}) s LEFT JOIN {of_numbers} n ON n.snapshot_id = s.snapshot_id"
        )
        yield MeasuredStates(within, beside, (f"{of_states} t WHERE t.in_period", {}))


def loads(within: Scope, states_query: str, since: int = 0, *, of: str = RECORDED) -> str:
    """For each of these states with an owned partition: `total`, `most` and `least` of an owner, how many `owners`.

    `since`: an offset that none of them lies before. `of`: what members have, or TARGET, what they are to have.
    """
    condition, _ = within.of_groups("m.")
    entries = (
        f"SELECT m.snapshot_id, m.member_order, unnest(m.{of}) AS entry "
        f"FROM (SELECT t.snapshot_id FROM ({states_query}) t) s JOIN current_member_snapshots m "
        f"ON m.snapshot_id = s.snapshot_id WHERE {condition} AND m.offset >= {since}"
    )
    by_member = (
        "SELECT e.snapshot_id, e.member_order, sum(cardinality(e.entry.partitions)) AS load "
        f"FROM ({entries}) e GROUP BY e.snapshot_id, e.member_order"
    )
    return (
        "SELECT p.snapshot_id, cast(sum(p.load) AS BIGINT) AS total, cast(max(p.load) AS BIGINT) AS most, "
        "cast(min(p.load) AS BIGINT) AS least, count(*) AS owners "
        f"FROM ({by_member}) p GROUP BY p.snapshot_id"
    )


def listings(within: Scope) -> Query:
    """The partition counts of topics, each from when to when it stood; null: the topic was deleted."""
    order = "t.valid_from, CASE WHEN t.partition_count IS NULL THEN 0 ELSE 1 END, t.topic_id, t.partition_count"
    after = f"lead(t.valid_from) OVER (PARTITION BY t.cluster_id, t.topic ORDER BY {order}) AS valid_until"
    condition = "true" if within.cluster is None else "t.cluster_id = :cluster_id"
    values: dict[str, Value] = {} if within.cluster is None else {"cluster_id": within.cluster}
    return (
        f"SELECT t.cluster_id, t.topic, t.topic_id, t.partition_count, t.valid_from, {after} "
        f"FROM current_topic_snapshots t WHERE {condition}"
    ), values


def expected(states_query: str, listings_query: str) -> str:
    """For each of these states: the fewest and the most partitions that its topics had together while it lasted.

    A topic that no listing had then counts for none.
    """
    topics = (
        "SELECT s.cluster_id, s.snapshot_id, s.observed_at, s.until_at, "
        f"unnest(coalesce(s.shared_topics, s.subscribed_topics)) AS topic FROM ({states_query}) s WHERE {ASSIGNED}"
    )
    by_topic = (
        "SELECT q.snapshot_id, q.topic, min(coalesce(l.partition_count, 0)) AS least, "
        f"max(coalesce(l.partition_count, 0)) AS most FROM ({topics}) q LEFT JOIN ({listings_query}) l "
        "ON l.cluster_id = q.cluster_id AND l.topic = q.topic "
        "AND (q.until_at IS NULL OR l.valid_from < q.until_at) "
        "AND (l.valid_until IS NULL OR l.valid_until > q.observed_at) GROUP BY q.snapshot_id, q.topic"
    )
    return (
        "SELECT b.snapshot_id, cast(sum(b.least) AS BIGINT) AS fewest, cast(sum(b.most) AS BIGINT) AS greatest "
        f"FROM ({by_topic}) b GROUP BY b.snapshot_id"
    )


def unseen_before(reader: Reader, rows: Sequence[Record]) -> dict[str, frozenset[NamedPartition]]:
    """Return the first of these states of their groups that others came before, and the partitions each took away.

    A group's very first state is one only if its history begins late: before another one there was no group.
    """
    first = {row["snapshot_id"]: row["previous_snapshot_id"] for row in rows if row["before"] is None}
    late = begun_late(reader, [each for each, previous in first.items() if previous is None])
    found: dict[str, set[NamedPartition]] = {each: set() for each in first if first[each] is not None or each in late}
    which, named = one_of("t.snapshot_id", "snapshot", sorted(found))
    query = (
        "SELECT t.snapshot_id, t.topic, t.partition FROM current_ownership_changes t "
        f"WHERE {which} AND t.to_member_id IS NULL"
    )
    for row in records(reader, query, **named):
        found[row["snapshot_id"]].add((row["topic"], row["partition"]))
    return {snapshot_id: frozenset(places) for snapshot_id, places in found.items()}


def begun_late(reader: Reader, snapshot_ids: Iterable[str]) -> set[str]:
    """Return those of these snapshots with which a group's history begins although the group was there before."""
    which, named = one_of("t.snapshot_id", "snapshot", sorted(snapshot_ids))
    query = f"SELECT t.snapshot_id FROM current_coverage t WHERE {which} AND t.kind = '{BEGINS_LATE}'"
    return {row["snapshot_id"] for row in records(reader, query, **named)}
