"""A session without Delta finds no table: the answer names Delta, and not a missing ledger."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from groupledger.core.faults import Fault
from groupledger.pipeline import frames
from groupledger.sinks.ledger_tables import LedgerFault


class NotFound(AnalysisException):
    """What Spark says of a source, or of a path."""

    def __init__(self, condition):
        super().__init__("not found")
        self.condition = condition

    def getCondition(self):
        return self.condition


def session(condition) -> Any:
    """Spark Connect tells of a source only when the rows are described."""

    class Rows:
        @property
        def schema(self):
            raise NotFound(condition)

    return SimpleNamespace(read=SimpleNamespace(format=lambda name: SimpleNamespace(load=lambda path: Rows())))


@pytest.mark.parametrize(
    ("condition", "code"), [("DATA_SOURCE_NOT_FOUND", "DELTA_MISSING"), ("PATH_NOT_FOUND", "LEDGER_MISSING")]
)
def test_what_is_missing_is_told(monkeypatch, condition, code):
    def check(spark, location):
        raise LedgerFault("LEDGER_MISSING", "there is no ledger")

    monkeypatch.setattr(frames, "check", check)
    with pytest.raises(Fault) as caught:
        frames.LedgerFrames(session(condition), "/data/ledger")
    assert caught.value.code == code
