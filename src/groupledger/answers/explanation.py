"""Why a group rebalanced: what the record shows of the cause, what moved, and what nobody had for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.causes import GENERATION
from groupledger.answers.generations import CLASSIC
from groupledger.answers.rebalance import Rebalance, with_states
from groupledger.answers.rows import matching, records
from groupledger.answers.states import BASELINE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from groupledger.answers.causes import Cause, Moved, Side
    from groupledger.answers.rows import Reader


@dataclass(frozen=True, slots=True)
class Unowned:
    """A partition that nobody had from `since` on; `until` is None where the record ends before anybody got it."""

    topic: str
    partition: int
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Before:
    """The state that the rebalance began from."""

    snapshot_id: str
    generation: int | None
    observed_at: datetime
    assignor: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A rebalance with its causes.

    `rounds` is how many generations it took until no further one had to follow, None where no results say so; `settled`
    is the last of them.
    """

    rebalance: Rebalance
    before: Before | None
    causes: tuple[Cause, ...]
    moved: tuple[Moved, ...]
    unowned: tuple[Unowned, ...]
    rounds: int | None
    settled: int | None


def explain(reader: Reader, group_id: str, cluster: str | None = None, generation: int | None = None) -> Explanation:
    """Why the rebalance that led to a generation (or epoch; default: the last one) happened. Raises as `rebalance`."""
    told, known = with_states(reader, group_id, cluster, generation)
    differs = known.difference(told.cluster_id, told.group_id, told.previous_snapshot_id, told.snapshot_id)
    before = differs.before
    rounds, settled = _rounds(reader, told, differs.after)
    return Explanation(
        rebalance=told,
        before=None if before is None else Before(before.snapshot_id, before.number, before.at, before.assignor),
        causes=differs.causes,
        moved=differs.moved,
        unowned=tuple(_unowned(reader, told)),
        rounds=rounds,
        settled=settled,
    )


def _rounds(reader: Reader, told: Rebalance, state: Side) -> tuple[int | None, int | None]:
    """How many generations of a classic group it took until no other had to follow, and the last of them."""
    if told.group_type != CLASSIC:
        return None, None
    if state.kind == GENERATION and state.verdict is not None and not state.follow_up:
        return 1, told.generation
    condition, values = matching("t.", cluster_id=told.cluster_id, group_id=told.group_id)
    later = records(
        reader,
        f"SELECT t.generation, r.follow_up FROM current_group_snapshots t JOIN (SELECT t.snapshot_id, t.follow_up "
        f"FROM current_rebalances t WHERE {condition} AND t.scenario = :scenario AND t.round = 1) r "
        f"ON r.snapshot_id = t.snapshot_id WHERE {condition} AND t.incarnation = :incarnation "
        f"AND t.generation >= :generation AND t.snapshot_kind = '{GENERATION}' ORDER BY t.offset",
        scenario=BASELINE,
        incarnation=told.incarnation,
        generation=told.generation if told.generation is not None else 0,
        **values,
    )
    for number, row in enumerate(later, 1):
        if not row["follow_up"]:
            return number, row["generation"]
    return None, None


def _unowned(reader: Reader, told: Rebalance) -> Iterator[Unowned]:
    """Partitions that this state left with nobody, until somebody got them; and those that it gave an owner again."""
    condition, values = matching("t.", cluster_id=told.cluster_id, group_id=told.group_id)
    here = f"{condition} AND t.snapshot_id = :snapshot_id AND t.topic IS NOT NULL"
    columns = "t.topic, t.partition, t.at, t.offset, t.to_member_id"
    near = f"SELECT {columns} FROM current_ownership_changes t WHERE {condition}"
    rows = records(
        reader,
        "SELECT c.topic, c.partition, c.at, c.to_member_id, n.at AS other, n.to_member_id AS other_member, "
        "n.offset AS other_offset, c.offset FROM (SELECT t.topic, t.partition, t.at, t.offset, t.from_member_id, "
        f"t.to_member_id FROM current_ownership_changes t WHERE {here} "
        "AND (t.from_member_id IS NULL OR t.to_member_id IS NULL)) c "
        f"LEFT JOIN ({near}) n ON n.topic = c.topic AND n.partition = c.partition AND n.offset <> c.offset "
        "ORDER BY c.topic, c.partition, n.offset",
        snapshot_id=told.snapshot_id,
        **values,
    )
    places = dict.fromkeys((row["topic"], row["partition"]) for row in rows)
    for topic, partition in places:
        of_one = [row for row in rows if (row["topic"], row["partition"]) == (topic, partition)]
        at, offset, owner = of_one[0]["at"], of_one[0]["offset"], of_one[0]["to_member_id"]
        others = [row for row in of_one if row["other"] is not None]
        if owner is None:
            later = [row["other"] for row in others if row["other_offset"] > offset and row["other_member"] is not None]
            yield Unowned(topic, partition, at, later[0] if later else None)
        else:
            earlier = [row for row in others if row["other_offset"] < offset]
            if earlier and earlier[-1]["other_member"] is None:
                yield Unowned(topic, partition, earlier[-1]["other"], at)
