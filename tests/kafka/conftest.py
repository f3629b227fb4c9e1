"""One real broker for the tests of the way in: a group that commits, also in a transaction."""

from __future__ import annotations

import pytest

from tests.kafka.groups import Member, commit_in_transaction
from tests.live.broker import broker
from tests.live.topics import Topics
from tests.pipeline.ledgers import Workspace


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """The address of a running Kafka."""
    with broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture
def member(kafka):
    """A live member that has committed; the log ends with the marker of a transaction."""
    Topics(kafka).create({"orders": 3})
    with Member(kafka, "payments", "orders") as member:
        member.commit()
        commit_in_transaction(kafka, member)
        yield member


@pytest.fixture
def new_workspace(spark, new_ledger, tmp_path_factory):
    return lambda name: Workspace(spark, new_ledger, tmp_path_factory.mktemp(name))
