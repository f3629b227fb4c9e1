"""Steps of members of Streams groups as JSON, and drawn ones: for the golden pairs and for a live jar.

A step: the members of a group, the one that speaks with what it says, its target. `drawn_steps` draws groups in which
each active task has one holder at most and each process one of each standby task, as in a group that Kafka coordinates.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from groupledger.core.assignors.server.tasks import Task
from groupledger.core.protocol.consumer_group.consumer_state import GroupMember, MemberState
from groupledger.core.protocol.consumer_group.streams_group import advance_tasks
from groupledger.core.protocol.consumer_group.topics_and_targets import (
    TopicIdPartition,
    active,
    is_standby,
    standby,
    task_of,
)

Step = dict[str, Any]
STATES = {state.value.replace("PARTITIONS", "TASKS"): state for state in MemberState}


def solve_step(step: Step) -> dict[str, Any]:
    """The member after the step."""
    members = [_member(each) for each in step["members"]]
    owned = None if step["owned"] is None else frozenset(_tasks(step["owned"]))
    member, target = _member(step["member"]), frozenset(_tasks(step["target"]))
    now = advance_tasks(member, step["epoch"], target, owned, members)
    return {
        "epoch": now.epoch,
        "previous": now.previous_epoch,
        "state": now.state.value.replace("PARTITIONS", "TASKS"),
        "assigned": _written(now.assigned),
        "pending": _written(now.pending),
    }


def _member(told: Step) -> GroupMember:
    return GroupMember(
        told["id"],
        told["id"],
        process_id=told["process_id"],
        epoch=told["epoch"],
        previous_epoch=told["previous"],
        state=STATES[told["state"]],
        assigned=_with_epochs(told["assigned"]),
        pending=_with_epochs(told["pending"]),
    )


def _tasks(roles: Step) -> list[TopicIdPartition]:
    return [
        *(active(Task(name, number)) for name, number, *_ in roles["active"]),
        *(standby(Task(name, number)) for name, number, *_ in roles["standby"]),
    ]


def _with_epochs(roles: Step) -> dict[TopicIdPartition, int]:
    epochs = [epoch for *_, epoch in roles["active"]]
    return dict(zip(_tasks(roles), [*epochs, *[0] * len(roles["standby"])], strict=True))


def _written(tasks: Mapping[TopicIdPartition, int]) -> Step:
    """Standby tasks have no epoch in the log."""
    return {
        "active": sorted([*task_of(each), epoch] for each, epoch in tasks.items() if not is_standby(each)),
        "standby": sorted(list(task_of(each)) for each in tasks if is_standby(each)),
    }


def drawn_steps(seed: int, count: int) -> Iterator[Step]:
    """`count` steps."""
    for number in range(count):
        yield _drawn(random.Random(f"steps-{seed}-{number}"))  # noqa: S311 - seeded on purpose, nothing secret


def _drawn(draw: random.Random) -> Step:
    tasks = [(name, at) for name in ("0", "1") for at in range(draw.randint(1, 4))]
    members = [_no_tasks(draw, f"m{at}", f"p{draw.randint(1, 3)}") for at in range(draw.randint(1, 4))]
    for task in tasks:
        _hold(draw, members, task)
    for member in members:
        if any(member["pending"].values()):
            member["state"] = "UNREVOKED_TASKS"
        elif draw.random() < 0.4:
            member["state"] = "UNRELEASED_TASKS"
    speaks = draw.choice(members)
    epoch = speaks["epoch"] + draw.choice((0, 0, 1, 1, 2))
    return {
        "members": members if draw.random() < 0.9 else [each for each in members if each is not speaks],
        "member": speaks,
        "epoch": epoch,
        "target": _target(draw, tasks, speaks),
        "owned": _owned(draw, tasks, speaks),
    }


def _no_tasks(draw: random.Random, name: str, process: str) -> Step:
    epoch = draw.randint(2, 5)
    return {
        "id": name,
        "process_id": process,
        "epoch": epoch,
        "previous": epoch - draw.randint(0, 1),
        "state": "STABLE",
        "assigned": {"active": [], "standby": []},
        "pending": {"active": [], "standby": []},
    }


def _hold(draw: random.Random, members: list[Step], task: tuple[str, int]) -> None:
    """One member has the active task, or is giving it up; a process has one standby task of it at most."""
    holder = draw.choice([*members, None])
    if holder is not None:
        held = holder["pending" if draw.random() < 0.25 else "assigned"]
        held["active"].append([*task, draw.randint(2, holder["epoch"])])
    for process in sorted({each["process_id"] for each in members}):
        same = holder is not None and holder["process_id"] == process
        if draw.random() < (0.1 if same else 0.35):
            member = draw.choice([each for each in members if each["process_id"] == process])
            member["pending" if draw.random() < 0.2 else "assigned"]["standby"].append(list(task))


def _target(draw: random.Random, tasks: Iterable[tuple[str, int]], member: Step) -> Step:
    """Near to what the member has."""
    roles: Step = {"active": [], "standby": []}
    held = [tuple(each[:2]) for each in member["assigned"]["active"]]
    for task in tasks:
        role = draw.choice(("active", "standby", None, "active" if task in held else None))
        if role is not None:
            roles[role].append(list(task))
    return roles


def _owned(draw: random.Random, tasks: Iterable[tuple[str, int]], member: Step) -> Step | None:
    """Nothing said, or what it was assigned, or some of what it has to give up as well."""
    if draw.random() < 0.3:
        return None
    if draw.random() < 0.2:
        return {"active": [list(each) for each in tasks if draw.random() < 0.3], "standby": []}
    kept = ("assigned", "pending") if draw.random() < 0.3 else ("assigned",)
    return {role: sorted(each[:2] for name in kept for each in member[name][role]) for role in ("active", "standby")}
