"""What answers say of an online conversion: nobody is gone, nothing is deleted, ownership goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from groupledger.answers.audit import audit
from groupledger.answers.explanation import explain
from groupledger.answers.gauges import gauges
from groupledger.answers.joins import joins
from groupledger.answers.migration import migrations
from groupledger.answers.owners import ownership, partition_timeline
from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import RequestedScope
from groupledger.answers.spoken import in_short
from groupledger.answers.storms import storms
from groupledger.answers.timeline import timeline
from groupledger.core.history import LogRow, TopicChange, TopicHistory, fold_group
from tests.answers.captured import TABLES, fact_rows, log_record_rows, topic_rows
from tests.answers.ledgers import write
from tests.core.history import test_captured_group_types as captured
from tests.core.history.histories import conversions
from tests.core.history.records import CLICKS, GROUP, GROW
from tests.core.history.test_conversions import GROUPS, case, changes

UPGRADE, DOWNGRADE = datetime(2026, 11, 21, 12, 1, tzinfo=UTC), datetime(2026, 11, 21, 12, 2, tzinfo=UTC)
ROUND, SECOND = timedelta(seconds=3), timedelta(seconds=1)
OTHERS = [TopicChange("clicks", CLICKS, 6, None, 0), TopicChange("grow", GROW, 2, None, 0)]
REAL = "real"


def ledger(folder: Any, groups: dict[str, tuple[LogRow, ...] | list[LogRow]], listed: list[TopicChange]) -> str:
    """A ledger of these groups, folded."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in (*TABLES, "log_records")}
    for group, of_group in groups.items():
        folded = fold_group("prod", of_group, None, TopicHistory(listed))
        rows["log_records"] += log_record_rows("prod", group, of_group)
        for name in TABLES:
            rows[name] += fact_rows(getattr(folded, name))
    return str(write(folder, topic_snapshots=list(topic_rows("prod", listed)), **rows))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> LedgerReader:
    """The case's groups."""
    return LedgerReader(ledger(tmp_path_factory.mktemp("case"), {name: case(name) for name in GROUPS}, changes()))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> LedgerReader:
    """What a real broker wrote of a conversion in both directions."""
    listed = [
        TopicChange(line["topic"], line["topic_id"], line["partitions"], None, 1_000 * line["ts"])
        for line in captured.lines("topics")
    ]
    return LedgerReader(ledger(tmp_path_factory.mktemp("real"), {"upgrade": captured.rows_of("upgrade")}, listed))


def why(reader: LedgerReader, group: str) -> list[tuple[int | None, str, str]]:
    """Number, type and causes of each entry of its timeline."""
    entries = timeline(reader, group).entries
    return [(each.generation, each.group_type, in_short(each.causes, {})) for each in entries]


@pytest.mark.parametrize("group", GROUPS)
def test_the_timeline_tells_two_conversions_and_who_came_and_went(reader: LedgerReader, group: str) -> None:
    entries = timeline(reader, group).entries
    assert [(each.generation, each.group_type, in_short(each.causes, {})) for each in entries][:-1] == [
        (3, "classic", "first record"),
        (3, "consumer", "converted to consumer group"),
        (4, "consumer", "B joined"),
        (4, "classic", "converted to classic group; B gone"),
    ]
    assert [each.incarnation for each in entries] == [1] * 5
    assert [each.members_before for each in entries] == [None, 1, 1, 2, 1]
    assert entries[1].moved == ()
    [gave_up] = entries[3].moved
    assert (gave_up.partition, gave_up.from_member_id, gave_up.to_member_id) == (1, "B", None)
    assert entries[3].unowned == (("orders", 1),)


def test_the_cause_has_its_evidence(reader: LedgerReader) -> None:
    up, down = (timeline(reader, "d-whole").entries[place].causes[0] for place in (1, 3))
    assert (up.kind, up.about) == ("converted", "consumer")
    assert up.what == (
        "converted to a consumer group (KIP-848) while running: epoch 3 goes on from generation 3, 1 member stayed"
    )
    assert down.what == (
        "converted back to a classic group while running: generation 4 goes on from epoch 4, 1 member stayed"
    )


def test_explain_tells_the_conversion_under_the_number_that_both_types_have(reader: LedgerReader) -> None:
    for number, group_type in ((3, "consumer"), (4, "classic")):
        told = explain(reader, "d-whole", generation=number)
        assert (told.rebalance.group_type, told.causes[0].kind) == (group_type, "converted")
    assert explain(reader, "d-whole", generation=3).moved == ()
    assert explain(reader, "d-whole", generation=3).unowned == ()
    [unowned] = explain(reader, "d-whole", generation=4).unowned
    assert (unowned.topic, unowned.partition, unowned.since, unowned.until) == (
        *("orders", 1),
        DOWNGRADE,
        DOWNGRADE + ROUND,
    )


@pytest.mark.parametrize("group", GROUPS)
def test_a_is_a_member_all_along_and_b_comes_and_goes_once(reader: LedgerReader, group: str) -> None:
    [found] = joins(reader, RequestedScope(group=group), 10).groups
    assert (found.joined, found.gone, found.restarted) == (1, 1, 0)


@pytest.mark.parametrize("group", GROUPS)
def test_orders_0_is_as_all_along_and_orders_1_is_unowned_for_one_round(reader: LedgerReader, group: str) -> None:
    until = DOWNGRADE + timedelta(hours=1)
    [only] = partition_timeline(reader, "orders", 0, until, group=group).spans
    assert (only.member_id, only.until) == ("A", None)
    spans = partition_timeline(reader, "orders", 1, until, group=group).spans
    assert [(each.member_id, each.until and each.until - (each.since or each.until)) for each in spans][1:] == [
        (None, 2 * SECOND),
        ("B", DOWNGRADE - UPGRADE - 5 * SECOND),
        (None, ROUND),
        ("A", None),
    ]
    for at in (UPGRADE, DOWNGRADE):
        [held] = ownership(reader, "orders", 0, at, group=group).holdings
        assert held.member is not None
        assert held.member.member_id == "A"


@pytest.mark.parametrize("group", GROUPS)
def test_the_migration_is_of_a_group_that_never_was_without_members(reader: LedgerReader, group: str) -> None:
    [found] = migrations(reader, RequestedScope(group=group), 10).groups
    assert [(each.converted, each.empty_seconds) for each in found.changes] == [(True, None), (True, None)]
    assert found.end.value == "went back"
    back = found.changes[1]
    assert (back.moved, back.given, back.unowned, back.unowned_seconds, back.still_unowned) == (0, 0, 1, 3.0, 0)


def test_nothing_else_is_counted_of_them(reader: LedgerReader) -> None:
    measured = {each.group_id: each for each in gauges(reader, RequestedScope()).groups}
    assert {each.given for each in measured.values()} == {4}, "two to A at first, orders-1 to B, and back"
    told = {each.group_id: each for each in storms(reader, RequestedScope(), 10).groups}
    assert {each.rebalances for each in told.values()} == {3}, "the first record, B joined, the round after B went"
    assert {found.code for found in audit(reader, RequestedScope()).found} == set()


def test_a_conversion_of_a_real_broker_is_told_so(real: LedgerReader) -> None:
    told = why(real, "upgrade")
    assert [each for each in told if each[2].startswith("converted")] == [
        (3, "consumer", "converted to consumer group"),
        (8, "classic", "converted to classic group; yr1pjcRqRSCK9M21a57yUA gone"),
    ]
    [found] = migrations(real, RequestedScope(), 10).groups
    assert [each.converted for each in found.changes] == [True, False, False, True], "in between its members changed"
    assert all(each.empty_seconds is None for each in found.changes)
    [counted] = joins(real, RequestedScope(), 10).groups
    assert (counted.joined, counted.gone) == (5, 5), "two classic-*, modern-a, modern-b, classic-c"


def test_a_group_that_comes_back_at_the_same_number_has_three_entries(tmp_path: Any) -> None:
    log = conversions()
    place = LedgerReader(ledger(tmp_path, {GROUP: log.rows}, OTHERS))
    assert [(number, kind) for number, kind, _ in why(place, GROUP)][-4:] == [
        (6, "consumer"),
        (7, "consumer"),
        (7, "classic"),
        (8, "classic"),
    ]
