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
CUTS: dict[str | None, int] = dict(zip(GROUPS, (2, 17, 17), strict=True))
"""Records of each group in the first ingest: behind a tombstone, and within the downgrade's. Of every other cut, and of
as many parts as there are records, tests/core/history/test_conversions.py holds the same without Spark."""


def lines_of_group() -> dict[str | None, list[str]]:
    """The lines of the log by group."""
    found: dict[str | None, list[str]] = defaultdict(list)
    for line in (CASE / "log.jsonl").read_text(encoding="utf-8").splitlines():
        found[decode_key(b64decode(json.loads(line)["key"])).group_id].append(line)
    return found


def test_a_batch_that_two_ingests_read_is_told_as_if_one_had(new_workspace, workspace):
    whole = new_workspace("whole-conversion")
    whole.ingest(TOPICS, SourceSettings(kind="offsets-jsonl", path=str(CASE / "log.jsonl")))
    parts: tuple[list[str], list[str]] = [], []
    for group, lines in lines_of_group().items():
        cut = CUTS.get(group, 0)
        for part, own in zip(parts, (lines[:cut], lines[cut:]), strict=True):
            part += own
    summaries = [
        workspace.ingest(TOPICS, workspace.source(f"part-{number}.jsonl", lines)) for number, lines in enumerate(parts)
    ]
    first, second = (summary.run.counts_out["late_groups"] for summary in summaries)
    assert (first, second) == (0, 2), "the last group begins again after no cut"
    assert all(account.balanced for summary in summaries for account in summary.accounts)
    assert facts(workspace) == facts(whole)
    assert heads(workspace) == heads(whole)
    found = joins(LedgerReader(workspace.location.path), RequestedScope(), 10).groups
    assert {each.group_id: (each.joined, each.gone) for each in found} == dict.fromkeys(GROUPS, (1, 1))
