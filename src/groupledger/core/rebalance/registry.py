"""Declare the classic assignors that can be chosen, one record each: the only place for facts about them by name.

To add one, write its function in a file of `core.assignors`, and add a record here that names it. Configuration, main
job, scenarios and what-ifs derive their lists from these records. Assignors of KIP-848's coordinators are in
`core.assignors.server`; those of other libraries, which identify records, in `core.assignors.clients`. Loads no
numpy, for the configuration.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from groupledger.core.custom.custom_group import Protocol

EAGER, COOPERATIVE = (Protocol.EAGER,), (Protocol.EAGER, Protocol.COOPERATIVE)
JAVA, LIBRDKAFKA = "java", "librdkafka"
DEFAULT_ASSIGNOR = "uniform"
"""Of a coordinator (KIP-848): the first of group.consumer.assignors, unless the broker is configured otherwise."""


def preferred(asked: Iterable[str | None], before: Container[str | None] = ()) -> str | None:
    """Return the coordinator's assignor that most members ask for; None: none asks (KIP-848).

    `ConsumerGroup.computePreferredServerAssignor` takes the first of equals in a hash map: a name that nobody asked for
    `before`, since a new key is first in its bucket; otherwise `uniform`, since it comes before `range`.
    """
    votes = Counter(name for name in asked if name)
    return min(votes, key=lambda name: (-votes[name], name in before, name != DEFAULT_ASSIGNOR, name), default=None)


class ClaimsRead(Enum):
    """Where an assignor reads a member's claims."""

    NOWHERE = "it asks nobody"
    OWNED_PARTITIONS = "in the subscription (KIP-429)"
    USER_DATA = "in the user data: what the member had, and has revoked since (KIP-54)"
    PARTITION_NUMBERS = "in the user data: partition numbers of whatever topic, and their epoch (KIP-315)"


@dataclass(frozen=True, slots=True)
class AssignorRecord:
    """One assignor: its rebalance protocols, and the client library that ships it (None: no library does).

    `function`: its file in `core.assignors` and its function there, of a `GroupBatch`, which answers with an
    `AssignmentBatch`.
    """

    name: str
    function: str
    protocols: tuple[Protocol, ...]
    library: str | None
    claims: ClaimsRead = ClaimsRead.NOWHERE
    joined_by: str = ""
    """The protocol's name in the log, if it differs; `protocol_name` is always set."""
    java_class: str = ""
    """The class of kafka-clients, as `partition.assignment.strategy` names it."""

    @property
    def protocol_name(self) -> str:
        """Return the name by which members join."""
        return self.joined_by or self.name

    @property
    def cooperative(self) -> bool:
        """Return whether members may keep what they own while they rejoin."""
        return Protocol.COOPERATIVE in self.protocols

    @property
    def sticky(self) -> bool:
        """Return whether it leaves partitions with their owners, by KIP-54's goals."""
        return self.claims in (ClaimsRead.OWNED_PARTITIONS, ClaimsRead.USER_DATA)

    @property
    def always_safe(self) -> bool:
        """Return whether it ignores impossible claims in any mode: never shipped, it has no failures to reproduce."""
        return self.library is None


RANGE = AssignorRecord("range", "range_.assign", EAGER, JAVA, java_class="RangeAssignor")
ROUNDROBIN = AssignorRecord("roundrobin", "roundrobin.assign", EAGER, JAVA, java_class="RoundRobinAssignor")
STICKY = AssignorRecord("sticky", "sticky.assign", EAGER, JAVA, ClaimsRead.USER_DATA, java_class="StickyAssignor")
COOPERATIVE_STICKY = AssignorRecord(
    *("cooperative-sticky", "sticky.assign_cooperatively", COOPERATIVE, JAVA, ClaimsRead.OWNED_PARTITIONS),
    java_class="CooperativeStickyAssignor",
)
CONSTRAINED = AssignorRecord(
    *("constrained-cooperative-sticky", "kip615.assign", COOPERATIVE, None, ClaimsRead.OWNED_PARTITIONS)
)
LIBRDKAFKAS = AssignorRecord(
    *("librdkafka-cooperative-sticky", "librdkafka.assign", COOPERATIVE, LIBRDKAFKA, ClaimsRead.OWNED_PARTITIONS),
    joined_by=COOPERATIVE_STICKY.name,
)
STREAM_JOIN = AssignorRecord("sticky-stream-join", "kip315.assign", EAGER, None, ClaimsRead.PARTITION_NUMBERS)

RECORDS = (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY, CONSTRAINED, LIBRDKAFKAS, STREAM_JOIN)
"""In the order in which users see them."""
BY_NAME = {each.name: each for each in RECORDS}
JAVA_PACKAGE = "org.apache.kafka.clients.consumer."
BY_CLASS = {prefix + each.java_class: each for each in RECORDS if each.java_class for prefix in ("", JAVA_PACKAGE)}
"""By the name of its Java class, with the package and without."""


def called(name: str) -> str:
    """Return our name of an assignor that is named by its Java class; any other name as it is."""
    return BY_CLASS[name].name if name in BY_CLASS else name


READING_CLAIMS = frozenset(each.protocol_name for each in RECORDS if each.sticky and each.library)
"""Protocols of recorded groups whose assignors read claims."""
REMEMBERING = frozenset(each.protocol_name for each in RECORDS if each.claims is ClaimsRead.USER_DATA)
"""Protocols whose members state what they had (KIP-54), after they have revoked it."""


# Define the ledger's words for attributions and releases, shared by the code that computes and the code that reads.

AS_OF_4_0_0 = " as of Kafka 4.0.0"
"""Ends the verdict on a coordinator's target that equals the answer of Kafka 4.0.0 alone."""
NOT_OF_3_7_1 = "not of Kafka 3.7.1-4.4"
"""Begins the verdict on another answer of a sticky assignor: those of Java clients before 3.7.1 are not computed."""


class Attributed(enum.IntEnum):
    """How a record was attributed to an assignor. `text` is what the ledger says."""

    EXACT = 0  # list for list
    EQUAL_SETS = 1
    PERHAPS = 2  # it has too many answers to compute each, and the record keeps its promise
    NO_KNOWN_ASSIGNOR = 3
    REWRITE = 4  # not computed from its own row
    NO_LEADER = 5  # a coordinator's target: no leader
    NO_MEMBERS = 6
    NOT_COMPARED = 7  # another assignor than the recorded one ran, or none
    NO_RECORD = 8
    NO_ASSIGNOR_RECORDED = 9
    INCOMPLETE_SNAPSHOT = 10
    OTHER_PROTOCOL_TYPE = 11
    PARTITIONS_NOT_LISTED = 12  # no listing has all partitions of the record
    TOO_LARGE = 13
    REJECTED = 14
    NOT_ASKED = 15  # the run attributes nothing

    @property
    def text(self) -> str:
        """Return the text that users read."""
        name = self.name.lower().replace("_", "-")
        return name if self <= Attributed.NO_KNOWN_ASSIGNOR else f"{NOT_APPLICABLE}{name}"


NOT_APPLICABLE = "not-applicable: "
_AS = {
    Attributed.EXACT.text: "exact as ",
    Attributed.EQUAL_SETS.text: "equal sets as ",
    Attributed.PERHAPS.text: "perhaps ",
}


def in_words(attribution: str | None, attributed_to: Sequence[str] | None, writers: Sequence[str] = ()) -> str:
    """Join the two columns for a reader: `exact as kafka-python-sticky or aiokafka-sticky`.

    `writers`: the libraries that write what the leader wrote as a member; named unless it is one alone.
    """
    if attribution is None:
        return "not known: an older groupledger computed this; `groupledger assign` computes it again"
    wrote = f"; the leader writes as {' or '.join(writers)}" if len(writers) > 1 else ""
    if attribution in _AS:
        return _AS[attribution] + " or ".join(attributed_to or ()) + wrote
    return attribution.replace("-", " ") + wrote * (attribution == Attributed.NO_KNOWN_ASSIGNOR.text)
