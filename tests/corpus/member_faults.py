"""Faults of members: what they claim, how often they come back, and under whose name."""

from __future__ import annotations

from tests.corpus.classic_log import ClassicLog

TWO = {"c1": "orders:0,1", "c2": "orders:2,3"}
THREE = {"c1": "orders:0,1", "c2": "orders:2,3", "c3": "orders:4,5"}


def _of(assignor: str, **topics: int) -> ClassicLog:
    return ClassicLog("member", "", assignor, topics or {"orders": 4})


def _two(assignor: str, **topics: int) -> ClassicLog:
    return _of(assignor, **topics).join("c1").join("c2")


def _two_static(assignor: str) -> ClassicLog:
    return _of(assignor).join("c1", instance="pod-1").join("c2", instance="pod-2").record(TWO)


def a_cooperative_member_claims_partitions_of_an_older_generation():
    """It missed an assignment, and says that it owns what another member has by now."""
    log = _two("cooperative-sticky", orders=6).record({"c1": "orders:0-2", "c2": "orders:3-5"}).join("c3")
    log.record({"c1": "orders:0,1", "c2": "orders:3,4", "c3": ""}, 60)
    log.record({"c1": "orders:0,1", "c2": "orders:3,4", "c3": "orders:2,5"}, 2, quiet="follow-up")
    log.record(
        {"c1": "orders:0,1", "c2": "orders:3,4", "c3": "orders:2,5"},
        60,
        quiet="not-shown",
        claims={"c2": ("orders:3-5", 1)},
    )
    return log.find("STALE_CLAIM")


def a_sticky_member_claims_partitions_of_an_older_generation():
    """Its user data is two generations old (KIP-341)."""
    log = _two("sticky").record(TWO).join("c3")
    log.record({"c1": "orders:0,1", "c2": "orders:2", "c3": "orders:3"}, 60).gone("c1")
    log.record({"c2": "orders:2,0", "c3": "orders:3,1"}, 60, claims={"c2": ("orders:2,3", 1)})
    return log.find("STALE_CLAIM")


def a_newcomer_claims_what_a_zombie_had():
    """A librdkafka member whose session ended comes back with a new id, and the claim of before."""
    log = _two("cooperative-sticky").record(TWO).gone("c2").record({"c1": "orders:0-3"}, 60).join("c2")
    log.record({"c1": "orders:0,1", "c2": ""}, 60, claims={"c2": ("orders:2,3", 1)}).find("STALE_CLAIM")
    return log.record(TWO, 2, quiet="follow-up")


def a_newcomer_claims_partitions_of_the_last_generation():
    """Nobody of that member id was in it."""
    log = _of("cooperative-sticky").join("c1").record({"c1": "orders:0-3"}).join("c2")
    log.record({"c1": "orders:0,1", "c2": ""}, 60, claims={"c2": ("orders:3", 1)}).find("CLAIM_DIFFERS")
    return log.record(TWO, 2, quiet="follow-up")


def a_cooperative_member_claims_less_than_it_was_given():
    """It lost a partition on the way, and nobody had taken it away."""
    log = _two("cooperative-sticky").record(TWO)
    log.record(TWO, 60, quiet="not-shown", claims={"c2": ("orders:3", 1)})
    return log.find("CLAIM_DIFFERS")


def a_cooperative_member_claims_more_than_it_was_given():
    """It says that it owns what is nobody's by the record."""
    log = _two("cooperative-sticky", orders=3).record({"c1": "orders:0,1", "c2": "orders:2"}).gone("c1").join("c3")
    log.record({"c2": "orders:2,0", "c3": "orders:1"}, 60, claims={"c2": ("orders:0,2", 1)})
    return log.find("CLAIM_DIFFERS")


def a_member_of_a_cooperative_group_is_eager():
    """It lists range as well, gives everything up, and claims nothing: the course of an upgrade."""
    log = _two("cooperative-sticky").record(TWO)
    log.record(TWO, 60, quiet="not-shown", claims={"c2": ("", None)})
    return log.find("CLAIM_DIFFERS", severity="info")


def a_static_member_of_a_cooperative_group_restarts():
    """It claims nothing when it comes back, and keeps what it had: the course of things."""
    return _two_static("cooperative-sticky").replace_process("c2").rewrite(60).find("CLAIM_DIFFERS", severity="info")


def a_cooperative_member_does_not_claim_a_topic_that_was_deleted():
    """Its partitions are no longer there: the course of things."""
    log = _two("cooperative-sticky", orders=2, refunds=2)
    log.record({"c1": "orders:0 refunds:0", "c2": "orders:1 refunds:1"}).change("refunds", None)
    log.record({"c1": "orders:0", "c2": "orders:1"}, 20, claims={"c1": ("orders:0", 1), "c2": ("orders:1", 1)})
    return log.find("CLAIM_DIFFERS", severity="info")


def a_member_rejoins_again_and_again_under_range():
    """Its poll takes longer than max.poll.interval.ms by a hair; nothing that is recorded changes."""
    log = _two("range").record(TWO)
    for _ in range(6):
        log.record(TWO, 20, quiet="not-shown")
    log.label.find("NEVER_SETTLES", 2, 6)
    return log


def a_member_rejoins_again_and_again_under_cooperative_sticky():
    """A topic is with nobody's metadata now and then: the group rebalances, and everything stays."""
    log = _two("cooperative-sticky").record(TWO)
    for _ in range(5):
        log.record(TWO, 100, quiet="not-shown")
    log.label.find("NEVER_SETTLES", 2, 5)
    return log


def a_group_rejoins_often_after_a_member_has_joined():
    """The first of the generations has a cause, and does not count."""
    log = _two("roundrobin", orders=6).record({"c1": "orders:0,2,4", "c2": "orders:1,3,5"}).join("c3")
    has = {"c1": "orders:0,3", "c2": "orders:1,4", "c3": "orders:2,5"}
    log.record(has, 60)
    for _ in range(8):
        log.record(has, 5, quiet="not-shown")
    log.label.find("NEVER_SETTLES", 3, 8)
    return log


def two_processes_share_an_instance_id():
    """Each takes the id over from the other: it goes to another process, and back."""
    log = _two_static("range").replace_process("c2", "other").rewrite(20)
    return log.replace_process("c2", "c2").rewrite(20).find("SHARED_INSTANCE_ID", 2)


def two_processes_share_an_instance_id_for_long():
    """Five takeovers, a few seconds each."""
    log = _two_static("range")
    for number in range(5):
        log.replace_process("c2", "c2" if number % 2 else "other").rewrite(5)
    return log.find("SHARED_INSTANCE_ID", 5)


def a_static_member_crashes_again_and_again():
    """One process that restarts every minute, five times."""
    log = _two_static("roundrobin")
    for _ in range(5):
        log.replace_process("c2").rewrite(60)
    return log.find("SHARED_INSTANCE_ID", 5)


def a_static_member_restarts_with_another_subscription():
    """The broker does not rebalance: the member has a topic that it no longer subscribes to."""
    log = _of("range", orders=2, payments=2).join("c1", instance="pod-1").join("c2", instance="pod-2")
    log.record({"c1": "orders:0 payments:0", "c2": "orders:1 payments:1"})
    return log.subscribe("c2", "orders").replace_process("c2").rewrite(20).find("NOT_SUBSCRIBED")


def a_member_waits_for_what_nobody_gives_up():
    """Cooperative: a partition is withheld for a member that hangs, for over two generations."""
    log = _of("cooperative-sticky").join("c1").record({"c1": "orders:0-3"}).join("c2")
    log.record({"c1": "orders:0,1", "c2": "orders:2"}, 60, claims={"c1": ("orders:0,1,3", 1)})
    log.find("UNOWNED", 2).find("CLAIM_DIFFERS", 1)
    return log.record(
        {"c1": "orders:0,1", "c2": "orders:2"}, 60, quiet="follow-up", claims={"c1": ("orders:0,1,3", 1)}
    ).find("STALE_CLAIM")
