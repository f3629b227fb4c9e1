"""The picture of a timeline: readable for a group of three members, of fifty and of a thousand."""

import io

import pytest

import groupledger as gl
from groupledger.report.pictures import draw_timeline
from tests.report.html.group_sizes import cooperative, ledger


def drawn(folder, members, partitions, group="payments"):
    place = ledger(folder, cooperative(members, partitions, 4, group), partitions=partitions)
    return draw_timeline(gl.open(place).timeline(group).value)


@pytest.mark.parametrize(("members", "partitions"), [(3, 12), (50, 400), (1_000, 10_000)])
def test_one_member_less_and_one_move_are_seen_whatever_the_size(tmp_path, members, partitions):
    figure = drawn(tmp_path, members, partitions)
    above, below = figure.axes
    lowest, highest = above.get_ylim()
    assert highest - lowest <= 4
    assert lowest < members - 1 < members < highest
    bars = [path.vertices[1][1] for path in below.collections[0].get_paths()]
    top = below.get_ylim()[1]
    assert bars[0] == partitions
    assert min(bars[1:]) > top / 5
    assert [text.get_text() for text in below.texts] == ([] if partitions < 5 * max(bars[1:]) else [f"{partitions:,}"])
    figure.savefig(io.BytesIO(), format="png")


def test_the_axis_of_time_says_the_date_once_and_the_zone(tmp_path):
    figure = drawn(tmp_path, 3, 12)
    figure.savefig(io.BytesIO(), format="png")
    axis = figure.axes[-1].xaxis
    assert axis.get_offset_text().get_text() == "2026-11-21 UTC"
    assert all(len(label.get_text()) <= 8 for label in axis.get_ticklabels())
