"""The documentation as a site: what is broken fails the build, and no page asks for anything but its own server.

Screenshots stay in the folder that pytest's `--basetemp` names: look at them.
"""

import functools
import html
import json
import re
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from PIL import Image

from tests.browser.chromium import dom, look
from tests.docs.site_search import QUERIES, SiteSearch

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("site")]  # which is built once
ROOT = Path(__file__).parents[2]
PAGES = (
    "index.html",
    "start/tutorial-rebalance.html",
    "guides/investigate/unowned-partitions.html",
    "reference/codes.html",
    "contributing/architecture.html",
)
WIDTHS, HEIGHT = (1280, 500), 1400
ASKED = """<!DOCTYPE html><html><body><script>
const [setup, ready, query, result] = [0, 1, 2, 3], found = {};
window.postMessage = ({type, data}) => {
  if (type === result) found[asked] = data.items.map((page) => page[0].location);
};
let asked;
const ask = (type, data) => window.dispatchEvent(new MessageEvent("message", {data: {type, data}}));
</script><script src="WORKER"></script><script>
const read = new XMLHttpRequest();
read.open("GET", "search/search_index.json", false);
read.send();
(async () => {
  ask(setup, {...JSON.parse(read.responseText), options: {suggest: false}});
  for (asked of QUERIES) { await null; await null; await null; ask(query, asked); await null; await null; await null }
  document.documentElement.dataset.found = JSON.stringify(found);
})();
</script></body></html>
"""
"""The theme's own search in a page instead of a worker, so that all is answered when the page is loaded."""
FETCHED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*>")


def build(root, site):
    """Build the site of a copy of the repository; gives what MkDocs says, and whether it is content."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True)
    return ran.returncode, ran.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    code, said = build(ROOT, folder)
    assert code == 0, said
    return folder


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_shown_without_a_complaint(address, tmp_path, page, width):
    shot = tmp_path / f"{page.replace('/', '-')}.{width}.png"
    assert look(f"{address}/{page}", shot, width, HEIGHT) == []
    with Image.open(shot) as taken:
        pixels = taken.convert("L").histogram()
    assert sum(pixels[:200]) / (width * HEIGHT) > 0.02


def test_no_page_fetches_anything_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 100
    found = {match[0] for page in pages for match in FETCHED.finditer(page.read_text(encoding="utf-8"))}
    assert found == set()


def test_the_browser_finds_what_our_search_of_the_index_finds(site, address):
    worker = next(site.glob("assets/javascripts/workers/search.*.min.js")).relative_to(site).as_posix()
    page = ASKED.replace("WORKER", worker).replace("QUERIES", json.dumps(list(QUERIES)))
    (site / "asked.html").write_text(page, encoding="utf-8")
    found = json.loads(html.unescape(re.search('data-found="([^"]*)"', dom(f"{address}/asked.html"))[1]))
    search = SiteSearch(site)
    assert {query: [each.partition("#")[0] for each in found[query][:3]] for query in QUERIES} == {
        query: search.pages(query)[:3] for query in QUERIES
    }


@pytest.mark.parametrize(
    ("name", "added", "said"),
    [
        ("guides/index.md", "\n[gone](not-there.md)\n", "not-there.md"),
        ("guides/index.md", "\n[gone](../reference/codes.md#not-there)\n", "not-there"),
        ("new.md", "# A page that nobody leads to\n", "new.md"),
    ],
    ids=["page", "heading", "navigation"],
)
def test_what_is_broken_fails_the_build(tmp_path, name, added, said):
    for folder in ("docs", "website", "examples", "src/groupledger/answers"):
        shutil.copytree(ROOT / folder, tmp_path / "copy" / folder)
    shutil.copy(ROOT / "mkdocs.yml", tmp_path / "copy")
    with (tmp_path / "copy" / "docs" / name).open("a", encoding="utf-8") as page:
        page.write(added)
    code, words = build(tmp_path / "copy", tmp_path / "site")
    assert code != 0
    assert said in words
