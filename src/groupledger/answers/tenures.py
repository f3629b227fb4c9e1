"""The owners of one partition over time, in each group: one after another, or, where that is allowed, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from groupledger.answers.answer_columns import listed
from groupledger.answers.names import require_names, unknown_topic
from groupledger.answers.owners import Changes, changes_of, generations, life_of, never_assigned, ownership
from groupledger.answers.reach import known, reaches
from groupledger.answers.topic_lives import topic_lives
from groupledger.core.moments import EPOCH, iso

if TYPE_CHECKING:
    from groupledger.answers.owners import Holding
    from groupledger.answers.queries import Reader, Record
    from groupledger.answers.reach import Known
    from groupledger.answers.topic_lives import TopicLife


@dataclass(frozen=True, slots=True)
class OwnerSpan:
    """A stretch of time in which a member had the partition; None: nobody of the group.

    `since` is None where the record does not reach back to it, `until` where it lasts to the end of what was asked.
    `snapshot_id` and `generation` are of the state that began it, None where that is not in the record.
    """

    cluster_id: str
    group_id: str
    topic_id: str | None
    member_id: str | None
    since: datetime | None
    until: datetime | None
    snapshot_id: str | None = None
    generation: int | None = None
    known_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class PartitionTimeline:
    """The owners of a partition between two moments, by group, in order of time; `left_off` older changes are not here.

    `notes` say why there is nothing.
    """

    topic: str
    partition: int
    since: datetime | None
    until: datetime
    spans: tuple[OwnerSpan, ...] = field(metadata=listed(OwnerSpan))
    left_off: int
    notes: tuple[str, ...]


def partition_timeline(
    reader: Reader,
    topic: str,
    partition: int,
    until: datetime,
    since: datetime | None = None,
    cluster: str | None = None,
    group: str | None = None,
    limit: int = 50,
) -> PartitionTimeline:
    """List who had the partition from one moment (None: the beginning) to another, in all groups or those like `group`.

    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP, UNKNOWN_TOPIC.
    """
    lives = topic_lives(reader, topic, cluster)
    asked = Changes(reader, *changes_of(topic, partition, until, lives, cluster, group))
    rows, total = asked.between(since or EPOCH, until, limit)
    held = ownership(reader, topic, partition, since, cluster, group).holdings if since and total == len(rows) else ()
    of_groups = _spans(held, rows)
    spans = sorted((span for of_one in of_groups for span in _named(of_one, lives, until)), key=_order)
    notes = []
    if not spans:
        require_names(reader, cluster, group)
        changed = asked.any()
        if not lives and not changed:
            raise unknown_topic(reader, topic, cluster)
        never = never_assigned(topic, partition, group)
        notes = [f"nobody is known to have had {topic}-{partition} in that time" if changed else never]
        for name, (begins, ends) in reaches(reader, []).items():
            notes.append(f"the ledger knows cluster {name} from {iso(begins)} to {iso(ends)}")
    numbered = tuple(_with_numbers(reader, spans, known(reader, cluster), until))
    return PartitionTimeline(topic, partition, since, until, numbered, total - len(rows), tuple(notes))


def _with_numbers(reader: Reader, spans: Sequence[OwnerSpan], read: Known, until: datetime) -> Iterator[OwnerSpan]:
    """Add the generation of the state that began each; limit those without an end to what is known of their cluster."""
    evidence = {(span.group_id, span.snapshot_id) for span in spans if span.snapshot_id is not None}
    found = generations(reader, [{"group_id": group, "snapshot_id": name} for group, name in sorted(evidence)])
    for span in spans:
        known_until = min(until, read.of(span.cluster_id, span.since or EPOCH)) if span.until is None else None
        number = found.get((span.cluster_id, span.group_id, span.snapshot_id or ""))
        yield replace(span, known_until=known_until, generation=number)


def _spans(held: Iterable[Holding], rows: Iterable[Record]) -> Iterator[list[OwnerSpan]]:
    """Make spans of what was held at the beginning and of each change, of one group and topic after another."""
    keys = ("cluster_id", "group_id", "life")
    begun: dict[tuple[str, str, str | None], list[OwnerSpan]] = {}
    for each in held:
        life = None if each.is_by_name else each.topic_id
        begun.setdefault((each.cluster_id, each.group_id, life), []).extend(_begun(each, life))
    changes = {key: list(some) for key, some in groupby(rows, itemgetter(*keys))}
    for key in {**begun, **changes}:
        yield list(spans(key, begun.get(key, []), changes.get(key, [])))


def _begun(holding: Holding, life: str | None) -> Iterator[OwnerSpan]:
    """Turn the holding into a span that has no end yet; none if it is not known who had the partition."""
    last, member = holding.last, holding.member
    if member is not None or (last is not None and holding.is_nobody):
        owner, began = None if member is None else member.member_id, None if last is None else last.snapshot_id
        yield OwnerSpan(holding.cluster_id, holding.group_id, life, owner, holding.since, None, began)


def spans(
    key: tuple[str, str, str | None], begun: Sequence[OwnerSpan], changes: Sequence[Record]
) -> Iterator[OwnerSpan]:
    """Make the spans of one group and topic id from its changes in order of offset; what lasts has no end.

    A member that loses the partition had it since `held_since`, where no change before it says more. Nobody has it from
    when the last owner loses it until another gets it; what was before the first change is not known.
    """
    lasting = {span.member_id: span for span in begun}
    for _, together in groupby(changes, itemgetter("offset")):
        rows = list(together)
        at, snapshot_id = rows[0]["at"], rows[0]["snapshot_id"]
        for lost in sorted({row["from_member_id"] for row in rows} - {None}):
            since = next(row["held_since"] for row in rows if row["from_member_id"] == lost)
            yield replace(lasting.pop(lost, OwnerSpan(*key, lost, since, None)), until=at)
        got = sorted({row["to_member_id"] for row in rows} - {None})
        if got and None in lasting:
            yield replace(lasting.pop(None), until=at)
        if not got and not lasting:
            got = [None]
        lasting |= {member: OwnerSpan(*key, member, at, None, snapshot_id) for member in got}
    yield from lasting.values()


def _named(spans_of_one: Sequence[OwnerSpan], lives: tuple[TopicLife, ...], until: datetime) -> Iterator[OwnerSpan]:
    """Add the id of the topic that the name meant, if the log gives none and it can be inferred."""
    lost = {span.until for span in spans_of_one if span.member_id is not None}
    for span in spans_of_one:
        topic_id = span.topic_id
        if topic_id is None and span.since is not None:
            held, is_new = (span.since, span.until or until), span.member_id is None or span.since not in lost
            topic_id = life_of(lives, span.cluster_id, held, handed_over=not is_new)
        yield replace(span, topic_id=topic_id)


def _order(span: OwnerSpan) -> tuple[str, str, str, datetime, bool, datetime, str]:
    since, until = span.since or EPOCH, span.until or datetime.max.replace(tzinfo=EPOCH.tzinfo)
    life = span.topic_id or ""
    return span.cluster_id, span.group_id, life, since, span.until is None, until, span.member_id or ""
