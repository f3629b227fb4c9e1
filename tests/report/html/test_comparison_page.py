"""The pages of `simulate --compare --html` and `what-if --html`; names are text in them."""

from __future__ import annotations

import base64
import json
import re

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.core.assignors import ASSIGNORS
from groupledger.core.protocol import events as e
from groupledger.core.protocol.comparison import ConsumedSpan, compare, read_variants
from groupledger.core.protocol.consumer import MemberTimes, Times
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.report.html.charts import consumption_picture, missed_partitions
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write
from tests.core.protocol.drawn_times import timed_script
from tests.report.html.group_sizes import history, ledger

JOIN = {"event": "join", "member": "<b>a</b>", "topics": ["t"]}
FREEZE = {"event": "freeze-metadata", "member": "<b>a</b>", "at_ms": 60_000}
HANG = {"event": "hang", "member": "<b>a</b>", "at_ms": 70_000}
SCRIPT = {"id": "<script>1", "topics": {"t": 4}, "times": {"processing_ms": 50}, "events": [JOIN, FREEZE, HANG]}


def span(number, member, since_ms, until_ms):
    return ConsumedSpan("t", number, member, since_ms, until_ms)


@pytest.mark.parametrize(
    ("spans", "missed"),
    [
        ([span(0, "a", 10, None)], [(0, 0)]),  # nobody had it before
        ([span(0, "a", 10, 30), span(0, "b", 50, None)], [(0, 0), (30, 1), (50, 0)]),
        ([span(0, "a", 10, 60), span(0, "b", 50, 80)], [(0, 0), (80, 1)]),  # two have it, then nobody
        ([span(0, "a", 0, 30), span(0, "b", 30, None)], [(0, 0)]),
        ([span(0, "a", 0, 30), span(1, "a", 0, 40)], [(0, 0), (30, 1), (40, 2)]),
    ],
)
def test_how_many_partitions_nobody_has(spans, missed):
    assert missed_partitions(spans, 0, 100) == missed


def test_what_was_before_the_picture_counts_where_it_lasts():
    assert missed_partitions([span(0, "a", 0, 30), span(0, "b", 60, None)], 50, 100) == [(50, 1), (60, 0)]


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_the_timeline_misses_what_the_sum_says(seed):
    """Where topics are not subscribed to by nobody meanwhile: outages of partitions that somebody had had before."""
    script = timed_script(seed, 12, records_per_second=None)
    (found,) = compare([("s", script)], read_variants("as-written", ASSIGNORS), timeline=True)[0].variants
    settled = simulate(script)
    end_ms = settled[-1].timed.at_ms
    known = {(each.topic, each.partition): each.since_ms for each in reversed(found.consumed)}
    outages = {out for one in settled for out in one.timed.outages if out.since_ms > known.get(out.partition, end_ms)}
    lasting = {out[:2]: out.until_ms for out in sorted(outages, key=lambda out: out.until_ms or 0)}
    lost_ms = sum((until_ms or end_ms) - since_ms for (_, since_ms), until_ms in lasting.items())
    steps = missed_partitions(found.consumed, 0, end_ms)
    ends = [*(at_ms for at_ms, _ in steps[1:]), end_ms]
    told_ms = sum(count * (until_ms - at_ms) for (at_ms, count), until_ms in zip(steps, ends, strict=True))
    assert told_ms >= lost_ms


def test_a_picture_has_a_row_a_partition_or_their_number():
    few = consumption_picture([span(number, "m", 0, None) for number in range(3)], 0, 1_000, 1)
    assert [f">t-{number}<" in few.svg.decode() for number in range(4)] == [True, True, True, False]
    many = consumption_picture([span(number, "m", 0, None) for number in range(60)], 0, 1_000, 1)
    assert ">t-0<" not in many.svg.decode()
    assert many.caption == "60 partitions are too many for a row each."


def test_who_had_a_partition_for_no_time_has_a_tick_and_is_no_owner_longer_than_that():
    lasting, at_once = [span(0, "a", 0, 30), span(0, "a", 60, None)], span(0, "b", 40, 40)
    assert missed_partitions([*lasting, at_once], 0, 100) == [(0, 0), (30, 1), (40, 1), (60, 0)]
    pictures = [consumption_picture(some, 0, 100, 1).svg.decode() for some in (lasting, [*lasting, at_once])]
    assert [">b<" in each for each in pictures] == [False, True]
    ticks = [each.count('id="LineCollection_') for each in pictures]
    assert ticks[1] == ticks[0] + 1
    before = consumption_picture([*lasting, at_once], 50, 100, 1).svg.decode()
    assert ">b<" not in before


def test_a_page_stands_on_its_own_and_names_are_text_in_it(tmp_path):
    page = tmp_path / "page.html"
    words = ["simulate", "--compare", "range,consumer", "--html", str(page)]
    done = CliRunner().invoke(main, words, input=json.dumps(SCRIPT))
    assert done.exit_code == 3  # under KIP-848 no member assigns, and so none by old metadata
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"<script|<b>a</b>|https?://", text) == []
    assert "&lt;script&gt;1: range" in text
    assert "cannot be played: BAD_EVENT: " in text
    (picture,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', text)
    assert "partitions that nobody has" in base64.b64decode(picture).decode()
    costs = json.loads(CliRunner().invoke(main, [*words[:3], "--json"], input=json.dumps(SCRIPT)).stdout)
    waited = costs["comparison"]["scripts"][0]["variants"][0]["cost"]["unavailable_ms"]
    assert f"{waited:,} partition-ms" in text


def test_a_file_that_cannot_be_written_is_said(tmp_path):
    words = ["simulate", "--summary", "--html", str(tmp_path / "none" / "page.html")]
    done = CliRunner().invoke(main, words, input=json.dumps(SCRIPT))
    assert done.exit_code == 2
    assert "[CANNOT_WRITE]" in done.stderr


def test_timelines_are_told_where_they_are_asked_for():
    script = Script({"t": 2}, [e.Join("a", ("t",)), e.Leave("a", at_ms=9_000)], times=Times(MemberTimes()))
    for timeline, spans in ((True, [("t", 0, "a", 3_000, 9_000), ("t", 1, "a", 3_000, 9_000)]), (False, [])):
        (found,) = compare([("s", script)], read_variants("range", ASSIGNORS), timeline=timeline)[0].variants
        told = [(each.topic, each.partition, each.member, each.since_ms, each.until_ms) for each in found.consumed]
        assert told == spans


def test_the_page_of_a_what_if_shows_both_states(tmp_path):
    name = "<b>m"
    history = History("pay").state(1, f"{name} a:0,1 | n a:2", complete=True, protocol_type="consumer")
    place = write(tmp_path / "ledger", **rows_of(history, topic_snapshots=[listed("a", 3)]))
    page = tmp_path / "page.html"
    asked = ["what-if", "pay", "--members", "+1", "--partitions", "a=+1", "--ledger", place, "--html", str(page)]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0, done.output
    assert f"\npage: {page}\n" in done.output
    text = page.read_text()
    assert "<h1><bdi>pay (cluster dev), if 1 member joins and a has 4 partitions instead of 3</bdi></h1>" in text
    assert "given up: 3 (eager: members stop reading all they have); from member to member: 0" in text
    assert "&lt;b&gt;m" in text
    assert name not in text
    assert not re.search(r"""(?:src|href)=["'](?!data:)|https?://(?!www\.w3\.org)|<script""", text)
    pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', text)
    assert [b"<svg" in base64.b64decode(each) for each in pictures] == [True]
    again = CliRunner().invoke(main, [*asked[:-1], str(tmp_path / "none" / "page.html")])
    assert "CANNOT_WRITE" in again.output


@pytest.mark.parametrize(("members", "is_open"), [(2, True), (50, False)])
def test_members_of_a_large_group_are_folded(tmp_path, members, is_open):
    place, page = ledger(tmp_path / "ledger", history(members, 100, 1), partitions=100), tmp_path / "page.html"
    asked = ["what-if", "payments", "--members", "+1", "--ledger", place, "--html", str(page)]
    assert CliRunner().invoke(main, asked).exit_code == 0
    assert ("<details open>\n<summary><b>Members" in page.read_text(encoding="utf-8")) == is_open


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pay", "--partitions", "a"], "--partitions 'a': expected TOPIC=+N or TOPIC=xN, such as orders=+10."),
        (["pay", "--partitions", "a=+1", "--partitions", "a=x2"], "a is there already; expected each topic once."),
        (["--grid", "none.yaml", "--html", "x.html"], "--html goes without --grid, whose file has the changes."),
        (["--grid", "none.yaml", "--generation", "3"], "--generation goes without --grid, whose file has the changes."),
        (["pay", "--rows", "x"], "--rows goes with --grid."),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, said):
    done = CliRunner().invoke(main, ["what-if", *words])
    assert done.exit_code == 2
    assert said in done.output
