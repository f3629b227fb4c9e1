"""What the ledger says of whose algorithm a record was: its words, for those that compute them and those that read."""

from __future__ import annotations

import enum
from collections.abc import Sequence


class Attributed(enum.IntEnum):
    """What is known of whose algorithm a record was. `text` is what the ledger says."""

    EXACT = 0  # list for list
    EQUAL_SETS = 1
    PERHAPS = 2  # it has too many answers for each to be computed, and the record keeps what it promises
    NO_KNOWN_ASSIGNOR = 3
    REWRITE = 4  # not computed from what stands beside it
    NO_LEADER = 5  # a coordinator's target
    NO_MEMBERS = 6
    NOT_COMPARED = 7  # another assignor ran than the recorded one, or none
    NO_RECORD = 8
    NO_ASSIGNOR_RECORDED = 9
    INCOMPLETE_SNAPSHOT = 10
    OTHER_PROTOCOL_TYPE = 11
    PARTITIONS_NOT_LISTED = 12  # no listing has all partitions of the record
    TOO_LARGE = 13
    REJECTED = 14

    @property
    def text(self) -> str:
        """As users read it."""
        name = self.name.lower().replace("_", "-")
        return name if self <= Attributed.NO_KNOWN_ASSIGNOR else f"{NOT_APPLICABLE}{name}"


NOT_APPLICABLE = "not-applicable: "
_AS = {
    Attributed.EXACT.text: "exact as ",
    Attributed.EQUAL_SETS.text: "equal sets as ",
    Attributed.PERHAPS.text: "perhaps ",
}


def in_words(attribution: str | None, attributed_to: Sequence[str] | None) -> str:
    """The two columns as a person reads them: `exact as kafka-python-sticky or aiokafka-sticky`."""
    if attribution is None:
        return "not known: an older groupledger computed this; `groupledger assign` computes it again"
    if attribution in _AS:
        return _AS[attribution] + " or ".join(attributed_to or ())
    return attribution.replace("-", " ")
