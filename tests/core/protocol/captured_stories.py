"""What was done to the captured groups, as scripts for the simulator; and what each client process said of it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.simulator import Script
from groupledger.core.rebalance.step import Form
from tests.core.wire.captured import lines

JOINS = re.compile(r"(?P<name>\S+) \((?P<lib>[\w-]+)\) joins (?P<group>\S+) topics=(?P<topics>\S+) (?P<config>\{.*\})$")
OTHERS: dict[re.Pattern[str], Callable[[str], e.MemberEvent]] = {
    re.compile(r"(\S+) leaves$"): e.Leave,
    re.compile(r"(\S+) dies without leaving$"): e.Crash,
    re.compile(r"(\S+) is stopped \(SIGSTOP\)$"): e.Pause,
    re.compile(r"(\S+) goes on \(SIGCONT\)$"): e.Resume,
}
SUBSCRIBES = re.compile(r"(\S+) subscribes to (\S+)$")
GROWS = re.compile(r"topic (\S+) (?:now has|gets) (\d+) partitions$")
CREATES = re.compile(r"create topics (.+)$")
DELETES = re.compile(r"delete topic (\S+)$")
SAID = {"revoked": Callback.REVOKED, "assigned": Callback.ASSIGNED, "lost": Callback.LOST}
SESSION_MS = 5_000
TOGETHER = {
    *("gr-java-m1 joins", "up-coop-first-m1 joins", "up-range-first-m2 joins"),
    *("up-range-first-m3b leaves", "del-rdk-m1 leaves"),
}
"""What raced with the next event of its group: both stand in one recorded generation."""
LIBRDKAFKA = {"cooperative-sticky": "librdkafka-cooperative-sticky"}


@cache
def story(capture):
    return tuple(lines(f"{capture}/story"))


def script(capture, group, form=Form.AS_KAFKA):
    """The group's events in order, a member's session running out at once where nobody took its seat in time."""
    members: dict[str, e.Join] = {}
    topics: dict[str, int] = {}
    events = []
    for line in story(capture):
        found = _events(line["did"], group, members, None if members else topics)
        events += [replace(each, at_ms=line["ts"], together=_races(each)) for each in found]
    events = list(_with_expiry(list(_living(events)), members))
    return Script(topics, events, form, member_ids=member_ids(capture, group))


def _races(event):
    kind = "joins" if isinstance(event, e.Join) else "leaves" if isinstance(event, e.Leave) else ""
    return f"{getattr(event, 'member', '')} {kind}" in TOGETHER


def _events(did, group, members, first):
    """Events of one line. `first`: the topics before the first member, which only change."""
    if (named := CREATES.match(did)) or (named := GROWS.match(did)):
        told = named[1] if len(named.groups()) == 1 else f"{named[1]}:{named[2]}"
        counts = {name: int(count) for name, count in (each.split(":") for each in told.split(", "))}
        if first is None:
            return [e.SetPartitions(name, count) for name, count in counts.items()]
        first.update(counts)
        return []
    if deleted := DELETES.match(did):
        if first is None:
            return [e.DeleteTopic(deleted[1])]
        del first[deleted[1]]
        return []
    return _of_member(did, group, members)


def _of_member(did, group, members):
    if (joined := JOINS.match(did)) and joined["group"] == group:
        config = ast.literal_eval(joined["config"])
        names = LIBRDKAFKA if joined["lib"] == "confluent" else {}
        assignors = tuple(names.get(each, each) for each in config["assignor"].split(","))
        topics = tuple(joined["topics"].split(","))
        members[joined["name"]] = e.Join(joined["name"], topics, assignors, config.get("instance"))
        return [members[joined["name"]]]
    if (subscribed := SUBSCRIBES.match(did)) and subscribed[1] in members:
        return [e.Subscribe(subscribed[1], tuple(subscribed[2].split(",")))]
    for pattern, kind in OTHERS.items():
        if (found := pattern.match(did)) and found[1] in members:
            closes = kind is e.Crash and "java" in group  # those Java processes closed, and told nobody
            return [e.Leave(found[1]) if closes else kind(found[1])]
    return []


def _living(events):
    """Without what is said of a process that was fenced: another one took its instance id while it ran."""
    static = {each.member: each.group_instance_id for each in events if isinstance(each, e.Join)}
    owner: dict[str, str] = {}
    for event in events:
        instance = static.get(getattr(event, "member", ""))
        if isinstance(event, e.Join) and instance is not None:
            owner[instance] = event.member
        if instance is None or owner[instance] == event.member:
            yield event


def _with_expiry(events, members):
    """Who is gone or stands still and is not back in time loses its session; a dynamic member that closes leaves."""
    away: dict[str, int] = {}
    for event in events:
        for name in [name for name, since in away.items() if event.at_ms - since > SESSION_MS]:
            del away[name]
            yield e.Expire(name, at_ms=event.at_ms)
        yield event
        instance = members[event.member].group_instance_id if hasattr(event, "member") else None
        if isinstance(event, e.Crash | e.Pause) or (isinstance(event, e.Leave) and instance is not None):
            away[event.member] = event.at_ms
        elif isinstance(event, e.Join | e.Resume):
            taken = [name for name in away if name == event.member or instance == members[name].group_instance_id]
            for name in taken if instance is not None or isinstance(event, e.Resume) else ():
                del away[name]


def member_ids(capture, group):
    """{process: the member ids it said it had, in order}."""
    found = defaultdict(list)
    for line in lines(f"{capture}/clients"):
        told = re.search(r"memberId=(\S+)", line["said"])
        if line["group"] == group and told and told[1] not in found[line["member"]]:
            found[line["member"]].append(told[1])
    return dict(found)


def said(capture, group):
    """{process: [(callback, partitions), ..]}: what the clients logged of their listeners."""
    found = defaultdict(list)
    for line in lines(f"{capture}/clients"):
        word = line["said"].split()[0]
        if line["group"] == group and word in SAID:
            found[line["member"]].append((SAID[word], _named(line["said"])))
    return dict(found)


def _named(text):
    listed = text[text.index("[") + 1 : text.index("]")]
    pairs = re.findall(r"\('([\w-]+)', (\d+)\)", listed) or re.findall(r"([\w-]+)-(\d+)", listed)
    return tuple(sorted(TopicPartition(topic, int(number)) for topic, number in pairs))


def played(settlements):
    """{process: [(callback, partitions), ..]} of the simulator's listeners."""
    found = defaultdict(list)
    for settled in settlements:
        for each in settled.calls:
            if each.call.callback in SAID.values():
                found[each.member].append((each.call.callback, each.call.partitions))
    return dict(found)
