"""The report from a ledger to its pages: whole, bounded, the same each time, and nothing runs in them."""

import re
import shutil
import subprocess
import sys
from functools import partial

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.report.html.page_parts import page_of
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write
from tests.cli.test_hostile_ledger import NAME
from tests.cli.test_hostile_ledger import rows as hostile_rows
from tests.hostile_ids import RAW
from tests.report.html.group_sizes import cooperative, history, ledger
from tests.report.html.pages_read import Page, size_of, texts_of

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&$x^{$"
TALLEST = 3_000
"""Points: what a picture may have at most, whatever the group's size."""


def written(ledger_folder, out, *words):
    """The report's pages by name, read."""
    ran = CliRunner().invoke(main, ["report", "html", str(out), "--ledger", str(ledger_folder), *words])
    assert ran.exit_code == 0, ran.output
    return read(out)


def read(out):
    return {path.name: Page(path.read_text(encoding="utf-8")) for path in sorted(out.glob("*.html"))}


def files(out):
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Three members, and another group of two clusters in which nobody had a partition for a while."""
    lonely = [
        History("lonely", cluster, topics=("t",))
        .state(1, "a t:0,1 | b t:2", complete=True)
        .state(2, "a t:0,1", complete=True)
        .state(9, "a t:0,1", complete=True)
        .state(10, "a t:0,1 | c t:2", complete=True)
        for cluster in ("dev", "prod")
    ]
    place = tmp_path_factory.mktemp("ledger")
    return ledger(place, history(3, 12, 9), *lonely, partitions=3)


@pytest.fixture(scope="module")
def folder(small, tmp_path_factory):
    """The report about them."""
    found = tmp_path_factory.mktemp("report")
    written(small, found)
    return found


@pytest.fixture(scope="module")
def pages(folder):
    return read(folder)


def test_pages_are_well_formed_and_ask_nothing_of_a_network(pages):
    assert len(pages) == 4
    for page in pages.values():
        assert "script" not in page.tags
        assert page.handlers == []
        outside = [
            link for link in page.links if link not in pages and not link.startswith("data:image/svg+xml;base64,")
        ]
        assert outside == []
        assert not re.search(r"url\(|@import", "".join(page.styles))
        for svg in page.pictures:
            assert b"<script" not in svg
            assert re.findall(rb'(?:href|src)="(?!#|data:image/png;base64,)[^"]*"', svg) == []


def test_every_picture_says_what_it_shows(pages):
    alts = [alt for page in pages.values() for alt in page.alts]
    assert len(alts) >= 10
    assert all(alt and len(alt) > 60 for alt in alts)
    of_group = pages[page_of("dev", "payments")]
    assert any(alt.startswith("Partitions moved by each of 9 rebalances: ") for alt in of_group.alts)
    assert any("Load of 3 members: most 4 partitions, median 4, least 4; 0 have none." in alt for alt in of_group.alts)


def test_what_changed_stands_before_everything_else(pages):
    text = pages[page_of("dev", "payments")].text
    order = [
        text.index(each) for each in ("What changed", "Generation 9,", "app-0011 joined", "Who had what", "Load of")
    ]
    assert order == sorted(order)


def test_the_index_ranks_the_groups_and_links_to_those_with_a_page(small, tmp_path):
    found = written(small, tmp_path, "--pages", "1")
    index = found.pop("index.html")
    assert {link for link in index.links if not link.startswith("data:")} == found.keys()  # of all that a table ranks
    assert page_of("dev", "lonely") in found
    assert "have no page" not in index.text
    assert index.text.count("payments") >= 2
    assert "UNOWNED" in index.text


@pytest.mark.parametrize(
    ("words", "says"), [(("--until", "2020-01-01T00:00Z"), "no record lies in this period: the ledger has"), ((), "")]
)
def test_a_report_of_nothing_says_why(small, tmp_path, words, says):
    place = small if words else write(tmp_path / "ledger")
    ran = CliRunner().invoke(main, ["report", "html", str(tmp_path / "out"), "--ledger", place, *words])
    told = ran.stdout.splitlines()
    assert told[0].endswith("index.html: 0 groups, 0 with a page")
    assert told[1].startswith(says or "the ledger holds no record of a group yet: run `groupledger ingest` first")


def test_the_index_of_many_groups_counts_those_without_a_row_and_shortens_member_ids(tmp_path):
    groups = [History(f"g-{number:02}", topics=("t",)).state(1, "m t:0", complete=True) for number in range(33)]
    place = ledger(tmp_path / "ledger", cooperative(3, 6, 4), *groups, partitions=6)
    index = written(place, tmp_path / "out", "--pages", "0")["index.html"]
    assert "4 more rows with fewer are left off" in index.text
    assert "34 groups have no page" in index.text
    assert "-0000-4000-" not in index.text
    assert "app-1-9e3779b1 1" in index.text


def test_over_an_earlier_report_and_under_another_hash_seed_the_bytes_are_the_same(small, folder, tmp_path):
    """Neither Spark nor what takes long to load is imported for them."""
    out = tmp_path / "out"
    shutil.copytree(folder, out)
    written(small, out, "--pages", "0")
    assert len(files(out)) == 2
    asked = "print([name for name in ('pyspark', 'pandas', 'numba') if name in sys.modules])"
    code = f"import sys; from groupledger.cli import main; main(sys.argv[1:], standalone_mode=False); {asked}"
    words = ["report", "html", str(out), "--ledger", small]
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    run = partial(subprocess.run, capture_output=True, text=True, check=True, env=environment)
    assert run([sys.executable, "-c", code, *words]).stdout.splitlines()[-1] == "[]"
    assert files(out) == files(folder)


@pytest.mark.parametrize("name", [NAME, SCRIPT], ids=["controls", "markup"])
def test_names_are_text_whatever_they_hold(tmp_path, name):
    rows = hostile_rows()
    for some in rows.values():
        for row in some:
            row.update({key: name for key, value in row.items() if value == NAME})
    for row in rows["member_snapshots"]:
        row["recorded"] = [{"topic_id": None, "topic": name, "partitions": [0, 1]}]
        row["subscribed_topics"] = [name]
    rows["group_snapshots"][0]["shared_topics"] = [name]
    found = written(write(tmp_path / "ledger", **rows), tmp_path / "out")
    assert len(found) == 2
    for file, page in found.items():
        raw = (tmp_path / "out" / file).read_text(encoding="utf-8")
        assert RAW.search(raw) is None, ascii(RAW.search(raw))
        assert not {"script", "iframe"} & set(page.tags)
        assert page.handlers == []
        assert page.tags.count("img") == len(page.pictures)
        texts = [text for svg in page.pictures for text in texts_of(svg)]
        assert [text for text in texts if RAW.search(text)] == []
    told = found[page_of(name, name)].text
    assert (r"\x1b" in told and r"\u202e" in told) if name == NAME else SCRIPT in told


def test_a_group_whose_name_is_a_pattern_has_a_page_of_its_own(tmp_path):
    star = History("pay*", topics=("t",)).state(1, "m t:0", complete=True)
    other = History("payments", topics=("t",)).state(1, "other t:0", complete=True).state(2, None)
    found = written(ledger(tmp_path / "ledger", star, other, partitions=1), tmp_path / "out")
    page = found[page_of("dev", "pay*")]
    assert "1 member, 1 to 1 partitions" in page.text
    assert "other" not in page.text.replace("another", "")


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """The pages of groups with little to tell, in one report: a share group, an empty one, a lost one, a slow one."""
    shared = History("shared", kind="share", topics=("t",)).state(1, "m t:0 | n t:0", complete=True)
    gone = History("gone", topics=("t",)).state(1, "m t:0", complete=True).state(2, None)
    lost = History("lost", topics=("unlisted",)).state(1, "m unlisted:0", complete=True)
    slow = (
        History("slow", "eu", topics=("t",)).state(1, "m t:0,1,2", complete=True).state(2, "m t:0 | n", complete=True)
    )
    slow.state(3, "m t:0 | n t:1,2", complete=True)
    topics = [listed("t", 1), listed("t", 3, 0, "eu")]
    folder = tmp_path_factory.mktemp("several")
    return written(
        write(folder / "ledger", **rows_of(shared, gone, lost, slow, topic_snapshots=topics)), folder / "out"
    )


def test_a_share_group_has_several_owners_at_once_and_no_load(several):
    page = several[page_of("dev", "shared")]
    assert "may have several owners" in page.text
    assert any("several at once 100%" in alt for alt in page.alts)


def test_a_group_that_nobody_is_in_says_so(several):
    page = several[page_of("dev", "gone")]
    assert "Empty, generation 2; before that range, 1 member" in page.text
    assert "1 member, 1 to 1 partitions, 0 idle, before it became empty" in page.text
    assert any(re.search(r"m 9\d%, nobody \d%", alt) for alt in page.alts)


def test_an_empty_ledger_has_an_index_that_says_why(tmp_path):
    found = written(write(tmp_path / "ledger"), tmp_path / "out")
    assert list(found) == ["index.html"]
    assert "groupledger ingest" in found["index.html"].text


@pytest.mark.slow
def test_a_giant_group_has_pictures_of_the_usual_size_and_a_page_that_opens(tmp_path):
    folder = ledger(tmp_path / "ledger", history(1_000, 10_000, 4), partitions=10_000)
    found = written(folder, tmp_path / "out")
    page = found[page_of("dev", "payments")]
    assert all(max(size_of(svg)) < TALLEST for svg in page.pictures)
    assert (tmp_path / "out" / page_of("dev", "payments")).stat().st_size < 600_000
    assert "too many for a row each" in page.text
    assert "more: groupledger report skew --json" in page.text
    assert any("Load of 999 members: most 11 partitions, median 10, least 10" in alt for alt in page.alts)


def test_a_long_list_of_partitions_breaks_after_its_commas_alone(tmp_path):
    written(ledger(tmp_path / "ledger", history(3, 36, 1), partitions=36), tmp_path / "out")
    text = (tmp_path / "out" / page_of("dev", "payments")).read_text(encoding="utf-8")
    assert "<bdi>t:0,<wbr>3,<wbr>6,<wbr>9,<wbr>12," in text
    assert "1,<wbr>000" not in text


def test_partitions_on_their_way_are_not_said_to_be_nothing(several):
    page = several[page_of("eu", "slow")]
    assert "Moved: nothing yet; 2 given up, handed over later." in page.text


def test_a_period_is_that_of_the_pages(small, tmp_path):
    found = written(small, tmp_path, "--until", "2026-11-21T14:01Z", "--group", "payments")
    page = found[page_of("dev", "payments")]
    assert "2 recorded states in 20.000 s" in page.text
    assert "2026-11-21 14:00:20 - 14:00:40" in page.text


def test_without_its_libraries_it_is_one_line(small, tmp_path):
    hidden = "import sys; sys.modules['jinja2'] = None; from groupledger.cli import main; main()"
    words = ["report", "html", str(tmp_path / "out"), "--ledger", small]
    ran = subprocess.run([sys.executable, "-c", hidden, *words], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.endswith(
        "pages need jinja2, not installed here: pip install 'groupledger[report]' [REPORT_MISSING]\n"
    )
    assert not (tmp_path / "out").exists()


def test_rows_that_a_listing_lacks_are_told(several):
    assert "cannot be told: no listing counts one of the topics" in several[page_of("dev", "lost")].text
