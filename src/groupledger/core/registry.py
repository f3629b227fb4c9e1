"""The classic assignors that can be chosen, a record each: the one place for what is known of them by name.

A new one is a record here and its function in `core.assignors`. Configuration, main job, scenarios and what-ifs derive
their lists from these records. Assignors of KIP-848's coordinators are in `core.assignors.server`, other libraries'
own, by which records are recognised, in `core.assignors.clients`. Loads no numpy, for the configuration.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from groupledger.core.custom.group import Protocol

EAGER, COOPERATIVE = (Protocol.EAGER,), (Protocol.EAGER, Protocol.COOPERATIVE)
JAVA, LIBRDKAFKA = "java", "librdkafka"


class ClaimsRead(Enum):
    """Where an assignor reads what a member says it owns."""

    NOWHERE = "it asks nobody"
    OWNED_PARTITIONS = "in the subscription (KIP-429)"
    USER_DATA = "in the user data: what the member had, and has revoked since (KIP-54)"
    PARTITION_NUMBERS = "in the user data: partition numbers of whatever topic, and their epoch (KIP-315)"


@dataclass(frozen=True, slots=True)
class AssignorRecord:
    """One assignor: the rebalance protocols it supports, and the client library that ships it (None: a KIP alone)."""

    name: str
    protocols: tuple[Protocol, ...]
    library: str | None
    claims: ClaimsRead = ClaimsRead.NOWHERE
    joined_by: str = ""
    """The protocol's name in the log, where it is another's; `protocol_name` gives it always."""

    @property
    def protocol_name(self) -> str:
        """The name by which members join."""
        return self.joined_by or self.name

    @property
    def cooperative(self) -> bool:
        """Whether members may keep what they own while they rejoin."""
        return Protocol.COOPERATIVE in self.protocols

    @property
    def sticky(self) -> bool:
        """Whether it leaves partitions with their owners by KIP-54's goals."""
        return self.claims in (ClaimsRead.OWNED_PARTITIONS, ClaimsRead.USER_DATA)

    @property
    def always_safe(self) -> bool:
        """Never shipped, so it has no failures to reproduce: it ignores claims that cannot be true in any mode."""
        return self.library is None


RANGE = AssignorRecord("range", EAGER, JAVA)
ROUNDROBIN = AssignorRecord("roundrobin", EAGER, JAVA)
STICKY = AssignorRecord("sticky", EAGER, JAVA, ClaimsRead.USER_DATA)
COOPERATIVE_STICKY = AssignorRecord("cooperative-sticky", COOPERATIVE, JAVA, ClaimsRead.OWNED_PARTITIONS)
CONSTRAINED = AssignorRecord("constrained-cooperative-sticky", COOPERATIVE, None, ClaimsRead.OWNED_PARTITIONS)
LIBRDKAFKAS = AssignorRecord(
    "librdkafka-cooperative-sticky", COOPERATIVE, LIBRDKAFKA, ClaimsRead.OWNED_PARTITIONS, COOPERATIVE_STICKY.name
)
STREAM_JOIN = AssignorRecord("sticky-stream-join", EAGER, None, ClaimsRead.PARTITION_NUMBERS)

RECORDS = (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY, CONSTRAINED, LIBRDKAFKAS, STREAM_JOIN)
"""In the order in which users are told of them."""
BY_NAME = {each.name: each for each in RECORDS}
READING_CLAIMS = frozenset(each.protocol_name for each in RECORDS if each.sticky and each.library)
"""Protocols of recorded groups whose assignors read claims."""
REMEMBERING = frozenset(each.protocol_name for each in RECORDS if each.claims is ClaimsRead.USER_DATA)
"""Protocols whose members tell what they had (KIP-54), after they have revoked it."""
