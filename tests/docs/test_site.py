"""The site: pages written from the code are as the code is, and every page is in the navigation."""

import ast
import re
from pathlib import Path

import markdown
import pytest

from groupledger.core.log.lines import GroupCode, LineCode, RecordStandsCode, ScenarioCode, SnapshotCode
from groupledger.core.log.segments import SegmentCode
from groupledger.core.wire.codec import DecodeCode
from tests.docs.navigation import all_pages, pages_of
from website.__main__ import DOCS, pages
from website.decisions import TEMPLATE
from website.hooks import linked_outside

ROOT = DOCS.parent
SOURCE = ROOT / "src" / "groupledger"
CODE = re.compile(r"^([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+)(?::.*)?$", re.DOTALL)
NAMED_PAGE = re.compile(r"(?<![\w/.-])docs/[a-z\d/.-]+\.md\b")
INTO_PAGE = re.compile(r"\]\((?P<page>[\w./-]+\.md)?#(?P<heading>[^)\s]+)\)")
WHO_REJECTS = {
    "core/log/lines.py": LineCode,
    "sources/offsets_records.py": LineCode,
    "sources/snapshot_tables.py": SnapshotCode,
    "core/history/fold.py": GroupCode,
    "pipeline/assign.py": GroupCode,
}
"""Where rows are rejected, and what declares the codes; those of bytes, segments and buckets are of their class."""
NO_CODE_OF_A_ROW = {"FOREIGN_SCHEMA", "SOURCE_MISSING", "OTHER_TOPIC", "COLUMN_MISSING", "TABLE_OR_VIEW_NOT_FOUND"}
"""A source that cannot be read at all; a record of another topic, which is counted."""


@pytest.mark.parametrize("name", pages())
def test_a_page_written_from_the_code_is_as_the_code_is(name):
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], "write it anew: python -m website"


@pytest.mark.parametrize("folder", ["reference/commands", "reference/tables", "schemas"])
def test_no_page_is_left_of_what_the_code_no_longer_has(folder):
    assert {path.relative_to(DOCS).as_posix() for path in (DOCS / folder).iterdir()} - set(pages()) == set()


def test_a_page_that_the_code_names_is_there():
    """In what commands print, in comments and in tests: a page that moves takes its name along."""
    files = [ROOT / "CONTRIBUTING.md", *SOURCE.rglob("*.*"), *(ROOT / "tests").rglob("*.py")]
    named = {
        (file.name, page)
        for file in files
        if file.suffix in {".py", ".sql", ".yaml", ".xml", ".md"}
        for page in NAMED_PAGE.findall(file.read_text(encoding="utf-8"))
    }
    assert named
    assert {(file, page) for file, page in named if not (ROOT / page).is_file()} == set()


def test_every_page_is_in_the_navigation_once():
    shown = all_pages()
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.name != TEMPLATE}
    assert sorted(shown) == sorted(there)


def test_the_table_of_guides_names_each_guide():
    first, *others = pages_of("Guides")
    named = re.findall(r"\]\(([\w/-]+\.md)[)#]", (DOCS / first).read_text(encoding="utf-8"))
    assert {page for page in others if page.removeprefix("guides/") not in named} == set()


def test_every_decision_is_in_the_index():
    index = (DOCS / "contributing" / "decisions" / "README.md").read_text(encoding="utf-8")
    names = {path.name for path in (DOCS / "contributing" / "decisions").glob("0*.md")} - {TEMPLATE}
    assert {name for name in names if f"]({name})" not in index} == set()


@pytest.mark.parametrize(
    ("page", "outside"),
    [
        ("a.md", ["src/b.py"]),
        ("decisions/a.md", []),
    ],
)
def test_a_link_out_of_the_pages_leads_to_a_copy(page, outside):
    assert linked_outside(page, "[x](../src/b.py) [y](a.md) [z](../c.md#d)") == [
        *outside,
        *(["c.md"] if outside else []),
    ]


def test_a_link_into_a_page_leads_to_a_heading_of_it():
    """As `make docs` has it, which renders all pages for that."""
    links = [
        (path, (path.parent / (match["page"] or path.name)).resolve(), match["heading"])
        for path in DOCS.rglob("*.md")
        for match in INTO_PAGE.finditer(path.read_text(encoding="utf-8"))
    ]
    assert links
    headings = {page: _headings(page) for _, page, _ in links}
    assert [(path.name, page.name, name) for path, page, name in links if name not in headings[page]] == []


def _headings(page: Path) -> set[str]:
    """Return the ids that MkDocs gives to the headings of a page."""
    rendered = markdown.markdown(page.read_text(encoding="utf-8"), extensions=["toc", "fenced_code"])
    return set(re.findall(r'<h\d id="([^"]+)"', rendered))


@pytest.mark.parametrize("place", WHO_REJECTS)
def test_a_code_that_a_row_is_rejected_with_is_declared(place):
    path = SOURCE / place
    files = [path] if path.is_file() else path.glob("[!_]*.py")
    found = {match[1] for file in files for text in _texts(file) if (match := CODE.match(text))}
    declared = {*LineCode, *SnapshotCode, *GroupCode, *RecordStandsCode, *ScenarioCode}
    assert found - NO_CODE_OF_A_ROW - declared == set()
    assert found & set(WHO_REJECTS[place])


def _texts(file: Path):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize(
    "kind", [LineCode, SnapshotCode, GroupCode, RecordStandsCode, ScenarioCode, DecodeCode, SegmentCode]
)
def test_a_code_is_its_name_and_says_what_was_found(kind):
    assert all(each.value == each.name and each.what for each in kind)
    assert [kind(each.value) for each in kind] == list(kind)
