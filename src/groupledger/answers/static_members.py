"""Static members: who took over which `group.instance.id`, and where two processes seem to share one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from groupledger.answers.rows import records
from groupledger.answers.states import recorded

if TYPE_CHECKING:
    from groupledger.answers.rows import Reader
    from groupledger.answers.scope import Scope

NEAR = timedelta(minutes=10)
OFTEN = 5
"""Takeovers of one instance id within `NEAR`: more than a restart that went wrong once."""

Process = tuple[str | None, str | None]
"""Client id and host."""


@dataclass(frozen=True, slots=True)
class Takeover:
    """A record in which an instance id has another member id than before. `together`: both are in that one record."""

    cluster_id: str
    group_id: str
    instance_id: str
    at: datetime
    snapshot_id: str
    from_member_id: str
    to_member_id: str
    from_process: Process
    to_process: Process
    together: bool


@dataclass(frozen=True, slots=True)
class SharedId:
    """An instance id that two processes seem to share, and what says so."""

    takeovers: tuple[Takeover, ...]
    evidence: str


def takeovers(reader: Reader, within: Scope) -> tuple[Takeover, ...]:
    """All of the period, in order of cluster, group, instance id and offset."""
    of_records, values = recorded(within)
    condition, _ = within.of_groups("m.")
    members = (
        "SELECT m.cluster_id, m.group_id, m.group_instance_id, m.member_id, m.client_id, m.host, m.offset, "
        "m.snapshot_id, m.member_order, s.observed_at, s.incarnation FROM current_member_snapshots m "
        f"JOIN ({of_records}) s ON s.cluster_id = m.cluster_id AND s.group_id = m.group_id "
        f"AND s.snapshot_id = m.snapshot_id WHERE {condition} AND m.group_instance_id IS NOT NULL"
    )
    of_one = "m.cluster_id, m.group_id, m.incarnation, m.group_instance_id"
    window = f"OVER (PARTITION BY {of_one} ORDER BY m.offset, m.member_order)"
    before = ", ".join(
        f"lag(m.{name}) {window} AS {name}_before" for name in ("member_id", "client_id", "host", "snapshot_id")
    )
    rows = records(
        reader,
        f"SELECT * FROM (SELECT m.*, {before} FROM ({members}) m) t WHERE t.member_id_before IS NOT NULL "
        "AND t.member_id_before <> t.member_id "
        "ORDER BY t.cluster_id, t.group_id, t.group_instance_id, t.offset, t.member_order",
        **values,
    )
    return tuple(
        Takeover(
            row["cluster_id"],
            row["group_id"],
            row["group_instance_id"],
            row["observed_at"],
            row["snapshot_id"],
            row["member_id_before"],
            row["member_id"],
            (row["client_id_before"], row["host_before"]),
            (row["client_id"], row["host"]),
            row["snapshot_id"] == row["snapshot_id_before"],
        )
        for row in rows
    )


def shared_ids(found: Sequence[Takeover]) -> Iterator[SharedId]:
    """Instance ids that a restart alone does not explain.

    One takeover by a second process and one restart leave the same record. What tells them apart is that it goes on:
    two members of one record, an id that goes to another process and back within `NEAR`, or `OFTEN` takeovers in it.
    """
    for _, of_one in groupby(found, lambda each: (each.cluster_id, each.group_id, each.instance_id)):
        of_id = tuple(of_one)
        told = _sharing(of_id)
        if told is not None:
            yield SharedId(of_id, told)


def _sharing(of_id: Sequence[Takeover]) -> str | None:
    instance = of_id[0].instance_id
    if any(each.together for each in of_id):
        return f"two members of one record have the instance id {instance}"
    for one, other in pairwise(of_id):
        returned = one.from_process == other.to_process != one.to_process == other.from_process
        if returned and other.at - one.at <= NEAR:
            there, back = (_process(each) for each in (one.to_process, one.from_process))
            return f"the instance id {instance} went from {back} to {there} and back"
    for one, other in zip(of_id, of_id[OFTEN - 1 :], strict=False):
        if other.at - one.at <= NEAR:
            return f"the instance id {instance} was taken over {len(of_id)} times, by {_process(other.to_process)} last"
    return None


def _process(process: Process) -> str:
    client, host = process
    return f"{client or '(no client id)'} on {host or '(no host)'}"
