"""The recipes for other engines run as they are shown, and give what groupledger's own reader gives."""

from pathlib import Path

import pytest

from groupledger.answers.reader import LedgerReader, views
from tests.docs.demo_ledger import unpack
from tests.pages import blocks

PAGE = (Path(__file__).parents[2] / "docs/guides/use/tables-in-duckdb-polars-pandas.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The names of the page's code, run beside a copy of the demo's ledger."""
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    folder = tmp_path_factory.mktemp("recipes")
    place = unpack(folder)
    code = "".join(blocks(PAGE, "python")).replace("build/demo-ledger", str(place))
    names: dict[str, object] = {}
    exec(compile(code, "page", "exec"), names)  # noqa: S102 - the page's own code
    return names | {"place": str(place)}


def test_the_frames_have_the_rows_that_count(ran):
    reader = LedgerReader(ran["place"])
    results = reader.query("SELECT 1 FROM current_rebalances WHERE scenario = 'baseline' AND round = 1").num_rows
    assert len(ran["rebalances"]) == len(ran["in_polars"]) == results
    assert len(ran["topics"]) == reader.query("SELECT 1 FROM current_topic_snapshots").num_rows


@pytest.mark.parametrize("view", views())
def test_duckdb_has_each_view_with_the_same_rows(ran, view):
    found = ran["connection"].sql(f"SELECT 1 FROM {view}").fetchall()
    assert len(found) == LedgerReader(ran["place"]).query(f"SELECT 1 FROM {view}").num_rows


@pytest.mark.parametrize("query", blocks(PAGE, "sql"))
def test_a_query_of_the_page_is_the_same_in_both(ran, query):
    here = LedgerReader(ran["place"]).query(query)
    there = ran["connection"].sql(query)
    assert there.columns == list(here.schema.names)
    assert len(there.fetchall()) == here.num_rows > 0
