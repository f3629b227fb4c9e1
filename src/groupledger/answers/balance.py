"""Assignments that break what their assignor promises: balance, and no more moves than balance asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.answers.found import Found, broken
from groupledger.answers.generations import CLASSIC
from groupledger.answers.rebalance_causes import MOST_ASKED
from groupledger.answers.recorded_states import ASSIGNED, CONSUMER, TARGET, Query, loads
from groupledger.answers.rows import one_of, records
from groupledger.answers.states import BASELINE
from groupledger.answers.view_page import ingest_findings
from groupledger.core.findings import CLAIM_DIFFERS, EXCESS_MOVES, STALE_CLAIM, UNBALANCED

if TYPE_CHECKING:
    from groupledger.answers.recorded_states import MeasuredStates
    from groupledger.answers.rows import Reader, Record, Value
    from groupledger.core.findings import Invariant

BALANCED = ("sticky", "cooperative-sticky", "roundrobin", "uniform")
"""Assignors that give members of one subscription within one partition of each other."""
KEEPING = ("sticky", "cooperative-sticky")
"""Assignors that promise to keep what members have."""
SAME = (
    *("exact", "equal-sets", "exact-older-topics", "exact-newer-topics", "exact-recorded-topics"),
    "topic-unknown-to-leader",
)
"""Verdicts under which the computed target is the recorded one, so that a result's numbers are those of the record."""

CERTAIN = "(r.least_moves_certainty = 'exact' OR (r.least_moves_certainty IS NULL AND s.shared_topics IS NOT NULL))"
"""That the least moves of a result `r` of a snapshot `s` are exact. Rows of older schema versions do not say so: of
these, one subscription for all does."""


def unbalanced(reader: Reader, of_period: MeasuredStates) -> Iterator[Found]:
    """Groups with a settled record of one subscription in which a member has two or more partitions over another."""
    among, named = one_of("s.assignor", "assignor", list(BALANCED))
    uneven = (
        "SELECT s.*, s.most - CASE WHEN s.owners < s.members THEN 0 ELSE s.least END AS amount "
        f"FROM ({of_period.states}) s WHERE {ASSIGNED} AND s.in_period AND s.shared_topics IS NOT NULL "
        f"AND s.snapshot_kind <> 'rewrite' AND {among} AND s.fewest = s.greatest AND s.greatest = s.total"
    )
    query = f"SELECT u.* FROM ({uneven}) u WHERE u.amount > 1"
    reached, ids = one_of("v.snapshot_id", "reached", _with_what_they_are_to_have(reader, of_period, (query, named)))
    settled = f"SELECT v.* FROM ({query}) v WHERE v.state = 'Stable' OR {reached}"
    for row in _folded(reader, settled, named | ids):
        least = row["most"] - row["amount"]
        yield _found(UNBALANCED, row, f"a member has {row['most']:,} partitions, another {least:,}")


def _with_what_they_are_to_have(reader: Reader, of_period: MeasuredStates, uneven: Query) -> list[str]:
    """Of these states of KIP-848 groups that are not yet stable: the ids of those whose members have their targets.

    A record that only says that a member reached the epoch changes nothing, so that no state follows.
    """
    query, values = uneven
    waiting = f"SELECT w.* FROM ({query}) w WHERE w.group_type = '{CONSUMER}' AND w.state <> 'Stable' "
    waiting += "AND w.target_epoch = w.number"
    targets = loads(of_period.within, waiting, of=TARGET)
    as_many = (
        f"SELECT b.snapshot_id, b.group_id FROM ({waiting}) b JOIN ({targets}) g ON g.snapshot_id = b.snapshot_id "
        "WHERE g.total = b.total AND g.most = b.most AND g.least = b.least AND g.owners = b.owners ORDER BY 1"
    )
    rows = records(reader, as_many, **(values | of_period.within.of_groups("m.")[1]))
    found: list[str] = []
    for begin in range(0, len(rows), MOST_ASKED):
        found += _reached(reader, rows[begin : begin + MOST_ASKED])
    return found


def _reached(reader: Reader, some: list[Record]) -> Iterator[str]:
    """The ids of those of these snapshots in which every member has exactly its target."""
    snapshots, ids = one_of("m.snapshot_id", "snapshot", [row["snapshot_id"] for row in some])
    groups, named = one_of("m.group_id", "group", sorted({row["group_id"] for row in some}))
    query = (
        "SELECT m.snapshot_id, m.recorded, m.target, m.pending_revocation FROM current_member_snapshots m "
        f"WHERE {groups} AND {snapshots}"
    )
    on_the_way = {
        row["snapshot_id"]
        for row in records(reader, query, **ids, **named)
        if _places(row["recorded"]) != _places(row["target"]) or _places(row["pending_revocation"])
    }
    return (row["snapshot_id"] for row in some if row["snapshot_id"] not in on_the_way)


def _places(entries: list[Record] | None) -> set[tuple[str, int]]:
    return {(entry["topic_id"], number) for entry in entries or () for number in entry["partitions"]}


def excess_moves(reader: Reader, results: str) -> Iterator[Found]:
    """Classic groups in which more moved than had to. What a coordinator moves is spread over the folds of an epoch.

    Judged where the least moves are exact and ours to compare with: members claimed what they had, and the record is
    what was recomputed. `results`: a table of the rows of `results`.
    """
    moving = f"SELECT r.group_id, r.snapshot_id FROM {results} r WHERE r.moved_more = 1 ORDER BY 1, 2"
    some: list[Record] = []
    for _, of_group in groupby(records(reader, moving), lambda row: row["group_id"]):
        some += of_group
        if len(some) >= MOST_ASKED:
            yield from _excess(reader, some)
            some = []
    if some:
        yield from _excess(reader, some)


def results(recorded: Query) -> Query:
    """The records that a committed `assign` has computed again; `moved_more` is 1 where one moved too much.

    Whether or not that result counts: to rank all results of a large ledger would take its memory. What counts is asked
    for these alone.
    """
    of_records, values = recorded
    promised, named = _promised("r.")
    return (
        f"SELECT r.group_id, r.snapshot_id, max(CASE WHEN r.moves > r.least_moves AND {promised} THEN 1 ELSE 0 END) "
        f"AS moved_more FROM (SELECT t.snapshot_id FROM ({of_records}) t) s "
        "JOIN rebalances r ON r.snapshot_id = s.snapshot_id JOIN current_runs a ON a.attempt_id = r.attempt_id "
        "WHERE r.scenario = :scenario GROUP BY r.group_id, r.snapshot_id"
    ), values | named | {"scenario": BASELINE}


def _promised(prefix: str) -> Query:
    """A condition that a result is what was recorded, under an assignor that promises to keep what members have."""
    verdicts, named = one_of(f"{prefix}verdict", "verdict", list(SAME))
    among, others = one_of(f"{prefix}assignor", "assignor", list(KEEPING))
    return f"{verdicts} AND {among}", named | others


def _excess(reader: Reader, some: list[Record]) -> Iterator[Found]:
    """Findings of these snapshots, which are all there are of their groups."""
    snapshots, ids = one_of("r.snapshot_id", "snapshot", [row["snapshot_id"] for row in some])
    groups, named = one_of("r.group_id", "group", sorted({row["group_id"] for row in some}))
    promised, values = _promised("r.")
    claims, codes = one_of("v.code", "code", [STALE_CLAIM.recorded_as, CLAIM_DIFFERS.recorded_as])
    query = (
        "SELECT r.cluster_id, r.group_id, r.snapshot_id, r.observed_at, s.offset, r.assignor, r.moves AS most, "
        "r.least_moves AS least, r.moves - r.least_moves AS amount FROM current_rebalances r "
        "JOIN current_group_snapshots s ON s.cluster_id = r.cluster_id AND s.group_id = r.group_id "
        f"AND s.snapshot_id = r.snapshot_id WHERE {groups} AND {snapshots} AND r.scenario = :scenario AND r.round = 1 "
        f"AND {promised} AND r.moves > r.least_moves AND {CERTAIN} "
        f"AND s.group_type = '{CLASSIC}' AND NOT EXISTS "
        f"(SELECT 1 FROM ({ingest_findings()}) v WHERE v.cluster_id = r.cluster_id AND v.group_id = r.group_id "
        f"AND v.snapshot_id = r.snapshot_id AND {claims})"
    )
    for row in _folded(reader, query, values | ids | named | codes | {"scenario": BASELINE}):
        text = f"{row['assignor']} moved {row['most']:,} partitions where {row['least']:,} had to move"
        yield _found(EXCESS_MOVES, row, text)


def _folded(reader: Reader, query: str, values: Mapping[str, Value]) -> list[Record]:
    """A row a group: how many records, from when to when, and the one with the greatest `amount`."""
    group = "PARTITION BY q.cluster_id, q.group_id"
    counted = (
        f"SELECT q.*, count(*) OVER ({group}) AS records, min(q.observed_at) OVER ({group}) AS first, "
        f"max(q.observed_at) OVER ({group}) AS last, row_number() OVER ({group} ORDER BY q.amount DESC, q.offset DESC) "
        f"AS place FROM ({query}) q"
    )
    return records(reader, f"SELECT * FROM ({counted}) c WHERE c.place = 1", **values)


def _found(invariant: Invariant, row: Record, evidence: str) -> Found:
    group = row["cluster_id"], row["group_id"]
    return broken(invariant, group, row["records"], (row["first"], row["last"]), evidence, row["snapshot_id"])
