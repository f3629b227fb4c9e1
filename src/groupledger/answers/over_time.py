"""What happened how often over time: rebalances of groups, and partitions of one group that changed hands.

Moments are counted by the second, minute, hour or day in which they lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from groupledger.answers.rows import one_of, records
from groupledger.answers.storms import counted_rebalances

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from groupledger.answers.rows import Reader
    from groupledger.answers.scope import Scope

UNITS = (
    ("second", timedelta(seconds=1)),
    ("minute", timedelta(minutes=1)),
    ("hour", timedelta(hours=1)),
    ("day", timedelta(days=1)),
)
MOST_UNITS = 2_000
"""Units of a period: one more and the next larger unit is taken."""


@dataclass(frozen=True, slots=True)
class Counted:
    """So many times in the second, minute, hour or day that begins at `at`."""

    what: tuple[str, ...]
    at: datetime
    times: int


def unit_of(period: timedelta) -> str:
    """The unit to count a period in: the smallest of which it has no more than 2,000."""
    return next((name for name, length in UNITS if period <= MOST_UNITS * length), UNITS[-1][0])


def rebalances_over_time(
    reader: Reader, within: Scope, groups: Sequence[tuple[str, str]], unit: str
) -> tuple[Counted, ...]:
    """How many rebalances these groups had; `what` is cluster and group."""
    of_period, values = counted_rebalances(within)
    which, named = one_of("p.group_id", "among", sorted({group for _, group in groups}))
    at = f"date_trunc('{unit}', p.observed_at)"
    rows = records(
        reader,
        f"SELECT p.cluster_id, p.group_id, {at} AS at, count(*) AS n FROM ({of_period}) p WHERE {which} "
        f"GROUP BY p.cluster_id, p.group_id, {at} ORDER BY 1, 2, 3",
        **(values | named),
    )
    wanted = set(groups)
    of_rows = (Counted((row["cluster_id"], row["group_id"]), row["at"], row["n"]) for row in rows)
    return tuple(each for each in of_rows if each.what in wanted)


def hand_overs(reader: Reader, of_group: Scope, unit: str, block: int) -> tuple[Counted, ...]:
    """How often partitions were taken from a member; `what` is the topic and the first of `block` partitions."""
    condition, values = of_group.where("t.", "at")
    place = "coalesce(t.topic, concat('id:', t.topic_id))"
    number = f"t.partition - t.partition % {block}"
    at = f"date_trunc('{unit}', t.at)"
    rows = records(
        reader,
        f"SELECT {place} AS topic, {number} AS number, {at} AS moment, count(*) AS n "
        f"FROM current_ownership_changes t WHERE {condition} AND t.from_member_id IS NOT NULL "
        f"GROUP BY {place}, {number}, {at} ORDER BY 1, 2, 3",
        **values,
    )
    return tuple(Counted((row["topic"], str(row["number"])), row["moment"], row["n"]) for row in rows)
