"""Findings that `ingest` and `assign` wrote down, folded by code, severity and group.

Which results of `assign` count is asked for the snapshots alone that have a finding: ranking all results of a large
ledger would take its memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from groupledger.answers.found import Found
from groupledger.answers.rebalance_causes import MOST_ASKED
from groupledger.answers.recorded_states import SHARE
from groupledger.answers.rows import one_of, records
from groupledger.answers.states import BASELINE
from groupledger.answers.view_page import ingest_findings
from groupledger.core.findings import BY_RECORDED, DOUBLE_OWNED, Severity

if TYPE_CHECKING:
    from groupledger.answers.rows import Reader, Record, Value
    from groupledger.answers.scope import Scope


Key = tuple[str, str, str, str]
"""Cluster, group, code and severity."""


def recorded_findings(reader: Reader, within: Scope) -> Iterator[Found]:
    """Of each code, severity and group: how many records have it, and the evidence of the last.

    Where `ingest` and `assign` say the same of a record, it is counted once and told in the words of `ingest`, which
    name members. A finding about a record that is no snapshot has no time, and is in every period.
    """
    folded = {_key(row): row for row in _of_ingest(reader, within)}
    for row in _of_assign(reader, within):
        known = folded.get(_key(row))
        folded[_key(row)] = row if known is None else _together(known, row)
    for row in folded.values():
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


def _key(row: Record) -> Key:
    return row["cluster_id"], row["group_id"], row["code"], row["severity"]


def _together(one: Record, other: Record) -> Record:
    """Both, counted; the evidence is that of the later one."""
    last = one if one["newest"] >= other["newest"] else other
    moments = [each for each in (one["first"], other["first"], one["last"], other["last"]) if each is not None]
    counted = {"records": one["records"] + other["records"]}
    return last | counted | {"first": min(moments, default=None), "last": max(moments, default=None)}


def _of_ingest(reader: Reader, within: Scope) -> list[Record]:
    condition, values = within.of_groups("v.")
    codes, named = one_of("v.code", "code", list(BY_RECORDED))
    return _folded(reader, within, f"({ingest_findings()})", f"{condition} AND {codes}", values | named)


def _of_assign(reader: Reader, within: Scope) -> Iterator[Record]:
    """The same of what `assign` found, but for what `ingest` found in the same record."""
    condition, values = within.of_groups("v.")
    codes, named = one_of("v.code", "code", list(BY_RECORDED))
    told = records(
        reader,
        f"SELECT DISTINCT v.group_id, v.snapshot_id FROM violations v WHERE {condition} AND {codes} "
        "AND v.scenario = :scenario ORDER BY v.group_id, v.snapshot_id",
        scenario=BASELINE,
        **(values | named),
    )
    for begin in range(0, len(told), MOST_ASKED):
        some = told[begin : begin + MOST_ASKED]
        which, ids = one_of("v.snapshot_id", "snapshot", [row["snapshot_id"] for row in some])
        groups, of_groups = one_of("v.group_id", "group", sorted({row["group_id"] for row in some}))
        among = f"{condition} AND {codes} AND {groups} AND {which}"
        said = f"SELECT v.snapshot_id, v.code FROM ({ingest_findings()}) v WHERE {among}"
        known = f"NOT EXISTS (SELECT 1 FROM ({said}) k WHERE k.snapshot_id = v.snapshot_id AND k.code = v.code)"
        also = values | named | ids | of_groups | {"scenario": BASELINE}
        yield from _folded(
            reader, within, "current_violations", f"{among} AND v.scenario = :scenario AND {known}", also
        )


def _folded(reader: Reader, within: Scope, findings: str, condition: str, values: Mapping[str, Value]) -> list[Record]:
    """These findings of the period by cluster, group, code and severity; `newest` is the offset of the last."""
    period, of_times = within.where("f.")
    key = "f.cluster_id, f.group_id, f.code, f.severity"
    found = (
        "SELECT v.cluster_id, v.group_id, v.code, v.severity, v.snapshot_id, v.evidence, coalesce(v.offset, -1) AS "
        f"offset, s.observed_at FROM {findings} v LEFT JOIN current_group_snapshots s "
        "ON s.cluster_id = v.cluster_id AND s.group_id = v.group_id AND s.snapshot_id = v.snapshot_id "
        f"WHERE {condition} AND NOT (v.code = '{DOUBLE_OWNED.recorded_as}' "
        f"AND coalesce(s.group_type, '') = '{SHARE}')"
    )
    ranked = (
        f"SELECT f.*, row_number() OVER (PARTITION BY {key} ORDER BY f.offset DESC, f.evidence) AS place "
        f"FROM ({found}) f WHERE f.observed_at IS NULL OR ({period})"
    )
    return records(
        reader,
        f"SELECT {key}, count(DISTINCT f.snapshot_id) AS records, min(f.observed_at) AS first, max(f.observed_at) AS "
        "last, max(f.offset) AS newest, max(CASE WHEN f.place = 1 THEN f.evidence END) AS evidence, "
        f"max(CASE WHEN f.place = 1 THEN f.snapshot_id END) AS snapshot_id FROM ({ranked}) f GROUP BY {key}",
        **(dict(values) | of_times),
    )
