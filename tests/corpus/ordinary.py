"""Groups in which nothing is wrong, one for each cause of a rebalance."""

from __future__ import annotations

from tests.corpus.classic_log import ClassicLog
from tests.corpus.modern_log import ModernLog


def _range(**topics: int) -> ClassicLog:
    return ClassicLog("ordinary", "", "range", topics or {"orders": 4})


def _cooperative(**topics: int) -> ClassicLog:
    return ClassicLog("ordinary", "", "cooperative-sticky", topics or {"orders": 4})


def a_group_is_born_and_one_member_joins_it():
    """The first member of a new group."""
    return _range().join("c1").record({"c1": "orders:0-3"})


def a_second_member_joins():
    """A dynamic member more, under range."""
    log = _range().join("c1").record({"c1": "orders:0-3"})
    return log.join("c2").record({"c1": "orders:0,1", "c2": "orders:2,3"}, 60)


def three_members_join_at_once():
    """A deployment: all of them are in one generation."""
    log = _range(orders=6).join("c1").join("c2").join("c3")
    return log.record({"c1": "orders:0,1", "c2": "orders:2,3", "c3": "orders:4,5"})


def a_static_member_joins():
    """A member with a group.instance.id that the group has not had."""
    log = _range().join("c1", instance="pod-1").record({"c1": "orders:0-3"})
    return log.join("c2", instance="pod-2").record({"c1": "orders:0,1", "c2": "orders:2,3"}, 60)


def a_member_is_gone():
    """It left or its session ended: the log is the same."""
    log = _range().join("c1").join("c2").record({"c1": "orders:0,1", "c2": "orders:2,3"})
    return log.gone("c1").record({"c2": "orders:0-3"}, 60)


def a_static_member_is_gone_for_longer_than_its_session():
    """Its instance comes back as a newcomer."""
    log = _range().join("c1", instance="pod-1").join("c2", instance="pod-2")
    log.record({"c1": "orders:0,1", "c2": "orders:2,3"}).gone("c2").record({"c1": "orders:0-3"}, 60)
    return log.join("c2", instance="pod-2").record({"c1": "orders:0,1", "c2": "orders:2,3"}, 60)


def one_member_is_replaced_by_another():
    """A rolling update in which the old process goes while the new one comes."""
    log = _range().join("c1").join("c2").record({"c1": "orders:0,1", "c2": "orders:2,3"})
    return log.gone("c1").join("c3").record({"c2": "orders:0,1", "c3": "orders:2,3"}, 60)


def a_static_member_restarts_within_its_session():
    """The broker records the generation again, under a new member id."""
    log = _range().join("c1", instance="pod-1").join("c2", instance="pod-2")
    log.record({"c1": "orders:0,1", "c2": "orders:2,3"})
    return log.replace_process("c2").rewrite(60)


def a_static_member_restarts_into_a_new_generation():
    """The group rebalances while it comes back, so that its new id is in the next generation."""
    log = _range().join("c1", instance="pod-1").join("c2", instance="pod-2")
    log.record({"c1": "orders:0,1", "c2": "orders:2,3"})
    return log.replace_process("c2").record({"c1": "orders:0,1", "c2": "orders:2,3"}, 60)


def all_static_members_restart_in_turn():
    """A proper rolling restart."""
    log = _range(orders=3).join("c1", instance="pod-1").join("c2", instance="pod-2").join("c3", instance="pod-3")
    log.record({"c1": "orders:0", "c2": "orders:1", "c3": "orders:2"})
    for name in ("c1", "c2", "c3"):
        log.replace_process(name).rewrite(45)
    return log


def a_static_member_moves_to_another_rack():
    """Its pod was scheduled in another zone."""
    log = _range().join("c1", instance="pod-1", rack="eu-1a").join("c2", instance="pod-2", rack="eu-1b")
    log.record({"c1": "orders:0,1", "c2": "orders:2,3"})
    return log.replace_process("c2", rack="eu-1c").rewrite(60)


def a_static_member_comes_back_in_another_rack_into_a_new_generation():
    """The group rebalances while its pod is scheduled in another zone."""
    log = _range().join("c1", instance="pod-1", rack="eu-1a").join("c2", instance="pod-2", rack="eu-1b")
    log.record({"c1": "orders:0,1", "c2": "orders:2,3"})
    return log.replace_process("c2", rack="eu-1c").record({"c1": "orders:0,1", "c2": "orders:2,3"}, 60)


def a_subscription_is_extended():
    """A new version of the application reads another topic, too."""
    log = _range(orders=2, payments=2).join("c1", ["orders"]).join("c2", ["orders"])
    log.record({"c1": "orders:0", "c2": "orders:1"})
    log.subscribe("c1", "orders", "payments")
    return log.record({"c1": "orders:0 payments:0,1", "c2": "orders:1"}, 60)


def a_subscription_is_cut():
    """A member no longer reads a topic."""
    log = _range(orders=2, payments=2).join("c1").join("c2")
    log.record({"c1": "orders:0 payments:0", "c2": "orders:1 payments:1"}).subscribe("c2", "orders")
    return log.record({"c1": "orders:0 payments:0,1", "c2": "orders:1"}, 60)


def a_member_joins_with_another_subscription():
    """The newcomer reads a topic that the others do not."""
    log = _range(orders=2, payments=2).join("c1", ["orders"]).record({"c1": "orders:0,1"})
    return log.join("c2", ["orders", "payments"]).record({"c1": "orders:0", "c2": "orders:1 payments:0,1"}, 60)


def the_assignor_is_changed_by_two_bounces():
    """From range to roundrobin: the members list both, then the new one alone."""
    log = _range(orders=4).join("c1").join("c2").record({"c1": "orders:0,1", "c2": "orders:2,3"})
    return log.choose("roundrobin").record({"c1": "orders:0,2", "c2": "orders:1,3"}, 60)


def partitions_are_added():
    """The topic grows, and the leader sees it."""
    log = _range().join("c1").join("c2").record({"c1": "orders:0,1", "c2": "orders:2,3"})
    return log.change("orders", 6).record({"c1": "orders:0-2", "c2": "orders:3-5"}, 20)


def a_topic_appears():
    """The members subscribed to it before anybody made it."""
    log = _range().join("c1", ["orders", "refunds"]).record({"c1": "orders:0-3"})
    return log.change("refunds", 2).record({"c1": "orders:0-3 refunds:0,1"}, 20)


def a_topic_is_deleted():
    """The members still subscribe to it."""
    log = _range(orders=2, refunds=2).join("c1").record({"c1": "orders:0,1 refunds:0,1"})
    return log.change("refunds", None).record({"c1": "orders:0,1"}, 20)


def a_topic_is_deleted_and_made_again():
    """The same name, another id."""
    log = _range().join("c1").join("c2").record({"c1": "orders:0,1", "c2": "orders:2,3"})
    return log.make_again("orders", 6).record({"c1": "orders:0-2", "c2": "orders:3-5"}, 20)


def a_cooperative_rebalance_takes_two_rounds():
    """The first round withholds what has to be revoked; the second gives it away."""
    log = _cooperative().join("c1").record({"c1": "orders:0-3"})
    log.join("c2").record({"c1": "orders:0,1", "c2": ""}, 60)
    return log.record({"c1": "orders:0,1", "c2": "orders:2,3"}, 2, quiet="follow-up")


def a_member_rejoins_for_no_reason_that_is_recorded():
    """enforceRebalance() of one of them: everything stays as it is."""
    log = _range().join("c1").join("c2").record({"c1": "orders:0,1", "c2": "orders:2,3"})
    return log.record({"c1": "orders:0,1", "c2": "orders:2,3"}, 60, quiet="not-shown")


def the_last_member_goes():
    """The group is empty, and kept for its commits."""
    return _range().join("c1").join("c2").record({"c1": "orders:0,1", "c2": "orders:2,3"}).empty(60)


def an_empty_group_is_deleted():
    """An admin deletes it."""
    return _range().join("c1").record({"c1": "orders:0-3"}).empty(60).delete(60)


def a_deleted_group_comes_back():
    """The same name begins again at generation 0."""
    log = _range().join("c1").record({"c1": "orders:0-3"}).empty(60).delete(60).born_again()
    return log.join("c2").record({"c2": "orders:0-3"})


def much_happens_at_once():
    """A member joins, one is gone, a third one changes its subscription, and a topic grows."""
    log = (
        _range(orders=2, payments=2)
        .join("c1", ["orders"])
        .join("c2")
        .record({"c1": "orders:0", "c2": "orders:1 payments:0,1"})
    )
    log.change("payments", 3).gone("c1").join("c3").subscribe("c2", "payments")
    return log.record({"c2": "payments:0,1", "c3": "orders:0,1 payments:2"}, 20)


def a_member_joins_a_modern_group():
    """KIP-848: the coordinator takes partitions from one member, and gives them to the newcomer."""
    log = _modern(orders=4).join("c1").settle({"c1": "orders:0-3"})
    return log.join("c2").settle({"c1": "orders:0,1", "c2": "orders:2,3"})


def a_member_of_a_modern_group_is_gone():
    """KIP-848: its tombstones stand before the epoch that they lead to."""
    log = _modern(orders=4).join("c1").join("c2").settle({"c1": "orders:0,1", "c2": "orders:2,3"})
    return log.gone("c2").settle({"c1": "orders:0-3"})


def partitions_of_a_modern_group_are_added_before_a_member_goes():
    """KIP-848: the member that goes does so in the epoch after."""
    log = _modern(orders=4).join("c1").join("c2").settle({"c1": "orders:0,1", "c2": "orders:2,3"})
    log.change("orders", 6).settle({"c1": "orders:0,1,4", "c2": "orders:2,3,5"})
    return log.gone("c1").settle({"c2": "orders:0-5"}).gone("c2").settle({})


def a_static_member_of_a_modern_group_comes_back():
    """KIP-848: within its session, in the same epoch; in the next one the topic has grown."""
    log = _modern(orders=4).join("c1", instance="pod-1").join("c2", instance="pod-2")
    log.settle({"c1": "orders:0,1", "c2": "orders:2,3"}).come_back("c2").change("orders", 6)
    return log.settle({"c1": "orders:0,1,4", "c2": "orders:2,3,5"})


def a_modern_group_is_subscribed_otherwise_emptied_and_deleted():
    """KIP-848: a member reads another topic, goes, and an admin deletes the group."""
    log = _modern(orders=2, payments=2).join("c1", ["orders"]).settle({"c1": "orders:0,1"})
    log.subscribe("c1", "payments").settle({"c1": "payments:0,1"})
    return log.gone("c1").settle({}).delete()


def the_assignor_of_a_modern_group_is_changed():
    """KIP-848: its members ask for range."""
    log = _modern(orders=4).join("c1").join("c2").settle({"c1": "orders:0,2", "c2": "orders:1,3"})
    return log.choose("range").settle({"c1": "orders:0,1", "c2": "orders:2,3"})


def _modern(**topics: int) -> ModernLog:
    return ModernLog("modern", "", topics)
