"""What a group's page says of partitions that nobody had: which, from when to when, and how many at once."""

import re

import pytest

from groupledger.answers.unowned import Stretch
from groupledger.report.html.charts import COLUMNS, unowned_counts
from groupledger.report.html.page_parts import page_of
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write
from tests.answers.rows import at
from tests.report.html.group_sizes import ledger
from tests.report.html.pages_read import size_of
from tests.report.html.test_pages import TALLEST, written

BEGIN, END = at(0), at(8)  # a minute is 60 columns of 480


def unowned(since, until, open_ended=False):
    return Stretch("t", 0, "s", at(0) + (at(1) - at(0)) * since, at(0) + (at(1) - at(0)) * until, [], {1}, open_ended)


def runs(*stretches):
    """Minute -> the count from there on."""
    counts = unowned_counts(stretches, BEGIN, END)
    return {x / 60: count for x, count in enumerate(counts) if x == 0 or counts[x - 1] != count}


@pytest.mark.parametrize(
    ("stretches", "expected"),
    [
        ([], {0: 0}),
        ([unowned(1, 3)], {0: 0, 1: 1, 3: 0}),
        ([unowned(1, 3), unowned(2, 4)], {0: 0, 1: 1, 2: 2, 3: 1, 4: 0}),
        ([unowned(1, 3), unowned(3, 4)], {0: 0, 1: 1, 4: 0}),
        ([unowned(-2, 1), unowned(7, 20)], {0: 1, 1: 0, 7: 1}),
        ([unowned(5, 6, open_ended=True)], {0: 0, 5: 1}),
        ([unowned(2, 2.0001)], {0: 0, 2: 1, 2 + 1 / 60: 0}),
    ],
    ids=["none", "one", "two at once", "one after another", "over both ends", "still so", "shorter than a column"],
)
def test_a_column_counts_the_most_at_once(stretches, expected):
    assert len(unowned_counts(stretches, BEGIN, END)) == COLUMNS
    assert runs(*stretches) == expected


def section(page):
    """The text of the part, with white space as one space."""
    text = re.sub(r"\s+", " ", page.text)
    return text[text.index("Partitions that nobody had") : text.index("Who had what, over time")]


def of_group(history, folder, partitions=3):
    place = ledger(folder / "ledger", history, partitions=partitions)
    return written(place, folder / "out")[page_of("dev", history.group)]


def test_a_page_says_for_how_long_which_partitions_had_nobody(tmp_path):
    of = History("pay", topics=("t",)).state(1, "m t:0,1,2", complete=True).state(4, "m t:0", complete=True)
    of.state(5, "m t:0,1,2", complete=True).state(6, "m t:0,1", complete=True).state(8, "m t:0,1", complete=True)
    page = of_group(of, tmp_path)
    told = section(page)
    assert "2 partitions, for 2 min 0 s at the longest; 1 still at the end" in told
    assert "14:06:00.000 still so 2 min 0 s 6-8 1 t:2 UNOWNED" in told
    assert "14:04:00.000 14:05:00.000 1 min 0 s 4 2 t:1-2 -" in told
    assert told.index("still so") < told.index("14:04:00.000")
    [alt] = [alt for alt in page.alts if alt.startswith("How many partitions nobody had")]
    assert "most at once 2, at the end 1" in alt


def test_where_there_is_none_it_says_so_and_no_picture_is_empty(tmp_path):
    page = of_group(History("pay", topics=("t",)).state(1, "m t:0,1,2", complete=True), tmp_path)
    assert "none of a listed topic, while the group had members" in section(page)
    assert [alt for alt in page.alts if alt.startswith("How many partitions nobody had")] == []


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_of_a_group_with_several_owners_a_partition_it_is_not_told(tmp_path, kind):
    of = History("pay", kind=kind, topics=("t",)).state(1, "m t:0", complete=True)
    assert "not told: a partition of this group may have several owners" in section(of_group(of, tmp_path))


def test_a_topic_without_a_listing_is_named_as_the_reason(tmp_path):
    of = History("lost", topics=("unlisted",)).state(1, "m unlisted:0", complete=True)
    place = write(tmp_path / "ledger", **rows_of(of, topic_snapshots=[listed("other", 1)]))
    page = written(place, tmp_path / "out")[page_of("dev", "lost")]
    assert "For 1 rebalance it cannot be told" in section(page)


def test_ten_thousand_partitions_are_a_row_and_a_picture_of_the_usual_size(tmp_path):
    every = ",".join(map(str, range(10_000)))
    of = History("pay", topics=("t",)).state(1, f"m t:{every}", complete=True).state(2, "m", complete=True)
    page = of_group(of.state(3, "m", complete=True), tmp_path, 10_000)
    assert "still so 1 min 0 s 2-3 10,000 t:0-9999 UNOWNED" in section(page)
    assert all(max(size_of(svg)) < TALLEST for svg in page.pictures)
