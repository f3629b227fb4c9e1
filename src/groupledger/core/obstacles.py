"""Declare every obstacle between a classic group and KIP-848, with its stable code and effect.

Read from kafka-group-coordinator 4.4.0: a coordinator converts a classic group where the first KIP-848 member joins,
if `group.consumer.migration.policy` allows it, the protocol type is `consumer`, every subscription decodes, the group
is not larger than `group.consumer.max.size`, and no recorded assignment has user data.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, StrEnum


class Effect(StrEnum):
    """An obstacle's effect on the conversion, the gravest first."""

    BLOCKS = "blocks"  # the coordinator refuses the conversion
    UNKNOWN = "unknown"  # the ledger does not show whether it works
    STAYS_CLASSIC = "stays-classic"  # the group is converted, and a member stays a classic one
    CAUTION = "caution"  # it works; take care of this first


class Readiness(StrEnum):
    """Whether a group can be converted while it runs."""

    BLOCKED = "blocked"
    UNKNOWN = "unknown"
    CONVERTS = "converts"  # and some members stay classic ones
    READY = "ready"
    CONVERTED = "converted"  # its coordinator already assigns


class Obstacle(Enum):
    """One obstacle: its name is its code; `what` describes it for any group that has it. The gravest come first."""

    NOT_CONSUMERS = Effect.BLOCKS, "its protocol type is not `consumer` (Kafka Connect, a registry): never converted"
    STREAMS = (
        Effect.BLOCKS,
        "Kafka Streams with its own assignor: it has a group type of its own, and no `consumer` one",
    )
    ASSIGNMENT_HAS_USER_DATA = (
        Effect.BLOCKS,
        "its leader writes user data into assignments: the coordinator refuses to convert the group, since that would "
        "be lost (KAFKA-18134)",
    )
    NO_MEMBERS_RECORDED = Effect.UNKNOWN, "the ledger has no state of the group with members"
    INCOMPLETE_RECORD = Effect.UNKNOWN, "the log was cut where the last state with members was written"
    ASSIGNMENT_NOT_KEPT = (
        Effect.UNKNOWN,
        "the ledger does not have the bytes of the last record (tables as input, retention, redaction): assignments "
        "may have user data",
    )
    RECORD_NOT_READ = (
        Effect.UNKNOWN,
        "a later record of the group is in quarantine: a coordinator refuses a group whose subscriptions it cannot "
        "read, and this one may be such",
    )
    SUBSCRIPTION_NOT_KNOWN = (
        Effect.UNKNOWN,
        "a member's subscription is empty, or of a version that Kafka 4.4 does not have: it may say more than was read",
    )
    CLIENT_NOT_KNOWN = Effect.UNKNOWN, "a member writes as no library that is known here"
    CUSTOM_ASSIGNOR = (
        Effect.UNKNOWN,
        "its assignor is none of Kafka's: the coordinator converts the group and assigns in its own way, and the log "
        "does not say whether the application can live with that",
    )
    CLIENT_LACKS_KIP_848 = (
        Effect.STAYS_CLASSIC,
        "a member writes as a library, or a release of it, that has no KIP-848: the coordinator converts the group, "
        "and that member stays a classic one until its client is replaced",
    )
    EMPTY_NOW = Effect.CAUTION, "nobody is in it: the first member that joins decides its type, without a conversion"
    MIXED_MEMBERS = Effect.CAUTION, "it is converted, and some of its members are classic ones still"
    REBALANCE_STORM = (
        Effect.CAUTION,
        "it rebalances again and again: find out why first, or you will not see what changed",
    )
    STATIC_MEMBERS = (
        Effect.CAUTION,
        "once the group is converted, a process with the group.instance.id of a live member is refused; a classic "
        "group lets it take over",
    )
    COPARTITIONED = (
        Effect.CAUTION,
        "partitions of one number belong to one member now. `range` of the coordinator has it so, `uniform` does not "
        "when members come and go: where the topics are joined, set group.remote.assignor=range",
    )
    SEVERAL_ASSIGNORS = Effect.CAUTION, "members list several assignors: the same ones took part under each"
    SUBSCRIPTIONS_DIFFER = Effect.CAUTION, "members subscribe to different topics: the forecast holds for these alone"
    MAY_BE_A_PATTERN = (
        Effect.CAUTION,
        "a member changed its subscription without a restart, as one by a regular expression does; a record has the "
        "topics alone",
    )

    def __init__(self, effect: Effect, what: str) -> None:
        self.effect = effect
        self.what = what

    @property
    def code(self) -> str:
        """Return the stable code, as findings carry it."""
        return self.name


def readiness(obstacles: Iterable[Obstacle]) -> Readiness:
    """Combine obstacles by the gravest effect; cautions leave a group READY."""
    effects = {each.effect for each in obstacles}
    return next((found for effect, found in _BY_EFFECT.items() if effect in effects), Readiness.READY)


_BY_EFFECT = {
    Effect.BLOCKS: Readiness.BLOCKED,
    Effect.UNKNOWN: Readiness.UNKNOWN,
    Effect.STAYS_CLASSIC: Readiness.CONVERTS,
}
