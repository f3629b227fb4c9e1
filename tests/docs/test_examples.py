"""Every example of the documentation is run by a test, and what a page shows is what the command prints."""

import re
from pathlib import Path

import pytest

from groupledger.answers.reader import LedgerReader
from groupledger.config import parse
from groupledger.config.settings import ConfigFault
from groupledger.tables import TABLES
from tests.docs.demo_ledger import RUNS_OF_THE_DEMO, rows_of_the_demo, unpack
from tests.docs.examples import blocks_of_no_command, examples, files_of, run
from tests.docs.navigation import pages_of
from tests.pages import blocks, documented_reader

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OWN_CLUSTER = {"start/install.md", "start/tutorial-cluster.md"}
"""Their commands are of a cluster that the reader has: tests/cli/test_readme.py sees that they are understood."""
GUIDES = [page for page in (*pages_of("Start"), *pages_of("Concepts"), *pages_of("Guides")) if page not in OWN_CLUSTER]
TEXTS = {
    page: text
    for path in sorted(DOCS.rglob("*.md"))
    if not (page := path.relative_to(DOCS).as_posix()).startswith("contributing/decisions/")
    and (text := path.read_text(encoding="utf-8"))
}
EXITS = {0, 4}
"""4: a gate found what it names."""
WITH_SPARK = "tests/demo/test_demo.py::test_a_page_shows_what_its_commands_print_with_spark"
RUN_BY = {
    "demo": "tests/demo/test_demo.py::test_what_is_told_has_every_group_and_adds_up",
    "replay": WITH_SPARK,
    "verify": WITH_SPARK,
    "what-if --grid": WITH_SPARK,
    "diff java-cooperative-sticky --scenarios": "tests/answers/test_differences.py::test_two_scenarios_are_told",
    "report html": "tests/browser/test_report_in_chromium.py::test_pages_of_any_size_are_shown_without_a_complaint",
    "openmetrics 'payments-*'": "tests/cli/test_openmetrics.py::test_a_file_is_written_whole",
}
"""Commands of guides that are not run here (they need Spark, another scenario or a file): by their beginning, who runs
them."""
CODE_RUN_BY = {
    (
        "guides/use/your-spark-job.md",
        "sql",
    ): "tests/engine/memberships/test_spark.py::test_the_functions_for_groups_and_for_sql",
    ("reference/python-api.md", "python"): "tests/notebook/test_package.py::test_the_examples_of_docstrings_run",
    (
        "guides/decide/write-an-assignor.md",
        "python",
    ): "tests/core/custom/test_page.py::test_the_code_runs_and_keeps_the_contract",
    ("guides/decide/write-an-assignor.md", "yaml"): "tests/core/custom/test_page.py::test_the_configuration_loads",
    (
        "guides/decide/write-an-assignor.md",
        "toml",
    ): "tests/core/custom/test_naming.py::test_an_entry_point_is_found_by_its_name",
    (
        "guides/decide/write-an-assignor.md",
        "sh",
    ): "tests/cli/test_solve_custom.py::test_a_line_may_name_what_an_option_named",
    ("guides/use/tables-in-duckdb-polars-pandas.md", "python"): "tests/docs/test_recipes.py::"
    "test_the_frames_have_the_rows_that_count",
    ("start/tutorial-notebook.md", "python"): "tests/notebook/test_package.py::test_the_code_of_the_pages_runs",
    ("start/tutorial-dataframes.md", "python"): "tests/docs/test_dataframes.py::"
    "test_the_tutorial_prints_and_draws_what_it_shows_without_spark",
    ("guides/use/your-spark-job.md", "python"): "tests/docs/test_dataframes.py::test_the_guide_prints_what_it_shows",
    ("guides/use/alerts-prometheus-cron.md", "yaml"): "tests/cli/test_openmetrics.py::"
    "test_the_alerting_rules_of_the_example_go_by_samples_that_there_are_and_are_those_of_the_page",
    ("guides/use/notebook.md", "python"): "tests/notebook/test_package.py::test_the_code_of_the_pages_runs",
    ("guides/decide/what-if.md", "python"): "tests/notebook/test_package.py::test_the_code_of_the_pages_runs",
    ("guides/decide/simulate-a-group.md", "python"): "tests/cli/test_simulate.py::test_the_code_of_the_page_runs",
    ("guides/decide/simulate-a-group.md", "json"): "tests/cli/test_simulate.py::"
    "test_the_scripts_of_the_page_are_some_and_its_table_has_every_event",
    ("guides/decide/rehearse-a-listener.md", "python"): "tests/listener/test_page.py::test_the_code_of_the_page_runs",
    (
        "guides/decide/simulate-kip-848-groups.md",
        "python",
    ): "tests/core/protocol/test_consumer_page.py::test_the_code_of_the_page_runs",
    (
        "guides/decide/simulate-kip-848-groups.md",
        "json",
    ): "tests/core/protocol/test_consumer_page.py::test_the_script_of_the_page_is_one",
    (
        "guides/decide/simulate-share-groups.md",
        "python",
    ): "tests/core/protocol/test_consumer_page.py::test_the_code_of_the_page_runs",
    (
        "guides/decide/simulate-share-groups.md",
        "json",
    ): "tests/core/protocol/test_consumer_page.py::test_the_script_of_the_page_is_one",
    (
        "guides/decide/simulate-streams-groups.md",
        "python",
    ): "tests/core/protocol/test_consumer_page.py::test_the_code_of_the_page_runs",
    (
        "guides/decide/simulate-streams-groups.md",
        "json",
    ): "tests/core/protocol/test_consumer_page.py::test_the_script_of_the_page_is_one",
    ("contributing/worked-cases.md", "python"): "tests/kips/test_worked_cases.py::test_the_worked_cases_run",
    (
        "guides/decide/solve-one-group.md",
        "json",
    ): "tests/cli/test_solve.py::test_scenarios_of_the_page_have_the_results_it_shows",
    ("guides/use/sql.md", "python"): "tests/docs/test_examples.py::test_the_reader_of_the_page_reads_every_table",
    ("operate/read-tables.md", "yaml"): "tests/config/test_loading.py::"
    "test_every_block_of_the_page_on_tables_can_be_copied",
    (
        "reference/sql-views.md",
        "sql",
    ): "tests/answers/test_view_page.py::test_every_table_has_a_view_and_every_view_is_read_back",
    ("operate/read-tables.md", "python"): "tests/pipeline/test_memberships.py::"
    "test_the_code_of_the_page_runs_and_owners_are_known_from_memberships",
}
"""Blocks of code that are not run here: by page and language, who runs them, or the like."""


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    return unpack(tmp_path_factory.mktemp("shipped"))


def elsewhere(example):
    return next((test for begins, test in RUN_BY.items() if example.line.startswith(begins)), None)


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_shows_what_its_commands_print(ledger, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for file, content in files_of(TEXTS[name]).items():
        Path(file).write_text(content)
    for example in examples(TEXTS[name]):
        if elsewhere(example) or (name not in GUIDES and example.text is None):
            continue  # beside the guides, a command without its output is only held to be understood
        own = example.text is not None or "--ledger" in example.words
        code, printed = run(example if own else _on(example, ledger), ledger)
        assert code in EXITS, f"{example.line}: {printed}"
        assert example.text in (None, printed), f"write it anew: python -m tests.docs.examples docs/{name}"


def _on(example, ledger):
    return example._replace(words=(*example.words, "--ledger", str(ledger)))


@pytest.mark.parametrize("name", TEXTS)
def test_no_output_stands_without_its_command(name):
    assert blocks_of_no_command(TEXTS[name]) == []


@pytest.mark.parametrize("name", TEXTS)
def test_code_of_a_page_is_run(ledger, name):
    for language in sorted(set(re.findall(r"^```(\w+)\n", TEXTS[name], re.MULTILINE))):
        ran = CODE_RUN_BY.get((name, language)) or _run_here(name, language, ledger)
        assert ran, f"{name}: nobody runs its {language}; run it here, or name in CODE_RUN_BY who does"


def _run_here(name, language, ledger):
    files = set(files_of(TEXTS[name]).values())
    found = [each for each in blocks(TEXTS[name], language) if each not in files]
    if language == "sql":
        return all(LedgerReader(str(ledger)).query(each).num_rows for each in found)
    if language == "yaml" and name not in GUIDES:
        return all(_is_configuration(each, name) for each in found)
    return language == "text" or found == []


def test_the_reader_of_the_page_reads_every_table(ledger):
    rows = {table.name: len(documented_reader()(str(ledger), table.name)) for table in TABLES}
    assert rows == {name: len(found) for name, found in rows_of_the_demo(ledger).items()} | {"runs": RUNS_OF_THE_DEMO}


def _is_configuration(text, name):
    try:
        return bool(parse(text, name, ["ledger.location=ledger"]))
    except ConfigFault as fault:
        raise AssertionError(f"{name}: {fault.message}") from fault


@pytest.mark.parametrize("test", sorted({*RUN_BY.values(), *CODE_RUN_BY.values()}))
def test_who_runs_an_example_elsewhere_is_there(test):
    file, _, function = test.partition("::")
    assert f"def {function}" in (ROOT / file).read_text(encoding="utf-8")


def test_whoever_runs_an_example_elsewhere_is_needed():
    lines = [example for name in GUIDES for example in examples(TEXTS[name])]
    assert {begins for begins in RUN_BY if not any(each.line.startswith(begins) for each in lines)} == set()
    assert {name for name, language in CODE_RUN_BY if f"```{language}\n" not in TEXTS[name]} == set()
