"""An online conversion, read at once or cut inside its batches: the same facts count."""

from __future__ import annotations

import json
from base64 import b64decode
from collections import defaultdict

import pytest

from groupledger.answers.joins import joins
from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import RequestedScope
from groupledger.config import SourceSettings
from groupledger.core.wire.offsets_log import decode_key
from tests.core.history.test_conversions import CASE, GROUPS
from tests.pipeline.test_ingest import facts, heads

pytestmark = pytest.mark.spark

TOPICS = SourceSettings(kind="topics-jsonl", path=str(CASE / "topics.jsonl"))
CUTS = (2, 17)
"""Records of each group in the first ingest, and in the first two: behind a tombstone, and within the downgrade's."""


def lines_of_group() -> dict[str | None, list[str]]:
    """The lines of the log by group."""
    found: dict[str | None, list[str]] = defaultdict(list)
    for line in (CASE / "log.jsonl").read_text(encoding="utf-8").splitlines():
        found[decode_key(b64decode(json.loads(line)["key"])).group_id].append(line)
    return found


def test_a_batch_that_three_ingests_read_is_told_as_if_one_had(new_workspace, workspace):
    whole = new_workspace("whole-conversion")
    whole.ingest(TOPICS, SourceSettings(kind="offsets-jsonl", path=str(CASE / "log.jsonl")))
    first, second = CUTS
    summaries = []
    for number, part in enumerate((slice(0, first), slice(first, second), slice(second, None))):
        lines = [line for of_group in lines_of_group().values() for line in of_group[part]]
        summaries.append(workspace.ingest(TOPICS, workspace.source(f"part-{number}.jsonl", lines)))
    again = [summary.run.counts_out["late_groups"] for summary in summaries]
    assert again[0] == 0
    assert min(again[1:]) >= 1
    assert all(account.balanced for summary in summaries for account in summary.accounts)
    assert facts(workspace) == facts(whole)
    assert heads(workspace) == heads(whole)
    found = joins(LedgerReader(workspace.location.path), RequestedScope(), 10).groups
    assert {each.group_id: (each.joined, each.gone) for each in found} == dict.fromkeys(GROUPS, (1, 1))
