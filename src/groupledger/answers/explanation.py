"""Why a group rebalanced: what the record shows of the cause, what moved, and what nobody had for how long.

The log holds states, not reasons. A member that is gone may have left, crashed or timed out; one that joins again
leaves no trace where its state is the same. Neither is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from groupledger.answers.rebalance import CLASSIC, Rebalance, partitions, rebalance
from groupledger.answers.rows import matching, one_of, records

if TYPE_CHECKING:
    from groupledger.answers.rebalance import TopicPartition
    from groupledger.answers.rows import Reader, Record

BASELINE = "baseline"


class CauseKind(StrEnum):
    """What differs between two states of a group."""

    GROUP_BORN = "group-born"
    GROUP_EMPTIED = "group-emptied"
    MEMBER_JOINED = "member-joined"
    MEMBER_GONE = "member-gone"
    MEMBER_RESTARTED = "member-restarted"
    SUBSCRIPTION_CHANGED = "subscription-changed"
    RACK_CHANGED = "rack-changed"
    ASSIGNOR_CHANGED = "assignor-changed"
    TOPIC_APPEARED = "topic-appeared"
    TOPIC_DELETED = "topic-deleted"
    PARTITIONS_ADDED = "partitions-added"
    TOPIC_MADE_AGAIN = "topic-made-again"
    FOLLOW_UP = "follow-up"
    NOT_SHOWN = "not-shown"


@dataclass(frozen=True, slots=True)
class Cause:
    """One difference: `about` names the member or topic, `what` says it for a person."""

    kind: CauseKind
    about: str | None
    what: str


@dataclass(frozen=True, slots=True)
class Moved:
    """A partition that has another owner than before. None is nobody."""

    topic: str
    partition: int
    from_member_id: str | None
    to_member_id: str | None


@dataclass(frozen=True, slots=True)
class Unowned:
    """A partition that nobody had from `since` on; `until` is None where the record ends before anybody got it."""

    topic: str
    partition: int
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Before:
    """The state that the rebalance began from."""

    snapshot_id: str
    generation: int | None
    observed_at: datetime
    assignor: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A rebalance with its causes.

    `rounds` is how many generations it took until no further one had to follow, None where no results say so; `settled`
    is the last of them.
    """

    rebalance: Rebalance
    before: Before | None
    causes: tuple[Cause, ...]
    moved: tuple[Moved, ...]
    unowned: tuple[Unowned, ...]
    rounds: int | None
    settled: int | None


def explain(reader: Reader, group_id: str, cluster: str | None = None, generation: int | None = None) -> Explanation:
    """Why the rebalance that led to a generation (or epoch; default: the last one) happened. Raises as `rebalance`."""
    told = rebalance(reader, group_id, cluster, generation)
    found = _sides(reader, told)
    after = found[told.snapshot_id]
    before = None if told.previous_snapshot_id is None else found.get(told.previous_snapshot_id)
    rounds, settled = _rounds(reader, told)
    return Explanation(
        rebalance=told,
        before=None if before is None else Before(before.snapshot_id, before.number, before.at, before.assignor),
        causes=tuple(causes(before, after, _listed(reader, told, before, after), told.group_type)),
        moved=tuple(moved(() if before is None else before.members, after.members)),
        unowned=tuple(_unowned(reader, told)),
        rounds=rounds,
        settled=settled,
    )


@dataclass(frozen=True, slots=True)
class Side:
    """A state of the group: its members as rows of `member_snapshots`."""

    snapshot_id: str
    number: int | None
    at: datetime
    assignor: str | None
    topics: frozenset[str]
    follow_up: bool
    members: tuple[Record, ...]


Counts = Mapping[str, tuple[str | None, int] | None]
"""A topic's id and partition count at a time; None: no listing had it."""


def causes(
    before: Side | None, after: Side, listed: tuple[Counts, Counts], group_type: str = CLASSIC
) -> Iterator[Cause]:
    """What differs between two states, members first; one entry of the kind NOT_SHOWN where nothing does."""
    if before is None:
        yield Cause(CauseKind.GROUP_BORN, None, "the first state of the group that the ledger has")
        return
    found = [*_of_members(before, after), *_of_topics(*listed)]
    if after.assignor != before.assignor and after.members and before.members:
        text = f"the assignor changed from {before.assignor} to {after.assignor}"
        found.append(Cause(CauseKind.ASSIGNOR_CHANGED, after.assignor, text))
    if before.members and not after.members:
        found = [Cause(CauseKind.GROUP_EMPTIED, None, f"the last {_number(len(before.members), 'member')} went")]
    if not found and before.follow_up:
        found = [Cause(CauseKind.FOLLOW_UP, None, "the round before withheld partitions until others gave them up")]
    if not found:
        again = ": a member joined again (it does not say which, or why)" if group_type == CLASSIC else ""
        text = f"nothing that the log holds differs{again}"
        found = [Cause(CauseKind.NOT_SHOWN, None, text)]
    yield from found


def _of_members(before: Side, after: Side) -> Iterator[Cause]:
    had, has = ({row["member_id"]: row for row in side.members} for side in (before, after))
    static_before = {row["group_instance_id"]: row for row in before.members if row["group_instance_id"] is not None}
    gone = {name: row for name, row in had.items() if name not in has}
    for name, row in has.items():
        instance = row["group_instance_id"]
        if name in had:
            yield from _of_one(had[name], row)
        elif instance is not None and instance in static_before:
            was = static_before[instance]
            gone.pop(was["member_id"], None)
            text = f"the static member {instance} came back as {name}, before {was['member_id']}"
            yield Cause(CauseKind.MEMBER_RESTARTED, name, text)
            yield from _of_one(was, row)
        else:
            yield Cause(CauseKind.MEMBER_JOINED, name, f"{_member(row)} joined")
    for name, row in gone.items():
        text = f"{_member(row)} is gone (the log does not say whether it left, crashed or timed out)"
        yield Cause(CauseKind.MEMBER_GONE, name, text)


def _of_one(before: Record, after: Record) -> Iterator[Cause]:
    """What a member that stayed changed."""
    name = after["member_id"]
    had, has = (set(row["topics"] or ()) for row in (before, after))
    if before["topics"] is not None and after["topics"] is not None and had != has:
        changes = [*(f"+{topic}" for topic in sorted(has - had)), *(f"-{topic}" for topic in sorted(had - has))]
        yield Cause(CauseKind.SUBSCRIPTION_CHANGED, name, f"{name} changed its subscription: {' '.join(changes)}")
    if before["rack_id"] != after["rack_id"]:
        text = f"{name} is in rack {after['rack_id'] or '(none)'}, before in {before['rack_id'] or '(none)'}"
        yield Cause(CauseKind.RACK_CHANGED, name, text)


def _of_topics(before: Counts, after: Counts) -> Iterator[Cause]:
    for topic in sorted(after):
        was, now = before[topic], after[topic]
        if was == now:
            continue
        if was is None and now is not None:
            text = f"topic {topic} was listed for the first time, with {_number(now[1], 'partition')}"
            yield Cause(CauseKind.TOPIC_APPEARED, topic, text)
        elif now is None:
            yield Cause(CauseKind.TOPIC_DELETED, topic, f"topic {topic} was deleted")
        elif was is not None and was[0] != now[0]:
            yield Cause(CauseKind.TOPIC_MADE_AGAIN, topic, f"topic {topic} was deleted and made again")
        elif was is not None:
            text = f"topic {topic} went from {_number(was[1], 'partition')} to {now[1]}"
            yield Cause(CauseKind.PARTITIONS_ADDED, topic, text)


def moved(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Iterator[Moved]:
    """Partitions with another owner than before, in order; a static member that came back is the same one."""
    now = {row["group_instance_id"]: row["member_id"] for row in after if row["group_instance_id"] is not None}
    had, has = _owners(before, now), _owners(after, {})
    for place in sorted(had.keys() | has.keys()):
        if had.get(place) != has.get(place):
            yield Moved(*place, had.get(place), has.get(place))


def _owners(members: Sequence[Mapping[str, Any]], now: Mapping[str, str]) -> dict[TopicPartition, str]:
    return {
        place: now.get(row["group_instance_id"], row["member_id"])
        for row in members
        for place in partitions(row["recorded"])
    }


def _member(row: Record) -> str:
    known = [f"{words} {row[name]}" for name, words in (("client_id", "client"), ("host", "host")) if row[name]]
    instance = f"static, {row['group_instance_id']}" if row["group_instance_id"] is not None else None
    told = ", ".join(filter(None, [instance, *known]))
    return f"{row['member_id']} ({told})" if told else str(row["member_id"])


def _number(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _sides(reader: Reader, told: Rebalance) -> dict[str, Side]:
    """The state of the rebalance and the one before it, by snapshot id."""
    ids = [each for each in (told.snapshot_id, told.previous_snapshot_id) if each is not None]
    return sides(reader, [told.group_id], ids)


def sides(reader: Reader, groups: list[str], ids: list[str]) -> dict[str, Side]:
    """States of these groups by snapshot id, which names the cluster as well."""
    condition, values = one_of("t.group_id", "group", groups)
    which, named = one_of("t.snapshot_id", "snapshot", ids)
    snapshots = records(
        reader,
        "SELECT t.snapshot_id, coalesce(t.generation, t.group_epoch) AS number, t.observed_at, t.assignor, "
        f"t.shared_topics, t.subscribed_topics FROM current_group_snapshots t WHERE {condition} AND {which}",
        **values,
        **named,
    )
    rows = records(
        reader,
        "SELECT t.snapshot_id, t.member_id, t.group_instance_id, t.client_id, t.host, t.rack_id, t.topics, t.recorded "
        f"FROM current_member_snapshots t WHERE {condition} AND {which} ORDER BY t.offset, t.member_order",
        **values,
        **named,
    )
    followed = records(
        reader,
        f"SELECT t.snapshot_id FROM current_rebalances t WHERE {condition} AND {which} AND t.scenario = :scenario "
        "AND t.round = 1 AND t.follow_up",
        scenario=BASELINE,
        **values,
        **named,
    )
    members: dict[str, list[Record]] = {}
    for row in rows:
        members.setdefault(row["snapshot_id"], []).append(row)
    withheld = {row["snapshot_id"] for row in followed}
    return {row["snapshot_id"]: _side(row, members.get(row["snapshot_id"], []), withheld) for row in snapshots}


def _side(row: Record, members: list[Record], withheld: set[str]) -> Side:
    shared = row["shared_topics"]
    return Side(
        row["snapshot_id"],
        row["number"],
        row["observed_at"],
        row["assignor"],
        frozenset(shared or row["subscribed_topics"] or ()),
        row["snapshot_id"] in withheld,
        tuple(each | {"topics": shared if each["topics"] is None else each["topics"]} for each in members),
    )


def _listed(reader: Reader, told: Rebalance, before: Side | None, after: Side) -> tuple[Counts, Counts]:
    """The topics of both states as they were listed at the time of each."""
    topics = sorted(after.topics | (before.topics if before is not None else frozenset()))
    changes = listed(reader, told.cluster_id, topics)
    return counts(changes, topics, (before or after).at), counts(changes, topics, after.at)


def listed(reader: Reader, cluster: str, topics: list[str]) -> list[Record]:
    """The changes of these topics, in order of time."""
    which, named = one_of("t.topic", "topic", topics)
    order = "t.valid_from, CASE WHEN t.partition_count IS NULL THEN 0 ELSE 1 END, t.topic_id, t.partition_count"
    return records(
        reader,
        "SELECT t.topic, t.topic_id, t.partition_count, t.valid_from FROM current_topic_snapshots t "
        f"WHERE t.cluster_id = :cluster_id AND {which} ORDER BY {order}",
        cluster_id=cluster,
        **named,
    )


def counts(changes: list[Record], topics: list[str], at: datetime) -> Counts:
    """The topics as these changes left them at a moment."""
    found: dict[str, tuple[str | None, int] | None] = dict.fromkeys(topics)
    for row in changes:
        if row["valid_from"] <= at and row["topic"] in found:
            count = row["partition_count"]
            found[row["topic"]] = None if count is None else (row["topic_id"], count)
    return found


def _rounds(reader: Reader, told: Rebalance) -> tuple[int | None, int | None]:
    """How many generations of a classic group it took until no other had to follow, and the last of them."""
    if told.group_type != CLASSIC:
        return None, None
    condition, values = matching("t.", cluster_id=told.cluster_id, group_id=told.group_id)
    later = records(
        reader,
        f"SELECT t.generation, r.follow_up FROM current_group_snapshots t JOIN (SELECT t.snapshot_id, t.follow_up "
        f"FROM current_rebalances t WHERE {condition} AND t.scenario = :scenario AND t.round = 1) r "
        f"ON r.snapshot_id = t.snapshot_id WHERE {condition} AND t.incarnation = :incarnation "
        "AND t.generation >= :generation AND t.snapshot_kind = 'generation' ORDER BY t.offset",
        scenario=BASELINE,
        incarnation=told.incarnation,
        generation=told.generation if told.generation is not None else 0,
        **values,
    )
    for number, row in enumerate(later, 1):
        if not row["follow_up"]:
            return number, row["generation"]
    return None, None


def _unowned(reader: Reader, told: Rebalance) -> Iterator[Unowned]:
    """Partitions that this state left with nobody, until somebody got them; and those that it gave an owner again."""
    condition, values = matching("t.", cluster_id=told.cluster_id, group_id=told.group_id)
    here = f"{condition} AND t.snapshot_id = :snapshot_id AND t.topic IS NOT NULL"
    columns = "t.topic, t.partition, t.at, t.offset, t.to_member_id"
    near = f"SELECT {columns} FROM current_ownership_changes t WHERE {condition}"
    rows = records(
        reader,
        "SELECT c.topic, c.partition, c.at, c.to_member_id, n.at AS other, n.to_member_id AS other_member, "
        "n.offset AS other_offset, c.offset FROM (SELECT t.topic, t.partition, t.at, t.offset, t.from_member_id, "
        f"t.to_member_id FROM current_ownership_changes t WHERE {here} "
        "AND (t.from_member_id IS NULL OR t.to_member_id IS NULL)) c "
        f"LEFT JOIN ({near}) n ON n.topic = c.topic AND n.partition = c.partition AND n.offset <> c.offset "
        "ORDER BY c.topic, c.partition, n.offset",
        snapshot_id=told.snapshot_id,
        **values,
    )
    places = dict.fromkeys((row["topic"], row["partition"]) for row in rows)
    for topic, partition in places:
        of_one = [row for row in rows if (row["topic"], row["partition"]) == (topic, partition)]
        at, offset, owner = of_one[0]["at"], of_one[0]["offset"], of_one[0]["to_member_id"]
        others = [row for row in of_one if row["other"] is not None]
        if owner is None:
            later = [row["other"] for row in others if row["other_offset"] > offset and row["other_member"] is not None]
            yield Unowned(topic, partition, at, later[0] if later else None)
        else:
            earlier = [row for row in others if row["other_offset"] < offset]
            if earlier and earlier[-1]["other_member"] is None:
                yield Unowned(topic, partition, earlier[-1]["other"], at)
