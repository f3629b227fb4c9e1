"""A whole history under an assignor: each snapshot starts from what the assignor gave at the one before."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from groupledger.core.scenarios.solving import solve
from groupledger.tables import columns as c
from tests.engine.bucket_rows import AS_KAFKA, computed, group_row, member_row, topic_row, wire

CARRIED = replace(AS_KAFKA, scenario="replay", coordinator=None, carried=True)
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
COOPERATIVE = "cooperative-sticky"
SECOND = 1_000_000


def pairs(cell):
    return [(entry["topic"], partition) for entry in cell for partition in entry["partitions"]]


def history(seed, length=6):
    """Snapshots of one group, oldest first: members by id, the counts of its topics, and what was recorded."""
    draw = random.Random(seed)  # noqa: S311 - a seed, no secret
    counts, members, found = {"a": draw.randint(1, 6), "b": draw.randint(1, 6)}, {}, []
    for _ in range(length):
        for _ in range(draw.randint(1, 3)):
            name = f"m{draw.randrange(6)}"
            if name in members and len(members) > 1:
                del members[name]
            else:
                members[name] = sorted(draw.sample(["a", "b"], draw.randint(1, 2)))
        if draw.random() < 0.3:
            counts = counts | {draw.choice("ab"): 7}
        recorded = {name: [(topic, 0)] for name, (topic, *_) in members.items()}
        found.append((dict(members), dict(counts), recorded))
    return found


def rows_of(group, snapshots, assignor):
    for number, (members, counts, recorded) in enumerate(snapshots):
        snapshot, moment = f"{group}/{number}", number * SECOND
        before = f"{group}/{number - 1}" if number else None
        yield group_row(
            snapshot, assignor="range", chosen=assignor, previous_snapshot_id=before, generation=number, moment=moment
        )
        for order, (name, topics) in enumerate(members.items()):
            yield member_row(snapshot, order, name, topics=topics, recorded=wire(recorded[name]))
        for topic, count in counts.items():
            yield topic_row(snapshot, topic, count, since=moment)


def expected(snapshots, assignor):
    """What `solve` gives, snapshot after snapshot, each told what it gave before."""
    had = {}
    for members, counts, _ in snapshots:
        scenario = {
            "id": "one",
            "assignor": "sticky" if assignor == COOPERATIVE else assignor,  # the target, without what it withholds
            "topics": counts,
            "members": [
                {
                    "id": name,
                    "instance_id": None,
                    "rack": None,
                    "topics": topics,
                    "owned": [list(pair) for pair in had.get(name, []) if pair[0] in topics],
                    "generation": 0,
                }
                for name, topics in members.items()
            ],
        }
        answer = solve(scenario)
        had = {name: [tuple(pair) for pair in answer["assignment"][name]] for name in members}
        yield had


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_history_goes_on_from_the_assignors_own_answers(assignor):
    histories = {f"g{seed}": history(seed) for seed in range(25)}
    rows = [row for group, snapshots in histories.items() for row in rows_of(group, snapshots, assignor)]
    random.Random(7).shuffle(rows)  # noqa: S311 - a seed, no secret
    found = computed(rows, CARRIED)["assignments"]
    got = {(row[c.SNAPSHOT_ID], row[c.MEMBER_ID]): {*pairs(row[c.TARGET])} for row in found}
    wanted = {
        (f"{group}/{number}", name): {*had}
        for group, snapshots in histories.items()
        for number, given in enumerate(expected(snapshots, assignor))
        for name, had in given.items()
    }
    assert got == wanted
    assert all({*pairs(row[c.ADDED])} == {*pairs(row[c.TARGET])} - {*pairs(row[c.HELD])} for row in found)
    assert not any(row[c.AWAITING] for row in found)
    held = {(row[c.SNAPSHOT_ID], row[c.MEMBER_ID]): {*pairs(row[c.HELD])} for row in found}
    for (snapshot, name), had in held.items():
        group, number = snapshot.split("/")
        assert had == wanted.get((f"{group}/{int(number) - 1}", name), set())


def test_without_it_each_snapshot_starts_from_the_record():
    rows = list(rows_of("g", history(1), "sticky"))
    one, other = (computed(rows, replace(CARRIED, carried=carried))["assignments"] for carried in (True, False))
    assert [row[c.HELD] for row in one] != [row[c.HELD] for row in other]


def test_members_of_a_rewrite_have_what_they_had_also_under_a_new_id():
    owned = [("t", number) for number in range(4)]
    rows = [
        group_row("g/0", assignor="range", chosen="roundrobin", generation=1),
        member_row("g/0", 0, "A", topics=["t"], group_instance_id="one", recorded=wire(owned)),
        member_row("g/0", 1, "B", topics=["t"], recorded=[]),
        group_row(
            "g/1",
            assignor="range",
            chosen="roundrobin",
            generation=1,
            previous_snapshot_id="g/0",
            snapshot_kind="rewrite",
        ),
        member_row("g/1", 0, "C", topics=["t"], group_instance_id="one", recorded=wire(owned)),
        member_row("g/1", 1, "B", topics=["t"], recorded=[]),
        topic_row("g/0", "t", 4),
    ]
    found = computed(rows, CARRIED)
    after = {row[c.MEMBER_ID]: row for row in found["assignments"] if row[c.SNAPSHOT_ID] == "g/1"}
    assert {name: pairs(row[c.TARGET]) for name, row in after.items()} == {
        "C": [("t", 0), ("t", 2)],
        "B": [("t", 1), ("t", 3)],
    }
    assert [row[c.MOVES] for row in found["rebalances"]] == [0, 0]


def test_a_topic_made_anew_under_its_name_is_another_topic():
    rows = [
        group_row("g/0", assignor="sticky", chosen="sticky", generation=1, moment=0),
        member_row("g/0", 0, "A", topics=["t"], recorded=wire([("t", 0)])),
        group_row("g/1", assignor="sticky", chosen="sticky", generation=2, previous_snapshot_id="g/0", moment=SECOND),
        member_row("g/1", 0, "A", topics=["t"], recorded=wire([("t", 0)])),
        topic_row("g/0", "t", 1, topic_id="first"),
        topic_row("g/1", "t", 1, since=SECOND, topic_id="second"),
    ]
    found = computed(rows, CARRIED)["assignments"]
    after = next(row for row in found if row[c.SNAPSHOT_ID] == "g/1")
    assert (pairs(after[c.HELD]), pairs(after[c.ADDED])) == ([("t", 0)], [("t", 0)])


def test_a_group_that_is_rejected_goes_on_from_its_record():
    rows = [
        group_row("g/0", assignor="range", chosen="sticky", generation=1, fault_code="MEMBERS_OVER_LIMIT"),
        member_row("g/0", 0, "A", topics=["t"], recorded=wire([("t", 1)])),
        group_row("g/1", assignor="range", chosen="sticky", generation=2, previous_snapshot_id="g/0"),
        member_row("g/1", 0, "A", topics=["t"], recorded=[]),
        topic_row("g/0", "t", 2),
    ]
    found = computed(rows, CARRIED)
    assert [row[c.OUTCOME] for row in found["rebalances"]] == ["REJECTED", "ASSIGNED"]
    after = next(row for row in found["assignments"] if row[c.SNAPSHOT_ID] == "g/1")
    assert pairs(after[c.HELD]) == [("t", 1)]
