"""The pages of a report in headless Chromium: nothing complains, nothing runs, and something is to be seen.

Screenshots stay in the folder that pytest's `--basetemp` names: look at them.
"""

import re

import pytest
from click.testing import CliRunner
from PIL import Image

from groupledger.cli import main
from groupledger.report.html.page_parts import page_of
from tests.browser.chromium import barriers, extent, look
from tests.report.html.group_sizes import cooperative, history, ledger
from tests.report.html.test_pages import SCRIPT

pytestmark = pytest.mark.live
WIDTH, PHONE, HEIGHT = 1150, 420, 2400
SHAPES = {3: (12, 9), 50: (400, 20), 1_000: (10_000, 6)}
"""Members -> partitions and states."""


def seen(page, width=WIDTH):
    """A screenshot beside the page, and what the console says."""
    shot = page.with_suffix(f".{width}.png")
    return shot, look(page, shot, width, HEIGHT)


def report(folder, *histories, partitions):
    place = ledger(folder / "ledger", *histories, partitions=partitions)
    ran = CliRunner().invoke(main, ["report", "html", str(folder / "out"), "--ledger", place])
    assert ran.exit_code == 0, ran.output
    return sorted((folder / "out").glob("*.html"))


@pytest.mark.parametrize("members", SHAPES)
def test_pages_of_any_size_are_shown_without_a_complaint(tmp_path, members):
    partitions, states = SHAPES[members]
    pages = report(tmp_path, history(members, partitions, states), partitions=partitions)
    assert [page.name for page in pages] == [page_of("dev", "payments"), "index.html"]
    for page in pages:
        for width in (WIDTH, PHONE):
            shot, said = seen(page, width)
            assert said == []
            with Image.open(shot) as taken:
                assert taken.size == (width, HEIGHT)
                pixels = taken.convert("L").histogram()
            drawn = sum(pixels[:250]) / (width * HEIGHT)
            assert drawn > (0.01 if page.name == "index.html" else 0.05)


@pytest.mark.parametrize("members", SHAPES)
def test_a_page_scrolls_no_way_but_down_and_wide_tables_in_their_boxes(tmp_path, members):
    partitions, states = SHAPES[members]
    for page in report(tmp_path, history(members, partitions, states), partitions=partitions):
        on_a_phone = extent(page, PHONE)
        assert (on_a_phone.view, on_a_phone.page, on_a_phone.beyond) == (PHONE, PHONE, [])
        assert on_a_phone.scrolling > 0
        wide = extent(page, WIDTH)
        assert (wide.view, wide.page, wide.beyond) == (WIDTH, WIDTH, [])


@pytest.mark.parametrize("width", [PHONE, WIDTH])
@pytest.mark.parametrize("members", SHAPES)
def test_axe_finds_no_barrier(tmp_path, members, width):
    partitions, states = SHAPES[members]
    group = cooperative(members, partitions, states, forgotten=(4, 5))
    place = tmp_path / "what-if.html"
    pages = report(tmp_path, group, partitions=partitions)
    asked = ["what-if", "payments", "--members", "+3", "--html", str(place), "--ledger", str(tmp_path / "ledger")]
    assert CliRunner().invoke(main, asked).exit_code == 0
    assert {page.name: barriers(page, width) for page in (*pages, place)} == {page.name: [] for page in (*pages, place)}


def test_axe_finds_a_barrier(tmp_path):
    page = report(tmp_path, history(3, 12, 2), partitions=12)[0]
    page.write_text(re.sub(' alt="[^"]*"', "", page.read_text(encoding="utf-8")), encoding="utf-8")
    assert "image-alt" in [rule for rule, *_ in barriers(page, WIDTH)]


def test_a_long_name_widens_no_page(tmp_path):
    pages = report(
        tmp_path, *(history(3, 12, 4, group=f"{number:03}{'x' * 246}") for number in range(12)), partitions=12
    )
    assert len(pages) == 13
    for page in (pages[0], pages[-1]):
        measured = extent(page, PHONE)
        assert (measured.view, measured.page, measured.beyond) == (PHONE, PHONE, [])


def test_what_is_too_wide_is_measured(tmp_path):
    page = report(tmp_path, history(3, 12, 2), partitions=12)[0]
    put = '<p style="width: 600px">wide</p>'
    page.write_text(page.read_text(encoding="utf-8").replace("</main>", f"{put}</main>"), encoding="utf-8")
    measured = extent(page, PHONE)
    assert measured.page > 600
    assert measured.beyond == [put]


@pytest.mark.parametrize("members", SHAPES)
def test_time_without_an_owner_is_shown_whatever_the_size(tmp_path, members):
    partitions, _ = SHAPES[members]
    page, _ = report(tmp_path, cooperative(members, partitions, 4, forgotten=(4, 5)), partitions=partitions)
    assert "Partitions that nobody had" in page.read_text(encoding="utf-8")
    shot, said = seen(page)
    assert said == []
    with Image.open(shot) as taken:
        assert taken.convert("L").histogram()[0] > 5_000  # black: what nobody had


def test_a_name_that_is_markup_runs_nothing(tmp_path):
    pages = report(tmp_path, history(3, 12, 4, group=SCRIPT), partitions=12)
    assert len(pages) == 2
    for page in pages:
        assert seen(page)[1] == []


@pytest.mark.parametrize("put", ["<script>no_such_name()</script>", '<img src="http://127.0.0.1:9/x.png">'])
def test_a_script_and_an_address_in_a_page_are_complained_of(tmp_path, put):
    """Else no complaint would say nothing: the policy of our pages forbids both, and the console tells."""
    page = report(tmp_path, history(3, 12, 2), partitions=12)[0]
    page.write_text(page.read_text(encoding="utf-8").replace("</main>", f"{put}</main>"), encoding="utf-8")
    assert any("Content Security Policy" in line for line in seen(page)[1])
