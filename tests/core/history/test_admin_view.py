"""What the admin client said of a group is what its ownership changes, played back to that moment, say."""

import pytest

from tests.core.history.captured import folded, log_rows
from tests.core.wire.captured import lines


def described(capture):
    for line in lines(f"{capture}/snapshots"):
        if line["state"] in ("STABLE", "EMPTY") and line["group"] in log_rows(f"{capture}/offsets"):
            yield line


def held_at(fold, moment):
    held: set[tuple[str | None, str]] = set()
    for change in fold.ownership_changes:
        if change.at > moment:
            break
        place = f"{change.topic}-{change.partition}"
        held -= {(change.from_member_id, place)}
        held |= {(change.to_member_id, place)} if change.to_member_id else set()
    return held


@pytest.mark.parametrize(("capture", "views"), [("dev", 84), ("edge", 159), ("storm", 3)])
def test_the_admin_clients_view_is_what_the_log_says(capture, views):
    seen = 0
    for line in described(capture):
        fold = folded(f"{capture}/offsets", line["group"])
        assigned = {(member["member_id"], place) for member in line["members"] for place in member["assigned"]}
        assert held_at(fold, line["ts"]) == assigned, (line["group"], line["ts"])
        seen += 1
    assert seen == views
