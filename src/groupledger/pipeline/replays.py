"""All recorded history under another assignor, beside the record: computed by Spark for an answer, without a commit."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from groupledger.answers.queries import CLASSIC, Reader
from groupledger.answers.replayed import COMPUTED, RECORDED, Replayed, replayed
from groupledger.answers.scope import RequestedScope
from groupledger.config import Config
from groupledger.engine.envelope import opened
from groupledger.pipeline.assign import envelopes_of, glob
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.sinks.location import engine_errors_as_faults
from groupledger.tables import REBALANCES
from groupledger.tables import columns as c

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9._-]+")
_LONGEST_NAME = 64


def scenario_of(assignor: str, prefix: str = "replay-") -> str:
    """Return the scenario name for results under an assignor: its name, as far as allowed, behind a prefix."""
    return f"{prefix}{_NOT_IN_A_NAME.sub('-', assignor.lower())}"[:_LONGEST_NAME]


def settings_of(
    assignor: str, scenario: str | None = None, mode: str | None = None
) -> tuple[Mapping[str, str | None], Mapping[str, str | None]]:
    """Return the settings under which history is computed as it was, and under an assignor from the start."""
    every = {"assign.snapshots": "every", "assign.overrides": "[]"}
    name = scenario or scenario_of(assignor)
    other = {"assign.assignor": assignor, "assign.scenario": name, "assign.mode": mode, "assign.carried": "true"}
    return {**every, "assign.assignor": RECORDED, "assign.scenario": RECORDED}, {**every, **other}


def replay(
    spark: SparkSession, reader: Reader, both: tuple[Config, Config], asked: RequestedScope, limit: int
) -> Replayed:
    """Compare the two courses of all history that was asked for, by configurations with `settings_of`.

    The rebalances of the asked groups come to the driver, some fifteen numbers and names each. Raises Fault: as
    `answers.replayed.replayed` and `pipeline.assign.assign`.
    """
    with engine_errors_as_faults(LedgerLocation.of(both[0].ledger)):
        recorded, other = (opened(envelopes_of(spark, config), REBALANCES) for config in both)
        first = (F.col(c.ROUND) == 1) & (F.col(c.MEMBERS) > 0) & (F.col(c.GROUP_TYPE) == CLASSIC)
        rows = recorded.unionByName(other).where(first)
        rows = rows if asked.cluster is None else rows.where(F.col(c.CLUSTER_ID) == asked.cluster)
        rows = rows if asked.group is None else rows.where(F.col(c.GROUP_ID).like(glob(asked.group)))
        found = rows.select(*COMPUTED).toArrow()
    settings = both[1].assign
    with reader.beside(found) as table:
        return replayed(reader, asked, settings.assignor, settings.scenario, limit, table)
