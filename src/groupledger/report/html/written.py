"""Write the report of a ledger to a folder of pages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from groupledger.core.faults import Fault
from groupledger.core.text import cell
from groupledger.report.html.gathering import fleet, group_facts
from groupledger.report.html.group_page import GroupPage, group_page
from groupledger.report.html.index_page import IndexPage, index_page
from groupledger.report.html.page_parts import COLOURS, INDEX, PAGE_NAME, Link, page_of

if TYPE_CHECKING:
    from jinja2 import Environment

    from groupledger.answers.queries import Reader
    from groupledger.answers.scope import RequestedScope
    from groupledger.report.html.comparison_page import ComparisonPage


T = TypeVar("T")
LIBRARIES = ("matplotlib", "jinja2")
LONG_LIST = re.compile(r":[\d,-]{20,}")  # of partitions: it breaks after a comma, else it would within a number


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """What was written: the index, how many groups have a page, how many there are; `notes` say why there are none."""

    index: str
    pages: int
    groups: int
    findings: int
    notes: tuple[str, ...]


def write_report(
    reader: Reader, asked: RequestedScope, place: Path, limit: int, doing: Callable[[str], None] = lambda _: None
) -> WrittenReport:
    """Write the index, and pages of the `limit` worst groups; `doing` gets the name of the next one.

    Raises Fault: REPORT_MISSING without the libraries, FOREIGN_FOLDER, and as `scope.scope`.
    """
    _require_libraries()
    folder = ReportFolder(place)
    of = fleet(reader, asked)
    rows: tuple[Any, ...] = (*of.storms.groups, *of.skew.groups) if limit else ()
    ranked = {(each.cluster_id, each.group_id) for each in rows}
    worst = [line for at, line in enumerate(of.groups) if at < limit or line.key in ranked]
    for number, line in enumerate(worst, 1):
        doing(f"page {number:,} of {len(worst):,}: {line.group_id}")
        facts = group_facts(reader, of.scope, line, of.found(line))
        folder.write(page_of(*line.key), _rendered("group", group_page(facts)))
    pages = {line.key: page_of(*line.key) for line in worst}
    folder.finish(_rendered("index", index_page(of, pages)))
    notes = () if of.total else of.audit.notes
    return WrittenReport(str(place / INDEX), len(pages), of.total, len(of.audit.found), notes)


def write_page(build: Callable[[T], ComparisonPage], found: T, place: Path) -> None:
    """Write a page that stands alone; a file that is there is replaced.

    Raises Fault: REPORT_MISSING without the libraries, CANNOT_WRITE.
    """
    _require_libraries()
    page = _rendered("comparison", build(found))
    try:
        place.write_text(page, encoding="utf-8")
    except OSError as error:
        raise Fault("CANNOT_WRITE", f"{place}: {error.strerror}; expected a file that can be written") from error


def _require_libraries() -> None:
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        text = f"pages need {' and '.join(missing)}, not installed here: pip install 'groupledger[report]'"
        raise Fault("REPORT_MISSING", text)


# Render pages as HTML; names are always escaped.


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=PackageLoader("groupledger.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else cell(value),  # what is HTML already stays
    )
    environment.tests["link"] = lambda value: isinstance(value, Link)
    environment.filters["in_pieces"] = lambda value: Markup(  # noqa: S704 - escaped before
        LONG_LIST.sub(lambda found: found[0].replace(",", ",<wbr>"), escape(cell(value)))
    )
    return environment


def _rendered(name: str, page: ComparisonPage | GroupPage | IndexPage) -> str:
    """Render a page by the template of this name."""
    return _environment().get_template(f"{name}.html").render(page=page, severities=COLOURS)


# Write pages to their folder one at a time, each whole; other files are never touched.
#
# A list of our files stands in the folder. It names every file before the file is written, and until after it is gone:
# whenever this is ended, the next report knows what is ours. The index comes last: what it links to is there.

LIST = ".groupledger-report.json"
_NEW = ".new"


class ReportFolder:
    """A folder of pages: `write` each page, then `finish` with the index."""

    def __init__(self, place: Path) -> None:
        """Take a new or empty folder, or one that holds a report.

        Raises Fault: FOREIGN_FOLDER for one that holds anything else and no report, or that is no folder.
        """
        self._place = place
        if place.exists() and not place.is_dir():
            raise Fault("FOREIGN_FOLDER", f"{place} is a file; expected a folder, or a name that is not there yet")
        self._before = frozenset(_listed(place) if place.exists() else ())
        self._written: list[str] = []

    def write(self, name: str, text: str) -> None:
        """Put a page in its place; the first one creates the folder."""
        self._place.mkdir(parents=True, exist_ok=True)
        self._written.append(name)
        self._list(self._before.union(self._written))
        self._put(name, text)

    def finish(self, index: str) -> None:
        """Write the index, then remove the pages that it no longer links to."""
        self.write(INDEX, index)
        for name in sorted(self._before.difference(self._written)):
            (self._place / name).unlink(missing_ok=True)
            (self._place / f"{name}{_NEW}").unlink(missing_ok=True)
        self._list(self._written)

    def _list(self, names: Iterable[str]) -> None:
        self._put(LIST, json.dumps({"made_by": "groupledger report html", "files": sorted(names)}, indent=1) + "\n")

    def _put(self, name: str, text: str) -> None:
        new = self._place / f"{name}{_NEW}"
        new.unlink(missing_ok=True)  # where it is a link, what it leads to is not ours
        new.write_text(text, encoding="utf-8", newline="\n")
        new.replace(self._place / name)


def _listed(place: Path) -> Iterator[str]:
    """Return our files in the folder, by its list, ignoring names that our files never have."""
    try:
        found = json.loads((place / LIST).read_text(encoding="utf-8"))
        names = [str(name) for name in found["files"]]
    except FileNotFoundError:
        if next(_others(place), None) is not None:
            raise _foreign(place) from None
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _foreign(place) from error
    yield from (name for name in names if PAGE_NAME.fullmatch(name))


def _others(place: Path) -> Iterator[Path]:
    """Return what is in the folder, except a list that was being written when a report was interrupted."""
    return (each for each in place.iterdir() if each.name != f"{LIST}{_NEW}")


def _foreign(place: Path) -> Fault:
    return Fault(
        "FOREIGN_FOLDER",
        f"{place} holds files and no report of ours ({LIST}); expected a folder that is new, empty or a report: "
        "name another, or remove this one first",
    )
