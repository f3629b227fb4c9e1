"""Topics that are joined: whether each member has the same partitions of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from groupledger.answers.found import Found, broken
from groupledger.answers.recorded_states import ASSIGNED, listings
from groupledger.answers.rows import one_of, records
from groupledger.core.findings import COPARTITION_BROKEN

if TYPE_CHECKING:
    from groupledger.answers.recorded_states import MeasuredStates
    from groupledger.answers.rows import Reader, Record
    from groupledger.answers.scope import Scope


def copartition(reader: Reader, of_period: MeasuredStates, joined: Sequence[str]) -> Iterator[Found]:
    """Groups that have partitions of these topics, not all of one number with one member; and unequal counts.

    The log does not say which topics an application joins: somebody has to name them.
    """
    by_group: dict[tuple[str, str], list[Record]] = {}
    for row in _broken(reader, of_period, joined):
        by_group.setdefault((row["cluster_id"], row["group_id"]), []).append(row)
    counts = _unequal(reader, of_period.within, joined)
    for group, rows in sorted(by_group.items()):
        worst = max(rows, key=lambda row: (row["apart"], row["offset"]))
        seen = min(row["observed_at"] for row in rows), max(row["observed_at"] for row in rows)
        text = f"{worst['apart']:,} partition numbers of {', '.join(joined)} are with two or more members"
        if group[0] in counts:
            text += f"; their partition counts differ: {counts[group[0]]}"
        yield broken(COPARTITION_BROKEN, group, len(rows), seen, text, worst["snapshot_id"])


def _broken(reader: Reader, of_period: MeasuredStates, joined: Sequence[str]) -> list[Record]:
    """Records of groups that have partitions of two or more of the topics, with how many numbers are apart."""
    of_records, _ = of_period.recorded
    condition, values = of_period.within.of_groups("m.")
    among, named = one_of("e.entry.topic", "topic", list(joined))
    entries = (
        "SELECT m.cluster_id, m.group_id, m.snapshot_id, m.member_id, unnest(m.recorded) AS entry "
        f"FROM current_member_snapshots m WHERE {condition}"
    )
    places = (
        "SELECT e.cluster_id, e.group_id, e.snapshot_id, e.member_id, e.entry.topic AS topic, "
        f"unnest(e.entry.partitions) AS number FROM ({entries}) e WHERE {among}"
    )
    topics = (
        f"SELECT k.cluster_id, k.group_id, k.snapshot_id, count(DISTINCT k.topic) AS topics FROM ({places}) k "
        "GROUP BY k.cluster_id, k.group_id, k.snapshot_id"
    )
    owners = (
        "SELECT p.cluster_id, p.group_id, p.snapshot_id, p.number, count(DISTINCT p.member_id) AS owners, "
        "count(DISTINCT p.topic) AS topics, min(p.topic) AS a, max(p.topic) AS z "
        f"FROM ({places}) p GROUP BY p.cluster_id, p.group_id, p.snapshot_id, p.number"
    )
    apart = (
        "SELECT o.cluster_id, o.group_id, o.snapshot_id, min(o.a) AS a, max(o.z) AS z, "
        f"sum(CASE WHEN o.owners > 1 OR o.topics < k.topics THEN 1 ELSE 0 END) AS apart FROM ({owners}) o "
        f"JOIN ({topics}) k ON k.cluster_id = o.cluster_id AND k.group_id = o.group_id "
        "AND k.snapshot_id = o.snapshot_id GROUP BY o.cluster_id, o.group_id, o.snapshot_id"
    )
    return records(
        reader,
        f"SELECT s.cluster_id, s.group_id, s.snapshot_id, s.observed_at, s.offset, cast(a.apart AS BIGINT) AS apart "
        f"FROM ({of_records}) s JOIN ({apart}) a ON a.cluster_id = s.cluster_id AND a.group_id = s.group_id "
        f"AND a.snapshot_id = s.snapshot_id WHERE {ASSIGNED} AND a.apart > 0 AND a.a <> a.z ORDER BY s.offset",
        **values,
        **named,
    )


def _unequal(reader: Reader, within: Scope, joined: Sequence[str]) -> dict[str, str]:
    """Clusters in which the topics have different partition counts now, with the counts in words."""
    query, values = listings(within)
    among, named = one_of("l.topic", "topic", list(joined))
    rows = records(
        reader,
        f"SELECT l.cluster_id, l.topic, l.partition_count AS n FROM ({query}) l WHERE {among} "
        "AND l.valid_until IS NULL AND l.partition_count IS NOT NULL ORDER BY l.cluster_id, l.topic",
        **values,
        **named,
    )
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        found.setdefault(row["cluster_id"], {})[row["topic"]] = row["n"]
    return {
        cluster: ", ".join(f"{topic} {number}" for topic, number in counts.items())
        for cluster, counts in found.items()
        if len(set(counts.values())) > 1
    }
