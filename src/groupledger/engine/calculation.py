"""What a bucket is computed with: the same for all buckets of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.core.step import Form

if TYPE_CHECKING:
    from groupledger.core.custom.naming import CustomAssignor
    from groupledger.engine.topic_catalogue import TopicCatalogue


@dataclass(frozen=True, slots=True)
class Calculation:
    """All that a bucket's call needs to know beside its rows: a few words and the topics, pickled with the UDF."""

    scenario: str
    form: Form
    max_partitions: int = 4_000_000  # of the topics of one group
    custom: tuple[CustomAssignor, ...] = ()  # a worker has these imported, in processes of their own, and no others
    coordinator: str | None = None  # judge KIP-848 targets; the assignor of members that ask for none. None: do not
    topics: TopicCatalogue | None = None  # None: none is listed
    attributes: bool = True  # ask which client library's assignor gave a record that differs from Kafka's
    carried: bool = False  # each snapshot starts from what the one before was given, not from what it recorded
    stated: bool = False  # the rows are nobody's record: see `core.choice.Choice`

    @property
    def catalogue(self) -> TopicCatalogue:
        """The topics."""
        from groupledger.engine.topic_catalogue import TopicCatalogue

        return TopicCatalogue.of_rows([]) if self.topics is None else self.topics
