"""What became of topics between two states of a group.

The records come first: partitions that were never assigned before, topics that are no longer assigned, topic ids. A
topic listing is of the time of an ingest, so a change that it shows may be older, or not yet have reached the group: it
confirms what the records show, and is otherwise a possible cause. That a topic is listed for the first time is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from groupledger.answers.causes import Cause, CauseKind, TopicFindings, partition_count
from groupledger.answers.generations import CLASSIC
from groupledger.answers.topics import life_at
from groupledger.core.moment import iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from groupledger.answers.causes import Side
    from groupledger.answers.rows import Record
    from groupledger.answers.topics import TopicLife

_DELETED, _REPLACED, _CREATED = "listed as gone", "listed with another id", "listed again"
_GROWN = "listed with more partitions"


class GivenPartition(NamedTuple):
    """A partition that a member of the group has had: `offset` is that of the first record that gave it to one."""

    topic: str | None
    topic_id: str | None
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """What a ledger knows of topics beside two states: how they were listed, by name, and what members were given."""

    lives: Mapping[str, tuple[TopicLife, ...]]
    given: Sequence[GivenPartition]


@dataclass(frozen=True, slots=True)
class _Listed:
    """A change that a listing of `at` shows: the topic had been as before since `after`, by a listing, too."""

    what: str
    after: datetime
    at: datetime

    def __str__(self) -> str:
        return f"{self.what} at {iso(self.at)}, as it was before since {iso(self.after)}"


class _Topic(NamedTuple):
    """The partitions of a topic that members had and have, by which topic ids, and those that any had earlier.

    `known_earlier`: whether members had partitions of any topic of that name.
    """

    had: set[int]
    has: set[int]
    ids_before: set[str]
    ids_after: set[str]
    earlier: set[int]
    known_earlier: bool


class TopicChanges:
    """The topics of two neighbouring states. A group that comes from nothing shows nothing of topics."""

    def __init__(self, before: Side, after: Side, known: KnownTopics) -> None:
        """Take topics by name; an id that the ledger has no name for stands for itself."""
        self._before, self._after, self._known = before, after, known
        self._names = {life.topic_id: topic for topic, lives in known.lives.items() for life in lives if life.topic_id}
        entries = [entry for side in (before, after) for row in side.members for entry in _entries(row)]
        self._names |= {entry["topic_id"]: entry["topic"] for entry in entries if entry["topic"] is not None}
        # A classic group's records have no topic ids: those of its rows are from listings.
        self._has_ids = CLASSIC not in (before.group_type, after.group_type)
        self._sure: list[Cause] = []
        self._possible: list[Cause] = []
        self._guesses: list[Cause] = []
        self._late: list[str] = []

    def findings(self) -> TopicFindings:
        """Return what the records show, and changes that listings show where they may have led to the state."""
        given_again = 0
        same = self._before.topics == self._after.topics
        for name, topic in self._topics():
            was, is_now = name in self._before.topics, name in self._after.topics
            if was:
                given_again += len((topic.has - topic.had) & topic.earlier)
            if (was and is_now) or (same and name.startswith("id:")):
                self._of_subscribed(name, topic)
            elif was and topic.had:
                self._of_dropped(name)
            elif is_now:
                self._of_found(name)
        sure, possible, guesses = map(tuple, (self._sure, self._possible, self._guesses))
        return TopicFindings(sure, possible, guesses, given_again, tuple(self._late))

    def _topics(self) -> Iterator[tuple[str, _Topic]]:
        if not all(side.members and side.complete for side in (self._before, self._after)):
            return
        before, after = self._assigned(self._before), self._assigned(self._after)
        given: dict[str, list[GivenPartition]] = {}
        for each in self._known.given:
            if each.offset <= self._before.offset:
                given.setdefault(self._name(each.topic, each.topic_id), []).append(each)
        nothing: tuple[set[int], set[str]] = (set(), set())
        for name in sorted(before.keys() | after.keys() | self._before.topics | self._after.topics):
            (had, ids_before), (has, ids_after) = before.get(name, nothing), after.get(name, nothing)
            of_name = given.get(name, [])
            same = [
                each
                for each in of_name
                if not (self._has_ids and ids_after) or each.topic_id is None or each.topic_id in ids_after
            ]
            earlier = {each.partition for each in same} | (had if not ids_before or ids_before & ids_after else set())
            yield name, _Topic(had, has, ids_before, ids_after, earlier, bool(had or of_name))

    def _name(self, topic: str | None, topic_id: str | None) -> str:
        return topic or self._names.get(topic_id or "") or f"id:{topic_id}"

    def _assigned(self, side: Side) -> dict[str, tuple[set[int], set[str]]]:
        """Return the partitions that members have or are to get, and the topic ids, by topic."""
        found: dict[str, tuple[set[int], set[str]]] = {}
        for entry in (entry for row in side.members for entry in _entries(row)):
            numbers, ids = found.setdefault(self._name(entry["topic"], entry["topic_id"]), (set(), set()))
            numbers.update(entry["partitions"])
            ids.update([entry["topic_id"]] if self._has_ids and entry["topic_id"] is not None else [])
        return found

    def _of_subscribed(self, name: str, topic: _Topic) -> None:
        """Return the cause in a topic that members subscribed to before, and still do."""
        if topic.has and topic.ids_after and topic.known_earlier and not topic.earlier:
            text = f"topic {name} was deleted and made again: it has another id"
            self._sure.append(Cause(CauseKind.TOPIC_MADE_AGAIN, name, text))
        elif topic.has and not topic.earlier:
            self._of_first(name, topic)
        elif topic.has and not topic.had:
            # A cooperative leader may have withheld all of a topic that has few partitions.
            if not self._after.is_cooperative or self._within(name, _CREATED) is not None:
                text = f"topic {name} is assigned again: nobody had any of its partitions"
                self._sure.append(Cause(CauseKind.TOPIC_APPEARED, name, text))
        elif topic.has:
            self._of_assigned(name, topic)
        elif topic.had:
            self._of_vanished(name)

    def _of_first(self, name: str, topic: _Topic) -> None:
        """Return the cause in a topic without earlier owners: a new one, unless the leader did not know it."""
        text = f"topic {name} is assigned for the first time, with {partition_count(len(topic.has))}"
        if self._listed_before(name) is not None:
            self._late.append(f"{text}; it was listed before")
        elif self._has_ids or self._within(name, _CREATED) is not None:
            self._sure.append(Cause(CauseKind.TOPIC_APPEARED, name, f"{text}; it was subscribed to before"))
        else:
            text = f"topic {name} is new: it is assigned for the first time (or the leader had not known it)"
            self._guess(CauseKind.TOPIC_APPEARED, name, text)

    def _of_assigned(self, name: str, topic: _Topic) -> None:
        """Return the cause in a topic of which members had and have partitions."""
        was, now = max(topic.earlier) + 1, max(topic.has) + 1
        listed = self._within(name, _REPLACED, _DELETED)
        if listed is not None and not topic.ids_after:
            self._perhaps(CauseKind.TOPIC_MADE_AGAIN, name, "was deleted and made again", listed)
        elif was < now:
            self._of_more(name, was, now)

    def _of_more(self, name: str, was: int, now: int) -> None:
        """More partitions than any state before had: new ones, unless a leader left them out of all of those."""
        text = f"topic {name} went from {partition_count(was)} to {now}"
        listed = self._listed_before(name)
        if listed is not None and listed.partition_count >= now:
            self._late.append(f"partitions of topic {name} from {was} on are assigned for the first time")
            if any(life.partition_count < now for life in self._known.lives[name] if life.since < listed.since):
                why = f"listed with {listed.partition_count} since {iso(listed.since)}, and assigned only now"
                self._guess(CauseKind.PARTITIONS_ADDED, name, f"{text} ({why})")
        elif self._has_ids or self._within(name, _GROWN) is not None:
            self._sure.append(Cause(CauseKind.PARTITIONS_ADDED, name, text))
        elif not self._same_members:
            what = f"went from {partition_count(was)} to {now}"
            known = self._later(name, _GROWN) or "or the leader before had left them out"
            self._perhaps(CauseKind.PARTITIONS_ADDED, name, what, known)
        elif self._begins_with_withheld:
            self._guess(
                CauseKind.PARTITIONS_ADDED, name, f"{text} (or the state before, the first known, withheld them)"
            )
        else:
            self._sure.append(Cause(CauseKind.PARTITIONS_ADDED, name, text))

    @property
    def _same_members(self) -> bool:
        names = ({row["member_id"] for row in side.members} for side in (self._before, self._after))
        return next(names) == next(names)

    @property
    def _begins_with_withheld(self) -> bool:
        """Whether the state before is the first that the ledger has, and may have withheld partitions."""
        is_first = all(each.offset >= self._before.offset for each in self._known.given)
        return is_first and self._before.is_cooperative and len(self._before.members) > 1

    def _of_vanished(self, name: str) -> None:
        """Return the cause in a topic of which no member has a partition any more."""
        if self._within(name, _DELETED, _REPLACED) is not None:
            self._sure.append(Cause(CauseKind.TOPIC_DELETED, name, f"topic {name} was deleted"))
            return
        listed = self._later(name, _DELETED, _REPLACED)
        gone = "was deleted: nobody has any of its partitions any more"
        if listed is not None:
            self._perhaps(CauseKind.TOPIC_DELETED, name, gone, listed)
        else:
            # A cooperative leader may withhold all of a topic that has few partitions, and a leader may not know one.
            self._guess(CauseKind.TOPIC_DELETED, name, f"topic {name} {gone} (or the leader left it out)")

    def _of_dropped(self, name: str) -> None:
        """Return the cause in a topic without subscribers: clients with a pattern drop one that is deleted."""
        if self._within(name, _DELETED, _REPLACED) is not None:
            self._sure.append(Cause(CauseKind.TOPIC_DELETED, name, f"topic {name} was deleted"))
        elif (listed := self._later(name, _DELETED, _REPLACED)) is not None:
            self._perhaps(CauseKind.TOPIC_DELETED, name, "was deleted", listed)

    def _of_found(self, name: str) -> None:
        """Return the cause in a topic without earlier subscribers: patterns find one that is made again."""
        listed = self._within(name, _CREATED, _REPLACED) or self._later(name, _CREATED, _REPLACED)
        if listed is not None:
            self._perhaps(CauseKind.TOPIC_MADE_AGAIN, name, "was made again", listed)

    def _perhaps(self, kind: CauseKind, name: str, what: str, why: _Listed | str) -> None:
        self._possible.append(Cause(kind, name, f"possibly: topic {name} {what} ({why})", possible=True))

    def _guess(self, kind: CauseKind, name: str, text: str) -> None:
        self._guesses.append(Cause(kind, name, f"possibly: {text}", possible=True))

    def _listed_before(self, name: str) -> TopicLife | None:
        """Return the topic as it was listed at the time of the state before."""
        return life_at(self._known.lives.get(name, ()), self._before.at)

    def _within(self, name: str, *what: str) -> _Listed | None:
        """Return the first such change that was listed between the two records."""
        return next((each for each in self._listed(name, what) if self._before.at < each.at <= self._after.at), None)

    def _later(self, name: str, *what: str) -> _Listed | None:
        """Return the first such change that was listed after them, and may have happened between them."""
        return next((each for each in self._listed(name, what) if each.after < self._after.at < each.at), None)

    def _listed(self, name: str, what: tuple[str, ...]) -> Iterator[_Listed]:
        lives = self._known.lives.get(name, ())
        found = []
        for one, other in zip_longest(lives, lives[1:]):
            if one.until is not None and (other is None or one.until < other.since):
                found.append(_Listed(_DELETED, one.since, one.until))
                found += [_Listed(_CREATED, one.until, other.since)] if other is not None else []
            elif other is not None and None not in (ids := (one.topic_id, other.topic_id)) and len(set(ids)) > 1:
                found.append(_Listed(_REPLACED, one.since, other.since))
            elif other is not None and one.partition_count < other.partition_count:
                found.append(_Listed(_GROWN, one.since, other.since))
        return (each for each in found if each.what in what)


def _entries(row: Record) -> list[Mapping[str, Any]]:
    return [*(row["recorded"] or ()), *(row.get("target") or ())]
