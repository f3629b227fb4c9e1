"""What a library answered to a group, held against what ours computes."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Any

from groupledger.core.assignors.clients import ClientAssignor, LeaderPlan
from groupledger.core.custom.custom_group import Group, TopicPartition
from groupledger.core.scenarios.form import group_of
from tests.oracle.client_groups import Scenario


class Outcome(StrEnum):
    """How far ours is the library's."""

    LISTS = "equal"  # list for list, the same members left out, the same failure
    PROMISE = "promise"  # not every answer was computed; the library's keeps what is promised of it
    DIED = "died"  # the library's process ended, where ours has an answer
    DIFFERING = "differing"


def compare(candidate: ClientAssignor, scenario: Scenario, answer: dict[str, Any], most_work: int) -> Outcome:
    """`answer`: {"lists"}, {"error"} or {"crash"}. As many ways are tried as an attribution tries with this work."""
    group = group_of(scenario)
    given = LeaderPlan(_lists(answer), answer.get("error"))
    plans = candidate.plans(group, scenario.get("leader"))
    plans = replace(plans, most=min(plans.most, max(1, most_work // _size(group))))
    for plan in plans:
        if "crash" in answer:
            return Outcome.LISTS if plan.failure is not None else Outcome.DIED
        if plan == given:
            return Outcome.LISTS
    if plans.cut and "lists" in answer and candidate.promise(group, given.lists):
        return Outcome.PROMISE
    return Outcome.DIFFERING


def _size(group: Group) -> int:
    return 1 + len(group.members) + sum(group.topics.values())


def _lists(answer: dict[str, Any]) -> dict[str, tuple[TopicPartition, ...]]:
    return {
        member_id: tuple(TopicPartition(*pair) for pair in mine) for member_id, mine in answer.get("lists", {}).items()
    }
