"""Pages of the reference, written from the declarations: commands, views and codes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator

import click

from groupledger.answers.view_page import views as declared_views
from groupledger.cli import main
from groupledger.cli.exits import EXIT_BY_CODE, Exit
from groupledger.cli.summaries import WORDS
from groupledger.core.conversion import OBSTACLES
from groupledger.core.faults import Code
from groupledger.core.findings import INVARIANTS, Judge
from groupledger.core.input_codes import GroupCode, LineCode, RecordStandsCode, ScenarioCode, SnapshotCode
from groupledger.core.segments.damage import SegmentCode
from groupledger.core.verdict import UNLESS_NEIGHBOURS, Verdict
from groupledger.core.wire.faults import DecodeCode

_COMMANDS = """# Commands

Written from the commands themselves by `python -m website`; `groupledger COMMAND --help` says the same. A command that
fails says so in one line with a code, and its exit code says what kind of failure: [codes.md](codes.md#exit-codes).
"""
_VIEWS = """# The views

What counts in a ledger, a view for each table, and a few that join them. `groupledger sql` lists them and takes queries
of them; `groupledger views` creates them in a catalog. Written by `python -m website` from
[views.sql](../src/groupledger/answers/views.sql). Columns mean what they mean in the tables: [tables.md](tables.md).
The rule that the views keep to: [reading.md](reading.md).
"""
_CODES = """# The codes

Every code that an answer or a table may show. Codes do not change. Written from declarations by `python -m website`.
"""
_FINDINGS = """## Findings

What `audit` finds ([is-it-sound.md](is-it-sound.md)), the gravest first. `judged by` is the command that looks:
`ingest` and `assign` write rows of the table `violations`, under the code in the last column; `audit` judges when it is
asked, and writes nothing. `--fail-on` takes both codes, and severities.
"""
_REASONS = """## Reasons of `readiness`

Why a group can or cannot go to KIP-848 while it runs ([can-it-be-converted.md](can-it-be-converted.md)).
"""
_VERDICTS = """## Verdicts

How a record stands to what the assignor gives that ran (`rebalances.verdict`).
"""
_REJECTED = """## Rejected input

Rows of `quarantine`, each with this code, a message and the bytes or the row; the others go on. Codes of custom
assignors, which begin with `ASSIGNOR_`, are in [custom-assignors.md](custom-assignors.md).
"""
_EXITS = """## Exit codes

1 is a bug of ours, with its traceback: please report it.
"""
_EXIT_WORDS = {
    Exit.DONE: "done",
    Exit.USAGE: "usage, configuration, environment, or a question about something that the ledger does not know",
    Exit.QUARANTINE: "more rejected input than `limits.max_quarantined`; lines that `solve` or `simulate` cannot use",
    Exit.VIOLATIONS: "`audit --fail-on` found what it names; `replay`, `simulate` or `plan-migration`: it goes wrong",
    Exit.CONFLICT: "another run committed meanwhile: run it again",
    Exit.INTERRUPTED: "interrupted; an unfinished run counts for nothing",
    Exit.PIPE_CLOSED: "whoever read the output has closed it",
}
UNSEEN_ORDER = "but the log does not show an order that could have mattered"
_KINDS = {
    "Lines and rows of the log, and topic listings": LineCode,
    "Bytes of keys and values": DecodeCode,
    "Segments from a broker's disk": SegmentCode,
    "Your own snapshot tables": SnapshotCode,
    "Groups": GroupCode,
    "Scenarios of `groupledger solve`, whose results say it: no row of `quarantine`": ScenarioCode,
    "No fault: the record stands as it is (outcome `NOT_RECOMPUTED`)": RecordStandsCode,
}


def commands() -> str:
    """docs/commands.md."""
    context = click.Context(main, info_name="groupledger")
    return "\n".join([_COMMANDS, *_sections(main, context, level=2)])


def _sections(group: click.Group, context: click.Context, level: int) -> Iterator[str]:
    for name, command in group.commands.items():
        below = click.Context(command, info_name=name, parent=context)
        yield from _section(command, below, level)
        if isinstance(command, click.Group):
            yield from _sections(command, below, level + 1)


def _section(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"{'#' * level} `{context.command_path.removeprefix('groupledger ')}`\n"
    yield f"```text\n{usage}\n```\n"
    yield from (_paragraph(each) for each in inspect.cleandoc(command.help or "").split("\n\n"))
    records = [each.get_help_record(context) for each in command.get_params(context)]
    rows = [(f"`{form}`", words) for form, words in filter(None, records) if words and "--help" not in form]
    yield from _table(("option", "meaning"), rows)


def _paragraph(text: str) -> str:
    """Text as it is, and what click is told not to wrap as a block."""
    if text.startswith("\b\n"):
        return f"```text\n{text[2:]}\n```\n"
    return re.sub(r"(?<![`\w/])(docs/([\w-]+\.md))", r"[\1](\2)", text) + "\n"


def views() -> str:
    """docs/views.md."""
    found = [_VIEWS]
    for view in declared_views().values():
        found.append(f"## `{view.name}`\n\n{view.comment}\n")
        found.append(f"Columns: {', '.join(f'`{name}`' for name in _columns(view.query))}.\n")
        found.append(f"```sql\n{view.query}\n```\n")
    return "\n".join(found)


def _columns(query: str) -> list[str]:
    """Names of what a query selects; none of its expressions but the last of a list has a comma at depth 0."""
    selected = re.sub(r"^SELECT (?:DISTINCT )?", "", query)
    depth, names, start = 0, [], 0
    for at, sign in enumerate(selected):
        depth += (sign == "(") - (sign == ")")
        ends = depth == 0 and selected.startswith(" FROM ", at)
        if depth == 0 and (sign == "," or ends):
            names.append(re.split(r"\.| AS ", selected[start:at].strip())[-1])
            start = at + 1
        if ends:
            break
    return names


def codes() -> str:
    """docs/codes.md."""
    findings = [
        (f"`{each.code}`", each.what, each.severity.value, each.judge.value, _recorded(each.judge, each.recorded_as))
        for each in INVARIANTS
    ]
    parts = [
        _CODES,
        _FINDINGS,
        *_table(("code", "what is wrong", "severity", "judged by", "in `violations`"), findings),
    ]
    reasons = [(f"`{each.code}`", each.what, each.effect.value) for each in OBSTACLES]
    parts += [_REASONS, *_table(("code", "what it means", "effect"), reasons)]
    parts += [_VERDICTS, *_table(("verdict", "meaning"), _verdicts())]
    parts += [_REJECTED]
    for title, kind in _KINDS.items():
        parts += [f"### {title}\n", *_table(("code", "what was found"), _meanings(kind))]
    named = {code: name for name, code in EXIT_BY_CODE.items()}
    exits = [(str(int(each)), _EXIT_WORDS[each], f"`{named[each]}`" if each in named else "") for each in Exit]
    return "\n".join([*parts, _EXITS, *_table(("exit code", "meaning", "such as"), exits)])


def _recorded(judge: Judge, code: str) -> str:
    return "" if judge is Judge.AUDIT else f"`{code}`"


def _meanings(kind: type[Code]) -> Iterator[tuple[str, str]]:
    return ((f"`{each.value}`", each.what) for each in kind)


def _verdicts() -> Iterator[tuple[str, str]]:
    words = {unless.text: f"{WORDS[each.text]}; {UNSEEN_ORDER}" for each, unless in UNLESS_NEIGHBOURS.items()} | WORDS
    in_order = [each.text for each in Verdict] + list(WORDS)
    return ((f"`{text}`", words[text]) for text in dict.fromkeys(in_order))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    lines = [f"| {' | '.join(_cell(each) for each in row)} |" for row in rows]
    if lines:
        yield "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines, ""])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
