"""The pages of the tables, a page a table, and of the tables that users bring, written from their declarations."""

from __future__ import annotations

from collections.abc import Iterator

from groupledger.tables import SCHEMA_VERSION, TABLES, Table
from groupledger.tables.facts import FORMS, MEMBERSHIPS, TOPIC_COUNTS, GivenForm

_HEAD = f"""# Table schemas

Schema version {SCHEMA_VERSION}. All tables are Delta tables. Each row has the id of the attempt that wrote it, and
counts once `runs` commits that attempt: [sql.md](../../guides/use/sql.md) says which rows to read, with Spark and
without. Generated from the declarations by `python -m website`.

| table | rows |
|---|---|
"""
_GIVEN = """# Your own snapshot tables

`ingest` also reads your own snapshots (a source of the kind `snapshots`): a folder with `group_snapshots`,
`member_snapshots` and, for partition counts, `topic_snapshots`, each a folder or a file with the suffix `.json`,
`.csv`, `.parquet` or `.delta`. Columns are matched by name; unknown columns are ignored. Missing columns are null, or
as the tables below say.

- Times are timestamps, milliseconds since 1970, or in JSON and CSV also ISO 8601. Bytes are binary or base64 text.
- In CSV (with a header) a list is JSON text: `[{"topic": "orders", "partitions": [0, 1]}]`. `topic_id` may be left out.
- A table of memberships with the format `parquet` or `delta`, or in the catalog, takes the place of the folder:
  [read-tables.md](read-tables.md#memberships).
- A `snapshot_id` is any text that is unique in your table; the ledger keeps it as `table/<cluster>/<your id>`.
- `topic_snapshots` has one row per change: the count from `valid_from` on, null if the topic was deleted.
- `ownership_changes` are derived from `recorded` (and `pending_revocation`) of a group's snapshots, by incarnation and
  offset. A member without it holds nothing. A snapshot in which no member has it, nor a target, gives no ownership.
- If a column has another type, or a required one is missing, the run stops and names the column. In JSON, a missing
  value is an error of its line, which must hold exactly one object. A wrong *row* (a number outside [its
  range](limits.md), a duplicate member, a negative partition, a group without member rows, members without a
  group row, ...) sends all rows of that snapshot to `quarantine`. The other snapshots are processed, and none is
  compared with a rejected one.
"""


def pages() -> dict[str, str]:
    """Return the pages by their path below docs/."""
    rows = (
        f"| [`{table.name}`]({table.name}.md){{#{table.name}}} | {_text(_first_sentence(table.comment))} |\n"
        for table in TABLES
    )
    of_tables = {f"reference/tables/{table.name}.md": _page(table) for table in TABLES}
    given = "\n".join([_GIVEN, *(_form(form) for form in (*FORMS, MEMBERSHIPS, TOPIC_COUNTS))])
    return {"reference/tables/index.md": _HEAD + "".join(rows), **of_tables, "operate/your-own-snapshots.md": given}


def _first_sentence(comment: str) -> str:
    return comment.partition(". ")[0].removesuffix(".") + "."


def _page(table: Table) -> str:
    return "\n".join([f"# Table `{table.name}`\n", f"{table.comment}{_layout(table)}\n", *_rows(table), ""])


def _layout(table: Table) -> str:
    if table.partition_by:
        return f" Partitioned by {_names(table.partition_by)}."
    return f" Clustered by {_names(table.cluster_by)}." if table.cluster_by else ""


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in columns)


def _rows(table: Table) -> Iterator[str]:
    yield "| column | meaning | type | null |"
    yield "|---|---|---|---|"
    for field in table.schema:
        kind, null = field.dataType.simpleString(), "yes" if field.nullable else "no"
        yield f"| `{field.name}` | {_text(field.metadata['comment'])} | `{kind}` | {null} |"
    if table.checks:
        yield "\nDelta rejects rows that break one of these constraints:\n"
        yield from (f"- `{name}`: `{condition}`" for name, condition in table.constraints.items())


def _form(form: GivenForm) -> str:
    lines = [f"## Your `{form.table.name}`\n", "| column | type | if missing |", "|---|---|---|"]
    for name in form.columns:
        absent = "**required**" if name in form.required else form.filled.get(name, "null")
        lines.append(f"| `{name}` | `{form.table.schema[name].dataType.simpleString()}` | {_text(absent)} |")
    return "\n".join([*lines, ""])


def _text(words: str) -> str:
    return words.replace("|", "\\|")
