"""What a heat map says of its colours."""

from datetime import UTC, datetime, timedelta

import pytest

from groupledger.answers.group_owners import Counted
from groupledger.report.html.charts import heat, heat_picture

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "colours", "scale"),
    [(1, "dark: one of the rebalances.", False), (2, "the darker, the more rebalances.", True)],
)
def test_a_scale_is_there_where_there_is_more_than_one_number(times, colours, scale):
    counted = [
        Counted(("pay",), NOON, 1),
        Counted(("pay",), NOON + timedelta(minutes=3), times),
        Counted(("audit",), NOON, 1),
    ]
    of = heat(counted, "minute")
    assert of is not None
    drawing = heat_picture(of, [name for (name,) in of.rows], "rebalances")
    assert drawing.caption == f"A column is 1 min; white: none; {colours} A row with none is not here."
    assert (b"rebalances in 1 min" in drawing.svg) == scale
