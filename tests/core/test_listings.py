"""What listings amount to at a moment, held against reading each topic's changes one by one."""

from __future__ import annotations

import numpy as np
import pytest

from groupledger.core.arrays.batch import NONE
from groupledger.core.arrays.snapshots import GREATEST, LEAST
from groupledger.core.log.listings import Listings

CHANGES = [[], [(5, 3)], [(5, 3), (9, NONE), (9, 4), (12, 6)], [(1, NONE), (7, 0)]]
"""By topic: since when, how many partitions."""

LISTINGS = Listings(
    start=np.cumsum([0, *map(len, CHANGES)]),
    since=np.array([since for topic in CHANGES for since, _ in topic]),
    count=np.array([count for topic in CHANGES for _, count in topic], np.int32),
)


def plainly(topic, moment):
    """before that, before, now, after; times of the last change, the one before, the next; whether it is gone."""
    known = CHANGES[topic] if topic != NONE else []
    past = [(LEAST, NONE)] * 3 + [change for change in known if change[0] <= moment]
    later = [change for change in known if change[0] > moment] + [(GREATEST, NONE)]
    listed = len(past) > 3
    counts = (past[-3][1], past[-2][1], past[-1][1], later[0][1])
    return (*counts, past[-1][0], past[-2][0], later[0][0], listed and past[-1][1] == NONE)


@pytest.mark.parametrize("compiled", ["python", "numba"])
def test_every_topic_at_every_moment(monkeypatch, compiled):
    monkeypatch.setenv("GROUPLEDGER_KERNELS", compiled)
    asked = [(topic, moment) for topic in (NONE, *range(len(CHANGES))) for moment in range(14)]
    topic, moment = np.array(asked).T
    change = LISTINGS.at(topic, moment)
    views = LISTINGS.views(topic, change)
    found = zip(
        *(views.before_that, views.before, views.now, views.after),
        *(views.changed, views.changed_before, views.changed_after, views.gone),
        strict=True,
    )
    assert [tuple(row) for row in found] == [plainly(*pair) for pair in asked]
    assert [each != NONE for each in change] == [plainly(*pair)[4] != LEAST for pair in asked]
