"""Define the ledger's words for attributions and releases, shared by the code that computes and the code that reads."""

from __future__ import annotations

import enum
from collections.abc import Sequence

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
