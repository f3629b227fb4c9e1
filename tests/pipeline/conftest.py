"""Workspaces: a fresh ledger each, copied from one that is made once."""

import pytest

from groupledger.sinks.ledger import LedgerLocation, init
from tests.pipeline.ledgers import Workspace


@pytest.fixture(scope="session")
def empty_ledger(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("empty") / "ledger"
    init(spark, LedgerLocation(path=str(path)))
    return path


@pytest.fixture
def workspace(spark, empty_ledger, tmp_path):
    return Workspace(spark, empty_ledger, tmp_path)


@pytest.fixture(scope="session")
def new_workspace(spark, empty_ledger, tmp_path_factory):
    return lambda name: Workspace(spark, empty_ledger, tmp_path_factory.mktemp(name))
