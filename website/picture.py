"""One picture of the data's way, drawn as SVG: narrow enough to be read on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

WIDTH, MARGIN, GAP, LINE = 480, 16, 34, 19
_STYLE = "font-family: system-ui, sans-serif; font-size: 14px"
_COLOURS = {"outside": "#eceff1", "job": "#fff3e0", "table": "#e3f2fd", "answer": "#e8f5e9"}


class Box(NamedTuple):
    """A title and lines below it; `kind` is what it is: outside of the ledger, a job, tables, answers."""

    kind: str
    title: str
    lines: tuple[str, ...]


WAY = (
    Box(
        "outside",
        "What Kafka has",
        ("__consumer_offsets: a cluster, a broker's disk, files, tables", "listings of topics"),
    ),
    Box(
        "job", "ingest (Spark)", ("decodes each record, folds each group by offset", "what cannot be used: quarantine")
    ),
    Box(
        "table",
        "Facts: what was recorded",
        (
            "log_records, topic_snapshots",
            "group_snapshots, member_snapshots",
            "ownership_changes, coverage, violations",
        ),
    ),
    Box(
        "job",
        "assign (Spark)",
        ("computes each rebalance again from its input,", "under the assignor it had or another one"),
    ),
    Box("table", "Results: what was computed", ("rebalances, assignments, violations",)),
    Box(
        "table",
        "Views: what counts",
        ("current_rebalances, current_group_snapshots, ...", "only rows whose attempt runs has committed"),
    ),
    Box(
        "answer",
        "Answers (no Spark for a ledger in a folder)",
        ("who, timeline, explain, audit, report, readiness, diff, sql", "pages, notebooks, OpenMetrics, BI tools"),
    ),
)


def drawn() -> str:
    """docs/way-of-the-data.svg."""
    top = MARGIN
    parts: list[str] = []
    for number, box in enumerate(WAY):
        if number:
            parts += _arrow(top - GAP)
        parts += _box(box, top)
        top += _height(box) + GAP
    height = top - GAP + MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" style="{_STYLE}">',
            "<title>The way of the data, from Kafka's log to an answer</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _height(box: Box) -> int:
    return 38 + LINE * len(box.lines)


def _box(box: Box, top: int) -> Iterator[str]:
    shape = f'x="{MARGIN}" y="{top}" width="{WIDTH - 2 * MARGIN}" height="{_height(box)}" rx="6"'
    yield f'<rect {shape} fill="{_COLOURS[box.kind]}" stroke="#546e7a"/>'
    yield f'<text x="{2 * MARGIN}" y="{top + 24}" font-weight="bold" fill="#102027">{escape(box.title)}</text>'
    for number, line in enumerate(box.lines, 1):
        yield f'<text x="{2 * MARGIN}" y="{top + 24 + LINE * number}" fill="#102027">{escape(line)}</text>'


def _arrow(top: int) -> Iterator[str]:
    middle, end = WIDTH // 2, top + GAP - 4
    yield f'<line x1="{middle}" y1="{top + 3}" x2="{middle}" y2="{end - 6}" stroke="#546e7a" stroke-width="2"/>'
    yield f'<path d="M {middle - 6} {end - 9} L {middle} {end} L {middle + 6} {end - 9} Z" fill="#546e7a"/>'
