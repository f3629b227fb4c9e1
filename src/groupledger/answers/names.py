"""Names that a question may ask for: one the ledger never heard of is refused, with those it knows."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from groupledger.answers.queries import alike, is_pattern, matching, of_groups, records
from groupledger.core.faults import Fault
from groupledger.core.log.lines import OFFSET_COMMIT_LEFT_OUT
from groupledger.core.moments import iso

if TYPE_CHECKING:
    from collections.abc import Iterable

    from groupledger.answers.queries import Reader

MOST_NAMED = 10
NO_RECORD = "the ledger holds no record of a group yet: run `groupledger ingest` first"
_INGEST = "/ingest"
"""What the guard of an ingest from a cluster ends with."""


def require_names(reader: Reader, cluster: str | None, group: str | None) -> None:
    """Raise a fault if the ledger does not know one of them; asked if an answer is empty, to find typing errors.

    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP.
    """
    if cluster is not None:
        require_cluster(reader, cluster)
    if group is not None:
        condition, values = of_groups("t.", cluster, group)
        if not records(reader, f"SELECT 1 AS found FROM current_group_snapshots t WHERE {condition} LIMIT 1", **values):
            raise unknown_group(reader, group, cluster)


def require_cluster(reader: Reader, cluster: str) -> None:
    """Raise Fault("UNKNOWN_CLUSTER") for a cluster nothing was ever ingested of."""
    read = records(reader, "SELECT guards FROM current_runs")
    known = {guard.removesuffix(_INGEST) for row in read for guard in row["guards"] if guard.endswith(_INGEST)}
    known |= {row["cluster_id"] for row in records(reader, "SELECT DISTINCT cluster_id FROM current_group_snapshots")}
    if cluster not in known:
        hint = _known(cluster, sorted(known), "cluster")
        raise Fault("UNKNOWN_CLUSTER", f"no cluster {cluster!r} in this ledger; {hint}")


def require_scenario(reader: Reader, scenario: str) -> None:
    """Raise Fault("UNKNOWN_SCENARIO") for a name no results stand under."""
    rows = records(reader, "SELECT DISTINCT scenario FROM current_rebalances ORDER BY scenario")
    known = [row["scenario"] for row in rows]
    if scenario not in known:
        hint = _known(scenario, known, "scenario", "assign")
        raise Fault("UNKNOWN_SCENARIO", f"no scenario {scenario!r} in this ledger; {hint}")


def unknown_group(reader: Reader, group: str, cluster: str | None) -> Fault:
    """Name the groups the ledger knows that look alike; an unknown cluster is reported instead, if it is one.

    Of a pattern that matches groups, where the question is of one group, it names those. Of a group whose input was
    rejected, so that it has no state, it says so: GROUP_QUARANTINED; of one that only committed offsets:
    GROUP_WITHOUT_MEMBERS.
    """
    if cluster is not None:
        require_cluster(reader, cluster)
    condition, values = matching("", cluster_id=cluster)
    named, names = alike("group_id", "group_id", group)
    query = (
        f"SELECT group_id, {named} AS matches FROM current_group_snapshots WHERE {condition} "
        "GROUP BY group_id ORDER BY group_id"
    )
    found = records(reader, query, **values, **names)
    matches, known = [row["group_id"] for row in found if row["matches"]], [row["group_id"] for row in found]
    if is_pattern(group) and matches:
        others = f" and {len(matches) - MOST_NAMED:,} more" if len(matches) > MOST_NAMED else ""
        text = f"the pattern {group!r} matches {', '.join(matches[:MOST_NAMED])}{others}: name one"
        return Fault("UNKNOWN_GROUP", f"this is answered for one group; {text}")
    without_state = _rejected(reader, group, cluster) or _of_commits(reader, group, cluster)
    if without_state is not None:
        return without_state
    hint = ". Groups that only commit offsets are not kept here (a source's `offset_commits: true` keeps them)"
    hint = hint if commits_left_out(reader, cluster) else ""
    return Fault("UNKNOWN_GROUP", f"no group {group!r} in {_where(cluster)}; {_known(group, known, 'group')}{hint}")


def _rejected(reader: Reader, group: str, cluster: str | None) -> Fault | None:
    """Return the fault of a group of which the ledger has rejected input alone; None: it has none."""
    condition, values = of_groups("q.", cluster, group)
    query = (
        "SELECT q.cluster_id, q.group_id, q.code, q.message, q.log_partition, q.offset FROM current_quarantine q "
        f"WHERE {condition} ORDER BY q.cluster_id, q.log_partition, q.offset, q.code, q.message"
    )
    for first in (found := records(reader, query, **values))[:1]:
        is_log = first["log_partition"] is not None
        place = f"partition {first['log_partition']}, offset {first['offset']}, " if is_log else ""
        others = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
        text = f"group {first['group_id']!r} has no state in this ledger: its input is in quarantine"
        all_of_it = f"`groupledger show --quarantine --group {group}` lists it"
        return Fault("GROUP_QUARANTINED", f"{text} ({place}{first['code']}: {first['message']}{others}); {all_of_it}")
    return None


def _of_commits(reader: Reader, group: str, cluster: str | None) -> Fault | None:
    """Return the fault of a group whose records are offset commits alone; None: they are not, or there is none."""
    condition, values = of_groups("t.", cluster, group)
    query = (
        "SELECT t.group_id, count(*) AS n, count(CASE WHEN t.key < X'0002' THEN 1 END) AS commits, "  # by record type
        "min(t.timestamp) AS begins, max(t.timestamp) AS ends "
        f"FROM current_log_records t WHERE {condition} GROUP BY t.group_id ORDER BY t.group_id"
    )
    for row in records(reader, query, **values):
        if row["commits"] == row["n"]:
            text = (
                f"group {row['group_id']!r} has no members in this ledger: it only committed offsets ({row['n']:,} "
                f"records from {iso(row['begins'])} to {iso(row['ends'])}), as consumers do that assign partitions "
                "themselves, or a group whose own records are not there"
            )
            return Fault("GROUP_WITHOUT_MEMBERS", text)
    return None


def commits_left_out(reader: Reader, cluster: str | None = None) -> int:
    """Return how many offset commits of a cluster, or of all, were read and not kept."""
    counted = f"{cluster or ''}/unused.{OFFSET_COMMIT_LEFT_OUT}"
    runs = records(reader, "SELECT t.counts_in FROM current_runs t WHERE t.kind = 'ingest'")
    counts = [each for row in runs for each in (row["counts_in"] or {}).items()]
    return sum(number for name, number in counts if (name == counted if cluster else name.endswith(counted)))


def require_topics(reader: Reader, topics: Iterable[str], cluster: str | None) -> None:
    """Raise Fault("UNKNOWN_TOPIC") for a topic that no listing names and no group ever had."""
    for topic in topics:
        condition, values = matching("t.", topic=topic, cluster_id=cluster)
        queries = (
            f"SELECT 1 AS found FROM {view} t WHERE {condition} LIMIT 1"
            for view in ("current_topic_snapshots", "current_ownership_changes")
        )
        if not any(records(reader, query, **values) for query in queries):
            raise unknown_topic(reader, topic, cluster)


def unknown_topic(reader: Reader, topic: str, cluster: str | None) -> Fault:
    """Name the topics the ledger knows that look alike; an unknown cluster is reported instead, if it is one."""
    if cluster is not None:
        require_cluster(reader, cluster)
    condition, values = matching("", cluster_id=cluster)
    known: set[str] = set()
    for view in ("current_topic_snapshots", "current_ownership_changes"):
        query = f"SELECT DISTINCT topic FROM {view} WHERE topic IS NOT NULL AND {condition}"
        known |= {row["topic"] for row in records(reader, query, **values)}
    return Fault("UNKNOWN_TOPIC", f"no topic {topic!r} in {_where(cluster)}; {_known(topic, sorted(known), 'topic')}")


def _where(cluster: str | None) -> str:
    return "this ledger" if cluster is None else f"cluster {cluster!r}"


def _known(name: str, known: list[str], kind: str, job: str = "ingest") -> str:
    alike = difflib.get_close_matches(name, known, n=3) or known[:MOST_NAMED]
    return f"known: {', '.join(alike)}" if alike else f"it holds no {kind}: run `groupledger {job}` first"
