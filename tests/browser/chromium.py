"""Headless Chromium: a screenshot of a page, and what its console says.

It needs Chromium or Chrome (`apt-get install chromium`), or the path of one in GROUPLEDGER_CHROMIUM.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions"),
    *("--disable-background-networking", "--no-first-run", "--hide-scrollbars", "--enable-logging=stderr"),
)


def look(page, shot, width, height):
    """Write a picture of the page, a file or an address; give what its console says, errors of scripts among it."""
    browser = os.environ.get("GROUPLEDGER_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    assert browser, "no Chromium here: apt-get install chromium, or name one in GROUPLEDGER_CHROMIUM"
    with tempfile.TemporaryDirectory(prefix="groupledger-browser-") as profile:
        options = (f"--window-size={width},{height}", f"--user-data-dir={profile}", f"--screenshot={shot}")
        command = [browser, *OPTIONS, *options, page if isinstance(page, str) else page.absolute().as_uri()]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
