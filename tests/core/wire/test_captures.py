"""Every byte of the captures decodes, and comes back the same."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter

import pytest

from groupledger.core.log.listings import canonical_topic_id
from groupledger.core.wire.consumer_protocol import (
    UserDataForm,
    decode_assignment,
    decode_subscription,
    decode_user_data,
)
from groupledger.core.wire.offsets_log import RecordKind, decode, encode
from groupledger.core.wire.records import CurrentMemberAssignment, GroupMetadata, MemberMetadata, TargetAssignmentMember
from tests.core.wire.captured import LOGS, SNAPSHOTS, described_members, every_log, lines, log
from tests.core.wire.nested import open_member, open_members


@pytest.mark.parametrize(("name", "count"), LOGS.items())
def test_every_record_of_a_log_comes_back_byte_for_byte(name, count):
    records = log(name)
    assert len(records) == count
    for key, value in records:
        record = decode(key, value)
        assert encode(record) == (key, value)
        open_members(record)


def test_the_logs_hold_what_the_captures_say():
    kinds = Counter(decode(key, value).kind for key, value in every_log())
    assert kinds == {
        RecordKind.OFFSET_COMMIT: 515,
        RecordKind.GROUP_METADATA: 414,
        RecordKind.CONSUMER_GROUP_METADATA: 99,
        RecordKind.CONSUMER_GROUP_PARTITION_METADATA: 6,
        RecordKind.CONSUMER_GROUP_MEMBER_METADATA: 82,
        RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: 94,
        RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: 159,
        RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: 273,
        RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION: 6,
    }


def test_no_captured_subscription_or_assignment_has_bytes_left_over():
    members = [member for key, value in every_log() for member in _members(decode(key, value).value)]
    assert len(members) > 600
    assert {decode_subscription(member.subscription).tail for member in members} == {b""}
    assert {decode_assignment(member.assignment).tail for member in members} == {b""}


def test_every_clients_user_data_is_recognised():
    forms: Counter[tuple[str | None, UserDataForm]] = Counter()
    for key, value in every_log():
        group = decode(key, value).value
        protocol = group.protocol if isinstance(group, GroupMetadata) else None
        for member in _members(group):
            found = decode_user_data(decode_subscription(member.subscription).user_data, protocol)
            assert not found.leftover
            forms[protocol, found.form] += 1
    assert forms == {
        ("range", UserDataForm.NULL): 136,
        ("range", UserDataForm.EMPTY): 62,
        ("roundrobin", UserDataForm.NULL): 18,
        ("roundrobin", UserDataForm.EMPTY): 30,
        ("sticky", UserDataForm.NULL): 3,
        ("sticky", UserDataForm.EMPTY): 3,
        ("sticky", UserDataForm.OWNED_GENERATION): 13,
        ("sticky", UserDataForm.PREFIXED_OWNED_GENERATION): 9,
        ("cooperative-sticky", UserDataForm.EMPTY): 50,
        ("cooperative-sticky", UserDataForm.GENERATION): 166,
        ("cooperative-sticky", UserDataForm.OWNED_GENERATION): 153,
    }


def test_fields_are_in_their_places():
    groups = [value for key, val in every_log() if isinstance(value := decode(key, val).value, GroupMetadata)]
    assert sum(len(group.members) for group in groups) > 600
    for group in groups:
        assert (group.leader is None) is (group.members == ())
        assert group.leader is None or group.leader in {member.member_id for member in group.members}
        for member in group.members:
            assert member.client_host == "/127.0.0.1"
            assert member.member_id.startswith(member.group_instance_id or member.client_id)
    others = [value for key, val in every_log() if isinstance(value := decode(key, val).value, MemberMetadata)]
    assert {member.client_host for member in others} == {"/127.0.0.1"}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_what_describe_groups_gave_comes_back_byte_for_byte(name):
    members = list(described_members(name))
    assert members
    for protocol, subscription, assignment in members:
        open_member(protocol, subscription, assignment)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_admin_client_saw_the_assignment_that_the_bytes_say(name):
    seen = 0
    for line in lines(f"{name}/snapshots"):
        raw = {member["member_id"]: member for group in line.get("raw") or () for member in group["members"]}
        if line["state"] != "STABLE" or {group["state"] for group in line.get("raw") or ()} != {"Stable"}:
            continue
        described = {member["member_id"]: sorted(member["assigned"]) for member in line["members"]}
        for member_id in raw.keys() & described.keys():
            assert _assigned(raw[member_id]["assignment"]) == described[member_id]
            seen += 1
    assert seen


@pytest.mark.parametrize("name", LOGS)
def test_topic_ids_are_the_ones_of_the_topic_listing(name):
    listed = {canonical_topic_id(line["topic_id"]) for line in lines(f"{name.split('/')[0]}/topics")}
    values = [decode(key, value).value for key, value in log(name)]
    targets = [value for value in values if isinstance(value, TargetAssignmentMember)]
    currents = [value for value in values if isinstance(value, CurrentMemberAssignment)]
    named = {topic_id for target in targets for topic_id, _ in target.topic_partitions}
    named |= {topic_id for current in currents for topic_id, _ in current.assigned + current.pending_revocation}
    assert named <= listed
    assert bool(named) == (name != "storm/offsets")


def _members(value):
    return value.members if isinstance(value, GroupMetadata) and value.protocol_type == "consumer" else ()


def _assigned(text):
    partitions = decode_assignment(b64decode(text)).partitions
    return sorted({f"{topic}-{partition}" for topic, numbers in partitions for partition in numbers})
