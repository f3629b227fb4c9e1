"""The commands of the two jobs hand on what they were told."""

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.cli.options import Job
from tests.cli.test_summaries import SUMMARY


@pytest.mark.parametrize(("words", "whole"), [((), False), (("--whole",), True)])
def test_assign_computes_every_group_on_demand(monkeypatch, tmp_path, words, whole):
    asked = []

    def assign(spark, config, invocation, **options):
        asked.append((config.assign.snapshots, options))
        return SUMMARY

    monkeypatch.setattr("groupledger.pipeline.assign.assign", assign)
    monkeypatch.setattr(Job, "spark_for_ledger", lambda _, **__: None)
    ran = CliRunner().invoke(main, ["assign", "--ledger", str(tmp_path), *words])
    assert asked == [("latest", {"whole": whole})]
    assert SUMMARY.run_id in ran.stdout
