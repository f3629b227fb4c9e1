"""A grid's YAML: partitions with their sign, as the page writes them."""

from __future__ import annotations

import pytest

from groupledger.config.loading import ChangeSettings, load_grid
from groupledger.config.settings import ConfigFault


def loaded(folder, change):
    path = folder / "grid.yaml"
    path.write_text(f"changes: [{{{change}}}]\n", encoding="utf-8")
    (found,) = load_grid(path).changes
    return found


@pytest.mark.parametrize("text", ["+3", "'+3'", '"+3"'])
def test_three_more_partitions_may_be_written_without_quotes(tmp_path, text):
    assert loaded(tmp_path, f"partitions: {text}, topic: orders") == ChangeSettings(partitions="+3", topic="orders")


def test_a_sign_means_nothing_to_other_keys(tmp_path):
    found = loaded(tmp_path, "members: +2, partitions: x2")
    assert (found, type(found.members)) == (ChangeSettings(members=2, partitions="x2"), int)


@pytest.mark.parametrize("text", ["3", "+0", "-3", "x0", "3.5"])
def test_other_numbers_are_not_guessed(tmp_path, text):
    """`3` may be three more, or three in all."""
    with pytest.raises(ConfigFault, match=r"x2 for twice as many \(to x9999\), or \+3 for three more"):
        loaded(tmp_path, f"partitions: {text}")
