"""Declare the forms of `--json` output, by command: what stands under which key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    """A dataclass of another module than those of `answers`, by its path; some of its properties are printed, too.

    `several`: a list of them.
    """

    path: str
    properties: tuple[str, ...] = ()
    several: bool = False


def closed(**properties: Any) -> Schema:
    """Return the schema of an object with exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _map(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


def _status(*words: str) -> dict[str, Schema]:
    return {"status": {"enum": list(words)}}


_LISTING = closed(total=NUMBER, rows=_ROWS)
_HISTORY: Schema = {"patternProperties": {"^history of ": _LISTING}, "additionalProperties": False}
_VIEWS = _list(closed(view=TEXT, comment=TEXT))
_PAGES = closed(index=TEXT, pages=NUMBER, groups=NUMBER, findings=NUMBER, notes=_TEXTS)
"""`report.html.written.WrittenReport`, which needs libraries for pictures."""
_SECONDS = _map({"type": "number"})
_INGESTED: dict[str, Any] = {
    "run_id": TEXT,
    "attempt_id": TEXT,
    "already_committed": _TRUE_OR_FALSE,
    "nothing_new": {"const": False},
    "left": _map(NUMBER),
    "accounts": Printed("pipeline.accounts.Account", ("balanced",), several=True),
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
_KNOWN: dict[str, Any] = {"known_up_to": Printed("answers.reach.Reach", several=True)}


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
        {"ownership": "OwnershipAt"},
        {OPEN: _HISTORY},
    ),
    "explain": _answers(
        {"explanation": "Explanation"},
    ),
    "timeline": _answers({"timeline": "Timeline"}, {"partition_timeline": "PartitionTimeline"}),
    "audit": _answers(
        {"failed_on": _TEXTS, "audit": "Audit"},
    ),
    "report": _answers(
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
        {"columns": _TEXTS, "rows": _ROWS, "left_off": NUMBER},
        {"views": _VIEWS},
    ),
    "simulate": ({"comparison": "ScriptComparison"}, {SPREAD: Printed("pipeline.grid.GridAnswer")}),
    "diff": _answers({"difference": "GroupDifference"}, {"scenario_difference": "ScenarioDifference"}),
    "hand-overs": _answers(
        {"hand_overs": "GroupHandOvers"},
    ),
    "readiness": _answers(
        {"to": TEXT, "readiness": "ReadinessReport"},
    ),
    "openmetrics": ({"file": _TEXT_OR_NULL, "gauges": "Gauges"},),
    "init": ({"location": TEXT, "made": _TEXTS},),
    "ingest": ({**_OF_A_RUN, **_INGESTED}, {**_OF_A_RUN, **_NOTHING_NEW}),
    "assign": ({**_OF_A_RUN, SPREAD: Printed("pipeline.assign.AssignSummary")},),
    "callbacks": ({SPREAD: Printed("pipeline.call_tables.CallsSummary")},),
    "replay": (
        {"run_id": TEXT, "assignor": TEXT, SPREAD: "Replayed"},
        {**_status("done", "different"), SPREAD: Printed("pipeline.verify.Verification")},
        {"calls": NUMBER, "commits": NUMBER, "did": _map(NUMBER), "errors": _list(_JOURNAL_ENTRY)},
    ),
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
            "groups": Printed("pipeline.verdicts.GroupVerdicts", several=True),
        },
    ),
}
"""The output of each command, one entry per form: by key a schema, an object of such keys, the name of an answer, or a
class elsewhere."""
