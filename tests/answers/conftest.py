"""Ledgers that a test writes down, read without Spark."""

import pytest

from groupledger.answers.reader import LedgerReader
from tests.answers.ledgers import write


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """`written(coverage=[{...}], ...)`: a reader of a ledger with these rows."""
    return lambda **rows: LedgerReader(write(tmp_path_factory.mktemp("ledger"), **rows))
