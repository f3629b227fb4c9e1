"""A grid over a bucket: every cell is the rebalance that `solve` gives for the changed group."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pyarrow as pa
import pytest

from groupledger.config.loading import ChangeSettings
from groupledger.core.faults import Fault
from groupledger.core.scenarios.solving import solve
from groupledger.engine.grid_cells import CELL, HAD, WHO, WOULD_HAVE, Grid, names, require_known
from groupledger.tables import columns as c
from tests.engine.bucket_rows import AS_KAFKA, catalogue, group_row, member_row, table, topic_row, wire

ASSIGNORS = ("recorded", "roundrobin", "sticky")
CHANGES = (
    ChangeSettings(),
    ChangeSettings(members=2),
    ChangeSettings(members=-1),
    ChangeSettings(partitions="x2"),
    ChangeSettings(partitions="+3", topic="a"),
    ChangeSettings(lost_rack="r1"),
    ChangeSettings(subscribe="c"),
    ChangeSettings(unsubscribe="b"),
)
COUNTS = {"a": 4, "b": 3, "c": 5}


def scenario(assignor, members, counts):
    """`members`: (id, topics, owned) in JoinGroup order."""
    return {
        "id": "one",
        "assignor": assignor,
        "topics": counts,
        "members": [
            {"id": name, "instance_id": None, "rack": None, "topics": topics, "owned": owned, "generation": 0}
            for name, topics, owned in members
        ],
    }


def state(seed):
    """The last state of a group, as `range` gave it: (id, topics, rack, owned)."""
    draw = random.Random(seed)  # noqa: S311 - a seed, no secret
    shared = sorted(draw.sample("ab", draw.randint(1, 2)))
    members = [(f"m{number}", shared) for number in range(draw.randint(1, 4))]
    had = solve(scenario("range", [(name, topics, []) for name, topics in members], COUNTS))["assignment"]
    return [(name, topics, draw.choice(["r1", "r2"]), had[name]) for name, topics in members]


def rows_of(group, members):
    yield group_row(f"{group}/0", assignor="range", generation=1, shared_topics=members[0][1])
    for order, (name, _, rack, owned) in enumerate(members):
        yield member_row(f"{group}/0", order, name, rack_id=rack, recorded=wire(map(tuple, owned)))
    for topic, count in COUNTS.items():
        yield topic_row(f"{group}/0", topic, count)


def as_spark_has_it(bucket):
    """Columns that hold no null say so."""
    never = [field.with_nullable(bool(bucket.column(field.name).null_count)) for field in bucket.schema]
    return bucket.cast(pa.schema(never))


def changed(members, change):
    """The members after the change with what they own, and the counts."""
    after = [each for each in members if each[2] != change.lost_rack]
    if change.members < 0:
        after = after[: max(len(after) + change.members, 0)]
    elif after:
        after += [(f"new-{at + 1}", after[at % len(after)][1], "", []) for at in range(change.members)]
    counts = dict(COUNTS)
    for topic in counts if change.partitions else ():
        if change.topic in (None, topic):
            number = int(change.partitions[1:])
            counts[topic] = counts[topic] * number if change.partitions[0] == "x" else counts[topic] + number
    found = []
    for name, topics, _, owned in after:
        more = [change.subscribe] if change.subscribe and change.subscribe not in topics else []
        now = [each for each in topics if each != change.unsubscribe] + more
        found.append((name, now, [pair for pair in owned if pair[0] in now]))
    return found, counts


def moves(members, after):
    """Partitions that go from one member to another; those of a member that is gone do not."""
    holder = {tuple(pair): name for name, _, owned in members for pair in owned}
    return sum(holder.get(tuple(pair), name) != name for name, owned in after.items() for pair in owned)


def test_every_cell_is_what_solve_gives():
    groups = {f"g{seed}": state(seed) for seed in range(30)}
    rows = [row for group, members in groups.items() for row in rows_of(group, members)]
    grid = Grid(ASSIGNORS, CHANGES, replace(AS_KAFKA, coordinator=None, topics=catalogue(rows)))
    found = pa.concat_tables(grid.cells(as_spark_has_it(table(rows)))).to_pylist()
    assert len(found) == len(ASSIGNORS) * len(CHANGES) * len(groups)
    for row in found:
        assignor, change = ASSIGNORS[row[CELL] // len(CHANGES)], CHANGES[row[CELL] % len(CHANGES)]
        members, counts = changed(groups[row[c.GROUP_ID]], change)
        if not members:
            assert row[c.OUTCOME] == "EMPTY"
            continue
        ran = "range" if assignor == "recorded" else assignor
        given = solve(scenario(ran, members, counts))["assignment"]
        loads = sorted(len(each) for each in given.values())
        assert (row[c.ASSIGNOR], row[c.MEMBERS], row[c.SNAPSHOT_ID]) == (ran, len(members), f"{row[c.GROUP_ID]}/0")
        assert (row[c.LOAD_MIN], row[c.LOAD_MAX]) == (loads[0], loads[-1]), (assignor, change)
        assert row[c.MOVES] == moves(members, given), (assignor, change)


def test_groups_that_no_assignor_is_asked_for_are_not_in_it():
    rows = [
        group_row("share/0", group_type="share", protocol_type=None, chosen=None, snapshot_kind="fold"),
        member_row("share/0", 0, "A", topics=["t"], recorded=[]),
        group_row("empty/0", assignor="range", snapshot_kind="empty"),
        group_row("left/0", group_type="consumer", protocol_type=None, chosen=None, snapshot_kind="fold"),
        topic_row("share/0", "t", 1),
    ]
    grid = Grid(("range",), (ChangeSettings(),), replace(AS_KAFKA, topics=catalogue(rows)))
    assert list(grid.cells(table(rows))) == []


ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def coordinated(group, assignor, **more):
    """A KIP-848 group: m has all four partitions of `t`."""
    yield group_row(f"{group}/0", group_type="consumer", protocol_type=None, assignor=assignor, chosen=None, **more)
    yield member_row(f"{group}/0", 0, "m", topics=["t"], recorded=wire([("t", n) for n in range(4)], {"t": ID}))


def cells(rows, change, **options):
    grid = Grid(("recorded", "range"), (change,), replace(AS_KAFKA, topics=catalogue(rows)), **options)
    return pa.concat_tables(grid.cells(table(rows))).to_pylist()


def test_a_coordinator_assigns_in_its_group_and_no_client_does():
    rows = [*coordinated("new", None), *coordinated("other", "range"), *coordinated("own", "com.example.Mine")]
    rows += [
        *coordinated("dark", None),
        *(topic_row(f"{each}/0", "t", 4, topic_id=ID) for each in ("new", "other", "own")),
    ]
    found = {(row[CELL], row[c.GROUP_ID]): row for row in cells(rows, ChangeSettings(members=1))}
    for group, name in (("new", "server-uniform"), ("other", "server-range")):
        row = found[0, group]
        assert (row[c.ASSIGNOR], row[c.PROTOCOL], row[c.OUTCOME], row[c.CODE]) == (
            name,
            "COOPERATIVE",
            "ASSIGNED",
            None,
        )
        assert (row[c.MOVES], row[c.REVOKED], row[c.LEAST_MOVES], row[c.LOAD_MAX]) == (2, 2, 2, 2)
    said = {group: (row[c.OUTCOME], row[c.CODE], row[c.MESSAGE]) for (cell, group), row in found.items() if cell == 0}
    unknown = "its coordinator's assignor is 'com.example.Mine'; expected uniform or range"
    assert said["own"] == ("REJECTED", "UNKNOWN_ASSIGNOR", unknown)
    assert said["dark"][1:] == (
        "TOPIC_NOT_LISTED",
        "no topic listing has the partition count of t: ingest a listing of topics",
    )
    refused = "its coordinator assigns (KIP-848): range could be asked only after a conversion"
    assert {row[c.MESSAGE] for (cell, _), row in found.items() if cell == 1} == {refused}


def test_a_cell_says_who_has_what():
    rows = [group_row("g/0", assignor="range", shared_topics=["t"]), topic_row("g/0", "t", 4)]
    for order, (name, rack, numbers) in enumerate([("m", "r1", (0, 1)), ("n", "r2", (2, 3))]):
        rows.append(member_row("g/0", order, name, rack_id=rack, recorded=wire([("t", n) for n in numbers])))

    def of(numbers):
        return [{"topic": "t", "partitions": numbers}]

    (row, _) = cells(rows, ChangeSettings(lost_rack="r1", members=1), members=True)
    assert row[WHO] == [
        {"member_id": "n", HAD: of([2, 3]), WOULD_HAVE: of([0, 1])},
        {"member_id": "new-1", HAD: [], WOULD_HAVE: of([2, 3])},
        {"member_id": "m", HAD: of([0, 1]), WOULD_HAVE: None},
    ]
    assert [row[WHO] for row in cells(rows, ChangeSettings())] == [None, None]


ROWS = [
    group_row("g/0", assignor="range", shared_topics=["t"]),
    member_row("g/0", 0, "m", rack_id="r1", recorded=[]),
    *(topic_row("g/0", topic, 1) for topic in ("t", "listed")),
    group_row("share/0", group_type="share", protocol_type=None, chosen=None, snapshot_kind="fold"),
    member_row("share/0", 0, "A", topics=["shared"], rack_id="r2", recorded=[]),
    topic_row("share/0", "else", 1) | {c.CLUSTER_ID: "elsewhere"},
]
NOBODY = "which no member of these groups subscribes to"


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"lost_rack": "r1"}, None, None),
        (
            {"lost_rack": "r2"},
            "UNKNOWN_RACK",
            "lost_rack is 'r2', in which no member of these groups is; expected one of r1",
        ),
        ({"unsubscribe": "t"}, None, None),
        ({"unsubscribe": "listed"}, "UNKNOWN_TOPIC", f"unsubscribe is 'listed', {NOBODY}; expected one of t"),
        ({"subscribe": "listed"}, None, None),
        (
            {"subscribe": "list"},
            "UNKNOWN_TOPIC",
            "subscribe is 'list', which no listing of topics has; did you mean listed? expected one of listed, t",
        ),
        (
            {"subscribe": "else"},
            "UNKNOWN_TOPIC",
            "subscribe is 'else', which no listing of topics has; did you mean listed? expected one of listed, t",
        ),
        ({"partitions": "x2", "topic": "t"}, None, None),
        ({"partitions": "x2", "topic": "shared"}, "UNKNOWN_TOPIC", f"topic is 'shared', {NOBODY}; expected one of t"),
        ({"partitions": "x2", "topic": "listed", "subscribe": "listed"}, None, None),
    ],
)
def test_a_change_names_what_the_groups_know(change, code, said):
    """Of a share group, which no grid has, no rack and no topic counts; of another cluster no listing."""
    changes = (ChangeSettings(), ChangeSettings(**change))
    found = pa.Table.from_batches(names(iter(table(ROWS).to_batches())))
    if code is None:
        require_known(changes, found, catalogue(ROWS))
        return
    with pytest.raises(Fault, match=re.escape(f"changes.1.{said}") + "$") as raised:
        require_known(changes, found, catalogue(ROWS))
    assert raised.value.code == code
    require_known(changes, found.slice(0, 0), catalogue(ROWS))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (ChangeSettings(), "as it is"),
        (ChangeSettings(members=-2, lost_rack="r"), "members -2, without rack r"),
        (ChangeSettings(partitions="x2", topic="t"), "partitions of t x2"),
        (ChangeSettings(name="Black Friday", members=9), "Black Friday"),
    ],
)
def test_a_change_says_what_it_is(change, words):
    assert change.words == words
