"""The built site: a search finds the right page first, and former addresses lead to pages."""

import re
import subprocess
import sys

import pytest

from tests.docs.navigation import ROOT, SITE, all_pages
from tests.docs.site_search import QUERIES, SiteSearch
from website.hooks import SEARCH_WORDS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]  # which is built once
REDIRECTS = next(each["redirects"]["redirect_maps"] for each in SITE["plugins"] if "redirects" in each)
FORMER_PAGES = 56
TARGET = re.compile(r'<meta http-equiv="refresh" content="0; url=(?P<target>[^"#]+)">')


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return folder


def test_every_former_address_leads_to_a_page(site):
    assert len(REDIRECTS) == FORMER_PAGES
    decisions = {f"decisions/{page.name}" for page in (ROOT / "docs/contributing/decisions").glob("[0-9]*.md")}
    former = [*REDIRECTS, *decisions - {"decisions/0000-template.md"}]
    led = {}
    for page in former:
        address = site / f"{page.removesuffix('.md')}.html"
        target = TARGET.search(address.read_text(encoding="utf-8"))["target"]
        led[page] = (address.parent / target).resolve()
    assert {page for page, target in led.items() if not target.is_file()} == set()
    assert {page for page, target in led.items() if TARGET.search(target.read_text(encoding="utf-8"))} == set()


@pytest.fixture(scope="module")
def search(site):
    return SiteSearch(site)


@pytest.mark.parametrize(("query", "page"), QUERIES.items())
def test_a_search_finds_its_page_first(search, query, page):
    assert search.pages(query)[0] == f"{page.removesuffix('.md')}.html"


def test_pages_for_contributors_are_not_searched(site, search):
    assert (site / "contributing" / "architecture.html").is_file()
    assert [page for page in search.pages("decision kernel") if page.startswith("contributing/")] == []


def test_search_words_are_of_pages_that_are_there():
    assert set(SEARCH_WORDS) - {*all_pages()} == set()
