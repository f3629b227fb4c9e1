"""Faults of the broker, and of its log."""

from __future__ import annotations

from tests.corpus.classic_log import ClassicLog
from tests.corpus.modern_log import ModernLog

TWO = {"c1": "orders:0,1", "c2": "orders:2,3"}


def _of(assignor: str) -> ClassicLog:
    return ClassicLog("coordinator", "", assignor, {"orders": 4})


def _two_static() -> ClassicLog:
    return _of("range").join("c1", instance="pod-1").join("c2", instance="pod-2").record(TWO)


def _modern() -> ModernLog:
    return ModernLog("coordinator", "", {"orders": 4})


def a_log_was_truncated_and_written_again():
    """An unclean election: an offset that had been read has another record now."""
    log = _of("range").join("c1").record({"c1": "orders:0-3"}).join("c2").record(TWO, 60).find("OFFSET_REWRITTEN")
    return log.truncated(2, {"c1": "orders:2,3", "c2": "orders:0,1"})


def two_clusters_are_read_under_one_name():
    """The first records of both stand at the same offsets."""
    log = _of("roundrobin").join("c1").record({"c1": "orders:0-3"}).find("OFFSET_REWRITTEN")
    return log.truncated(1, {"c1": "orders:0,1"})


def a_generation_is_recorded_again_with_another_assignment():
    """A static member came back, and the record gives its partition to the other."""
    log = _two_static().replace_process("c2").rewrite(20, {"c1": "orders:0-2", "c2": "orders:3"})
    return log.find("REWRITE_DIFFERS")


def a_generation_is_recorded_again_with_swapped_assignments():
    """Nobody came back; the two members have changed places."""
    log = _two_static().rewrite(20, {"c1": "orders:2,3", "c2": "orders:0,1"}, quiet="not-shown")
    return log.find("REWRITE_DIFFERS")


def two_members_have_one_instance_id():
    """Both are in one record, which no broker should write."""
    log = _of("range").join("c1", instance="pod-1").record({"c1": "orders:0-3"})
    return log.join("c2", instance="pod-1").record(TWO, 60).find("SHARED_INSTANCE_ID")


def a_coordinator_gives_one_partition_to_two_members():
    """KIP-848: the newcomer has it before the other gave it up."""
    log = _modern().join("c1").join("c2").settle(TWO).hold("c2", "orders:1-3").find("DOUBLE_OWNED")
    return log.hold("c2", "orders:2,3")


def a_coordinator_assigns_nobody_a_partition():
    """KIP-848: the target leaves one out, for ten minutes."""
    log = _modern().join("c1").join("c2").settle({"c1": "orders:0,1", "c2": "orders:2"}).find("UNOWNED", 3)
    return log.join("c3").settle({"c1": "orders:0,1", "c2": "orders:2", "c3": "orders:3"}, 600)


def a_member_of_a_modern_group_never_gets_what_it_is_to_have():
    """KIP-848: it waits for ten minutes for what the other has given up long since."""
    log = _modern().join("c1").settle({"c1": "orders:0-3"}).join("c2").settle(TWO, leaving_out="c2")
    return log.find("UNOWNED").hold("c2", "orders:2,3", 600)


def a_uniform_assignment_is_not_balanced():
    """KIP-848: one member has everything, and the other nothing."""
    return _modern().join("c2").join("c1").settle({"c1": "orders:0-3", "c2": ""}).find("UNBALANCED")


def a_newcomer_gets_nothing_in_a_modern_group():
    """KIP-848: the newcomer is to have nothing, so that the record with which the epoch settles moves nothing."""
    log = _modern().join("c1").settle({"c1": "orders:0-3"}).join("c2")
    return log.settle({"c1": "orders:0-3", "c2": ""}, 60).find("UNBALANCED")


def two_processes_share_an_instance_id_in_a_modern_group():
    """KIP-848: five takeovers within ten minutes."""
    log = _modern().join("c1", instance="pod-1").join("c2", instance="pod-2").settle(TWO)
    for _ in range(5):
        log.come_back("c2", 60)
    return log.find("SHARED_INSTANCE_ID", 5)
