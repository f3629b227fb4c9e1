"""Make JSON schemas of `--json` output from the dataclasses of the answers; define the command that prints them."""

from __future__ import annotations

import dataclasses
import json
import pkgutil
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

import click

from groupledger.cli.json_forms import FORMS, NUMBER, OPEN, SPREAD, TEXT, Printed, Schema, closed
from groupledger.cli.output import print_exact

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SIMPLE: dict[Any, Schema] = {
    str: TEXT,
    int: NUMBER,
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    datetime: {"type": "string", "format": "date-time", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"},
}
_FAILED = closed(status={"const": "failed"}, code=TEXT, message=TEXT)


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
    """Return an object with exactly the keys of the form, and what every answer has."""
    return _keys({"status": {"const": "done"}, "command": {"const": command}, **form}, definitions)


def _keys(form: Mapping[str, Any], definitions: dict[str, Schema]) -> Schema:
    """Return an object with exactly the keys of a form."""
    properties: dict[str, Schema] = {}
    open_keys: Schema = {"additionalProperties": False}
    for key, value in form.items():
        if key == OPEN:
            open_keys = {**value, "minProperties": len(properties) + 1}
        elif key == SPREAD:
            kind = _printed_class(value)
            properties |= _fields(kind, value.properties if isinstance(value, Printed) else (), definitions)
        else:
            properties[key] = _value(value, definitions)
    return {"type": "object", "properties": properties, "required": list(properties), **open_keys}


def _value(value: Any, definitions: dict[str, Schema]) -> Schema:
    """Return the schema of what stands under a key of a form."""
    if isinstance(value, Printed):
        one = _object(_printed_class(value), definitions, value.properties)
        return {"type": "array", "items": one} if value.several else one
    if isinstance(value, str):
        return _of(_classes()[value], definitions)
    is_form = any(isinstance(each, Printed) for each in value.values())
    return _keys(value, definitions) if is_form else value


def _printed_class(named: str | Printed) -> Any:
    if isinstance(named, str):
        return _classes()[named]
    module, _, name = named.path.rpartition(".")
    return getattr(import_module(f"groupledger.{module}"), name)


@cache
def _classes() -> dict[str, Any]:
    """Map every class and alias of the answers by name: their annotations name them without importing them."""
    from groupledger import answers
    from groupledger.core import conversion, findings
    from groupledger.core.protocol import comparison

    modules = [import_module(f"{answers.__name__}.{each.name}") for each in pkgutil.iter_modules(answers.__path__)]
    found: dict[str, Any] = {"datetime": datetime, "Mapping": Mapping}
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


def _object(kind: Any, definitions: dict[str, Schema], properties: Sequence[str] = ()) -> Schema:
    """Return a reference to the schema of a dataclass."""
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}  # a class may refer to itself
        definitions[name] = {
            "description": " ".join((kind.__doc__ or "").split("\n\n")[0].split()),
            **closed(**_fields(kind, properties, definitions)),
        }
    return {"$ref": f"#/$defs/{name}"}


def _fields(kind: Any, properties: Sequence[str], definitions: dict[str, Schema]) -> dict[str, Schema]:
    """Return the schema of each field of a dataclass, and of some of its properties."""
    names = {**_classes(), **vars(import_module(kind.__module__))}
    hints = typing.get_type_hints(kind, names)
    own = {each: typing.get_type_hints(getattr(kind, each).fget, names)["return"] for each in properties}
    kinds = {each.name: hints[each.name] for each in dataclasses.fields(kind)} | own
    return {name: _of(each, definitions) for name, each in kinds.items()}
