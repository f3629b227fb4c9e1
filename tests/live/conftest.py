"""The broker of all live tests, and topics on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.broker import broker
from tests.live.members import Programs
from tests.live.topics import Topics
from tests.pipeline.ledgers import Workspace

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Everything here is live."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.live)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """The address of a running Kafka."""
    with broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture(scope="session")
def topics(kafka):
    return Topics(kafka)


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """What members of every library run."""
    return Programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def dumped(spark, new_ledger, tmp_path):
    """A ledger to read a dump of the log into."""
    return Workspace(spark, new_ledger, tmp_path / "dumped")
