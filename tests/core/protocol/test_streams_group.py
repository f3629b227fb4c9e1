"""Simulated Streams groups (KIP-1071): a real broker's group played from its story, and what such a group does."""

from groupledger.core.protocol.simulator import simulate
from tests.core.protocol.captured_streams_group import (
    captured_script,
    recorded_currents,
    recorded_epochs,
    recorded_targets,
)


def test_the_captured_group_has_its_epochs_its_targets_and_its_assignments():
    settled = simulate(captured_script())
    assert [each.failure for each in settled] == [None] * 4
    assert [each.coordinated.epoch for each in settled] == [3, 4, 5, 6]
    assert recorded_epochs() == [2, 3, 4, 5, 6]
    targets = [row for each in settled for row in each.coordinated.targets]
    standby = {(row.epoch, name): tasks for row in targets for name, tasks in row.standby}
    played = [(row.epoch, {name: (tasks, standby[row.epoch, name]) for name, tasks in row.targets}) for row in targets]
    assert played == recorded_targets()[:-1]
    assert recorded_targets()[-1] == (6, {}), "the group is empty: no target is computed"
    assert currents(settled) == changes(recorded_currents())
    assert len(recorded_currents()) - len(changes(recorded_currents())) == 1


def currents(settled):
    """What a coordinator would write: a row where the member is not as its last row left it."""
    rows = (row for each in settled for row in each.coordinated.heartbeats)
    return changes((row.member, row.epoch, row.state, row.assigned, row.pending, row.standby) for row in rows)


def changes(rows):
    """Rows that say something new of their member; the log has one more, with another previous epoch."""
    found, last = [], {}
    for row in rows:
        if last.get(row[0]) != row:
            found.append(row)
        last[row[0]] = row
    return found
