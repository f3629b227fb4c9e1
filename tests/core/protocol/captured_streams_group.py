"""The captured Streams group `totals` as a script, and what the broker wrote of it: epochs, targets, assignments."""

from __future__ import annotations

from groupledger.core.assignors.server.server_group import TopicId
from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer_group.consumer_state import StreamsGroupSettings, SubtopologyTopics
from groupledger.core.protocol.script import Script
from groupledger.core.wire.codec import uuid_bytes
from groupledger.core.wire.offsets_log import RecordKind
from tests.core.history.test_captured_group_types import lines, log

STATES = {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS"}


def records(kind):
    """Time since the group began, fields of the key, and the value, tombstones left out."""
    rows = [(row.timestamp_ms, record) for row, record in log() if record.group_id == "totals"]
    kept = [(at_ms, each) for at_ms, each in rows if each.key.kind is kind and each.value is not None]
    return [(at_ms - rows[0][0], each.key.fields, each.value) for at_ms, each in kept]


def topology():
    """As the first member brought it."""
    ((_, _, found),) = records(RecordKind.STREAMS_GROUP_TOPOLOGY)
    return {
        each.subtopology_id: SubtopologyTopics(
            each.source_topics,
            {topic.name: topic.partitions for topic in each.repartition_source_topics},
            each.repartition_sink_topics,
            tuple(topic.name for topic in each.state_changelog_topics),
        )
        for each in found.subtopologies
    }


def clients():
    """Member id -> the process in the story."""
    joined = records(RecordKind.STREAMS_GROUP_MEMBER_METADATA)
    return {key["member_id"]: value.client_id.split("-Stream")[0] for _, key, value in joined}


def captured_script():
    """All that happened; topics that are internal are left to the broker."""
    known = {line["topic"]: line for line in lines("topics")}
    sources = {name for each in topology().values() for name in each.source_topics}
    joined = records(RecordKind.STREAMS_GROUP_MEMBER_METADATA)
    epochs = {value.epoch: at_ms for at_ms, _, value in records(RecordKind.STREAMS_GROUP_METADATA)}
    names = clients()
    events = [
        e.Join(
            names[key["member_id"]],
            group_protocol=e.GroupProtocol.STREAMS,
            process_id=value.process_id,
            rebalance_timeout_ms=value.rebalance_timeout,
            at_ms=at_ms,
        )
        for at_ms, key, value in joined
    ]
    leaves = [e.Leave("streams-a", at_ms=epochs[5]), e.Leave("streams-b", at_ms=epochs[6])]
    return Script(
        {name: known[name]["partitions"] for name in sorted(sources)},
        [*events, *leaves],
        member_ids={name: [member_id] for member_id, name in names.items()},
        topic_ids={name: [TopicId(uuid_bytes(_printed(known[name])))] for name in sources},
        consumer_group=StreamsGroupSettings(topology=topology(), num_standby_replicas=1),
    )


def _printed(topic):
    return topic["topic_id"].replace("/", "_").replace("+", "-")


def recorded_epochs():
    """Group epochs, in the order of the log."""
    return [value.epoch for _, _, value in records(RecordKind.STREAMS_GROUP_METADATA)]


def recorded_targets():
    """(epoch, process -> (active, standby)) after each target assignment, of members that are there."""
    rows = [record for _, record in log() if record.group_id == "totals"]
    now, found, names = {}, [], clients()
    for record in rows:
        if record.key.kind is RecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER:
            name = names[record.key.fields["member_id"]]
            now.pop(name, None)
            if record.value is not None:
                now[name] = (_tasks(record.value.active), _tasks(record.value.standby))
        elif record.key.kind is RecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA and record.value is not None:
            found.append((record.value.epoch, dict(now)))
    return found


def recorded_currents():
    """(process, epoch, state, active, pending, standby) of each record of a current assignment, as logged."""
    names = clients()
    return [
        (
            names[key["member_id"]],
            value.epoch,
            STATES[value.state],
            _tasks(value.active),
            _tasks(value.active_pending),
            _tasks(value.standby),
        )
        for _, key, value in records(RecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT)
    ]


def _tasks(ids):
    return tuple(sorted(TopicPartition(each.subtopology_id, number) for each in ids for number in each.partitions))
