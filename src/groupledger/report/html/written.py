"""Write the report of a ledger to a folder of pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from groupledger.core.faults import Fault
from groupledger.report.html.comparison_page import comparison_page
from groupledger.report.html.folder import ReportFolder
from groupledger.report.html.gathering import fleet, group_facts
from groupledger.report.html.group_page import group_page
from groupledger.report.html.index_page import index_page
from groupledger.report.html.page_parts import INDEX, page_of
from groupledger.report.html.rendering import comparison_html, group_html, index_html

if TYPE_CHECKING:
    from groupledger.answers.rows import Reader
    from groupledger.answers.scope import RequestedScope
    from groupledger.core.protocol.comparison import ScriptComparison

LIBRARIES = ("matplotlib", "jinja2")


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
    """Write the index, and pages of the `limit` worst groups; `doing` is told which one is next.

    Raises Fault: REPORT_MISSING without the libraries, FOREIGN_FOLDER, and as `scope.scope`.
    """
    _require_libraries()
    folder = ReportFolder(place)
    of = fleet(reader, asked)
    worst = of.groups[:limit]
    for number, line in enumerate(worst, 1):
        doing(f"page {number:,} of {len(worst):,}: {line.group_id}")
        facts = group_facts(reader, of.scope, line, of.found(line))
        folder.write(page_of(*line.key), group_html(group_page(facts)))
    pages = {line.key: page_of(*line.key) for line in worst}
    folder.finish(index_html(index_page(of, pages)))
    notes = () if of.total else of.audit.notes
    return WrittenReport(str(place / INDEX), len(pages), of.total, len(of.audit.found), notes)


def write_comparison(found: ScriptComparison, place: Path) -> None:
    """Write the page of a comparison with timelines; a file that is there is replaced.

    Raises Fault: REPORT_MISSING without the libraries, CANNOT_WRITE.
    """
    _require_libraries()
    page = comparison_html(comparison_page(found))
    try:
        place.write_text(page, encoding="utf-8")
    except OSError as error:
        raise Fault("CANNOT_WRITE", f"{place}: {error.strerror}; expected a file that can be written") from error


def _require_libraries() -> None:
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        text = f"pages need {' and '.join(missing)}, not installed here: pip install 'groupledger[report]'"
        raise Fault("REPORT_MISSING", text)
