"""A recorded group as its migration is rehearsed: members, topics, assignor, and libraries as far as bytes tell."""

from __future__ import annotations

import struct

import pytest

from groupledger.core.faults import Fault
from groupledger.core.protocol.compatibility import LIBRARIES, ByteCode, libraries
from groupledger.core.protocol.recorded_clients import recorded_group
from groupledger.core.protocol.rolling_migration import Danger, rehearse, two_bounces
from tests.core.history.captured import every_group, folded

WRITERS = {"java": "java", "rdk": "librdkafka", "kpy": "kafka-python", "go": "franz-go"}
"""Parts of the captures' group and client names, and the library that ran there."""
COOPERATIVE_STICKY = "cooperative-sticky"


def writer(group, client_id):
    named = {*group.split("-"), *(client_id or "").split("-")}
    return next((library for part, library in WRITERS.items() if part in named), None)


def written():
    """(true library, libraries by the bytes) of every captured classic subscription whose writer is known."""
    for name, group in every_group():
        rows = folded(name, group)
        snapshots = {each.snapshot_id: each for each in rows.group_snapshots}
        for row in rows.member_snapshots:
            snapshot, true = snapshots[row.snapshot_id], writer(group, row.client_id)
            if snapshot.group_type == "classic" and snapshot.protocol_type == "consumer" and true is not None:
                told = libraries(snapshot.assignor, row.subscription_version, row.user_data)
                yield true, snapshot.assignor, told


def recorded(group, library=None, members=None):
    rows = folded("dev/offsets", group)
    return recorded_group(rows.group_snapshots, rows.member_snapshots if members is None else members, library)


def test_who_wrote_a_subscription_is_always_among_those_told():
    seen = list(written())
    assert [each for each in seen if each[0] not in each[2]] == []
    assert {each[0] for each in seen} == set(WRITERS.values())
    sure = {(true, assignor) for true, assignor, told in seen if told == {true}}
    assert sure >= {("java", COOPERATIVE_STICKY), ("librdkafka", "range"), ("kafka-python", COOPERATIVE_STICKY)}
    assert sure >= {("kafka-python", "sticky")}, "its stray prefix tells it from aiokafka"


@pytest.mark.parametrize(("version", "told"), [
    (0, {"kafka-python", "aiokafka", "sarama"}), (1, {"sarama"}), (2, {"sarama"}), (3, {"librdkafka"}),
])  # fmt: skip
def test_the_version_of_a_subscription_tells_libraries_apart(version, told):
    assert libraries("range", version, b"") == told
    assert ("kafka-python" in libraries(COOPERATIVE_STICKY, version, b"")) == (version == 1)


def test_sticky_user_data_with_nothing_in_it_or_with_what_is_owned():
    owned = struct.pack(">ihci", 1, 1, b"t", 1) + struct.pack(">i", 0)
    assert libraries("sticky", 0, b"") >= {"kafka-python", "aiokafka", "sarama"}
    assert libraries("sticky", 0, owned) == {"java", "aiokafka", "sarama"}


@pytest.mark.parametrize("user_data", [None, b"", b"\0\0\0\1 a rack"])
def test_a_rack_or_none_is_user_data_of_kafka_gos_rack_affinity(user_data):
    assert libraries("rack-affinity", 1, user_data) == {"kafka-go"}


def test_no_library_writes_a_version_that_kafka_4_4_does_not_have():
    assert [sorted(libraries("range", version, None)) for version in (3, 4)] == [["franz-go", "java"], []]
    generation = struct.pack(">i", 5)
    assert [sorted(libraries(COOPERATIVE_STICKY, version, generation)) for version in (3, 4)] == [["java"], []]


def test_every_assignor_of_a_library_has_a_hand():
    for library in LIBRARIES.values():
        written = {assignor for hand in library.hands for assignor in hand.assignors}
        assert written == set(library.assignors) - {"stream"}


def test_a_group_as_it_last_had_members():
    group = recorded("java-range")
    assert group.empty_since
    assert group.snapshot.generation == max(
        row.generation or 0 for row in folded("dev/offsets", "java-range").group_snapshots if row.members
    )
    assert len(group.clients) == group.snapshot.members
    for client in group.clients:
        assert (client.library, client.perhaps, client.assignors) == ("java", ("franz-go",), ("range",))
        assert client.byte_code is ByteCode.KIP_792
        assert client.topics
        assert client.member in {client.group_instance_id, *(f"java-range-m{number}" for number in range(9))}


def test_a_migration_of_a_recorded_group_is_rehearsed():
    java = recorded("java-range").clients
    safe = rehearse(java, two_bounces(java, COOPERATIVE_STICKY), {topic: 6 for each in java for topic in each.topics})
    assert safe.first_unsafe is None
    warned = {each.danger: each.evidence for step in safe.steps for each in step.findings}
    assert warned.keys() == {Danger.CLIENT_UNCLEAR}
    assert "it may be franz-go as well" in warned[Danger.CLIENT_UNCLEAR]
    librdkafka = recorded("rdk-roundrobin").clients
    unsafe = rehearse(librdkafka, two_bounces(librdkafka, COOPERATIVE_STICKY), {"t": 1}).first_unsafe
    assert unsafe is not None
    assert unsafe.findings[0].danger is Danger.CLIENT_CANNOT_MIX


def test_a_library_is_named_for_those_the_log_does_not_tell_and_for_no_others():
    assert {(each.library, each.perhaps) for each in recorded("java-range", "franz-go").clients} == {("franz-go", ())}
    assert {each.library for each in recorded("rdk-range", "franz-go").clients} == {"librdkafka"}


def test_javas_version_of_subscriptions_tells_its_byte_code_and_nobody_elses_does():
    old = [row._replace(subscription_version=1) for row in folded("dev/offsets", "java-range").member_snapshots]
    now = [row._replace(subscription_version=2) for row in old]
    unknown = [row._replace(user_data=b"12345") for row in old]
    assert {each.byte_code for each in recorded("java-range", "java", now).clients} == {ByteCode.KIP_792}
    assert {each.byte_code for each in recorded("java-range", "java", unknown).clients} == {ByteCode.KIP_429}
    assert {each.byte_code for each in recorded("java-range", "kafkajs", unknown).clients} == {ByteCode.KIP_792}


def test_members_that_share_a_client_id_go_by_member_id():
    found = folded("dev/offsets", "kpy-roundrobin")
    last = [each for each in found.group_snapshots if each.members > 1][-1]
    rows = [row._replace(client_id="app") for row in found.member_snapshots if row.snapshot_id == last.snapshot_id]
    group = recorded_group([last], rows)
    assert [each.member for each in group.clients] == [row.member_id for row in rows]
    assert len(rows) > 1


def test_what_cannot_be_rehearsed_is_a_fault():
    strange = [row._replace(user_data=b"12345") for row in folded("dev/offsets", "java-range").member_snapshots]
    with pytest.raises(Fault, match="as no library we know"):
        recorded("java-range", members=strange)
    assert recorded("java-range", "kafkajs", strange).clients[0].library == "kafkajs"
    with pytest.raises(Fault, match="expected one of java"):
        recorded("java-range", "segmentio")
    with pytest.raises(Fault, match="expected a classic group of consumers"):
        recorded("new-java-uniform")
    born = folded("dev/offsets", "java-range").group_snapshots[0]._replace(members=0)
    with pytest.raises(Fault, match="never had members"):
        recorded_group([born], [])
