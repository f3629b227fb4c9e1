"""Read a grid: assignors times changes, over the last state of every group (`groupledger simulate --grid`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from groupledger.config.loading import KeyPlace, section, text_of, tree_of
from groupledger.config.settings import NOT_EMPTY, Rule, an_assignor, key, matching


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSettings:
    """One change to every group of a grid; keys that are left out change nothing."""

    name: str | None = key("What the cell is called; null: what is changed.", NOT_EMPTY, None)
    members: int = key(
        "Members that join, each like one of the group's in turn; of a negative number, the last so many leave.",
        Rule("a whole number from -100000 to 10000", lambda value: -100_000 <= value <= 10_000),
        0,
    )
    partitions: str | None = key(
        "Partitions of topics: x2 twice as many, +3 three more.",
        matching(r"x[1-9]\d{0,3}|\+[1-9]\d{0,5}", "x2 for twice as many (to x9999), or +3 for three more (to +999999)"),
        None,
    )
    topic: str | None = key("The only topic whose partitions are changed; null: every topic.", NOT_EMPTY, None)
    lost_rack: str | None = key("Members in this rack are gone.", NOT_EMPTY, None)
    subscribe: str | None = key("Every member subscribes to this topic, too.", NOT_EMPTY, None)
    unsubscribe: str | None = key("No member subscribes to this topic any more.", NOT_EMPTY, None)

    @property
    def words(self) -> str:
        """Return the name, or a description of the change."""
        of_topic = f" of {self.topic}" if self.topic is not None else ""
        told = [
            f"members {self.members:+}" if self.members else "",
            f"partitions{of_topic} {self.partitions}" if self.partitions else "",
            f"without rack {self.lost_rack}" if self.lost_rack else "",
            f"with {self.subscribe}" if self.subscribe else "",
            f"without {self.unsubscribe}" if self.unsubscribe else "",
        ]
        return self.name or ", ".join(filter(None, told)) or "as it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSettings:
    """Each assignor under each change, over the last state of every group."""

    assignors: tuple[str, ...] = key(
        "Assignors to run on each group; recorded: the one that it has.", an_assignor(), ("recorded",)
    )
    changes: tuple[ChangeSettings, ...] = key("What is changed, an entry a cell.", None, (ChangeSettings(),))


class _Signed(int):
    """A whole number that was written with a plus sign."""


class _SignsKept(yaml.SafeLoader):
    """YAML in which `+3` is told from `3`."""


def _whole(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    value: int = loader.construct_yaml_int(node)
    return _Signed(value) if node.value.startswith("+") else value


_SignsKept.add_constructor("tag:yaml.org,2002:int", _whole)


def _signed(raw: Any) -> Any:
    """Return the tree with the partitions of changes as text where they have a sign, and other numbers plain."""
    if isinstance(raw, list):
        return [_signed(each) for each in raw]
    if isinstance(raw, dict):
        return {
            name: f"+{value}" if name == "partitions" and isinstance(value, _Signed) else _signed(value)
            for name, value in raw.items()
        }
    return int(raw) if isinstance(raw, _Signed) else raw


def load_grid(path: Path) -> GridSettings:
    """Load the grid from a YAML file. Raises ConfigFault: CONFIG_MISSING, CONFIG_SYNTAX, CONFIG_INVALID."""
    raw = _signed(tree_of(text_of(path), str(path), loader=_SignsKept))
    place = KeyPlace(str(path))
    grid: GridSettings = section(GridSettings, raw, place)
    for name in ("assignors", "changes"):
        if not getattr(grid, name):
            raise place.below(name).fault("is empty; expected at least one entry, or no such key")
    for index, change in enumerate(grid.changes):
        if change.topic is not None and change.partitions is None:
            raise (
                place.below("changes").below(index).below("topic").fault("stands alone; expected partitions beside it")
            )
    words = [change.words for change in grid.changes]
    again = next((each for each in words if words.count(each) > 1), None)
    if again is not None:
        raise place.below("changes").fault(f"has two entries called {again!r}; expected a name of its own for each")
    return grid
