"""The views as they are written down: what the declarations give, and what a query of them needs."""

from importlib.resources import files

from groupledger.answers.reader import needed, tables, views
from groupledger.tables import TABLES
from groupledger.tables.views import page
from groupledger.tables.views import views as declared


def test_the_file_is_what_the_declarations_give():
    text = files("groupledger.answers").joinpath("views.sql").read_text(encoding="utf-8")
    assert text == page(), "write it anew: python -m groupledger.tables.views"


def test_every_table_has_a_view_and_every_view_is_read_back():
    assert {name: view.query for name, view in views().items()} == declared()
    assert tables() == {table.name for table in TABLES}
    assert {f"current_{table.name}" for table in TABLES} < views().keys()
    assert all(view.comment for view in views().values())


def test_each_view_rests_on_tables_and_views_before_it():
    seen = set(tables())
    for view in views().values():
        assert view.sources <= seen, view.name
        seen.add(view.name)


def test_a_query_needs_what_its_views_read():
    rests_on, named = needed('select * from "current_assignments" where MOVES > 1')
    assert [view.name for view in rests_on] == [
        *("current_runs", "current_refolds", "current_group_snapshots", "latest_results", "current_assignments")
    ]
    assert named == ["assignments", "group_heads", "group_snapshots", "rebalances", "runs"]
    assert needed("SELECT 1") == ([], [])
    assert needed("select count(*) from CURRENT_RUNS") == ([views()["current_runs"]], ["runs"])


def test_names_get_a_prefix_where_they_are_read_and_nowhere_else():
    query = views()["current_metrics"].reading("main.l.{}".format)
    assert "FROM main.l.metrics t JOIN main.l.current_runs r" in query
    assert "(SELECT max(x.sequence) FROM main.l.current_runs x" in query
    assert "main.l.t" not in query
