"""Make JSON schemas of `--json` output from the dataclasses of the answers; define the command that prints them."""

from __future__ import annotations

import dataclasses
import json
import pkgutil
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import click

from groupledger.cli.output import print_exact
from groupledger.cli.report import REPORTS

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
_TEXTS: Schema = {"type": "array", "items": TEXT}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_TRUE_OR_FALSE: Schema = {"type": "boolean"}
_ROWS: Schema = {"type": "array", "items": {"type": "object"}}
SPREAD = "*"
"""The key of a class whose fields are keys of the output themselves."""
OPEN = ""
"""The key of a schema of all other keys."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A dataclass by its path, as those of other modules than `answers` are named; some properties are printed, too.

    `several`: a list of them.
    """

    path: str
    properties: tuple[str, ...] = ()
    several: bool = False

    @property
    def kind(self) -> Any:
        """Return the dataclass."""
        return pkgutil.resolve_name(f"groupledger.{self.path}")


def closed(**properties: Any) -> Schema:
    """Return the schema of an object with exactly these keys."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _map(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


def _status(*words: str) -> dict[str, Schema]:
    return {"status": {"enum": list(words)}}


_LISTING = closed(total=NUMBER, rows=_ROWS)
_HISTORY: Schema = {"patternProperties": {"^history of ": _LISTING}, "additionalProperties": False}
_VIEWS = _list(closed(view=TEXT, comment=TEXT))
_PAGES = {SPREAD: Printed("report.html.written.WrittenReport")}
_REPLAYED = Printed("answers.replayed.Replayed")
_SECONDS = _map({"type": "number"})
_INGESTED: dict[str, Any] = {
    "run_id": TEXT,
    "attempt_id": TEXT,
    "already_committed": _TRUE_OR_FALSE,
    "nothing_new": {"const": False},
    "left": _map(NUMBER),
    "accounts": Printed("pipeline.invocation.Account", ("balanced",), several=True),
    "rows": _map(NUMBER),
    "quarantined": NUMBER,
    "result_digest": TEXT,
    "timings": _SECONDS,
}
_NOTHING_NEW: dict[str, Any] = {"run_id": TEXT, "nothing_new": {"const": True}, "timings": _SECONDS}
_OF_A_RUN = _status("done", "quarantine-over-limit")
_HAZARDS = _list(closed(danger=TEXT, evidence=TEXT))
_MIGRATION: dict[str, Any] = {
    **_status("safe", "unsafe"),
    "first_unsafe": {"anyOf": [{"type": "null"}, closed(step=NUMBER, danger=TEXT)]},
    "members": _list(closed(member=TEXT, library=TEXT, perhaps=_TEXTS, assignors=_TEXTS, topics=_TEXTS)),
    "played": NUMBER,
    "steps": _list(
        closed(
            step=NUMBER,
            bounce=TEXT,
            member=TEXT,
            alike=_TEXTS,
            assignor=_TEXT_OR_NULL,
            leader=_TEXT_OR_NULL,
            common=_TEXTS,
            protocols=_map({"enum": ["EAGER", "COOPERATIVE"]}),
            rounds=NUMBER,
            unavailable=NUMBER,
            findings=_HAZARDS,
        )
    ),
    "stop_all": {
        "anyOf": [
            {"type": "null"},
            closed(bounce=TEXT, assignor=_TEXT_OR_NULL, rounds=NUMBER, unavailable=NUMBER, findings=_HAZARDS),
        ]
    },
}
_JOURNAL_ENTRY = closed(
    member=TEXT,
    callback=TEXT,
    did=TEXT,
    partitions=TEXT,
    offsets=_list(NUMBER),
    generation={"type": ["integer", "null"]},
    error=_TEXT_OR_NULL,
)
_KNOWN: dict[str, Any] = {"known_up_to": Printed("answers.scope.Reach", several=True)}


def _answers(*forms: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return forms of answers, each of which says up to when the ledger is known."""
    return tuple({**_KNOWN, **form} for form in forms)


FORMS: dict[str, tuple[dict[str, Any], ...]] = {
    "who": _answers({"ownership": "OwnershipAt"}, {"unowned": "UnownedPartitions"}),
    "show": _answers(
        {"clusters": _LISTING, "groups": _LISTING, "runs": _LISTING},
        {"findings": _LISTING},
        {"coverage": _LISTING},
        {"quarantine": _LISTING},
        {"rebalance": "Rebalance"},
        {OPEN: _HISTORY},
    ),
    "explain": _answers({"explanation": "Explanation"}),
    "timeline": _answers({"timeline": "Timeline"}, {"partition_timeline": "PartitionTimeline"}),
    "audit": _answers({"failed_on": _TEXTS, "audit": "Audit"}),
    "report": _answers(
        *({"report": {"const": name}, name: of.answer} for name, of in REPORTS.items()),
        {"report": {"const": "html"}, "html": _PAGES},
    ),
    "sql": ({"columns": _TEXTS, "rows": _ROWS, "left_off": NUMBER}, {"views": _VIEWS}),
    "what-if": (*_answers({"what_if": "WhatIf"}), {SPREAD: Printed("pipeline.grid.GridAnswer")}),
    "simulate": ({"comparison": "ScriptComparison"},),
    "diff": _answers({"difference": "GroupDifference"}, {"scenario_difference": "ScenarioDifference"}),
    "hand-overs": _answers({"hand_overs": "GroupHandOvers"}),
    "readiness": _answers({"to": TEXT, "readiness": "ReadinessReport"}),
    "openmetrics": ({"file": _TEXT_OR_NULL, "gauges": "Gauges"},),
    "init": ({"location": TEXT, "made": _TEXTS},),
    "ingest": ({**_OF_A_RUN, **_INGESTED}, {**_OF_A_RUN, **_NOTHING_NEW}),
    "assign": ({**_OF_A_RUN, SPREAD: Printed("pipeline.assign.AssignSummary")},),
    "callbacks": ({SPREAD: Printed("pipeline.call_tables.CallsSummary")},),
    "replay": ({SPREAD: _REPLAYED}, {"run_id": TEXT, SPREAD: _REPLAYED}),
    "rehearse": ({"calls": NUMBER, "commits": NUMBER, "did": _map(NUMBER), "errors": _list(_JOURNAL_ENTRY)},),
    "verify": ({**_status("done", "different"), SPREAD: Printed("pipeline.rebuild.Verification")},),
    "doctor": ({**_status("done", "failed"), "checks": Printed("pipeline.doctor.Check", several=True)},),
    "maintain": ({SPREAD: Printed("pipeline.maintain.MaintainSummary", ("rows_removed",))},),
    "migrate": ({"location": TEXT, "version": NUMBER, "moved": _map({"type": ["integer", "null"]})},),
    "rebuild": ({SPREAD: Printed("pipeline.rebuild.RebuildSummary")},),
    "views": ({"location": TEXT, "views": _TEXTS},),
    "plan-migration": (_MIGRATION,),
    "demo": (
        {
            "ingest": _INGESTED,
            "assign": Printed("pipeline.assign.AssignSummary"),
            "groups": Printed("pipeline.frames.GroupVerdicts", several=True),
        },
    ),
}
"""The output of each command, one entry per form: by key a schema, an object of such keys, the name of an answer, or a
class elsewhere."""


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
@click.argument("command", type=click.Choice(list(FORMS)), metavar="COMMAND")
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
    common = {"status": {"const": "done"}, "command": {"const": command}}
    forms = [_keys({**common, **form}, definitions) for form in FORMS[command]]
    return {
        "$schema": DIALECT,
        "title": f"groupledger {command} --json",
        "oneOf": [*forms, _FAILED],
        "$defs": dict(sorted(definitions.items())),
    }


def _keys(form: Mapping[str, Any], definitions: dict[str, Schema]) -> Schema:
    """Return an object with exactly the keys of a form."""
    properties: dict[str, Schema] = {}
    open_keys: Schema = {"additionalProperties": False}
    for key, value in form.items():
        if key == OPEN:
            open_keys = {**value, "minProperties": len(properties) + 1}
        elif key == SPREAD:
            properties |= _fields(value.kind, value.properties, definitions)
        else:
            properties[key] = _value(value, definitions)
    return {"type": "object", "properties": properties, "required": list(properties), **open_keys}


def _value(value: Any, definitions: dict[str, Schema]) -> Schema:
    """Return the schema of what stands under a key of a form."""
    if isinstance(value, Printed):
        one = _object(value.kind, definitions, value.properties)
        return {"type": "array", "items": one} if value.several else one
    if isinstance(value, str):
        kind = _classes()[value]
        return _ranking(value, kind, definitions) if typing.get_origin(kind) is Annotated else _of(kind, definitions)
    is_form = any(isinstance(each, Printed) for each in value.values())
    return _keys(value, definitions) if is_form else value


def _ranking(name: str, kind: Any, definitions: dict[str, Schema]) -> Schema:
    """Return a reference to the schema of a ranking: what stands first is said where its rows are defined."""
    scope, row = _of(_classes()["Scope"], definitions), _of(typing.get_args(kind.__origin__)[0], definitions)
    form = closed(scope=scope, groups=_list(row), total=NUMBER, notes=_TEXTS)
    definitions[name] = {"description": kind.__metadata__[0], **form}
    return {"$ref": f"#/$defs/{name}"}


@cache
def _classes() -> dict[str, Any]:
    """Map every class and alias of the answers by name: their annotations name them without importing them."""
    from groupledger import answers
    from groupledger.core import obstacles
    from groupledger.core.protocol import comparison
    from groupledger.core.rebalance import findings

    modules = [import_module(f"{answers.__name__}.{each.name}") for each in pkgutil.iter_modules(answers.__path__)]
    found: dict[str, Any] = {"datetime": datetime, "Mapping": Mapping}
    for module in (*modules, obstacles, findings, comparison):
        own = {name: value for name, value in vars(module).items() if name[:1].isupper() and not name.isupper()}
        found |= {name: value for name, value in own.items() if getattr(value, "__module__", "") == module.__name__}
        found |= {name: value for name, value in own.items() if typing.get_origin(value) in (tuple, Annotated)}
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
