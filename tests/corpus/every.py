"""All histories of the corpus, as they are made."""

from __future__ import annotations

from collections.abc import Iterator

from tests.corpus.clean import clean
from tests.corpus.faulty import faulty
from tests.corpus.history import History
from tests.corpus.recorded import recorded


def every() -> Iterator[History]:
    """The recorded ones, those of one fault or cause each, and the clean ones."""
    yield from recorded()
    yield from faulty()
    yield from clean()
