"""The navigation of the site, as mkdocs.yml and the hooks of website/ have it."""

from __future__ import annotations

from pathlib import Path

import yaml

from website.hooks import fill

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
SITE = yaml.safe_load(TEXT)
NAV = SITE["nav"]
fill(NAV)


def pages_of(section):
    """The pages of one tab, in order."""
    return list(_below([entry[section] for entry in NAV if section in entry]))


def all_pages():
    """Every page, in order."""
    return list(_below(NAV))


def _below(entry):
    if isinstance(entry, str):
        yield entry
    for each in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from _below(each)
