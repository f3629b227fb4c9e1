"""Workspaces: a fresh ledger each."""

import pytest

from tests.pipeline.ledgers import Workspace


@pytest.fixture
def workspace(spark, new_ledger, tmp_path):
    return Workspace(spark, new_ledger, tmp_path)


@pytest.fixture(scope="session")
def new_workspace(spark, new_ledger, tmp_path_factory):
    return lambda name: Workspace(spark, new_ledger, tmp_path_factory.mktemp(name))
