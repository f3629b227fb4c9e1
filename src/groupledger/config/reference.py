"""Describe the settings for people, from their one declaration.

python -m groupledger.config.reference > docs/configuration.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from groupledger.config.settings import Config, Rule

_HEAD = """\
# Configuration

A YAML file, `groupledger.yaml` or the one that `--config` names; `groupledger new-config` writes it. `--set key=value`
changes one key for one run, and wins (`--set assign.snapshots=every`, `--set sources.0.path=log.jsonl`; the value is
YAML). An unknown key or bad value stops
the command before anything is read. Paths are relative to where the command is started. Written by
`python -m groupledger.config.reference`; a test holds it against the code.

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
            yield ReferenceEntry(name, _default(one), _allowed(hint, one.metadata["rule"]), one.metadata["doc"])


def _default(one: Any) -> str | None:
    if one.default_factory is not MISSING:
        return "{}"
    if one.default is MISSING:
        return None
    return "null" if one.default is None else str(one.default)


def _allowed(hint: Any, rule: Rule | None) -> str:
    if get_origin(hint) is Mapping:
        return rule.words if rule else "names and values"
    words = rule.words if rule else "anything"
    return f"{words}, or null" if type(None) in get_args(hint) else words


def page() -> str:
    """Return docs/configuration.md."""
    rows = (
        f"| `{one.name}` | {'required' if one.default is None else f'`{one.default}`'} | {one.allowed} | {one.doc} |\n"
        for one in entries()
    )
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(page())
