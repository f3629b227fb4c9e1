"""`what-if`, the grid's cell and the simulator give drawn groups the same partitions."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from groupledger.answers.changed_group import what_if
from groupledger.answers.reader import LedgerReader
from groupledger.config.loading import ChangeSettings
from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol import events as e
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.simulator import simulate
from groupledger.core.rebalance.step import Form
from groupledger.core.scenarios.solving import targets
from groupledger.core.wire.codec import uuid_bytes
from groupledger.engine import bucket_rows as r
from groupledger.engine.bucket_rows import SINCE, TopicCatalogue
from groupledger.engine.grid_cells import CELL, HAD, WHO, WOULD_HAVE, Grid
from tests.answers.histories import listed
from tests.answers.ledgers import write
from tests.answers.rows import at
from tests.engine.bucket_rows import AS_KAFKA, group_row, member_row, table
from tests.examples import examples

pytestmark = pytest.mark.slow

CLIENTS = ("range", "roundrobin", "sticky", "cooperative-sticky")
COORDINATORS = ("uniform", "range")
TOPICS = ("a", "b", "c")
CHANGES = (
    ChangeSettings(),
    ChangeSettings(members=1),
    ChangeSettings(members=3),
    ChangeSettings(members=-1),
    ChangeSettings(partitions="+3", topic="a"),
    ChangeSettings(partitions="x2", topic="a", members=2),
)
ASSIGNORS = ("recorded", *CLIENTS)
CLUSTERS = 20
GROUPS = examples(60)
"""The simulator plays about four of ten: it has no racks, and no members that are not where they are to be."""
CELLS = min(GROUPS, 1_150)
MILLIS = 1_000_000


def topic_id(topic):
    return topic.upper() * 21 + "A"


def wire(partitions, *, ids):
    """`[("a", 0), ..]` in the layout of facts."""
    topics = {topic: [] for topic, _ in sorted(partitions)}
    for topic, number in sorted(partitions):
        topics[topic].append(number)
    return [
        {"topic_id": topic_id(topic) if ids else None, "topic": topic, "partitions": numbers}
        for topic, numbers in topics.items()
    ]


@dataclass
class Drawn:
    """A recorded group: (member, topics, rack, instance, what it has, its target or None) in order."""

    name: str
    cluster: str
    kind: str
    assignor: str
    members: list[Any]
    shared: bool

    def rows(self):
        key: dict[str, Any] = {
            "cluster_id": self.cluster,
            "group_id": self.name,
            "snapshot_id": f"log/{self.cluster}/{self.name}",
        }
        modern = self.kind == "consumer"
        group = key | {"group_type": self.kind, "protocol_type": None if modern else "consumer", "offset": 1}
        group |= {"snapshot_kind": "fold" if modern else "generation", "assignor": self.assignor, "complete": True}
        group |= {"observed_at": at(1), "members": len(self.members), "state": "Stable", "incarnation": 1}
        group |= {"group_epoch" if modern else "generation": 4, "log_partition": 0}
        topics = sorted({topic for _, own, *_ in self.members for topic in own})
        group |= {
            "shared_topics": topics if self.shared else None,
            "subscribed_topics": None if self.shared else topics,
        }
        found = []
        for order, (name, own, rack, instance, has, target) in enumerate(self.members):
            of: dict[str, Any] = {
                "member_order": order,
                "member_id": name,
                "rack_id": rack,
                "group_instance_id": instance,
            }
            of |= {"topics": None if self.shared else list(own), "recorded": wire(has, ids=modern)}
            found.append(key | of | {"target": None if target is None else wire(target, ids=modern), "offset": 1})
        return group, found


def drawn(seed, counts):
    """A group as its assignor left it, or as it was before the last member came or partitions were added."""
    draw = random.Random(seed)  # noqa: S311 - a seed, no secret
    kind = draw.choice(["classic", "classic", "consumer"])
    assignor = draw.choice(CLIENTS if kind == "classic" else COORDINATORS)
    wanted = sorted(draw.sample(TOPICS, draw.randint(1, 3)))
    names = draw.sample(["m-4", "a-7", "z", "new-1", "k-2", "B"], draw.randint(1, 5))
    shared = draw.random() < 0.6
    own = [wanted if shared else sorted(draw.sample(wanted, draw.randint(1, len(wanted)))) for _ in names]
    racks = [draw.choice(["r1", "r2", None]) for _ in names] if draw.random() < 0.3 else [None] * len(names)
    static = [f"i{at}" if draw.random() < 0.1 else None for at in range(len(names))]
    known = draw.choice([names, names[:-1] or names])
    had = {topic: draw.choice([count, max(count - 2, 0)]) for topic, count in counts.items()}
    given = settled(
        kind, assignor, [(name, topics) for name, topics in zip(names, own, strict=True) if name in known], had
    )
    has = [given.get(name, []) for name in names]
    target: list[Any] = [None] * len(names)
    if kind == "consumer":
        held = has if draw.random() < 0.8 else [[each for each in some if draw.random() < 0.8] for some in has]
        target, has = has, held
    members = list(zip(names, own, racks, static, has, target, strict=True))
    return Drawn(f"g{seed}", f"c{seed % CLUSTERS}", kind, assignor, members, shared)


def settled(kind, assignor, members, counts):
    modern = kind == "consumer"
    topics = {t: {"id": topic_id(t), "partitions": n} if modern else n for t, n in counts.items()}
    own = {"assigned": []} if modern else {"owned": [], "generation": None}
    asked = [{"id": name, "instance_id": None, "topics": topics} | own for name, topics in members]
    return targets(
        {"id": None, "assignor": f"server-{assignor}" if modern else assignor, "topics": topics, "members": asked}
    )


@pytest.fixture(scope="module")
def groups():
    """The groups, the topics of each cluster, and the racks of replicas where they are listed."""
    draw = random.Random(7)  # noqa: S311 - a seed, no secret
    counts = {f"c{n}": {topic: draw.randint(1, 6) for topic in TOPICS} for n in range(CLUSTERS)}
    racks = {
        cluster: {t: [draw.sample(["r1", "r2", "r3"], 2) for _ in range(n)] for t, n in of.items()}
        for cluster, of in counts.items()
        if draw.random() < 0.5
    }
    return [drawn(seed, counts[f"c{seed % CLUSTERS}"]) for seed in range(GROUPS)], counts, racks


@pytest.fixture(scope="module")
def reader(groups, tmp_path_factory):
    found, counts, racks = groups
    rows = [each.rows() for each in found]
    listings = [
        listed(topic, count, cluster=cluster, topic_id=topic_id(topic)) | {"racks": racks.get(cluster, {}).get(topic)}
        for cluster, of in counts.items()
        for topic, count in of.items()
    ]
    members = [row for _, some in rows for row in some]
    place = write(
        tmp_path_factory.mktemp("ledger"),
        group_snapshots=[row for row, _ in rows],
        member_snapshots=members,
        topic_snapshots=listings,
    )
    return LedgerReader(place)


@pytest.fixture(scope="module")
def cells(groups):
    """The grid's rows by group and cell."""
    found, counts, racks = groups
    rows = []
    for each in found[:CELLS]:
        group, members = each.rows()
        moment = {r.MOMENT: int(group.pop("observed_at").timestamp() * MILLIS)}
        chosen = each.assignor if each.kind == "classic" else None
        read = {name: value for name, value in group.items() if name in table([]).schema.names}
        rows.append(group_row(**{**read, **moment, "snapshot": read.pop("snapshot_id"), r.CHOSEN: chosen}))
        for row in members:
            of = {name: value for name, value in row.items() if name in r.FIELDS[r.MEMBER_ROW]}
            rows.append(member_row(of.pop("snapshot_id"), of.pop("member_order"), of.pop("member_id"), **of))
    catalogue = TopicCatalogue.of_rows(
        [
            {"cluster_id": cluster, "topic": topic, "topic_id": topic_id(topic), "partition_count": count}
            | {SINCE: 0, "racks": racks.get(cluster, {}).get(topic)}
            for cluster, of in counts.items()
            for topic, count in of.items()
        ]
    )
    grid = Grid(ASSIGNORS, CHANGES, replace(AS_KAFKA, coordinator=None, topics=catalogue), members=True)
    return {(row["group_id"], row[CELL]): row for row in pa.concat_tables(grid.cells(table(rows))).to_pylist()}


def asked(of, change, assignor):
    """The arguments of `what_if` for a cell."""
    partitions = {change.topic: change.partitions} if change.partitions else None
    subscribed = {topic for _, own, *_ in of.members for topic in own}
    if partitions and change.topic not in subscribed:
        partitions = None
    return {
        "members": change.members,
        "partitions": partitions,
        "assignor": None if assignor == "recorded" else assignor,
    }


def pairs(found):
    return sorted((entry["topic"], number) for entry in found or () for number in entry["partitions"])


def test_a_cell_of_the_grid_is_what_one_group_is_told(groups, reader, cells):
    seen = Counter()
    for number, of in enumerate(groups[0][:CELLS]):
        change, assignor = CHANGES[number % len(CHANGES)], ASSIGNORS[number // 7 % len(ASSIGNORS)]
        if of.kind == "consumer":
            assignor = "recorded"
        if len(of.members) + change.members <= 0:
            continue
        cell = cells[of.name, ASSIGNORS.index(assignor) * len(CHANGES) + CHANGES.index(change)]
        found = what_if(reader, of.name, of.cluster, **asked(of, change, assignor))
        said = (of, change, assignor, cell["code"], cell["message"])
        grids = {
            each["member_id"]: (pairs(each[HAD]), each[WOULD_HAVE] and pairs(each[WOULD_HAVE])) for each in cell[WHO]
        }
        ours = {each.member_id: (list(each.held), [*each.assigned] if each.stays else None) for each in found.members}
        assert {name: (had, has or None) for name, (had, has) in grids.items()} == {
            name: (had, has or None) for name, (had, has) in ours.items()
        }, said
        assert [each["member_id"] for each in cell[WHO]] == [each.member_id for each in found.members], said
        assert (cell["assignor"], cell["protocol"].lower()) == (found.assignor, found.protocol), said
        assert (cell["moves"], cell["revoked"], cell["unassigned"]) == (
            found.moves,
            found.given_up,
            found.unassigned,
        ), said
        assert (cell["load_min"], cell["load_max"], cell["partitions"]) == (
            found.least,
            found.most,
            found.partitions,
        ), said
        seen[of.kind, found.assignor] += 1
    assert len(seen) == len(CLIENTS) + len(COORDINATORS)
    assert sum(seen.values()) > 0.9 * CELLS, seen


def script(of, change, counts, joined, gone):
    """The group's members with what they have, then the change; a coordinator meets new ones one by one."""
    modern = of.kind == "consumer"
    protocol = e.GroupProtocol.CONSUMER if modern else e.GroupProtocol.CLASSIC
    how = {"group_protocol": protocol} | ({"remote_assignor": of.assignor} if modern else {"assignors": (of.assignor,)})
    seated = []
    for name, topics, _, instance, has, _ in of.members:
        own = tuple(TopicPartition(*each) for each in has)
        seat = e.RecordedSeat(name, own, () if modern else own, None if modern else 4, leads=name == of.members[0][0])
        seated.append(e.Join(name, tuple(topics), group_instance_id=instance, seat=seat, **how))
    events: list[e.Event] = [e.Leave(name, together=True) for name in gone]
    if change.partitions:
        grown = counts[change.topic] + 3 if change.partitions == "+3" else 2 * counts[change.topic]
        events.append(e.SetPartitions(change.topic, grown, together=True))
    stay = [each for each in of.members if each[0] not in gone]
    for place, name in enumerate(joined):
        when = {"at_ms": 60_000 * (place + 1)} if modern else {"together": True}
        events.append(e.Join(name, tuple(stay[place % len(stay)][1]), **when, **how))
    events[-1] = replace(events[-1], together=False)
    ids = {each.member: [each.member] for each in seated} | {name: [name] for name in joined}
    topics = {topic: [uuid_bytes(topic_id(topic))] for topic in TOPICS}
    return Script(counts, [*seated, *events], Form.AS_KAFKA, member_ids=ids, topic_ids=topics, generation=4)


def test_a_simulated_group_settles_as_one_group_is_told(groups, reader):
    seen = Counter()
    for number, of in enumerate(groups[0]):
        change = CHANGES[number % len(CHANGES)]
        counts = groups[1][of.cluster]
        static = any(instance for *_, instance, _, _ in of.members[change.members :]) and change.members < 0
        racked = any(rack for _, _, rack, *_ in of.members)
        unsettled = of.kind == "consumer" and any(has != target for *_, has, target in of.members)
        subscribed = {topic for _, own, *_ in of.members for topic in own}
        unheard = change.topic is not None and change.topic not in subscribed
        both = of.kind == "consumer" and change.members and change.partitions  # which comes first is open
        if (
            both
            or change == ChangeSettings()
            or len(of.members) + change.members <= 0
            or static
            or racked
            or unsettled
            or unheard
        ):
            continue
        found = what_if(reader, of.name, of.cluster, **asked(of, change, "recorded"))
        last = simulate(script(of, change, counts, found.joined, found.gone))[-1]
        owners = {(each.topic, each.partition): name for each, name in last.owners.items()}
        ours = {place: each.member_id for each in found.members if each.stays for place in each.assigned}
        assert owners == ours, (of, change)
        seen[of.kind, of.assignor] += 1
    assert len(seen) == len(CLIENTS) + len(COORDINATORS)
    assert sum(seen.values()) > 0.3 * GROUPS, seen
