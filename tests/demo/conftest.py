"""One run of the demonstration, shared by all that look at its ledger."""

import itertools
from datetime import UTC, datetime
from pathlib import Path

import pytest

from groupledger.config import parse
from groupledger.config.loading import sample_settings
from groupledger.pipeline.both_jobs import demo
from groupledger.pipeline.invocation import Invocation

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def demo_config(tmp_path_factory):
    ledger = {"location": str(tmp_path_factory.mktemp("demo"))}
    return parse("", "the tests", (), {**sample_settings(), "ledger": ledger})


@pytest.fixture(scope="session")
def run_demo(spark, demo_config):
    numbers = itertools.count(1)

    def run():
        def invocation():
            return Invocation(
                attempt_id=f"attempt-{next(numbers)}",
                now=lambda: datetime(2026, 11, 21, tzinfo=UTC),
                seconds=lambda: 0.0,
            )

        stages = []
        return demo(spark, demo_config, invocation, stages.append), stages

    return run


@pytest.fixture(scope="session")
def demonstrated(run_demo):
    return run_demo()[0]
