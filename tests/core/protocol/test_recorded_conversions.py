"""Members of a recorded group that was converted online: what they were called, and what they had."""

from __future__ import annotations

import pytest

from groupledger.core.history import fold_group
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.recorded import recorded_calls, tenures
from tests.core.history.test_captured_group_types import folded
from tests.core.history.test_conversions import AFTER, DOWNGRADE, GROUPS, case, topics


@pytest.mark.parametrize("group", GROUPS)
def test_a_member_that_goes_on_is_called_nothing_and_hands_nothing_over(group):
    fold = fold_group("prod", case(group), None, topics())
    calls = [
        (each.at_ms, each.member_id, each.call.callback, {place.partition for place in each.call.partitions})
        for each in recorded_calls(fold.group_snapshots, fold.member_snapshots)
        if each.call.callback in (Callback.REVOKED, Callback.ASSIGNED, Callback.LOST)
    ]
    begins = case(group)[0].timestamp_ms
    assert [call[:2] for call in calls if call[0] < AFTER] == [(begins, "A")]
    assert calls[-1] == (AFTER, "A", Callback.ASSIGNED, {0, 1})
    held = tenures(fold.group_snapshots, fold.member_snapshots)
    of_one = {
        place.partition: [(each.member_id, each.given_up and each.given_up.observed_at) for each in some]
        for place, some in held.items()
    }
    assert ("B", DOWNGRADE) in of_one[1]
    assert of_one[0][0] == ("A", AFTER), "an eager member gives up all at the next round, and not before"


def test_nobody_is_called_gone_in_a_conversion_of_a_real_broker():
    fold = folded("upgrade")
    conversions = {75, 76, 132}
    calls = recorded_calls(fold.group_snapshots, fold.member_snapshots)
    assert not {int(each.snapshot_id.rsplit("/", 1)[1]) for each in calls} & conversions
