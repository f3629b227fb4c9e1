"""Faults of the leader, whose assignment the broker records as it comes."""

from __future__ import annotations

from tests.corpus.classic_log import ClassicLog

TWO = {"c1": "orders:0,1", "c2": "orders:2,3"}


def _of(assignor: str, **topics: int) -> ClassicLog:
    return ClassicLog("leader", "", assignor, topics or {"orders": 4})


def _two(assignor: str, **topics: int) -> ClassicLog:
    return _of(assignor, **topics).join("c1").join("c2")


def a_leader_gives_one_partition_to_two_members_under_range():
    """An assignor of the application's own that calls itself range."""
    log = _two("range").record(TWO).join("c3")
    return log.record({"c1": "orders:0,1", "c2": "orders:1,2", "c3": "orders:3"}, 60).find("DOUBLE_OWNED")


def a_leader_gives_one_partition_to_two_members_under_roundrobin():
    """And goes on to do so, in two generations."""
    log = _two("roundrobin").record({"c1": "orders:0,2", "c2": "orders:0,1,3"}).join("c3")
    return log.record({"c1": "orders:0,3", "c2": "orders:0,1", "c3": "orders:2"}, 60).find("DOUBLE_OWNED", 2)


def a_leader_gives_one_partition_to_two_members_under_sticky():
    """Three members, and the middle one has what the first has."""
    log = _of("sticky", orders=6).join("c1").join("c2").join("c3")
    has = {"c1": "orders:0,1", "c2": "orders:1,2,3", "c3": "orders:4,5"}
    return log.record(has).find("DOUBLE_OWNED")


def a_leader_assigns_a_topic_that_the_member_does_not_subscribe_to():
    """Subscriptions differ, and the leader takes them for one."""
    log = _of("range", orders=2, payments=2).join("c1").join("c2", ["orders"])
    log.record({"c1": "orders:0 payments:0", "c2": "orders:1 payments:1"})
    return log.find("NOT_SUBSCRIBED")


def a_leader_assigns_a_topic_that_a_cooperative_member_gave_up():
    """The subscription was cut, and the leader goes by the old one."""
    log = _two("cooperative-sticky", orders=2, payments=2)
    log.record({"c1": "orders:0 payments:0", "c2": "orders:1 payments:1"}).subscribe("c2", "orders")
    return log.record({"c1": "orders:0 payments:0", "c2": "orders:1 payments:1"}, 60).find("NOT_SUBSCRIBED")


def a_leader_hands_a_partition_over_before_it_is_revoked():
    """Under cooperative-sticky, in the round in which the old owner still claims it."""
    log = _of("cooperative-sticky").join("c1").record({"c1": "orders:0-3"})
    return log.join("c2").record(TWO, 60).find("HANDED_OVER_BEFORE_REVOKED")


def a_leader_swaps_partitions_of_cooperative_members():
    """Nobody joined with another subscription, and two partitions change hands at once."""
    log = _two("cooperative-sticky").record(TWO)
    log.record({"c1": "orders:2,1", "c2": "orders:0,3"}, 60, quiet="not-shown")
    return log.find("HANDED_OVER_BEFORE_REVOKED")


def a_leader_hands_over_partitions_when_a_third_member_joins():
    """Everybody gives up one, and the newcomer has them at once."""
    log = _two("cooperative-sticky", orders=6).record({"c1": "orders:0-2", "c2": "orders:3-5"}).join("c3")
    log.record({"c1": "orders:0,1", "c2": "orders:3,4", "c3": "orders:2,5"}, 60)
    return log.find("HANDED_OVER_BEFORE_REVOKED")


def a_leader_leaves_a_partition_out():
    """The last partition is with nobody, until the next generation puts it right."""
    log = _two("range").record({"c1": "orders:0,1", "c2": "orders:2"}).find("LEFT_OUT")
    return log.join("c3").record({"c1": "orders:0,1", "c2": "orders:2", "c3": "orders:3"}, 60)


def a_leader_leaves_a_partition_out_under_roundrobin():
    """The first partition is with nobody, for a minute."""
    log = _two("roundrobin").record({"c1": "orders:0,2", "c2": "orders:1,3"}).gone("c2")
    log.record({"c1": "orders:1-3"}, 60).find("LEFT_OUT")
    return log.join("c3").record({"c1": "orders:0,2", "c3": "orders:1,3"}, 60)


def a_leader_leaves_a_partition_out_for_good():
    """Two generations begin without an owner of it."""
    log = _two("range").record({"c1": "orders:0,1", "c2": "orders:2"}).join("c3")
    log.find("UNOWNED", 2).record({"c1": "orders:0", "c2": "orders:1", "c3": "orders:2"}, 60)
    return log.find("LEFT_OUT", 2)


def a_leader_never_sees_a_topic():
    """It is not authorized to describe it: nobody has any of it, in generation after generation."""
    log = _two("range", orders=2, payments=2).record({"c1": "orders:0", "c2": "orders:1"}).join("c3").find("UNOWNED", 2)
    return log.record({"c1": "orders:0", "c2": "orders:1", "c3": ""}, 60)


def a_leader_does_not_see_that_a_topic_grew():
    """Its metadata stands still: ten minutes later a member joins, and it sees the partitions."""
    log = _two("range").record(TWO).find("UNOWNED").change("orders", 6)
    return log.join("c3").record({"c1": "orders:0,1", "c2": "orders:2,3", "c3": "orders:4,5"}, 600)


def a_leader_names_a_topic_twice_in_one_assignment():
    """As a librdkafka leader does; the member takes all of it."""
    log = _two("range", orders=3, payments=2)
    return log.record({"c1": "orders:0 payments:0 orders:1", "c2": "orders:2 payments:1"}).find("REPEATED_TOPIC")


def a_leader_names_a_topic_twice_for_two_members():
    """In two generations of a cooperative group."""
    log = _two("cooperative-sticky", orders=4, payments=2)
    log.record({"c1": "orders:0 payments:0 orders:1", "c2": "orders:2 payments:1 orders:3"})
    log.record(
        {"c1": "orders:0 payments:0 orders:1", "c2": "orders:2,3 payments:1"},
        400,
        quiet="not-shown",
        claims={"c1": ("orders:0,1 payments:0", 1), "c2": ("orders:2,3 payments:1", 1)},
    )
    return log.find("REPEATED_TOPIC", 2)


def a_leader_names_a_topic_twice_and_the_group_never_settles():
    """The member takes the last entry alone, claims that, and everybody rejoins: the storm."""
    log = _two("cooperative-sticky", orders=4, payments=2)
    has = {"c1": "orders:0,1 payments:0", "c2": "orders:2 payments:1 orders:3"}
    log.record(has)
    for _ in range(7):
        log.record(has, 1, quiet="not-shown", claims={"c2": ("payments:1 orders:3", log.generation)})
    log.label.find("NEVER_SETTLES", 2, 7)
    return log.find("REPEATED_TOPIC", 8).find("CLAIM_DIFFERS", 7)


def a_leader_gives_one_member_nearly_everything_under_sticky():
    """Five of six partitions, and both members subscribe to the topic."""
    return _two("sticky", orders=6).record({"c1": "orders:0-4", "c2": "orders:5"}).find("UNBALANCED")


def a_leader_gives_one_member_nothing_under_roundrobin():
    """Two generations in which the second member is idle."""
    log = _two("roundrobin").record({"c1": "orders:0-3", "c2": ""})
    return log.record({"c1": "orders:0-3", "c2": ""}, 60, quiet="not-shown").find("UNBALANCED", 2)


def a_leader_does_not_balance_a_cooperative_group():
    """Nothing is withheld, and the newcomer gets nothing."""
    log = _of("cooperative-sticky").join("c1").record({"c1": "orders:0-3"}).join("c2")
    return log.record({"c1": "orders:0-3", "c2": ""}, 60).find("UNBALANCED")


def joined_topics_are_assigned_apart():
    """The application joins orders and payments by key, and the assignor is sticky."""
    log = _two("sticky", orders=3, payments=3).joins("orders", "payments")
    return log.record({"c1": "orders:0,1 payments:2", "c2": "orders:2 payments:0,1"}).find("COPARTITION_BROKEN")


def joined_topics_have_different_counts():
    """One of the two grew: range gives the same numbers to other members."""
    log = _two("range", orders=4, payments=4).joins("orders", "payments")
    log.record({"c1": "orders:0,1 payments:0,1", "c2": "orders:2,3 payments:2,3"}).change("payments", 6)
    log.record({"c1": "orders:0,1 payments:0-2", "c2": "orders:2,3 payments:3-5"}, 20)
    return log.find("COPARTITION_BROKEN")
