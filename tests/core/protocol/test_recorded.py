"""The calls derived from the offsets log, held against what the captured Java clients themselves logged."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol.consumer import LISTENER, Callback
from groupledger.core.protocol.recorded import Certainty, assigned_partitions, recorded_calls
from tests.core.history.captured import folded, log_rows
from tests.core.history.records import Log, member
from tests.core.wire.captured import lines

SAID = {"revoked": Callback.REVOKED, "assigned": Callback.ASSIGNED, "lost": Callback.LOST}
DIFFERENT = {
    "st-java-range-m2": "assigned what it does not subscribe to, it joins again and calls revoked with nothing",
    "stale-java-z": "it stood still and sent claims of two generations ago",
}


def processes():
    """{(capture, group, client id): [(callback, partitions), ..]} of classic Java members, restarts as one."""
    told = defaultdict(list)
    for capture in ("dev", "edge"):
        for line in lines(f"{capture}/clients"):
            word = line["said"].split()[0]
            if line["lib"] == "java" and word in SAID and is_classic(capture, line["group"]):
                client = client_id(capture, line["group"], line["member"])
                told[capture, line["group"], client].append((SAID[word], named(line["said"])))
    return dict(told)


def client_id(capture, group, process):
    """A static member's next process (`m1b`) goes on under the client id of the first (`m1`)."""
    known = {row.client_id for row in folded(f"{capture}/offsets", group).member_snapshots}
    return process if process in known else re.sub(r"[b-z]$", "", process)


def is_classic(capture, group):
    log = f"{capture}/offsets"
    return group in log_rows(log) and {row.group_type for row in folded(log, group).group_snapshots} == {"classic"}


def named(said):
    listed = said[said.index("[") + 1 : said.index("]")]
    return tuple(sorted(TopicPartition(topic, int(at)) for topic, at in re.findall(r"([\w-]+)-(\d+)", listed)))


def derived(capture, group, client):
    rows = folded(f"{capture}/offsets", group)
    calls = recorded_calls(rows.group_snapshots, rows.member_snapshots)
    return [each for each in calls if each.client_id == client and each.call.callback in LISTENER]


def agree(said, calls):
    """The same calls in the same order; how a member ended is open: revoked, lost or no call at all."""
    left = list(said)
    for each in calls:
        made = (each.call.callback, each.call.partitions)
        if left and (left[0] == made or (is_open(each) and left[0] == (Callback.LOST, made[1]))):
            left.pop(0)
        elif not is_open(each):
            return False
    return all(callback is Callback.LOST for callback, _ in left)  # after the last record


def is_open(each):
    return each.certainty in (Certainty.UNKNOWN_END, Certainty.REVOKED_OR_LOST)


def test_what_the_log_says_is_what_the_java_clients_did():
    told = processes()
    differ = {key[2] for key, said in told.items() if not agree(said, derived(*key))}
    assert len(told) > 50
    assert differ == set(DIFFERENT)


def test_only_calls_of_members_that_are_gone_or_gave_all_up_are_open():
    calls = [each for capture, group, client in processes() for each in derived(capture, group, client)]
    opened = [each for each in calls if is_open(each)]
    assert {each.call.callback for each in opened} == {Callback.REVOKED}
    assert 0 < len(opened) < len(calls) / 2


@pytest.mark.parametrize("group", ["java-cooperative-sticky", "java-range"])
def test_a_round_has_the_timeline_of_the_kip(group):
    rows = folded("dev/offsets", group)
    calls = list(recorded_calls(rows.group_snapshots, rows.member_snapshots))
    second = [each for each in calls if each.generation == 2]
    (leader,) = (each.member_id for each in second if each.call.callback is Callback.ASSIGN)
    order = [each.call.callback for each in second if each.member_id == leader]
    eager = [Callback.REVOKED, Callback.USER_DATA, Callback.ASSIGN, Callback.ON_ASSIGNMENT, Callback.ASSIGNED]
    later = [Callback.USER_DATA, Callback.ASSIGN, Callback.REVOKED, Callback.ON_ASSIGNMENT, Callback.ASSIGNED]
    assert order == (eager if group == "java-range" else later)
    assert [each.order for each in second] == list(range(len(second)))
    eager_revokes = Certainty.REVOKED_OR_LOST if group == "java-range" else Certainty.RECORDED
    sure = {(each.call.callback is Callback.REVOKED, each.certainty) for each in second}
    assert sure == {(True, eager_revokes), (False, Certainty.RECORDED)}


def test_calls_after_skipped_generations_say_so():
    rows = folded("edge/offsets", "mute-java")
    gaps = {
        each.generation
        for each in recorded_calls(rows.group_snapshots, rows.member_snapshots)
        if each.certainty is Certainty.AFTER_GAP
    }
    assert gaps == {5}


def test_a_returning_static_member_is_the_only_one_that_is_called():
    """And not even it where it was assigned what it no longer subscribes to."""
    rows = folded("edge/offsets", "st-java-range")
    rewrites = {row.snapshot_id for row in rows.group_snapshots if row.snapshot_kind == "rewrite"}
    calls = list(recorded_calls(rows.group_snapshots, rows.member_snapshots))
    assigned = [each for each in calls if each.snapshot_id in rewrites and each.call.callback is Callback.ASSIGNED]
    assert (len(rewrites), len(assigned)) == (4, 3)
    assert [each for each in calls if each.snapshot_id in rewrites and each.call.callback is Callback.ASSIGN] == []


def test_calls_of_the_first_generation_that_the_log_has_are_recorded():
    log = Log()
    log.classic(7, [member("a", {"clicks": (0,)})])
    fold = log.fold()
    calls = list(recorded_calls(fold.group_snapshots, fold.member_snapshots))
    assert {(each.generation, each.certainty) for each in calls} == {(7, Certainty.RECORDED)}


@pytest.mark.parametrize("leader", [None, "nobody"])
def test_a_leader_that_is_not_told_is_not_asked(leader):
    rows = folded("dev/offsets", "java-range")
    unled = [row._replace(leader=leader) for row in rows.group_snapshots]
    calls = list(recorded_calls(rows.group_snapshots, rows.member_snapshots))
    asked = [each for each in calls if each.call.callback is Callback.ASSIGN]
    others = [(each.member_id, each.call) for each in calls if each not in asked]
    topics = {row.snapshot_id: row.subscribed_topics or () for row in rows.group_snapshots}
    assert [each.call.topics for each in asked] == [topics[each.snapshot_id] for each in asked]
    assert any(each.call.topics for each in asked)
    assert [(each.member_id, each.call) for each in recorded_calls(unled, rows.member_snapshots)] == others


def test_groups_of_kip_848_and_of_connect_have_no_such_calls():
    rows = folded("dev/offsets", "new-java-uniform")
    assert list(recorded_calls(rows.group_snapshots, rows.member_snapshots)) == []
    rows = folded("dev/offsets", "java-range")
    connect = [row._replace(protocol_type="connect") for row in rows.group_snapshots]
    assert list(recorded_calls(connect, rows.member_snapshots)) == []
    first, *others = rows.group_snapshots
    later = list(recorded_calls([first._replace(protocol_type="connect"), *others], rows.member_snapshots))
    assert later
    assert later == list(recorded_calls(others, rows.member_snapshots))


def test_a_topic_without_a_name_is_told_by_its_id():
    told = (("id-1", "t", (0, 1)), ("id-2", None, (3,)))
    assert assigned_partitions(told) == {TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("id-2", 3)}
