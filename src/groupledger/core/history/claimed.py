"""Where a member's claim and the coordinator's record disagree: what the assignor was told is not what was held.

Compared are the partitions that a member says it owns with those recorded for it one snapshot before; a static member
that came back is compared with its predecessor of the same instance id. Members that state no claim are not, nor those
of assignors that read none (range, roundrobin), whose empty list says nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from groupledger.core.findings import CLAIM_DIFFERS, STALE_CLAIM, Invariant, Severity
from groupledger.core.history.assigned import ClassicMember
from groupledger.core.history.payloads import ReadSubscription
from groupledger.core.history.rows import LogRow
from groupledger.core.history.spans import topic_spans
from groupledger.core.history.topics import TopicHistory
from groupledger.core.history.writer import Generation, HistoryWriter
from groupledger.core.registry import READING_CLAIMS

STALE = "stale"
NOT_JUDGED = "not-judged"

NumbersByTopic = dict[str, set[int]]
"""Topic -> partitions."""


class ClaimPeriod(NamedTuple):
    """What lies between a group's record of `generation` and the next one, of generation `following`; times in ms."""

    topics: TopicHistory
    generation: int
    following: int
    before_ms: int
    now_ms: int

    def changed(self, topic: str) -> bool:
        """Whether the topic of that name was deleted, or made again, between the two."""
        before = self.topics.as_of(topic, self.before_ms)
        now = self.topics.as_of(topic, self.now_ms)
        return before is not None and (now is None or now[0] != before[0])

    def is_missing(self, claimed: int | None) -> bool:
        """Whether a claim is, or may be, of a generation whose record is not in the log.

        Kafka dates a claim by its generation. One without a date may be of any generation since the record before.
        """
        if claimed is None:
            return self.following > self.generation + 1
        return self.generation < claimed < self.following


class Disagreement(NamedTuple):
    """One member's claim against what it held."""

    claimed: NumbersByTopic
    held: NumbersByTopic
    topics: frozenset[str]  # of the member's subscription
    generation: int | None
    was_member: bool
    has_predecessor: bool

    @property
    def beyond(self) -> NumbersByTopic:
        """Claimed and not held."""
        return less(self.claimed, self.held)

    @property
    def missing(self) -> NumbersByTopic:
        """Held and not claimed."""
        return less(self.held, self.claimed)


def less(partitions: NumbersByTopic, taken: NumbersByTopic) -> NumbersByTopic:
    """Topic -> partitions that are not taken; topics with none left out."""
    rest = {topic: numbers - taken.get(topic, set()) for topic, numbers in partitions.items()}
    return {topic: numbers for topic, numbers in rest.items() if numbers}


def check_claims(
    writer: HistoryWriter,
    row: LogRow,
    spoken: tuple[str | None, list[ClassicMember]],
    last: Generation,
    generation: int,
) -> None:
    """CLAIM_DIFFERS and STALE_CLAIM, at most one a member; `spoken` is the assignor and who spoke since `last`.

    After a record that could not be read it is not known what was held, and nothing is compared.
    """
    assignor, members = spoken
    if writer.state.hole:
        return
    predecessors: dict[str, str] | None = None
    for wire, said, _, _ in members:
        if said is None or not is_compared(said, assignor):
            continue
        was_member, predecessor = wire.member_id in last.members, None
        if not was_member and wire.group_instance_id is not None:
            predecessors = predecessors or by_instance(last)
            predecessor = predecessors.get(wire.group_instance_id)
        held = writer.state.ownership.held_by(predecessor or wire.member_id)
        claimed = claimed_by(said)
        if claimed != held:
            is_known = was_member, predecessor is not None
            claim = Disagreement(claimed, held, frozenset(said.topics), said.claim.generation, *is_known)
            period = ClaimPeriod(writer.topics, last.number, generation, last.timestamp_ms, row.timestamp_ms)
            broken, severity, evidence = finding(claim, period)
            writer.found(broken, row, evidence, severity=severity, member_id=wire.member_id)


def is_compared(said: ReadSubscription, assignor: str | None) -> bool:
    """Whether the member states a claim, and an empty one means something under this assignor."""
    return said.states_claim and (bool(said.claim.owned) or assignor in READING_CLAIMS)


def by_instance(generation: Generation) -> dict[str, str]:
    """Instance id -> member id of the static members."""
    return {instance: member for member, instance in generation.members.items() if instance is not None}


def claimed_by(said: ReadSubscription) -> NumbersByTopic:
    """Topic -> partitions of the claim; repeats are one."""
    claimed: NumbersByTopic = {}
    for topic, partitions in said.claim.owned:
        if partitions:
            known = claimed.get(topic)
            claimed[topic] = set(partitions) if known is None else known.union(partitions)
    return claimed


def finding(claim: Disagreement, period: ClaimPeriod) -> tuple[Invariant, Severity, str]:
    """The finding: what is claimed beyond the record, what is left out, and how that may have come."""
    how, severity = explain(claim, period)
    beyond, missing = topic_spans(claim.beyond), topic_spans(claim.missing)
    said = "no generation" if claim.generation is None else f"generation {claim.generation}"
    if how == NOT_JUDGED:
        lacks = f"{said}, which the log does not have"
        if claim.generation is None:
            lacks = f"{said}, and the log does not have those between {period.generation} and {period.following}"
        evidence = (
            f"{how}: claims {beyond} that it did not hold in generation {period.generation}, leaves out {missing} that "
            f"it held there; the claim is of {lacks}"
        )
        return CLAIM_DIFFERS, severity, evidence
    evidence = (
        f"{how}: claims {beyond} that it did not hold, leaves out {missing} that it held; the claim is of {said}, "
        f"the record before of generation {period.generation}"
    )
    return (STALE_CLAIM if how == STALE else CLAIM_DIFFERS), severity, evidence


def explain(claim: Disagreement, period: ClaimPeriod) -> tuple[str, Severity]:
    """(how the difference came, severity). Only what no normal course of a group explains is a warning."""
    if claim.has_predecessor and not claim.claimed:
        return "static-replacement", Severity.INFO
    if claim.generation is not None and claim.generation < period.generation and claim.claimed:
        return STALE, Severity.WARNING
    if not claim.claimed:
        return "eager-empty", Severity.INFO
    if period.is_missing(claim.generation):
        return NOT_JUDGED, Severity.INFO
    unchanged = {topic for topic in claim.beyond.keys() | claim.missing.keys() if not period.changed(topic)}
    if not unchanged:
        return "topic-deleted", Severity.INFO
    # A member gives up what it no longer subscribes to before it rejoins; it has no reason to claim more of it.
    if unchanged <= claim.missing.keys() - claim.topics - claim.beyond.keys():
        return "unsubscribed", Severity.INFO
    if not claim.was_member and not claim.has_predecessor:
        return "not-a-member-before", Severity.WARNING
    return "other", Severity.WARNING
