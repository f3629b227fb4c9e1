"""Headless Chromium: a screenshot of a page, what its console says, and how wide it is.

It needs Chromium or Chrome (`apt-get install chromium`), or the path of one in GROUPLEDGER_CHROMIUM. Run as a module,
it fails where there is none.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from PIL import Image

MISSING = "no Chromium here: apt-get install chromium, or name one in GROUPLEDGER_CHROMIUM"
AXE = Path(__file__).parents[2] / "build/axe/node_modules/axe-core/axe.min.js"
"""`make prove` installs it."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions"),
    *("--disable-background-networking", "--no-first-run", "--hide-scrollbars", "--enable-logging=stderr"),
)
NARROWEST = 500
"""Pixels of a window at least: what is asked to be narrower is laid out for these, and cut off."""
FRAME = """<!DOCTYPE html><html><body style="margin: 0">
<iframe style="border: 0; display: block; width: {width}px; height: {height}px" srcdoc="{page}"></iframe>
<script>{script}</script></body></html>
"""
MEASURED = """addEventListener("load", () => {
  const frame = document.querySelector("iframe"), view = frame.contentWindow, page = frame.contentDocument;
  for (const each of page.querySelectorAll("details")) each.open = true;
  const boxes = [...page.querySelectorAll(".scroll, figure")];
  const beyond = [...page.body.querySelectorAll("*")].filter(
    (each) => each.getBoundingClientRect().right > view.innerWidth + 1 && !each.closest(".scroll, figure"));
  document.documentElement.dataset.measured = JSON.stringify({
    view: view.innerWidth,
    page: page.documentElement.scrollWidth,
    scrolling: boxes.filter((each) => each.scrollWidth > each.clientWidth).length,
    beyond: beyond.map((each) => each.outerHTML.slice(0, 80)),
  });
});"""


class Extent(NamedTuple):
    """A page with everything unfolded, in pixels: the width of the view, and of the page.

    `scrolling` boxes hold more than they show; `beyond`: elements outside of them that reach out of the view.
    """

    view: int
    page: int
    scrolling: int
    beyond: list[str]


def look(page, shot, width, height):
    """Write a picture of the page, a file or an address; give what its console says, errors of scripts among it."""
    with tempfile.TemporaryDirectory(prefix="groupledger-browser-") as folder:
        seen = page if width >= NARROWEST else _framed(page, width, height, Path(folder))
        ran = _run(seen, max(width, NARROWEST), height, folder, f"--screenshot={shot}")
    if width < NARROWEST:
        with Image.open(shot) as taken:
            taken.crop((0, 0, width, height)).save(shot)
    return [line for line in ran.stderr.splitlines() if "CONSOLE" in line]


def dom(address):
    """Return a page as it is when it is loaded and its scripts have run."""
    with tempfile.TemporaryDirectory(prefix="groupledger-browser-") as folder:
        return _run(address, NARROWEST, NARROWEST, folder, "--dump-dom").stdout


def extent(page, width):
    """Measure a page in a view of this width."""
    with tempfile.TemporaryDirectory(prefix="groupledger-browser-") as folder:
        framed = _framed(page, width, 2_000, Path(folder), MEASURED)
        ran = _run(framed, max(width, NARROWEST), 2_000, folder, "--dump-dom")
    return Extent(**json.loads(html.unescape(re.search('data-measured="([^"]*)"', ran.stdout)[1])))


JUDGED = """<script src="{axe}"></script><script>addEventListener("load", async () => {{
  for (const each of document.querySelectorAll("details")) each.open = true;
  const found = (await axe.run(document, {{resultTypes: ["violations"]}})).violations;
  parent.document.documentElement.dataset.judged = JSON.stringify(
    found.map((rule) => [rule.id, ...rule.nodes.map((node) => node.html.slice(0, 80))]));
}});</script>"""


def barriers(page, width):
    """Rules of axe-core that a page with everything unfolded breaks in a view of this width, each with its elements."""
    assert AXE.exists(), "axe-core is missing: make prove installs it"
    text = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="groupledger-browser-") as folder:
        judged = Path(folder) / "judged.html"
        judged.write_text(text + JUDGED.format(axe=AXE.as_uri()), encoding="utf-8")
        framed = _framed(judged, width, 2_000, Path(folder))
        dumped = _run(framed, max(width, NARROWEST), 2_000, folder, "--virtual-time-budget=60000", "--dump-dom").stdout
    return json.loads(html.unescape(re.search('data-judged="([^"]*)"', dumped)[1]))


def found() -> str | None:
    """Return the browser to use; None where there is none."""
    return os.environ.get("GROUPLEDGER_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def _framed(page, width, height, folder, script=""):
    """A page around the page, which has the width of a frame of it."""
    text = html.escape(page.read_text(encoding="utf-8"))
    framed = folder / "framed.html"
    framed.write_text(FRAME.format(width=width, height=height, page=text, script=script), encoding="utf-8")
    return framed


def _run(page, width, height, folder, *options):
    browser = found()
    assert browser, MISSING
    options = (*OPTIONS, f"--window-size={width},{height}", f"--user-data-dir={folder}/profile", *options)
    command = [browser, *options, page if isinstance(page, str) else page.absolute().as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)


if __name__ == "__main__":
    sys.exit(None if found() else MISSING)
