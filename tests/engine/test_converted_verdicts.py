"""What is said of the first assignment after an online conversion: the last one of the other type, if it is equal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from groupledger.core.history import LogRow, TopicHistory, fold_group
from groupledger.core.wire.consumer_protocol import ConsumerProtocolSubscription
from groupledger.tables import columns as c
from tests.core.history import test_captured_group_types as captured
from tests.core.history.captured import changes_of
from tests.core.history.records import CLICKS, GROUP, Log, member
from tests.core.history.test_conversions import CASE, GROUPS, case
from tests.engine.bucket_rows import computed
from tests.engine.captured_rows import bucket_of, states_of

SAID = ConsumerProtocolSubscription(3, ("clicks",), None, (("clicks", (0, 1)),), 2)
LISTED = [{"ts": 0, "topic": "clicks", "topic_id": CLICKS, "partitions": 2}]
UNKNOWN = "cannot-tell: the group before is not known"


def verdicts(group: str, rows: Sequence[LogRow], listed: list[dict[str, Any]]) -> list[tuple[str, int | None, str]]:
    """Type, number and verdict of each snapshot with members, repetitions left out."""
    facts = fold_group("prod", rows, None, TopicHistory(changes_of(listed)))
    found = computed(bucket_of(group, facts, rows, states_of(listed)))["rebalances"]
    of_snapshot = {row[c.SNAPSHOT_ID]: row for row in found}
    ordered = [of_snapshot[each.snapshot_id] for each in facts.group_snapshots if each.members]
    return list(dict.fromkeys((row[c.GROUP_TYPE], row[c.GENERATION], row[c.VERDICT]) for row in ordered))


@pytest.mark.parametrize("group", GROUPS)
def test_what_a_coordinator_took_over_is_said_to_be_carried_over(group: str) -> None:
    listed = [json.loads(line) for line in (CASE / "topics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert verdicts(group, case(group), listed) == [
        ("classic", 3, "exact"),
        ("consumer", 3, "carried-over"),
        ("consumer", 4, "exact"),
        ("classic", 4, "carried-over"),
        ("classic", 5, "exact"),
    ]


def test_a_real_brokers_conversions_are_carried_over_both_ways() -> None:
    found = verdicts("upgrade", captured.rows_of("upgrade"), captured.lines("topics"))
    assert [each for each in found if each[2] != "exact"] == [
        ("consumer", 3, "carried-over"),
        ("classic", 8, "carried-over"),
    ]


def converted(generation: int, taken: tuple[int, ...], back: tuple[int, ...]) -> list[tuple[str, int | None, str]]:
    """Verdicts on a group that is converted in this generation, with this target, and back with this assignment."""
    log = Log()
    for number in range(1, generation + 1):
        log.classic(number, [member("c", {"clicks": (0, 1)})])
    with log.batch():
        log.deleted()
        log.joined("c", classic=SAID)
        log.step(generation, {"c": {CLICKS: taken}})
    with log.batch():
        log.left("c")
        log.epoch(None)
        log.classic(generation, [member("c", {"clicks": back})])
    return verdicts(GROUP, log.rows, LISTED)[-2:]


@pytest.mark.parametrize("generation", [1, 2, 6])
def test_a_first_epoch_that_is_as_low_as_a_new_groups_is_carried_over_too(generation: int) -> None:
    assert converted(generation, (0, 1), (0, 1)) == [
        ("consumer", generation, "carried-over"),
        ("classic", generation, "carried-over"),
    ]


def test_what_is_not_the_assignment_before_is_not_said_to_be_carried_over() -> None:
    assert converted(6, (0,), (0, 1)) == [("consumer", 6, UNKNOWN), ("classic", 6, "not-compared")]
