"""Whose algorithm each record was, as a job computes it."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from groupledger.core.rebalance import attribution as attributable
from groupledger.core.rebalance.attribution import is_foreign
from groupledger.core.wire.consumer_protocol import UserData, UserDataForm, encode_user_data
from groupledger.engine import result_rows
from groupledger.tables import columns as c
from tests.core.history.captured import folded, log_of
from tests.core.protocol.test_recorded_clients import writer
from tests.engine.bucket_rows import AS_KAFKA, TOPIC, computed, group_row, member_row, topic_row, wire
from tests.engine.captured_rows import BEFORE_COMPACTION, CAPTURES, captured_groups, rows_of

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")


def attribution(capture):
    """(group, snapshot) -> attribution and names, of a capture computed as one bucket."""
    rows = [row for group in captured_groups(capture) for row in rows_of(capture, group)]
    done = computed(rows)["rebalances"]
    return {(row[c.GROUP_ID], row[c.SNAPSHOT_ID]): (row[c.ATTRIBUTION], row[c.ATTRIBUTED_TO]) for row in done}


def leaders_library(capture, group, snapshot_id):
    """Which library really led, as the names of groups and clients in the captures say."""
    facts = folded(log_of(capture), group)
    leader = next(row.leader for row in facts.group_snapshots if row.snapshot_id == snapshot_id)
    members = (row for row in facts.member_snapshots if row.snapshot_id == snapshot_id)
    return writer(group, next((row.client_id for row in members if row.member_id == leader), None))


def test_every_captured_generation_that_is_no_rewrite_is_exact_under_the_library_that_led():
    counted = Counter[str]()
    for capture in (*CAPTURES, BEFORE_COMPACTION):
        for (group, snapshot_id), (found, names) in attribution(capture).items():
            counted[found] += 1
            if found == "exact":
                library = leaders_library(capture, group, snapshot_id)
                assert any(name.startswith(library or "") for name in names), (group, snapshot_id, names)
    assert {found for found in counted if not found.startswith("not-applicable")} == {"exact"}
    assert counted["exact"] == 301
    assert counted["not-applicable: rewrite"] > 15


def group(lists, *, topics=(5,), leader="a", wrote=None, version=3, **of_group):
    """Members a, b, .. of a group under `range` that were given these numbers of topic t, listed with so many."""
    members = [
        member_row(
            "g/1", at, name, recorded=None if mine is None else wire(("t", number) for number in mine),
            user_data=wrote, subscription_version=version,
        )
        for at, (name, mine) in enumerate(zip("abcdef", lists, strict=False))
    ]  # fmt: skip
    said = {"assignor": "range", "shared_topics": ["t"], "leader": leader, "members": len(lists)}
    listed = [topic_row("g/1", "t", count, since) for since, count in enumerate(topics)]
    return [group_row("g/1", **said | of_group), *members, *listed]


def found(rows, calculation=AS_KAFKA):
    (row,) = computed(rows, calculation)["rebalances"]
    return row[c.ATTRIBUTION], row[c.ATTRIBUTED_TO]


JAVAS = [[0, 1, 2], [3, 4]]
NOBODYS = [[0], [1, 2, 3, 4]]


@pytest.mark.parametrize(
    ("rows", "attribution", "names"),
    [
        pytest.param(group(JAVAS), "exact", ["java-range"], id="no other is asked where Java gives it"),
        pytest.param(group(JAVAS, wrote=b""), "exact", ["librdkafka-range"], id="unless the leader is none of Java's"),
        pytest.param(group(JAVAS, wrote=b"", leader=None), "exact", ["java-range"], id="no leader known"),
        pytest.param(group(JAVAS, version=2), "exact", ["java-range", "sarama-range"], id="Sarama writes as old Java"),
        pytest.param(
            group([[0, 2, 4], [1, 3]], version=1, assignor="sticky"),
            "exact",
            ["java-sticky"],
            id="its sticky promises it",
        ),
        pytest.param(group([[0, 1], [2, 3, 4]], version=1), "exact", ["kafka-go-range"], id="another library's"),
        pytest.param(group(NOBODYS, wrote=b""), "no-known-assignor", [], id="nobody's"),
        pytest.param(group([[2, 1, 0], [3, 4]], wrote=b""), "equal-sets", ["librdkafka-range"], id="in another order"),
        pytest.param(
            group(JAVAS, topics=(5, 7), moment=1, wrote=b""), "exact", ["librdkafka-range"], id="topics before"
        ),
        pytest.param(group([[0, 1, 2], [3, 4, 6]]), "not-applicable: partitions-not-listed", None, id="not listed"),
        pytest.param(group([[0, 1, 2], [3, 4, 5]]), "exact", ["java-range", "franz-go-range"], id="more than listed"),
        pytest.param(
            group([[0, 2, 4], [1, 3]], assignor="RoundRobinAssigner"), "exact", ["kafkajs-roundrobin"], id="KafkaJS"
        ),
        pytest.param(
            group([[0, 4], [1, 2, 3]], assignor="rack-affinity"), "perhaps", ["kafka-go-rack-affinity"], id="promise"
        ),
        pytest.param(group(JAVAS, assignor="mine"), "no-known-assignor", [], id="an assignor that nobody has"),
        pytest.param(group([None, None], assignor="mine"), "not-applicable: no-record", None, id="of it, no record"),
        pytest.param(group([None, None]), "not-applicable: no-record", None, id="no record"),
        pytest.param(group(JAVAS, snapshot_kind="rewrite"), "not-applicable: rewrite", None, id="rewrite"),
        pytest.param(group(JAVAS, chosen="sticky"), "not-applicable: not-compared", None, id="what-if"),
        pytest.param(group(JAVAS, chosen=None), "not-applicable: not-compared", None, id="no assignor ran"),
        pytest.param(
            group(JAVAS, assignor=None, chosen=""), "not-applicable: no-assignor-recorded", None, id="not recorded"
        ),
        pytest.param(group(JAVAS, complete=False), "not-applicable: incomplete-snapshot", None, id="incomplete"),
        pytest.param(group(JAVAS, protocol_type="connect"), "not-applicable: other-protocol-type", None, id="Connect"),
        pytest.param(
            group(JAVAS, group_type="consumer", assignor="uniform"), "not-applicable: no-leader", None, id="KIP-848"
        ),
        pytest.param(group([]), "not-applicable: no-members", None, id="empty"),
        pytest.param(group(JAVAS, topics=(-1,)), "not-applicable: rejected", None, id="rejected"),
    ],
)
def test_by_hand(rows, attribution, names):
    assert found(rows) == (attribution, names)


@pytest.mark.parametrize(
    ("lists", "attribution"),
    [(NOBODYS, ("not-applicable: too-large", None)), (JAVAS, ("exact", ["java-range"]))],
)
def test_of_a_group_that_is_or_was_or_becomes_too_large_only_the_assignor_that_ran_is_named(
    monkeypatch, lists, attribution
):
    monkeypatch.setattr(attributable, "MOST_DEALT", 20)
    assert found(group(lists, topics=(5, 8), moment=0, wrote=b""))[0] != "not-applicable: too-large"
    for moment, topics in ((0, (5, 10)), (1, (10, 5)), (2, (10, 5, 5))):
        assert found(group(lists, topics=topics, moment=moment, wrote=b"")) == attribution
    monkeypatch.setattr(attributable, "MOST_ENTRIES", 4)
    assert found(group(lists, wrote=b"")) == attribution


def test_a_record_of_a_group_that_java_s_assignor_fails_on_may_be_another_library_s():
    """A claim of a partition that is not there makes Java's cooperative-sticky fail."""
    rows = group(JAVAS, wrote=b"", assignor="cooperative-sticky")
    rows[1] |= {"claimed": wire([("t", 3)]), "subscription_generation": 3}
    assert found(rows)[0] != "not-applicable: rejected"


def test_the_assignor_of_an_override_goes_by_its_name():
    rows = group(JAVAS, assignor="cooperative-sticky", chosen="librdkafka-cooperative-sticky", wrote=b"\0\0\0\5")
    given = computed(rows)["assignments"]
    lists = [[number for entry in row[c.ASSIGNED] for number in entry[c.PARTITIONS]] for row in given]
    same = group(lists, assignor="cooperative-sticky", chosen="librdkafka-cooperative-sticky", wrote=b"\0\0\0\5")
    assert found(same) == ("exact", ["librdkafka-cooperative-sticky"])


def test_no_assignor_is_asked_about_what_java_wrote_and_gives(monkeypatch):
    """100,000 such groups cost a look at their leaders' bytes."""
    monkeypatch.setattr(result_rows, "attributed", None)
    for assignor in ASSIGNORS:
        wrote = {"cooperative-sticky": b"\0\0\0\5"}.get(assignor)
        given = computed(group([[], []], assignor=assignor, wrote=wrote, chosen=assignor, topics=()))["rebalances"]
        assert [row[c.ATTRIBUTED_TO] for row in given] == [[f"java-{assignor}"]]


def test_neighbours_and_the_order_of_rows_change_nothing():
    several = []
    for number, lists in enumerate((JAVAS, [[0, 1], [2, 3, 4]], NOBODYS, [])):
        for row in group(lists, version=1):
            several.append({**row, c.SNAPSHOT_ID: f"{number}/1", c.GROUP_ID: str(number)})
    both = "exact", ["java-range", "sarama-range"]
    expected = [both, ("exact", ["kafka-go-range"]), ("no-known-assignor", [])]
    for rows in (several, several[::-1]):
        done = sorted(computed(rows)["rebalances"], key=lambda row: row[c.GROUP_ID])
        assert [(row[c.ATTRIBUTION], row[c.ATTRIBUTED_TO]) for row in done][:3] == expected
        assert done[3][c.ATTRIBUTION] == "not-applicable: no-members"


def written():
    """User data in every form, and what is none."""
    owned = (("t", (0, 1)),), 3
    for form in UserDataForm:
        yield encode_user_data(UserData(form, *owned)) if form is not UserDataForm.OPAQUE else b"\1\2\3\4\5"
    yield from (b"\0", b"\0\1", b"\0\0\0\0", b"\0\1\0\0\0\0\xff\xff\xff\xff")


def test_many_leaders_at_once_are_told_apart_as_one_by_one():
    every = list(itertools.product((*ASSIGNORS, "mine", None), (None, 0, 1, 2, 3, 4), written()))
    protocols, versions, data = (list(each) for each in zip(*every, strict=True))
    arrays = pa.array(protocols, pa.string()), pa.array(versions, pa.int32()), pa.array(data, pa.binary())
    told = result_rows.are_foreign(*arrays).tolist()
    assert told == [is_foreign(*each) for each in every]
    assert {True, False} == set(told)
    assert result_rows.are_foreign(*(array.slice(0, 0) for array in arrays)).tolist() == []


def test_nothing_is_attributed_where_no_assignor_runs():
    assert found(group(JAVAS, chosen=None), replace(AS_KAFKA, coordinator=None))[1] is None


@pytest.mark.parametrize("together", [1, 3])
def test_the_number_of_groups_converted_at_once_changes_nothing(monkeypatch, together):
    expected = attribution("storm")
    monkeypatch.setattr(result_rows, "TOGETHER", together)
    assert attribution("storm") == expected


def test_no_record_of_unlisted_partitions_becomes_python_objects(monkeypatch):
    monkeypatch.setattr(result_rows, "recorded_round", lambda *_: pytest.fail("converted"))
    rows = [row for group in captured_groups("dev") for row in rows_of("dev", group) if row["row_kind"] != TOPIC]
    found = Counter(row[c.ATTRIBUTION] for row in computed(rows)["rebalances"])
    assert found["not-applicable: partitions-not-listed"] > 50


@pytest.mark.parametrize(
    ("rows", "attribution", "names"),
    [
        pytest.param(group(JAVAS), "exact", ["java-range"], id="what the assignor that ran gives"),
        pytest.param(group(JAVAS[::-1], wrote=b""), "not-applicable: not-asked", None, id="what another library gave"),
        pytest.param(group([[0, 1, 2], [4, 3]]), "equal-sets", ["java-range"], id="the same sets"),
        pytest.param(group(JAVAS, chosen="sticky"), "not-applicable: not-compared", None, id="what-if"),
    ],
)
def test_no_other_library_is_asked_where_nothing_is_to_be_attributed(monkeypatch, rows, attribution, names):
    monkeypatch.setattr(attributable, "attribution", None)
    assert found(rows, replace(AS_KAFKA, attributes=False)) == (attribution, names)
