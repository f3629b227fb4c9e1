"""Groups that rebalance again and again while nothing that the log holds of their members changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.answers.generations import CLASSIC
from groupledger.answers.rebalance_causes import caused
from groupledger.answers.rows import one_of, records
from groupledger.answers.unowned_stretches import PATIENCE
from groupledger.answers.view_page import ingest_findings
from groupledger.core.findings import BY_RECORDED

if TYPE_CHECKING:
    from groupledger.answers.recorded_states import Query
    from groupledger.answers.rows import Reader, Record

RESTLESS = 5
"""Generations in a row before which nothing changed. One follows where a cooperative rebalance withholds partitions,
two where subscriptions differ."""


@dataclass(frozen=True, slots=True)
class Restless:
    """Generations in a row before which nothing changed, none longer than `PATIENCE` after the last.

    `findings`: what else was found in these records, the most frequent first.
    """

    cluster_id: str
    group_id: str
    generations: tuple[Record, ...]
    findings: tuple[tuple[str, int], ...] = ()


def restless(reader: Reader, of_records: Query) -> Iterator[Restless]:
    """Every such run, in order of cluster, group and offset. Of classic groups: others count epochs."""
    runs, values = _runs(of_records)
    rows = records(reader, f"SELECT * FROM ({runs}) r ORDER BY r.cluster_id, r.group_id, r.offset", **values)
    if not rows:
        return
    causes = caused(reader, rows)
    for (cluster, group, _), of_run in groupby(rows, lambda row: (row["cluster_id"], row["group_id"], row["run"])):
        for quiet, same in groupby(of_run, lambda row: causes[row["snapshot_id"]].is_quiet):
            generations = tuple(same)
            if quiet and len(generations) >= RESTLESS:
                yield Restless(cluster, group, generations, _findings(reader, generations))


def _runs(recorded: Query) -> Query:
    """Generations in runs of one number of members, with gaps of no more than `PATIENCE`; long runs alone."""
    of_records, values = recorded
    group = "PARTITION BY g.cluster_id, g.group_id, g.incarnation ORDER BY g.offset"
    columns = (
        "g.cluster_id, g.group_id, g.group_type, g.members, g.snapshot_id, g.previous_snapshot_id, g.number, "
        "g.observed_at, g.offset"
    )
    before = f"lag(g.members) OVER ({group}) AS members_before, lag(g.observed_at) OVER ({group}) AS at_before"
    generations = f"g.group_type = '{CLASSIC}' AND g.snapshot_kind = 'generation' AND g.members > 0"
    beside = f"SELECT {columns}, {before} FROM ({of_records}) g WHERE {generations}"
    cut = (
        "SELECT b.*, CASE WHEN b.members = b.members_before AND b.observed_at <= b.at_before + INTERVAL "
        f"'{int(PATIENCE.total_seconds())} seconds' THEN 0 ELSE 1 END AS begins FROM ({beside}) b"
    )
    numbered = (
        "SELECT c.*, sum(c.begins) OVER (PARTITION BY c.cluster_id, c.group_id ORDER BY c.offset) AS run "
        f"FROM ({cut}) c"
    )
    counted = (
        f"SELECT n.*, count(*) OVER (PARTITION BY n.cluster_id, n.group_id, n.run) AS generations FROM ({numbered}) n"
    )
    columns = (
        "k.cluster_id, k.group_id, k.group_type, k.run, k.snapshot_id, k.previous_snapshot_id, k.number, "
        "k.observed_at, k.offset"
    )
    return f"SELECT {columns} FROM ({counted}) k WHERE k.generations >= {RESTLESS}", values


def _findings(reader: Reader, generations: Sequence[Record]) -> tuple[tuple[str, int], ...]:
    """Codes of findings in these records, with the number of records that have each."""
    cluster, group = generations[0]["cluster_id"], generations[0]["group_id"]
    codes, named = one_of("v.code", "code", list(BY_RECORDED))
    rows = records(
        reader,
        f"SELECT v.code, count(DISTINCT v.snapshot_id) AS n FROM ({ingest_findings()}) v "
        "WHERE v.cluster_id = :cluster_id AND v.group_id = :group_id AND v.offset >= :begins AND v.offset <= :ends "
        f"AND v.severity <> 'info' AND {codes} GROUP BY v.code",
        cluster_id=cluster,
        group_id=group,
        begins=generations[0]["offset"],
        ends=generations[-1]["offset"],
        **named,
    )
    order = list(BY_RECORDED)
    counted = ((row["code"], row["n"]) for row in rows)
    return tuple(sorted(counted, key=lambda pair: (-pair[1], order.index(pair[0]))))
