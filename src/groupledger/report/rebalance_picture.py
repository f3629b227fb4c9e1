"""A past rebalance as a picture: partitions across, members down, before above after; what moved stands out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.core.faults import Fault
from groupledger.core.moment import iso
from groupledger.core.visible_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from groupledger.answers.rebalance import MemberMove, Rebalance, TopicPartition

EMPTY, KEPT, GIVEN_UP, GAINED, NOBODY = range(5)
COLOURS = ("#f4f4f4", "#4c78a8", "#e45756", "#54a24b", "#8c8c8c")
LEGEND = {KEPT: "stays", GIVEN_UP: "given up", GAINED: "gained", NOBODY: "assigned to nobody"}
MOST_CELLS = 20_000
ROW_INCHES, COLUMN_INCHES = 0.32, 0.3


def draw(rebalance: Rebalance) -> Figure:
    """Who had each partition before, and whom the coordinator recorded after.

    A `Fault` where the group is too large to be read as a picture.
    """
    places = sorted({place for move in rebalance.members for place in (*move.held, *move.assigned)})
    members = rebalance.members
    if (len(members) + 1) * max(len(places), 1) > MOST_CELLS:
        text = f"{len(members)} members x {len(places)} partitions make no readable picture; at most {MOST_CELLS} cells"
        raise Fault("PICTURE_TOO_LARGE", text)
    figure = _canvas(len(members) + 1, len(places))
    upper, lower = figure.subplots(2, 1, sharex=True)
    _paint(upper, "before", members, [cells(move.held, move.assigned, places, GIVEN_UP) for move in members], places)
    _paint(lower, "after", members, [cells(move.assigned, move.held, places, GAINED) for move in members], places)
    _name_partitions(lower, places)
    title = f"{visible(rebalance.title)}\n{iso(rebalance.observed_at)}"
    figure.suptitle(title, fontsize=10, parse_math=False)
    _explain(figure)
    return figure


def cells(
    here: tuple[TopicPartition, ...], there: tuple[TopicPartition, ...], places: list[TopicPartition], moved: int
) -> list[int]:
    """A member's row: `moved` where it has a partition here and not there, KEPT where in both, else EMPTY."""
    has, stays = set(here), set(there)
    return [(KEPT if place in stays else moved) if place in has else EMPTY for place in places]


def _canvas(rows: int, columns: int) -> Figure:
    from matplotlib.figure import Figure

    width = max(6.0, 2.6 + COLUMN_INCHES * columns)
    height = max(3.2, 1.9 + 2 * ROW_INCHES * rows)
    return Figure(figsize=(width, height), dpi=110, layout="constrained")


def _paint(
    axes: Axes, title: str, members: tuple[MemberMove, ...], rows: list[list[int]], places: list[TopicPartition]
) -> None:
    from matplotlib.colors import ListedColormap

    nobody = [NOBODY if all(row[column] == EMPTY for row in rows) else EMPTY for column in range(len(places))]
    axes.pcolormesh([*rows, nobody], cmap=ListedColormap(COLOURS), vmin=0, vmax=len(COLOURS) - 1, edgecolors="white")
    axes.set_yticks(
        [row + 0.5 for row in range(len(rows) + 1)], [*(_name(move) for move in members), "(nobody)"], parse_math=False
    )
    axes.invert_yaxis()
    axes.set_title(title, loc="left", fontsize=10)
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    for column in range(1, len(places)):
        if places[column][0] != places[column - 1][0]:
            axes.axvline(column, color="black", linewidth=1)


def _name(move: MemberMove) -> str:
    name = visible(move.group_instance_id or move.client_id or move.member_id)
    return name if move.stays else f"{name} (left)"


def _name_partitions(axes: Axes, places: list[TopicPartition]) -> None:
    labels = [f"{visible(topic)}-{partition}" for topic, partition in places]
    axes.set_xticks([column + 0.5 for column in range(len(places))], labels, rotation=90, parse_math=False)


def _explain(figure: Figure) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(color=COLOURS[code], label=label) for code, label in LEGEND.items()]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(patches), fontsize=8, frameon=False)
