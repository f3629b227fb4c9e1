"""What is known of a ledger's extent makes an assign cheaper, and changes none of its results."""

import pytest
from pyspark.sql import functions as F

from groupledger.config import AssignSettings, LimitSettings
from groupledger.core.rebalance.step import Form
from groupledger.engine import bucket_rows as r
from groupledger.engine.buckets import apply
from groupledger.engine.envelope import opened
from groupledger.engine.group_arrays import Calculation
from groupledger.pipeline.assign import Extent, Facts, assign_input, catalogue
from groupledger.sinks.current import current
from groupledger.tables import ASSIGNMENTS, GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, REBALANCES, TOPIC_SNAPSHOTS
from tests.pipeline.test_assign import ledger

assert ledger, "the ledger that holds the captures"


def of_extent(spark, ledger, extent):
    """The computed rows of two tables, and how many groups have a bucket of their own."""
    tables = [current(spark, ledger, each) for each in (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, TOPIC_SNAPSHOTS)]
    topics = catalogue(tables.pop(), LimitSettings())
    rows = assign_input(Facts(*tables), AssignSettings(), LimitSettings(), extent)
    computed = apply(rows, extent.buckets, Calculation("baseline", Form.AS_KAFKA, topics=topics)).persist()
    found = {table.name: sorted(map(str, opened(computed, table).collect())) for table in (REBALANCES, ASSIGNMENTS)}
    computed.unpersist()
    return found, rows.where(F.col(r.BUCKET) >= extent.buckets).select(r.BUCKET).distinct().count()


@pytest.fixture(scope="module")
def of_nothing_known(spark, ledger):
    return of_extent(spark, ledger, Extent(3))[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("extent", "giant_members", "has_giants"),
    [(Extent(3, most_members=50), 3, True), (Extent(3, 50, shallow=True), 3, True), (Extent(3, 50, True), 51, False)],
    ids=["giants", "giants, few snapshots", "no giants, few snapshots"],
)
def test_what_is_known_beforehand_changes_no_result(
    spark, ledger, of_nothing_known, monkeypatch, extent, giant_members, has_giants
):
    """Members of old snapshots sought out or read along, groups with buckets of their own or not."""
    monkeypatch.setattr("groupledger.pipeline.assign.GIANT_MEMBERS", giant_members)
    found, giants = of_extent(spark, ledger, extent)
    assert found == of_nothing_known
    assert all(found.values())
    assert (giants > 1) == has_giants
