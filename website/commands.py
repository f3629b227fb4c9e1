"""The pages of the commands, a page a command, written from the declarations."""

from __future__ import annotations

import inspect
import posixpath
import re
from collections.abc import Iterator

import click

from groupledger.cli import main
from groupledger.cli.commands import SECTIONS
from website.reference import table

FOLDER = "reference/commands"
_HEAD = """# Commands

`groupledger COMMAND --help` prints the same as the page of a command. A command that fails prints one line with a code,
and its exit code gives the kind of failure: [Exit codes](../codes.md#exit-codes). Generated from the commands by
`python -m website`.
"""
_PAGE = re.compile(r"(?<![`\w/])docs/(?P<path>(?:[\w-]+/)*(?P<name>[\w-]+\.md))")


def pages() -> dict[str, str]:
    """Return the pages by their path below docs/."""
    context = click.Context(main, info_name="groupledger")
    commands = {name: click.Context(each, info_name=name, parent=context) for name, each in main.commands.items()}
    index = [_HEAD]
    for heading, names in SECTIONS.items():
        rows = [(f"[`{name}`]({name}.md){{#{name}}}", main.commands[name].get_short_help_str(120)) for name in names]
        index += [f"## {heading}\n", *table(("command", "what it does"), rows)]
    return {
        f"{FOLDER}/index.md": "\n".join(index),
        **{f"{FOLDER}/{name}.md": "\n".join(_section(below, level=1)) for name, below in commands.items()},
    }


def _section(context: click.Context, level: int) -> Iterator[str]:
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"{'#' * level} `{context.command_path}`\n"
    yield f"```text\n{usage}\n```\n"
    yield from (_paragraph(each) for each in inspect.cleandoc(command.help or "").split("\n\n"))
    records = [each.get_help_record(context) for each in command.get_params(context)]
    rows = [(f"`{form}`", words) for form, words in filter(None, records) if words and "--help" not in form]
    yield from table(("option", "meaning"), rows)
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from _section(click.Context(each, info_name=name, parent=context), level + 1)


def _paragraph(text: str) -> str:
    """Return a paragraph as it is, and one that click does not wrap as a block."""
    if text.startswith("\b\n"):
        return f"```text\n{text[2:]}\n```\n"
    return _PAGE.sub(lambda found: f"[{found['name']}]({posixpath.relpath(found['path'], FOLDER)})", text) + "\n"
