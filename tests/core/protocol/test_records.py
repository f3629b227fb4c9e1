"""Records that arrive at a rate: which one is the first since a time."""

from __future__ import annotations

import pytest

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol.simulated_group import Records

PARTITION = TopicPartition("t", 0)
NOW_MS = 5_000


@pytest.mark.parametrize("made_ms", [0, 1, 500])
@pytest.mark.parametrize("per_second", [1, 3, 7, 999, 1_000, 1_001, 3_000])
def test_the_first_record_since_a_time_is_the_one_that_counting_finds(per_second, made_ms):
    records = Records(per_second)
    records.set_topics({"t": 1}, made_ms)
    times = [(offset, records.arrived_ms(PARTITION, offset)) for offset in range(records.end(PARTITION, NOW_MS))]
    for at_ms in [*range(made_ms - 3, made_ms + 40), made_ms + 1_000, made_ms + 1_001, NOW_MS, NOW_MS + 1]:
        counted = next((each for each in times if each[1] >= at_ms), None)
        assert records.first_since(PARTITION, at_ms, NOW_MS) == counted, at_ms


def test_nothing_has_arrived_where_there_is_no_partition():
    assert Records(10).end(PARTITION, NOW_MS) == 0
    assert Records(10).first_since(PARTITION, 0, NOW_MS) is None


def test_a_log_is_empty_at_the_moment_in_which_it_is_made():
    read = Records(1_000)
    read.set_topics({"t": 1}, 500)
    assert [read.end(PARTITION, at_ms) for at_ms in (0, 500, 501)] == [0, 0, 1]
