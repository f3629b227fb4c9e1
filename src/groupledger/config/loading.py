"""Read YAML and `--set a.b=c` into a checked, frozen Config; errors name the key, the file, and what is allowed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import date
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import yaml

from groupledger.config.settings import (
    ASSIGNOR,
    CLUSTERS,
    JUDGED,
    KEYS_OF_KINDS,
    MEMBERSHIPS,
    NOT_EMPTY,
    SNAPSHOTS,
    TABLE,
    Config,
    ConfigFault,
    Rule,
    SourceSettings,
    key,
    matching,
)
from groupledger.core.faults import meant
from groupledger.core.log.lines import FIELDS
from groupledger.core.scenarios.group_change import MORE_PARTITIONS
from groupledger.core.secrets import HIDDEN, is_secret, remember, secrets_in

_VARIABLE = re.compile(r"\$\{(?:env:|env\.)?(\w+)\}")
"""A variable of the environment as Spark and Hadoop expand it in settings."""

_PLACES = {
    **dict.fromkeys(CLUSTERS, ("bootstrap", "the brokers of the cluster, such as host:9092")),
    TABLE: ("table", "its name in the session's catalog, such as bronze.consumer_offsets"),
}
"""Where sources are that have no path."""


class KeyPlace(NamedTuple):
    """The place of a value: the file (or "--set", or another name for people), the dotted key, and overrides."""

    source: str
    key: str = ""
    overrides: tuple[str, ...] = ()

    def below(self, name: object) -> KeyPlace:
        """Return the place of one key or list entry below this one."""
        return self._replace(key=f"{self.key}.{name}" if self.key else str(name))

    def fault(self, complaint: str, code: str = "CONFIG_INVALID") -> ConfigFault:
        """Return an error about this place; of the overrides it names those that touch the key."""
        place = " ".join([self.source, *(f"--set {_shown(each)}" for each in self.overrides if self._touched_by(each))])
        return ConfigFault(code, f"{place}: {self.key or 'the top level'} {complaint}")

    def _touched_by(self, override: str) -> bool:
        name = f"{override.partition('=')[0].strip()}."
        return f"{self.key}.".startswith(name) or name.startswith(f"{self.key}.") or not self.key

    def shown(self, value: object) -> str:
        """Return a value as an error quotes it; secrets are masked."""
        return HIDDEN if is_secret(self.key) else repr(value)


def load(path: Path, overrides: Sequence[str] = (), given: Mapping[str, Any] = MappingProxyType({})) -> Config:
    """Load the configuration from a YAML file, changed by overrides such as "assign.snapshots=every".

    `given` are top-level keys that stand in place of the file's.

    Raises ConfigFault: CONFIG_MISSING (no such file), CONFIG_SYNTAX (not YAML), CONFIG_INVALID (a key or value).
    """
    return parse(text_of(path), str(path), overrides, given)


def text_of(path: Path) -> str:
    """Read the text of a configuration file. Raises ConfigFault: CONFIG_MISSING."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # not UTF-8, or a name that no file can have
        reason = getattr(error, "strerror", None) or error
        raise ConfigFault("CONFIG_MISSING", f"{path}: cannot read the configuration: {reason}") from error


def parse(
    text: str, source: str, overrides: Sequence[str] = (), given: Mapping[str, Any] = MappingProxyType({})
) -> Config:
    """Parse a text as `load` does; `source` is its name in errors."""
    raw = tree_of(text, source)
    tree = {} if raw is None else raw
    if isinstance(tree, dict):
        tree = {**tree, **given}
    remember(_secrets(tree, ""))
    for override in overrides:
        remember(secrets_in(*override.partition("=")[::2]))
        tree = _overridden(tree, override)
    remember(_secrets(tree, ""))
    place = KeyPlace(source, overrides=tuple(overrides))
    config: Config = section(Config, tree, place)
    _check_together(config, place)
    return config


def _secrets(tree: Any, name: str) -> Iterator[str]:
    """Return the secrets of a file, checked or not: errors about it must not quote them."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _secrets(value, f"{name}.{key}")
    elif isinstance(tree, list):
        for value in tree:
            yield from _secrets(value, name)
    elif tree is not None:
        yield from secrets_in(name, str(tree))
        for variable in _VARIABLE.findall(str(tree)):
            yield from secrets_in(name if is_secret(name) else variable, os.environ.get(variable, ""))


def tree_of(text: str, source: str, loader: type[yaml.SafeLoader] = yaml.SafeLoader) -> Any:
    """Parse a YAML text. Raises ConfigFault: CONFIG_SYNTAX."""
    try:
        reading = loader(text)
        node = reading.get_single_node()
        _require_each_key_once(node, source)
        return None if node is None else reading.construct_document(node)
    except yaml.YAMLError as error:
        raise ConfigFault("CONFIG_SYNTAX", f"{source}: not YAML: {_why(error)}") from None  # its text quotes the file


def _require_each_key_once(document: yaml.Node | None, source: str) -> None:
    """Raise ConfigFault("CONFIG_SYNTAX") where a mapping has a key twice: YAML's reader would take the last."""
    left, seen = [document], set[int]()
    while left:
        node = left.pop()
        if not isinstance(node, yaml.CollectionNode) or id(node) in seen:  # an alias is the node that it names
            continue
        seen.add(id(node))
        pairs = node.value if isinstance(node, yaml.MappingNode) else [(None, each) for each in node.value]
        first: dict[str, yaml.Node] = {}
        for name, value in pairs:
            if isinstance(name, yaml.ScalarNode) and first.setdefault(name.value, name) is not name:
                lines = f"lines {first[name.value].start_mark.line + 1} and {name.start_mark.line + 1}"
                raise ConfigFault("CONFIG_SYNTAX", f"{source}: {name.value} is there twice ({lines}); expected once")
            left.append(value)


def _why(error: yaml.YAMLError) -> str:
    """Say what is wrong and where, without the line itself, which may hold a secret."""
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"{getattr(error, 'problem', None) or type(error).__name__}{where}"


def _shown(override: str) -> str:
    """Return an override as errors quote it."""
    name = override.partition("=")[0]
    return f"{name}={HIDDEN}" if is_secret(name) else override


def _overridden(tree: Any, override: str) -> Any:
    path, equals, text = override.partition("=")
    if not equals or not path.strip():
        raise ConfigFault(
            "CONFIG_INVALID", f"--set {_shown(override)}: expected key=value, as in assign.snapshots=every"
        )
    place = f"--set {_shown(override)}"
    return _with(tree, path.strip().split("."), tree_of(text, place), KeyPlace(place))


def _with(tree: Any, path: Sequence[str], value: Any, place: KeyPlace) -> Any:
    """Return the tree with one value replaced; an index is a position in a list, one past the end appends.

    Setting names may hold dots themselves: below `conf` and `options` the rest of the path is one name.
    """
    if not path:
        return value
    name, rest = path[0], path[1:]
    if tree is None and name.isdecimal():
        tree = []
    if isinstance(tree, list):
        if not name.isdecimal() or int(name) > len(tree):
            raise place.below(name).fault(f"is not an index of a list of {len(tree)}; expected 0 to {len(tree)}")
        entries = [*tree, None] if int(name) == len(tree) else list(tree)
        entries[int(name)] = _with(entries[int(name)], rest, value, place.below(name))
        return entries
    if tree is not None and not isinstance(tree, dict):
        raise place.fault(f"is {place.shown(tree)}, which has no key {name!r} below it")
    if place.key.endswith(("conf", "options")):
        name, rest = ".".join(path), ()
    return {**(tree or {}), name: _with((tree or {}).get(name), rest, value, place.below(name))}


def section(kind: type[Any], raw: Any, place: KeyPlace) -> Any:
    """Build one dataclass of settings from a mapping; None means all defaults."""
    given = {} if raw is None else raw
    if not isinstance(given, dict):
        raise place.fault(f"is {raw!r}; expected keys: {', '.join(one.name for one in fields(kind))}")
    known = {one.name: one for one in fields(kind)}
    for name in given:
        if name not in known:
            raise place.below(name).fault(f"is not a key; {_allowed_names(str(name), list(known))}")
    hints = get_type_hints(kind)
    values = {
        name: _value(hints[name], given[name], place.below(name), known[name].metadata["rule"])
        for name in known
        if name in given
    }
    for name, one in known.items():
        if name not in values and one.default is MISSING and one.default_factory is MISSING:
            raise place.below(name).fault(f"is missing; {one.metadata['doc']}")
    return kind(**values)


def _allowed_names(name: str, known: Sequence[str]) -> str:
    return f"{meant(name, known)}allowed: {', '.join(known)}"


def _value(hint: Any, raw: Any, place: KeyPlace, rule: Rule | None) -> Any:
    """Return a value of the declared type that its rule allows."""
    origin = get_origin(hint)
    if is_dataclass(hint):
        return section(hint, raw, place)  # type: ignore[arg-type]  # a dataclass type, not an instance
    if origin is tuple:
        return _entries(get_args(hint)[0], raw, place, rule)
    if origin is Mapping:
        return _settings(raw, place, rule)
    kinds = get_args(hint) if origin is UnionType else (hint,)
    if raw is None and NoneType in kinds:
        return None
    assert rule is not None, "every text, number and truth value has a rule"
    raw = rule.read(raw) if isinstance(raw, str) else raw
    if type(raw) not in kinds or not rule.allows(raw):
        expected = f"{rule.words} or null" if NoneType in kinds else rule.words
        quoting = _quoting(raw, rule) if str in kinds else ""
        raise place.fault(
            f"is {place.shown(raw)}; {meant(str(raw), rule.names)}expected {expected}{quoting}", rule.code
        )
    return raw


def _quoting(raw: Any, rule: Rule | None = None) -> str:
    """Return how to write a text that YAML reads as something else; nothing where no such text is allowed."""
    words, text = "it", str(raw)
    if isinstance(raw, bool):
        words, text = ("on, yes and true", "on") if raw else ("off, no and false", "off")
    elif not isinstance(raw, int | float | date):
        return ""
    if rule is not None and not rule.allows(text):
        return ""
    return f": YAML reads {words} as no text unless quoted, write '{text}'"


def _entries(kind: Any, raw: Any, place: KeyPlace, rule: Rule | None) -> tuple[Any, ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise place.fault(f"is {raw!r}; expected a list")
    return tuple(_value(kind, entry, place.below(index), rule) for index, entry in enumerate(raw))


def _settings(raw: Any, place: KeyPlace, rule: Rule | None) -> dict[str, str]:
    """Read settings of Spark or of a Kafka client, names to texts; YAML's true and 2 become text as those write them.

    A rule says which names there are; their values are texts as written, such as names of columns.
    """
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise place.fault(f"is {raw!r}; expected names and values")
    for name, value in raw.items():
        here = place.below(name)
        if rule is not None and isinstance(name, str) and rule.allows(name) and not isinstance(value, str):
            raise here.fault(f"is {here.shown(value)}; expected a text{_quoting(value)}")
        if not isinstance(name, str) or not isinstance(value, str | int | float | bool):
            raise here.fault(f"is {here.shown(value)}; expected a text, a number, or true or false")
        if rule is not None and not rule.allows(name):
            raise here.fault(f"is not a key; {_allowed_names(name, rule.names)}")
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in raw.items()}


def _check_together(config: Config, place: KeyPlace) -> None:
    """Check rules over several keys."""
    ledger = config.ledger
    if (ledger.location is None) == (ledger.catalog is None):
        got = "neither" if ledger.location is None else "both"
        raise place.below("ledger").fault(f"has {got} of location and catalog; expected exactly one")
    for index, source in enumerate(config.sources):
        _check_source(source, config.cluster_id, place.below("sources").below(index))
    if config.assign.scenario == "recorded" and (config.assign.assignor != "recorded" or config.assign.overrides):
        raise place.below("assign.scenario").fault(
            "is 'recorded', which runs no assignor; expected another name beside assignor or overrides"
        )
    if config.assign.carried and config.assign.snapshots != "every":
        raise place.below("assign.snapshots").fault("is 'latest'; expected every beside assign.carried: true")
    if config.assign.carried and config.assign.scenario in JUDGED:
        raise place.below("assign.scenario").fault(
            f"is {config.assign.scenario!r}, which holds what is known of the record; expected another name beside "
            "assign.carried: true"
        )


def _check_source(source: SourceSettings, cluster_id: str | None, place: KeyPlace) -> None:
    """Check that a source has a place, only keys of its kind, and a cluster id unless its cluster says it."""
    for one in fields(SourceSettings):
        kinds = KEYS_OF_KINDS.get(one.name, (source.kind,))
        if source.kind not in kinds and getattr(source, one.name) != _default(one):
            words = f"stands in a source of kind {source.kind}; expected it under {_listed(kinds)} only"
            raise place.below(one.name).fault(words)
    _check_columns(source, place.below("columns"))
    wanted, what = _PLACES.get(source.kind, ("path", "a file or folder"))
    if source.kind == SNAPSHOTS and source.table is not None:
        wanted, what = _PLACES[TABLE]
    if getattr(source, wanted) is None:
        raise place.below(wanted).fault(f"is missing; expected {what}")
    if wanted != "path" and source.path is not None:
        raise place.below("path").fault(f"is {source.path!r}; a source of kind {source.kind} has {wanted} instead")
    if source.kind in CLUSTERS:
        return
    if source.cluster_id is None and cluster_id is None:
        raise place.below("cluster_id").fault("is missing, and so is that of the whole file; expected one of them")


def _check_columns(source: SourceSettings, place: KeyPlace) -> None:
    """Check that each field is of the kind, and has a column of its own."""
    fields_of: dict[str, str] = {}
    known = MEMBERSHIPS if source.kind == SNAPSHOTS else FIELDS
    for name, column in source.columns.items():
        if name not in known:
            raise place.below(name).fault(f"is not a key of kind {source.kind}; {_allowed_names(name, known)}")
        if not column.strip():
            raise place.below(name).fault("is empty; expected the name of a column")
        if fields_of.setdefault(column, name) != name:
            words = f"is {column!r}, and so is {fields_of[column]}; expected a column for each"
            raise place.below(name).fault(words)


def _listed(names: Sequence[str]) -> str:
    """Join words as `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _default(one: Field[Any]) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()


# Read a grid: assignors times changes, over the last state of every group (`groupledger what-if --grid`).


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSettings:
    """One change to every group of a grid; keys that are left out change nothing."""

    name: str | None = key("What the cell is called; null: what is changed.", NOT_EMPTY, None)
    members: int = key(
        "Members that join, each like one of the group's in turn; of a negative number, the last so many leave.",
        Rule(
            "a whole number from -100000 to 10000",
            lambda value: -100_000 <= value <= 10_000,
            read=lambda text: int(text) if re.fullmatch(r"\+\d+", text) else text,
        ),
        0,
    )
    partitions: str | None = key(
        "Partitions of topics: x2 twice as many, +3 three more.",
        matching(MORE_PARTITIONS, "x2 for twice as many (to x9999), or +3 for three more (to +999999)"),
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
        parts = [
            f"members {self.members:+}" if self.members else "",
            f"partitions{of_topic} {self.partitions}" if self.partitions else "",
            f"without rack {self.lost_rack}" if self.lost_rack else "",
            f"with {self.subscribe}" if self.subscribe else "",
            f"without {self.unsubscribe}" if self.unsubscribe else "",
        ]
        return self.name or ", ".join(filter(None, parts)) or "as it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSettings:
    """Each assignor under each change, over the last state of every group."""

    assignors: tuple[str, ...] = key(
        "Assignors to run on each group; recorded: the one that it has.", ASSIGNOR, ("recorded",)
    )
    changes: tuple[ChangeSettings, ...] = key("What is changed, an entry a cell.", None, (ChangeSettings(),))


class _SignsKept(yaml.SafeLoader):
    """YAML in which `+3` differs from `3`: it is a text."""


def _whole(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    return node.value if node.value.startswith("+") else loader.construct_yaml_int(node)


_SignsKept.add_constructor("tag:yaml.org,2002:int", _whole)


def load_grid(path: Path) -> GridSettings:
    """Load the grid from a YAML file. Raises ConfigFault: CONFIG_MISSING, CONFIG_SYNTAX, CONFIG_INVALID."""
    raw, place = tree_of(text_of(path), str(path), loader=_SignsKept), KeyPlace(str(path))
    grid: GridSettings = section(GridSettings, raw, place)
    for name in ("assignors", "changes"):
        if not getattr(grid, name):
            raise place.below(name).fault("is empty; expected at least one entry, or no such key")
    for index, change in enumerate(grid.changes):
        if change.topic is not None and change.partitions is None:
            here = place.below("changes").below(index).below("topic")
            raise here.fault("stands alone; expected partitions beside it")
    words = [change.words for change in grid.changes]
    again = next((each for each in words if words.count(each) > 1), None)
    if again is not None:
        raise place.below("changes").fault(f"has two entries called {again!r}; expected a name of its own for each")
    return grid


# What groupledger ships to try it out: a commented configuration, and logs captured from a real broker.

TEMPLATE = Path(__file__).with_name("template.yaml")
"""Every key with its default and meaning, for `groupledger new-config`."""
CAPTURES = Path(__file__).parents[1] / "sample" / "captures"
"""A folder for each cluster, with `offsets.jsonl.gz` and `topics.jsonl.gz`; its README says how they were made."""
SAMPLE_CLUSTERS = ("dev", "edge", "compacted", "storm")


def sample_settings() -> dict[str, Any]:
    """Return the demo's settings without its ledger: four logs, each a cluster of its own, into one ledger."""
    files = {"topics-jsonl": "topics.jsonl.gz", "offsets-jsonl": "offsets.jsonl.gz"}
    sources = [
        {"kind": kind, "cluster_id": cluster, "path": str(CAPTURES / cluster / name)}
        for cluster in SAMPLE_CLUSTERS
        for kind, name in files.items()
    ]
    return {
        "cluster_id": SAMPLE_CLUSTERS[0],
        "sources": sources,
        "assign": {"snapshots": "every"},
        "spark": {"profile": "small"},
    }


# Describe the settings for people, from their one declaration.
#
# python -m groupledger.config.loading > docs/reference/configuration.md

_HEAD = """\
# Configuration

The configuration is a YAML file, `groupledger.yaml` or the one that `--config` names; `groupledger new-config` creates
it. `--set key=value` overrides one key for one run (`--set assign.snapshots=every`, `--set sources.0.path=log.jsonl`;
the value is YAML). An unknown key or an invalid value stops the command before anything is read. Paths are relative to
the working directory. This page is generated by `python -m groupledger.config.loading`.

| key | default | allowed | meaning |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class ReferenceEntry:
    """One key: `default` is None if the key is required; `[]` in a name marks the entries of a list."""

    name: str
    default: str | None
    allowed: str
    doc: str


def entries(kind: type[Any] = Config, prefix: str = "") -> Iterator[ReferenceEntry]:
    """Yield every key below a section, in the order of declaration, without the sections themselves."""
    hints = get_type_hints(kind)
    for one in fields(kind):
        hint, name = hints[one.name], prefix + one.name
        if is_dataclass(hint):
            yield from entries(hint, f"{name}.")  # type: ignore[arg-type]  # a dataclass type, not an instance
        elif get_origin(hint) is tuple:
            yield from entries(get_args(hint)[0], f"{name}[].")
        else:
            yield ReferenceEntry(name, _shown_default(one), _allowed(hint, one.metadata["rule"]), one.metadata["doc"])


def _shown_default(one: Any) -> str | None:
    if one.default_factory is not MISSING:
        return "{}"
    if one.default is MISSING:
        return None
    return "null" if one.default is None else str(one.default)


def _allowed(hint: Any, rule: Rule | None) -> str:
    words = rule.words if rule else "names and values"
    return f"{words}, or null" if NoneType in get_args(hint) else words


def page() -> str:
    """Return docs/reference/configuration.md."""
    rows = (
        f"| `{one.name}` | {'required' if one.default is None else f'`{one.default}`'} | {one.allowed} | {one.doc} |\n"
        for one in entries()
    )
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(page())
