"""What a ledger says of a day, held against what was true: causes, owners, and numbers.

A rebalance is right where all that is said of its cause is true, and something is said; not known where the answer
says that; false where anything is said that is not true, or where nothing is said to differ though something does.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from groupledger.answers.causes import CauseKind
from groupledger.answers.explanation import explain
from groupledger.answers.owners import ownership
from groupledger.answers.timeline import TimelineEntry, timeline
from groupledger.core.moments import from_millis, millis
from tests.live.truth import facts as f
from tests.live.truth.facts import Facts, GroupFacts, Place, Token, Window

SEED = 48
OWNERS_ASKED = 200
EXPLAINED = 3
"""Of so many rebalances one is explained, too, unless another number is wanted."""
SAID = {
    **{str(kind): str(kind) for kind in CauseKind if kind != "converted"},
    "member-replaced": f.TAKEN_OVER,
    "converted consumer": f.UPGRADED,
    "converted classic": f.DOWNGRADED,
}
"""The cause, as `facts` names it, that each kind of the answers says."""
MOVED: Token = (f.COORDINATOR, None)
ABOUT_NOTHING = {f.EMPTIED, f.GROUP_DELETED, f.ASSIGNOR, f.UPGRADED, f.DOWNGRADED, f.COORDINATOR}
FOLLOW_UP, BORN, NOTHING = str(CauseKind.FOLLOW_UP), str(CauseKind.GROUP_BORN), str(CauseKind.NOT_SHOWN)
DIFFERS_ALONE = ("that nobody had found an owner", "assigned for the first time", "is assigned again")
"""How it is said what differs in the record, which is true, where it does not show why."""
OR_TAKEN_OVER, EITHER = "or another process took the instance id over", "member-restarted or taken over"
"""How it is said that a member has a new id for one of two reasons, of which a classic group's record shows neither."""
LEFT = "is gone: it left ("
"""How it is said that a member left and nothing else; a client whose poll is late says so itself and leaves."""
UNNAMED = "id:"
"""How a topic begins that no listing names."""


class Outcome(StrEnum):
    """What became of an answer."""

    RIGHT = "right"
    NOT_KNOWN = "not known"
    FALSE = "false"


@dataclass(frozen=True)
class Judged:
    """A rebalance: what was said, what was true."""

    entry: TimelineEntry
    window: Window
    outcome: Outcome
    why: str

    @property
    def line(self) -> str:
        """A row of a table."""
        said = "; ".join(cause.what for cause in self.entry.causes)
        counted = f"{self.entry.incarnation}/{self.entry.generation}"
        return f"| {self.entry.group_id} | {counted} | {self.outcome} | {self.why} | {said} | {self.window.title} |"


@dataclass
class Score:
    """Of one ledger. `numbers` and `owners` that differ are told in words."""

    causes: list[Judged] = field(default_factory=list)
    owners: Counter[Outcome] = field(default_factory=Counter)
    numbers: Counter[Outcome] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)

    def counted(self) -> Counter[Outcome]:
        """How many causes are right."""
        return Counter(each.outcome for each in self.causes)

    @property
    def false(self) -> list[str]:
        """All that is false."""
        return [*(each.line for each in self.causes if each.outcome is Outcome.FALSE), *self.differing]


def score(reader: Any, day: Facts, moments: Sequence[tuple[str, Place, int]], explained: int = EXPLAINED) -> Score:
    """Ask a ledger; of so many rebalances (`explained`) explain one."""
    found, known = Score(), _known(reader)
    day.named(_clients(reader))
    for group in day.groups.values():
        if group.group not in known:
            continue
        entries = timeline(reader, group.group, limit=10_000).entries
        found.causes += judged(day, group, entries)
        if group.has_listeners:
            _hold_numbers(found, day, group, entries)
        _hold_explained(found, reader, group, entries[::explained])
    for name, place, at in moments:
        if name in known:
            _hold_owner(found, reader, day, name, place, at)
    return found


def _known(reader: Any) -> set[str]:
    rows = reader.query("SELECT DISTINCT group_id FROM current_group_snapshots")
    return {str(each) for each in rows["group_id"].to_pylist()}


def _clients(reader: Any) -> dict[str, str]:
    """Of members that no listener and no coordinator tells of, as those of share groups, the record's own word."""
    rows = reader.query("SELECT DISTINCT member_id, client_id FROM current_member_snapshots")
    columns = (rows[name].to_pylist() for name in ("member_id", "client_id"))
    return dict(zip(*columns, strict=True))


def judged(day: Facts, group: GroupFacts, entries: Sequence[TimelineEntry]) -> Iterator[Judged]:
    """Each rebalance whose cause is known."""
    for window in group.windows:
        here = [each for each in entries if window.since <= millis(each.began_at) < window.until]
        if not window.as_meant:
            continue
        told = [_told(day, each) for each in here]
        if window.act["act"] == "broker":  # what else follows from it, no client writes down
            yield from (Judged(each.entry, window, Outcome.RIGHT, "") for each in told if MOVED in each.possible)
            continue
        missing = _missing(window, {token for each in told for token in each.sure | each.possible})
        before: set[Token] = set()
        for number, each in enumerate(told):
            if not _is_rebalance(window, each, entries):
                continue
            outcome, why = _outcome(window, each, before)
            if outcome is Outcome.RIGHT and missing and number == 0:
                outcome, why = Outcome.FALSE, f"not said: {_words(missing)}"
            before |= each.sure
            yield Judged(each.entry, window, outcome, why)


def _is_rebalance(window: Window, told: Told, entries: Sequence[TimelineEntry]) -> bool:
    """Whether the ledger has a state before it: that it begins with a state is said, and nothing of a cause."""
    earlier = entries[: entries.index(told.entry)]
    begins = (BORN, None) in told.sure and not any(each.members for each in earlier)
    return not begins or (window.act["act"] == "join" and not window.members)


def _first(entries: Sequence[TimelineEntry]) -> TimelineEntry | None:
    """The first state that has members: compaction may have left an end before it."""
    return next((each for each in entries if each.members), None)


@dataclass(frozen=True)
class Told:
    """What is said of a rebalance, and what is said to be possible, or to differ for a reason that is not shown."""

    entry: TimelineEntry
    sure: set[Token]
    possible: set[Token]


def _told(day: Facts, entry: TimelineEntry) -> Told:
    possible = {cause for cause in entry.causes if getattr(cause, "possible", False) or _differs_alone(cause)}
    return Told(
        entry,
        {_token(day, cause) for cause in entry.causes if cause not in possible},
        {_token(day, cause) for cause in possible},
    )


def _differs_alone(cause: Any) -> bool:
    return str(cause.kind) == f.APPEARED and any(words in cause.what for words in DIFFERS_ALONE)


def _outcome(window: Window, told: Told, before: set[Token]) -> tuple[Outcome, str]:
    true, kinds = _true(window), {kind for kind, _ in told.sure}
    if wrong := (told.sure | told.possible & {MOVED}) - true - {(kind, None) for kind in (FOLLOW_UP, BORN, NOTHING)}:
        return Outcome.FALSE, f"said: {_words(wrong)}"
    alone = {token for token in told.possible if token[0] == f.APPEARED}
    if (told.sure | alone) & true:
        return Outcome.RIGHT, ""
    if BORN in kinds:
        first = window.act["act"] == "join" and not window.members
        return (Outcome.RIGHT, "") if first else (Outcome.NOT_KNOWN, "the ledger begins with it")
    after = bool(before & true) or (BORN, None) in before
    if FOLLOW_UP in kinds:
        return (Outcome.RIGHT, "") if after else (Outcome.FALSE, "said: follow-up")
    if after and not told.entry.moved:
        return Outcome.RIGHT, ""
    if told.possible or any(words in cause.what for words in DIFFERS_ALONE for cause in told.entry.causes):
        return Outcome.NOT_KNOWN, "said to be possible, or what differs alone"
    if not told.entry.moved and told.entry.state != "Empty":
        return Outcome.NOT_KNOWN, "the record shows no difference"
    return Outcome.FALSE, "said: nothing differs"


def _true(window: Window) -> set[Token]:
    """What may be said. That a topic is there is true where it was made again, or its first member has come."""
    topics = set(window.act.get("topics", ()))
    if (either := _either(window.causes)) != window.causes:
        return {*window.causes, *either}
    if window.act["act"] == "remake" or (window.act["act"] == "join" and not window.members):
        return {*window.causes} | {(f.APPEARED, topic) for topic in topics}
    return {*window.causes} | ({(f.EMPTIED, None)} if window.empties else set())


def _missing(window: Window, every: set[Token]) -> set[Token]:
    """What is said nowhere, though the record of the time before is there."""
    if (BORN, None) in every or (f.EMPTIED, None) in every & _true(window):
        return set()
    if window.act["act"] == "remake" and every & _true(window):
        return set()
    return set() if _either(window.causes) <= every else {*window.causes} - every


def _either(causes: Iterable[Token]) -> frozenset[Token]:
    """The same, with both causes of a new member id as one."""
    return frozenset((EITHER if kind in (f.RESTARTED, f.TAKEN_OVER) else kind, about) for kind, about in causes)


def _token(day: Facts, cause: Any) -> Token:
    kind = SAID.get(str(cause.kind)) or SAID[f"{cause.kind} {cause.about}"]
    if kind == f.RESTARTED and OR_TAKEN_OVER in cause.what:
        kind = EITHER
    if kind in ABOUT_NOTHING or cause.about is None:
        return kind, None
    return kind, day.clients.get(cause.about, cause.about)


def _words(tokens: set[Token]) -> str:
    return ", ".join(" ".join(filter(None, token)) for token in sorted(tokens, key=str))


def quiet_moments(day: Facts, number: int = OWNERS_ASKED) -> list[tuple[str, Place, int]]:
    """Random groups, partitions and moments near which nothing changes."""
    chance = random.Random(SEED)  # noqa: S311 - the same moments each time
    groups = [group for group in day.groups.values() if group.has_listeners]
    found: list[tuple[str, Place, int]] = []
    while len(found) < number:
        group = chance.choice(groups)
        at = chance.randrange(group.calls[0]["ms"], group.calls[-1]["ms"])
        topics = sorted(topic for topic in group.subscribed(at) if not topic.startswith("^"))
        if not topics or not group.is_quiet(at):
            continue
        topic = chance.choice(topics)
        count = day.partitions(topic, at)
        if count:
            found.append((group.group, (topic, chance.randrange(count)), at))
    return found


def _hold_owner(found: Score, reader: Any, day: Facts, name: str, place: Place, at: int) -> None:
    true = day.groups[name].owners(at).get(place)
    answer = ownership(reader, *place, from_millis(at), group=name)
    said = {_owner(day, each) for each in answer.holdings}
    if said <= {"not known"}:
        found.owners[Outcome.NOT_KNOWN] += 1
    elif said == {true}:
        found.owners[Outcome.RIGHT] += 1
    else:
        found.owners[Outcome.FALSE] += 1
        found.differing.append(f"owner of {place[0]}-{place[1]} in {name} at {at}: said {said}, true {true}")


def _owner(day: Facts, holding: Any) -> str | None:
    if holding.member is None:
        return None if holding.is_nobody else "not known"
    owner = holding.member.member_id
    return str(day.clients.get(owner, owner))


def _hold_numbers(found: Score, day: Facts, group: GroupFacts, entries: Sequence[TimelineEntry]) -> None:
    """Moves and partitions without an owner, between two moments at which the group is quiet."""
    recorded: dict[Place, str] = {}
    first = _first(entries)
    for window in group.windows:
        here = [each for each in entries if window.since <= millis(each.began_at) < window.until]
        for entry in here:
            _move(day, recorded, entry)
        settled = next((each for each in group.settled if window.since <= each <= window.until), None)
        if settled is None or not window.as_meant or first is None or settled < millis(first.began_at):
            continue
        known = not any(topic.startswith(UNNAMED) for topic, _ in recorded)
        about = f"{group.group} after {window.title}"
        _hold(found, f"{about}: owners", recorded, group.owners(settled), tells=known)
        unowned = day.unowned(group, settled)
        if here and here[-1].unowned is not None and unowned is not None:
            _hold(found, f"{about}: unowned", {*here[-1].unowned} if group.present(settled) else set(), unowned)


def _hold_explained(found: Score, reader: Any, group: GroupFacts, entries: Sequence[TimelineEntry]) -> None:
    """`explain` says of a rebalance what the timeline says, and of a member that is gone how it went, if anything."""
    for entry in entries:
        if entry.generation is None:
            continue
        told = explain(reader, entry.group_id, generation=entry.generation)
        if told.rebalance.snapshot_id != entry.snapshot_id:
            continue
        said, also = ([(each.kind, each.about) for each in causes] for causes in (told.causes, entry.causes))
        _hold(found, f"{entry.group_id} {entry.generation}: explained", {*said}, {*also})
        _hold(found, f"{entry.group_id} {entry.generation}: explained moves", {*told.moved}, {*entry.moved})
        act = next(w.act["act"] for w in reversed(group.windows) if w.since <= millis(entry.began_at))
        if any(LEFT in cause.what for cause in told.causes) and act not in ("leave", "hang"):
            found.numbers[Outcome.FALSE] += 1
            found.differing.append(f"{entry.group_id} {entry.generation}: said that it left, true: {act}")


def _move(day: Facts, recorded: dict[Place, str], entry: TimelineEntry) -> None:
    """A static member goes on with what it has under its new member id, which is no move."""
    for cause in entry.causes:
        if cause.was is not None and cause.about is not None:
            was, now = (day.clients.get(each, each) for each in (cause.was, cause.about))
            recorded.update({place: now for place, client in recorded.items() if client == was})
    for each in entry.moved:
        place = each.topic, each.partition
        if each.to_member_id is None:
            recorded.pop(place, None)
        else:
            recorded[place] = day.clients.get(each.to_member_id, each.to_member_id)


def _hold(found: Score, about: str, said: Any, true: Any, *, tells: bool = True) -> None:
    if not tells:
        found.numbers[Outcome.NOT_KNOWN] += 1
    elif said == true:
        found.numbers[Outcome.RIGHT] += 1
    else:
        found.numbers[Outcome.FALSE] += 1
        found.differing.append(f"{about}: {_difference(said, true)}")


def _difference(said: Any, true: Any) -> str:
    if isinstance(said, dict):
        places = sorted(place for place in said.keys() | true.keys() if said.get(place) != true.get(place))
        return ", ".join(f"{at[0]}-{at[1]} said {said.get(at)}, true {true.get(at)}" for at in places)
    return f"said {sorted(said - true, key=str)} that have, not said {sorted(true - said, key=str)}"
