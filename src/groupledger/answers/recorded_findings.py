"""Findings that `ingest` and `assign` wrote down, folded by code, severity and group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from groupledger.answers.explanation import BASELINE
from groupledger.answers.found import Found
from groupledger.answers.recorded_states import SHARE
from groupledger.answers.rows import one_of, records
from groupledger.core.findings import BY_RECORDED, DOUBLE_OWNED, Severity

if TYPE_CHECKING:
    from groupledger.answers.rows import Reader
    from groupledger.answers.scope import Scope


def recorded_findings(reader: Reader, within: Scope) -> Iterator[Found]:
    """Of each code, severity and group: how many records have it, and the evidence of the last.

    Where `ingest` and `assign` say the same of a record, it is counted once and told in the words of `ingest`, which
    name members. A finding about a record that is no snapshot has no time, and is in every period.
    """
    condition, values = within.of_groups("v.")
    times, of_times = within.where("t.")
    codes, named = one_of("v.code", "code", list(BY_RECORDED))
    found = (
        "SELECT v.cluster_id, v.group_id, v.code, v.severity, v.snapshot_id, v.evidence, v.offset, s.observed_at, "
        "CASE WHEN v.scenario IS NULL THEN 0 ELSE 1 END AS computed FROM current_violations v "
        "LEFT JOIN (SELECT t.cluster_id, t.group_id, t.snapshot_id, t.observed_at, t.group_type "
        f"FROM current_group_snapshots t WHERE {within.of_groups('t.')[0]}) s ON s.cluster_id = v.cluster_id "
        "AND s.group_id = v.group_id AND s.snapshot_id = v.snapshot_id "
        f"WHERE {condition} AND {codes} AND (v.scenario IS NULL OR v.scenario = :scenario) "
        f"AND NOT (v.code = '{DOUBLE_OWNED.recorded_as}' AND coalesce(s.group_type, '') = '{SHARE}')"
    )
    period = times.replace("t.", "f.")
    key = "f.cluster_id, f.group_id, f.code, f.severity"
    ordered = "ORDER BY f.offset DESC NULLS LAST, f.computed, f.evidence"
    ranked = (
        f"SELECT f.*, row_number() OVER (PARTITION BY {key} {ordered}) AS place FROM ({found}) f "
        f"WHERE f.observed_at IS NULL OR ({period})"
    )
    rows = records(
        reader,
        f"SELECT {key}, count(DISTINCT f.snapshot_id) AS records, min(f.observed_at) AS first, max(f.observed_at) AS "
        "last, max(CASE WHEN f.place = 1 THEN f.evidence END) AS evidence, "
        f"max(CASE WHEN f.place = 1 THEN f.snapshot_id END) AS snapshot_id FROM ({ranked}) f GROUP BY {key}",
        scenario=BASELINE,
        **(values | of_times | named),
    )
    for row in rows:
        yield Found(
            BY_RECORDED[row["code"]].code,
            Severity(row["severity"]),
            row["cluster_id"],
            row["group_id"],
            max(1, row["records"]),
            row["first"],
            row["last"],
            row["evidence"],
            row["snapshot_id"],
        )
