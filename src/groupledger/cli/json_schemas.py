"""Make JSON schemas of `--json` output from the dataclasses of the answers; define the command that prints them."""

from __future__ import annotations

import dataclasses
import json
import pkgutil
import types
import typing
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

import click

from groupledger.cli.output import print_exact

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "integer"}
_ROWS: Schema = {"type": "array", "items": {"type": "object"}}
_SIMPLE: dict[Any, Schema] = {
    str: _TEXT,
    int: _NUMBER,
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    datetime: {"type": "string", "format": "date-time", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"},
}
_LISTING: Schema = {
    "type": "object",
    "properties": {"total": _NUMBER, "rows": _ROWS},
    "required": ["total", "rows"],
    "additionalProperties": False,
}
_FAILED: Schema = {
    "type": "object",
    "properties": {"status": {"const": "failed"}, "code": _TEXT, "message": _TEXT},
    "required": ["status", "code", "message"],
    "additionalProperties": False,
}
_HISTORY: Schema = {"patternProperties": {"^history of ": _LISTING}, "additionalProperties": False}
_VIEWS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"view": _TEXT, "comment": _TEXT},
        "required": ["view", "comment"],
        "additionalProperties": False,
    },
}
_PAGES: Schema = {
    "type": "object",
    "properties": {"index": _TEXT, "pages": _NUMBER, "groups": _NUMBER, "findings": _NUMBER},
    "required": ["index", "pages", "groups", "findings"],
    "additionalProperties": False,
}
"""`report.html.written.WrittenReport`, which needs libraries for pictures."""
FORMS: dict[str, tuple[dict[str, Any], ...]] = {
    "who": ({"ownership": "OwnershipAt"}, {"unowned": "UnownedPartitions"}),
    "show": (
        {"clusters": _LISTING, "groups": _LISTING, "runs": _LISTING},
        {"findings": _LISTING},
        {"coverage": _LISTING},
        {"quarantine": _LISTING},
        {"rebalance": "Rebalance"},
        {"ownership": "OwnershipAt"},
        {"": _HISTORY},
    ),
    "explain": ({"explanation": "Explanation"},),
    "timeline": ({"timeline": "Timeline"}, {"partition_timeline": "PartitionTimeline"}),
    "audit": ({"failed_on": {"type": "array", "items": _TEXT}, "audit": "Audit"},),
    "report": (
        {"report": {"const": "storms"}, "storms": "Storms"},
        {"report": {"const": "skew"}, "skew": "Skews"},
        {"report": {"const": "static"}, "static": "StaticMembers"},
        {"report": {"const": "stickiness"}, "stickiness": "Stickinesses"},
        {"report": {"const": "rack"}, "rack": "RackShares"},
        {"report": {"const": "joins"}, "joins": "Joins"},
        {"report": {"const": "migration"}, "migration": "Migrations"},
        {"report": {"const": "html"}, "html": _PAGES},
    ),
    "sql": (
        {"columns": {"type": "array", "items": _TEXT}, "rows": _ROWS, "left_off": _NUMBER},
        {"views": _VIEWS},
    ),
    "simulate": ({"comparison": "ScriptComparison"},),
    "diff": ({"difference": "GroupDifference"}, {"scenario_difference": "ScenarioDifference"}),
    "readiness": ({"to": _TEXT, "readiness": "ReadinessReport"},),
    "openmetrics": ({"file": {"type": ["string", "null"]}, "gauges": "Gauges"},),
}
"""The output of each command, one entry per form: by key a schema, or the name of an answer."""


@click.command(short_help="Print the JSON schema of a command's --json output.")
@click.argument("command", type=click.Choice(list(FORMS)))
def schema(command: str) -> None:
    """Print the JSON schema of COMMAND's `--json`; docs/schemas has all of them.

    \b
    groupledger schema who
    """
    print_exact(as_text(command))


def as_text(command: str) -> str:
    """Return the schema as it is printed."""
    return json.dumps(schema_of(command), indent=2, ensure_ascii=False)


def schema_of(command: str) -> Schema:
    """Return the schema of a command's `--json` output."""
    definitions: dict[str, Schema] = {}
    forms = [_form(command, form, definitions) for form in FORMS[command]]
    return {
        "$schema": DIALECT,
        "title": f"groupledger {command} --json",
        "oneOf": [*forms, _FAILED],
        "$defs": dict(sorted(definitions.items())),
    }


def _form(command: str, form: Mapping[str, Any], definitions: dict[str, Schema]) -> Schema:
    """Return an object with exactly the keys of the form."""
    properties: dict[str, Schema] = {"status": {"const": "done"}, "command": {"const": command}}
    open_keys: Schema = {"additionalProperties": False}
    for key, value in form.items():
        if not key:
            open_keys = {**value, "minProperties": len(properties) + 1}
        else:
            properties[key] = _of(_classes()[value], definitions) if isinstance(value, str) else value
    return {"type": "object", "properties": properties, "required": list(properties), **open_keys}


@cache
def _classes() -> dict[str, Any]:
    """Map every class and alias of the answers by name: their annotations name them without importing them."""
    from groupledger import answers
    from groupledger.core import conversion, findings
    from groupledger.core.protocol import comparison

    modules = [import_module(f"{answers.__name__}.{each.name}") for each in pkgutil.iter_modules(answers.__path__)]
    found: dict[str, Any] = {"datetime": datetime}
    for module in (*modules, conversion, findings, comparison):
        own = {name: value for name, value in vars(module).items() if name[:1].isupper() and not name.isupper()}
        found |= {name: value for name, value in own.items() if getattr(value, "__module__", "") == module.__name__}
        found |= {name: value for name, value in own.items() if typing.get_origin(value) is tuple}
    return found


def _of(kind: Any, definitions: dict[str, Schema]) -> Schema:
    """Return the schema of a value of this type as `output.plain` writes it; dataclasses go into `definitions`."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_of(each, definitions) for each in arguments]}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin is tuple:
        items = [_of(each, definitions) for each in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [each.value for each in kind]}
    assert dataclasses.is_dataclass(kind), f"{kind} has no schema yet"
    return _object(kind, definitions)


def _object(kind: Any, definitions: dict[str, Schema]) -> Schema:
    """Return a reference to the schema of a dataclass."""
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}  # a class may refer to itself
        hints = typing.get_type_hints(kind, {**_classes(), **vars(import_module(kind.__module__))})
        fields = {each.name: _of(hints[each.name], definitions) for each in dataclasses.fields(kind)}
        definitions[name] = {
            "description": " ".join((kind.__doc__ or "").split("\n\n")[0].split()),
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}
