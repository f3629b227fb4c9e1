"""docs/guides/decide/rehearse-a-listener.md: its code runs, its listeners and numbers are as it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from groupledger.core.protocol.consumer import MemberTimes, Times
from tests.docs.examples import files_of
from tests.pages import blocks

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "guides/decide/rehearse-a-listener.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in files_of(PAGE).items():
        (tmp_path / name).write_text(content)
    names: dict[str, Any] = {}
    for block in blocks(PAGE, "python"):
        exec(compile(block, "docs/guides/decide/rehearse-a-listener.md", "exec", dont_inherit=True), names)  # noqa: S102 our own page
    rows = re.findall(
        r"^\| (?:static, )?(?:eager|cooperative).*\| (\d+) \| ([\d,]+) \| ([\d,]+) ms \| (\d+) \|$", PAGE, re.M
    )
    told = {tuple(int(each.replace(",", "")) for each in row) for row in rows}
    assert len(rows) == 6
    assert told == {
        names["rolling"](assignor, static=static, pace=pace)
        for assignor in ("range", "cooperative-sticky")
        for static, pace in ((False, names["PACE"]), (True, names["PACE"]), (False, names["Pace"]()))
    }


def test_the_command_counts_what_the_code_counts():
    """Rounds, partition-ms and records read twice of the classic variants; both stand on the page, and both are run."""
    told = re.findall(r"^(range|cooperative-sticky)(\+static)? +(\d+) +\d+ +\d+ +([\d,]+) +[\d-]+ +(\d+)$", PAGE, re.M)
    code = re.findall(r'rolling\("([a-z-]+)"(, static=True)?\) == \((\d+), ([\d_]+), [\d_]+, (\d+)\)', PAGE)
    shown = {(name, bool(static), rounds, ms.replace(",", ""), twice) for name, static, rounds, ms, twice in told}
    assert {
        (name, bool(static), rounds, ms.replace("_", ""), twice) for name, static, rounds, ms, twice in code
    } <= shown


def test_the_table_of_times_has_every_time_with_its_default():
    page = (DOCS / "reference/simulated-time.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]*\| ([\d,]+|none) \|", page, re.M))
    defaults = {name: getattr(MemberTimes(), name) for name in MemberTimes.__slots__}
    defaults |= {"initial_rebalance_delay_ms": Times().initial_rebalance_delay_ms, "auto_commit_interval_ms": 5_000}
    assert rows == {name: f"{value:,}" for name, value in defaults.items()} | {"records_per_second": "none"}
