"""`python -m website` writes each page of docs/ that is made from the code: all of them, or nothing where one fails."""

from __future__ import annotations

from pathlib import Path

from groupledger.cli.json_schemas import FORMS, as_text
from groupledger.config import loading as configuration
from website import commands, decisions, picture, python_api, reference, tables

DOCS = Path(__file__).parents[1] / "docs"


def pages() -> dict[str, str]:
    """Path below docs/ -> what it holds."""
    made = {
        "reference/configuration.md": configuration.page(),
        "reference/python-api.md": python_api.page(),
        "reference/sql-views.md": reference.views(),
        "reference/codes.md": reference.codes(),
        "contributing/decisions/README.md": decisions.index(decisions.FOLDER),
        "way-of-the-data.svg": picture.drawn(),
    }
    made |= commands.pages() | tables.pages()
    return made | {f"schemas/{command}.json": f"{as_text(command)}\n" for command in FORMS}


def main() -> None:
    """Write them."""
    for name, content in pages().items():
        (DOCS / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
