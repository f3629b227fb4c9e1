"""Extend MkDocs: decisions in the navigation, titles in links, files outside of docs/ that pages link to."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import groupledger
from website.decisions import FOLDER, TEMPLATE, decisions

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SEARCH_WORDS: dict[str, list[str]] = yaml.safe_load((ROOT / "website/search_words.yaml").read_text(encoding="utf-8"))
"""Page below docs/ -> the words that people search it by."""
SOURCES = "source"
"""Folder of the site with the files outside of docs/ that pages link to."""
_LINK = re.compile(r"(?<=\]\()(?P<target>\.\./[^)#\s]+)(?=[)#])")
_NOT_SEARCHED = "contributing/"
_CALLED_BY_FILE = re.compile(r"\[(?P<name>[\w.-]+\.md)\]\((?P<file>(?:[\w./-]+/)?(?P=name))")
_TITLE = re.compile(r"^# (?:\d{4}: )?(?P<title>.+)$", re.MULTILINE)


def on_config(config: Any) -> Any:
    """Show the version, list the pages that are one of many, and redirect the former addresses of decisions."""
    config["site_name"] = f"groupledger {groupledger.__version__}"
    fill(config["nav"])
    redirects = config["plugins"]["redirects"].config["redirect_maps"]
    for page in FOLDER.glob("*.md"):
        if page.name != TEMPLATE:
            redirects[f"decisions/{page.name}"] = _page(page.name)
    return config


def fill(nav: list[Any]) -> None:
    """Add a page for each command, table and decision below their index."""
    for section, title, pages in (
        ("Reference", "Commands", _named("reference/commands")),
        ("Reference", "Table schemas", _named("reference/tables")),
        ("Contributing", "Decisions", _decisions()),
    ):
        _section(_section(nav, section), title).extend(pages)


def _section(nav: list[Any], title: str) -> list[Any]:
    found: list[Any] = next(entry[title] for entry in nav if isinstance(entry, dict) and title in entry)
    return found


def _named(folder: str) -> Iterator[dict[str, str]]:
    for page in sorted((DOCS / folder).glob("*.md")):
        if page.stem != "index":
            yield {page.stem: f"{folder}/{page.name}"}


def _decisions() -> Iterator[dict[str, list[dict[str, str]]]]:
    for theme, found in decisions(FOLDER).items():
        yield {theme: [{f"{each.number} {each.title.replace('`', '')}": _page(each.name)} for each in found]}


def _page(decision: str) -> str:
    return f"{_NOT_SEARCHED}decisions/{decision}"


def on_files(files: Any, config: Any) -> Any:
    """Add the files outside of docs/ that pages link to."""
    from mkdocs.structure.files import File

    for page in list(files.documentation_pages()):
        for target in linked_outside(page.src_uri, page.content_string):
            place = f"{SOURCES}/{target}"
            if (ROOT / target).is_file() and files.get_file_from_path(place) is None:
                files.append(File.generated(config, place, abs_src_path=os.fspath(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Point links out of docs/ to the copies, name links by titles, and search no contributor's page."""
    here = posixpath.dirname(page.file.src_uri)
    page.meta["search"] = {"exclude": page.file.src_uri.startswith(_NOT_SEARCHED), "boost": _boost(page.file.src_uri)}
    page.meta["tags"] = SEARCH_WORDS.get(page.file.src_uri, [])

    def called(match: re.Match[str]) -> str:
        file = files.get_file_from_path(posixpath.normpath(posixpath.join(here, match["file"])))
        title = _TITLE.search(file.content_string) if file else None
        return f"[{title['title']}]({match['file']}" if title else match[0]

    def led(match: re.Match[str]) -> str:
        target = _outside(here, match["target"])
        return match["target"] if target is None else posixpath.relpath(f"{SOURCES}/{target}", here or ".")

    return _CALLED_BY_FILE.sub(called, _LINK.sub(led, markdown))


def _boost(page: str) -> float:
    return 2 if page.startswith("concepts/") else 1


def linked_outside(page: str, markdown: str) -> list[str]:
    """Files outside of docs/ that a page links to, from the root of the repository."""
    found = (_outside(posixpath.dirname(page), match["target"]) for match in _LINK.finditer(markdown))
    return [each for each in found if each]


def _outside(here: str, target: str) -> str | None:
    whole = posixpath.normpath(posixpath.join("docs", here, target))
    return None if whole.startswith("docs/") else whole
