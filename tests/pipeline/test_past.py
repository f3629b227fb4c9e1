"""What earlier runs left: a ledger without an ingest has nothing to compute from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupledger.pipeline.past import require_facts
from groupledger.sinks.location import LedgerFault, LedgerLocation

PLACE = LedgerLocation(path="/data/ledger")


def seen(*kinds) -> Any:
    return SimpleNamespace(commits=tuple(SimpleNamespace(kind=kind) for kind in kinds))


@pytest.mark.parametrize("kinds", [(), ("assign", "maintain")])
def test_nothing_was_ever_ingested(kinds):
    with pytest.raises(LedgerFault, match="nothing was ever ingested into the ledger at /data/ledger") as refused:
        require_facts(seen(*kinds), PLACE)
    assert refused.value.code == "NOTHING_INGESTED"


def test_one_ingest_is_enough():
    require_facts(seen("assign", "ingest"), PLACE)
