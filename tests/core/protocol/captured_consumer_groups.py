"""The captured KIP-848 groups as scripts, and what the broker wrote of them: epochs, targets, assignments."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from groupledger.core.assignors.server.server_group import TopicId
from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer_group.consumer_coordinator import FIRST_EPOCH
from groupledger.core.protocol.consumer_group.consumer_state import ConsumerGroupSettings
from groupledger.core.protocol.simulator import Script
from groupledger.core.rebalance.step import Form
from groupledger.core.wire.codec import uuid_bytes
from groupledger.core.wire.offsets_log import RecordKind, decode
from groupledger.core.wire.records import (
    ConsumerGroupMetadata,
    CurrentMemberAssignment,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)
from tests.core.history.captured import log_rows
from tests.core.protocol.captured_stories import CREATES, DELETES, GROWS, JOINS, OTHERS, SUBSCRIBES, member_ids, story
from tests.core.wire.captured import lines

BROKER = ConsumerGroupSettings(heartbeat_interval_ms=1_000, session_timeout_ms=6_000)
"""As the broker of the captures was configured; members beat once a second (seen in the records)."""
TOGETHER = {"del-new-m1", "expire-new-m1"}
"""Who left in one heartbeat interval with the next one."""
STATES = ("STABLE", "UNREVOKED_PARTITIONS", "UNRELEASED_PARTITIONS")


def scripts(capture, group):
    """A script for each life of a group: it begins anew when the group was deleted. Topics go on.

    Left out: events of topics that it does not subscribe to, and of processes that the coordinator refused.
    """
    whole = _script(capture, group)
    lives, now, topics = [], [], dict(whole.topics)
    deaths = [at_ms for at_ms in deleted_ms(capture, group) if at_ms < whole.events[-1].at_ms]
    for event in whole.events:
        if deaths and event.at_ms > deaths[0]:
            lives.append((topics, [*now, e.Wait(at_ms=deaths[0])]))
            topics, now = _topics_after(topics, now), []
            deaths.pop(0)
        now.append(event)
    used, found = defaultdict(int), []
    end_ms = max(row.timestamp_ms for row in log_rows(f"{capture}/offsets")[group])
    for counts, events in [*lives, (topics, [*now, e.Wait(at_ms=end_ms)])]:
        ids = {name: whole.member_ids.get(name, ())[used[name] :] for name in whole.member_ids}
        found.append(replace(whole, topics=counts, events=events, member_ids=ids))
    return found


def deleted_ms(capture, group):
    """When the group was deleted, by anyone."""
    rows = log_rows(f"{capture}/offsets")[group]
    kinds = RecordKind.CONSUMER_GROUP_METADATA, RecordKind.GROUP_METADATA
    return [row.timestamp_ms for row in rows if row.value is None and decode(row.key, None).key.kind in kinds]


def _topics_after(topics, events):
    topics = dict(topics)
    for event in events:
        if isinstance(event, e.SetPartitions | e.DeleteTopic):
            _first(topics, event)
    return topics


def _script(capture, group):
    joins = [line["did"] for line in story(capture)]
    subscribed = {topic for did in joins for topic in _subscribed(did, group)}
    topics, events, seated, refused = {}, [], set(), set(_refused(capture, group))
    for line in story(capture):
        for event in _events(line["did"], group, subscribed):
            if isinstance(event, e.SetPartitions | e.DeleteTopic) and not events:
                _first(topics, event)
            elif not hasattr(event, "member") or event.member in seated or isinstance(event, e.Join):
                seated |= {event.member} if isinstance(event, e.Join) else set()
                event = replace(event, at_ms=line["ts"], together=getattr(event, "member", "") in TOGETHER)
                events.append(event)
                seated -= {event.member} if getattr(event, "member", "") in refused else set()
    ids = member_ids(capture, group)
    return Script(topics, events, Form.AS_KAFKA, member_ids=ids, topic_ids=topic_ids(capture), consumer_group=BROKER)


def _first(topics, event):
    if isinstance(event, e.DeleteTopic):
        del topics[event.topic]
    else:
        topics[event.topic] = event.partitions


def _refused(capture, group):
    """Processes that found their instance id taken."""
    for line in lines(f"{capture}/clients"):
        if line["group"] == group and ("Unreleased" in line["said"] or "_FATAL" in line["said"]):
            yield line["member"]


def _subscribed(did, group):
    joined = JOINS.match(did)
    if joined and joined["group"] == group:
        pattern = ast.literal_eval(joined["config"]).get("pattern")
        return joined["topics"].split(",") if pattern is None else ("re-slow", "re-fast", "re-less")
    found = SUBSCRIBES.match(did)
    return found[2].split(",") if found and found[1].startswith(f"{group}-") else ()


def _events(did, group, subscribed):
    if (named := CREATES.match(did)) or (named := GROWS.match(did)):
        told = named[1] if len(named.groups()) == 1 else f"{named[1]}:{named[2]}"
        counts = {name: int(count) for name, count in (each.split(":") for each in told.split(", "))}
        return [e.SetPartitions(name, count) for name, count in counts.items() if name in subscribed]
    if deleted := DELETES.match(did):
        return [e.DeleteTopic(deleted[1])] if deleted[1] in subscribed else []
    if (joined := JOINS.match(did)) and joined["group"] == group:
        return [_join(joined)]
    if (found := SUBSCRIBES.match(did)) and found[1].startswith(f"{group}-"):
        return [e.Subscribe(found[1], tuple(found[2].split(",")))]
    for pattern, kind in OTHERS.items():
        if (found := pattern.match(did)) and found[1].startswith(f"{group}-"):
            closes = kind is e.Crash and "java" in group  # those Java processes closed
            return [e.Leave(found[1]) if closes else kind(found[1])]
    return []


def _join(joined):
    config = ast.literal_eval(joined["config"])
    pattern = config.get("pattern")
    if "protocol" not in config:
        return e.Join(joined["name"], tuple(joined["topics"].split(",")), (config["assignor"],))
    return e.Join(
        joined["name"],
        () if pattern is not None else tuple(joined["topics"].split(",")),
        group_instance_id=config.get("instance"),
        group_protocol=e.GroupProtocol.CONSUMER,
        remote_assignor=config.get("assignor"),
        topic_regex=pattern,
    )


def topic_ids(capture):
    """{topic: the ids it had, in order}."""
    found = defaultdict(list)
    for line in lines(f"{capture}/topics"):
        topic_id = TopicId(uuid_bytes(_url_safe(line["topic_id"])))
        if topic_id not in found[line["topic"]]:
            found[line["topic"]].append(topic_id)
    return dict(found)


def _url_safe(printed):
    """Some listings have ids in the other alphabet of base64."""
    return printed.translate(str.maketrans("+/", "-_"))


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the log says of a group, in the order of its offsets; members by process.

    `epochs`: group epochs. `targets`: (assignment epoch, the target of each member from then on). `currents`: by
    process, (member epoch, state, assigned, pending) of each record.
    """

    epochs: list[int]
    targets: list[tuple[int, dict[str, tuple[TopicPartition, ...]]]]
    currents: dict[str, list[tuple[Any, ...]]]


def recorded(capture, group):
    """The records of each life of a group."""
    process = {each: name for name, ids in member_ids(capture, group).items() for each in ids}
    names = {_url_safe(line["topic_id"]): line["topic"] for line in lines(f"{capture}/topics")}
    lives = []
    epochs, targets, now, currents = [], [], {}, defaultdict(list)
    for row in log_rows(f"{capture}/offsets")[group]:
        record = decode(row.key, row.value)
        who = process.get(record.key.fields.get("member_id"))
        match record.value:
            case ConsumerGroupMetadata():
                epochs.append(record.value.epoch)
            case TargetAssignmentMember() if who is not None:
                now[who] = _pairs(record.value.topics, names)
            case TargetAssignmentMetadata():
                targets.append((record.value.epoch, {name: each for name, each in now.items() if each}))
            case CurrentMemberAssignment() if who is not None:
                value = record.value
                assigned, pending = _pairs(value.assigned_topics, names), _pairs(value.pending_topics, names)
                currents[who].append((value.epoch, STATES[value.state], assigned, pending))
            case None if record.key.kind is RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
                now.pop(who, None)
            case None if record.key.kind is RecordKind.CONSUMER_GROUP_METADATA:
                lives.append(Recorded(epochs, targets, dict(currents)))
                epochs, targets, now, currents = [], [], {}, defaultdict(list)
    return [*lives, *([Recorded(epochs, targets, dict(currents))] if epochs else [])]


def _pairs(topics, names):
    return tuple(sorted(TopicPartition(names[each.topic_id], at) for each in topics for at in each.partitions))


def simulated(settlements):
    """The same of a simulation. A record is written where a member's epoch, state or partitions changed."""
    targets, currents = [], defaultdict(list)
    for settled in settlements:
        for row in settled.coordinated.heartbeats:
            now = row.epoch, row.state, row.assigned, row.pending
            if row.error is None and currents[row.member][-1:] != [now]:
                currents[row.member].append(now)
        for row in settled.coordinated.targets:
            targets.append((row.epoch, {name: each for name, each in row.targets if each}))
    epochs = list(range(FIRST_EPOCH + 1, settlements[-1].coordinated.epoch + 1))
    return Recorded(epochs, targets, dict(currents))
