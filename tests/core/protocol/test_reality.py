"""The simulator against reality: captured groups played from their story, callback for callback.

Three client libraries on a real broker. Only the story is given (who joined, left, was stopped, which topics changed),
the member ids, since they decide ties, and which events raced into one generation.
"""

from __future__ import annotations

from itertools import groupby

import pytest

from groupledger.core.protocol.simulator import simulate
from groupledger.core.rebalance.step import Form
from tests.core.history.captured import folded
from tests.core.protocol.captured_stories import member_ids, played, said, script

AS_LOGGED = {
    **dict.fromkeys(("java-range", "java-cooperative-sticky", "rdk-range", "rdk-roundrobin"), ("dev", Form.AS_KAFKA)),
    **dict.fromkeys(("rdk-cooperative-sticky",), ("dev", Form.AS_KAFKA)),
    # kafka-python calls revoked with nothing when it first joins, as KIP-429's eager timeline has it
    **dict.fromkeys(("kpy-range", "kpy-roundrobin"), ("dev", Form.KIP)),
    **dict.fromkeys(
        ("st-java-range", "st-java-coop", "st-rdk-coop", "zo-java", "del-java", "del-rdk"), ("edge", Form.AS_KAFKA)
    ),
    **dict.fromkeys(("empty-again", "expire", "gr-java", "tx-classic"), ("edge", Form.AS_KAFKA)),
    **dict.fromkeys(("up-range-first", "up-coop-first"), ("edge", Form.AS_KAFKA)),
}
DIFFERENT = {
    ("dev", "java-roundrobin"): (
        {"java-roundrobin-m1", "java-roundrobin-m2", "java-roundrobin-m3"},
        "the leader does not know the topic audit for one generation; and see java-sticky",
    ),
    ("dev", "java-sticky"): (
        {"java-sticky-m3"},
        "with the last subscriber of audit gone the leader's metadata changes, and it joins once more for nothing",
    ),
    ("edge", "st-rdk-range"): (
        {"st-rdk-range-m1b", "st-rdk-range-m2c", "st-rdk-range-m2d"},
        "librdkafka takes a partition of a topic it does not subscribe to, and does not join again",
    ),
    ("edge", "gr-rdk"): (
        {"gr-rdk-m1", "gr-rdk-m2"},
        "librdkafka joins twice when partitions are added, once for nothing",
    ),
    ("edge", "zo-rdk"): (
        {"zo-rdk-z", "zo-rdk-m3"},
        "librdkafka calls revoked where KIP-429 calls lost; and m3's last two assignments came in one",
    ),
}


def differing(capture, group, form):
    """Processes whose calls are not those that they logged."""
    logged, calls = said(capture, group), played(simulate(script(capture, group, form)))
    assert calls.keys() <= logged.keys()
    return {process for process, made in logged.items() if calls.get(process, []) != made}


@pytest.mark.parametrize(("group", "capture", "form"), [(group, *where) for group, where in AS_LOGGED.items()])
def test_every_process_calls_what_it_logged(group, capture, form):
    assert differing(capture, group, form) == set()


CAUSES = [(capture, group, processes) for (capture, group), (processes, _) in DIFFERENT.items()]


@pytest.mark.parametrize(("capture", "group", "processes"), CAUSES)
def test_who_differs_is_known_with_its_cause(capture, group, processes):
    assert differing(capture, group, Form.AS_KAFKA) == processes


def recorded_leaders(capture, group):
    """The process that led each recorded generation, in order; a record written again is of the same generation."""
    process = {each: name for name, ids in member_ids(capture, group).items() for each in ids}
    peopled = [row for row in folded(f"{capture}/offsets", group).group_snapshots if row.members > 0]
    return [process[next(rows).leader] for _, rows in groupby(peopled, key=lambda row: row.generation)]


IDS_LOGGED = [(group, *where) for group, where in AS_LOGGED.items() if not group.startswith("kpy-")]
"""kafka-python's clients do not log their member ids."""


@pytest.mark.parametrize(("group", "capture", "form"), IDS_LOGGED)
def test_each_generation_is_led_by_whom_the_broker_chose(group, capture, form):
    """The first to join leads, and leads on; where it leaves, the next in the order of Java's hash map does."""
    rounds = [took for settled in simulate(script(capture, group, form)) for took in settled.rounds]
    leaders = [took.leader for took in rounds if took.members]
    assert leaders == recorded_leaders(capture, group)
    assert len(leaders) > 0


def test_there_is_much_to_compare():
    calls = sum(len(made) for group, (capture, _) in AS_LOGGED.items() for made in said(capture, group).values())
    assert len(AS_LOGGED) >= 15
    assert calls > 300
