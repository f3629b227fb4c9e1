"""Whole histories made by hand: what no capture has, for the tests that any history must pass."""

from __future__ import annotations

from groupledger.core.wire.consumer_protocol import ConsumerProtocolSubscription
from groupledger.core.wire.offsets_log import RecordKind
from tests.core.history.records import CLICKS, GROW, Log, ShareLog, StreamsLog, member, subtopology


def conversions() -> Log:
    """Classic, KIP-848 with a classic member, classic again: epochs and generations count on."""
    log = Log()
    log.classic(0)
    for generation in range(1, 7):
        log.classic(generation, [member("c", {"clicks": (0, 1)})])
    with log.batch():
        log.deleted()
        log.joined("c", classic=ConsumerProtocolSubscription(3, ("clicks",), None, (("clicks", (0, 1)),), 6))
        log.step(6, {"c": {CLICKS: (0, 1)}})
    log.joined("m")
    log.step(7, {"c": {CLICKS: (0,)}, "m": {CLICKS: (1,)}})
    with log.batch():
        for name in ("c", "m"):
            log.left(name)
        log.epoch(None)
        log.classic(7, [member("c", {"clicks": (0, 1)})])
    log.classic(8, [member("c", {"clicks": (0, 1)})])
    return log


def unclean() -> Log:
    """Generations and epochs that fall, skip and break, without a tombstone."""
    log = Log()
    log.classic(4, [member("m", {"clicks": (0, 1)}, instance="i"), member("n", {"grow": (0,)})])
    log.broken()
    log.classic(7, [member("m", {"clicks": (0,)}, instance="i"), member("n", {"clicks": (1,)})])
    log.classic(7, [member("o", {"clicks": (0,)}, instance="i"), member("n", {"clicks": (1,)})])
    log.classic(2, [member("o", {"clicks": (0,)}), member("n", {"clicks": (0, 1)})], protocol="cooperative-sticky")
    log.broken()
    log.joined("k")
    log.step(9, {"k": {CLICKS: (0, 1)}})
    log.epoch(12)
    log.broken(RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, member_id="k")
    log.target_epoch(12)
    log.current("k", 12, {CLICKS: (0, 1)})
    log.epoch(3)
    log.target("k", {CLICKS: (0, 1, 2)})
    log.target_epoch(3)
    log.current("k", 3, {CLICKS: (0, 1, 2)})
    return log


def interleaved() -> Log:
    """Targets left open, members that leave amid an epoch, expressions, a static member's return."""
    log = Log()
    log.joined("m", (), regex="c.*")
    log.current("m", 1, {})
    log.expression("c.*", ("clicks",))
    log.joined("n", ("grow",))
    log.step(2, {"m": {CLICKS: (0, 1)}, "n": {GROW: (0, 1)}})
    log.epoch(3)
    log.target("m", {CLICKS: (0,)})
    log.current("n", 2, {GROW: (0,)}, {GROW: (1,)})
    log.left("n")
    log.epoch(4)
    log.target("m", {CLICKS: (0,), GROW: (0, 1)})
    log.target_epoch(4)
    log.current("m", -2, {CLICKS: (0,)})
    log.left("m")
    log.joined("m2", ("clicks", "grow"))
    log.target("m2", {CLICKS: (0,), GROW: (0, 1)})
    log.current("m2", 0, {CLICKS: (0,)})
    log.current("m2", 4, {CLICKS: (0,), GROW: (0, 1)})
    log.left("m2")
    log.epoch(5)
    log.target_epoch(5)
    log.put(RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, None)
    log.epoch(None)
    log.put(RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, None)
    log.joined("p")
    log.step(2, {"p": {CLICKS: (5,)}})
    log.left("p")
    log.rows.pop()  # the read ends before the last of the three tombstones
    return log


def shared() -> Log:
    """A share group: partitions with several owners, members that come and go, an end, and a life after it."""
    log = ShareLog()
    log.share_joined("m")
    log.step(2, {"m": {CLICKS: (0, 1)}})
    log.share_joined("n", "clicks", "grow")
    log.epoch(3)
    log.target("n", {CLICKS: (0,), GROW: (0, 1)})
    log.target_epoch(3)
    log.current("n", 3, {CLICKS: (0,), GROW: (0, 1)})
    log.current("m", 3, {CLICKS: (0, 1)})
    log.left("m")
    log.epoch(4)
    log.broken(RecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER, member_id="n")
    log.target_epoch(4)
    log.left("n")
    log.epoch(None)
    log.classic(0)
    log.deleted()
    log.share_joined("o")
    log.step(2, {"o": {CLICKS: (5,)}})
    return log


def tasks() -> Log:
    """A Streams group: a topology, standby tasks, a task that waits for its owner, another topology, an end."""
    log = StreamsLog()
    log.streams_joined("m")
    log.topology(subtopology("0", "clicks"), subtopology("1", "grow", "clicks"))
    log.epoch(2)
    log.tasks_current("m", 1, {})
    log.tasks_target("m", {"0": (0, 1), "1": (0,)})
    log.target_epoch(2)
    log.tasks_current("m", 2, {"0": (0, 1), "1": (0,)})
    log.streams_joined("n")
    log.epoch(3)
    log.tasks_target("m", {"0": (0,), "1": (0,)}, {"0": (1,)})
    log.tasks_target("n", {"0": (1,)}, {"1": (0,)})
    log.target_epoch(3)
    log.tasks_current("m", 2, {"0": (0,), "1": (0,)}, pending={"0": (1,)})
    log.tasks_current("n", 3, {}, {"1": (0,)})
    log.tasks_current("m", 3, {"0": (0,), "1": (0,)}, {"0": (1,)})
    log.tasks_current("n", 3, {"0": (1,)}, {"1": (0,)})
    log.topology(subtopology("0", "grow"), subtopology("1", "unlisted", regex=("c.*",)), epoch=1)
    log.left("n")
    log.put(RecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, None)
    log.epoch(None)
    log.put(RecordKind.STREAMS_GROUP_TOPOLOGY, None)
    return log


HISTORIES = {history.__name__: history for history in (conversions, unclean, interleaved, shared, tasks)}
