"""The pages on users' own DataFrames: their code prints what they show, without Spark and with it."""

from pathlib import Path

import pandas as pd
import pytest

from tests.docs.shown_code import printed, shown
from tests.pages import blocks

README = Path(__file__).parents[2] / "README.md"
DOCS = README.parent / "docs"
TUTORIAL, GUIDE = DOCS / "start/tutorial-dataframes.md", DOCS / "guides/use/your-spark-job.md"
PICTURE = TUTORIAL.parent / "moves.svg"


def texts(code, outputs):
    return [(block.text, text) for block, text in zip(code, outputs, strict=True) if block.text is not None]


def test_the_tutorial_prints_and_draws_what_it_shows_without_spark(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    code = [block for block in shown(TUTORIAL.read_text(encoding="utf-8")) if not block.starts_spark]
    outputs = texts(code, printed(code, tmp_path))
    assert len(outputs) >= 5
    assert [now for kept, now in outputs if kept != now] == []
    drawn = [line.rstrip() for line in (tmp_path / PICTURE.name).read_text(encoding="utf-8").splitlines()]
    assert drawn == PICTURE.read_text(encoding="utf-8").splitlines()


def test_the_code_of_the_readme_runs():
    names = {
        "members": pd.DataFrame([{"group_id": "g", "member_id": "a", "topics": ["orders"], "owned": ["orders-0"]}]),
        "topics": pd.DataFrame([{"topic": "orders", "partitions": 3}]),
    }
    [code] = [each for each in blocks(README.read_text(encoding="utf-8"), "python") if "gl.assign" in each]
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102 - its own code
    for line in code.splitlines():
        if line.startswith("found."):
            table, _, columns = line.partition("  # ")
            named = set(columns.partition(": ")[2].split(", "))
            assert named <= set(getattr(names["found"], table.removeprefix("found.")).columns)


@pytest.mark.spark
def test_the_tutorial_prints_what_it_shows_in_spark(spark, tmp_path):
    page = TUTORIAL.read_text(encoding="utf-8")
    kept = page.replace('parquet("assigned")', f'parquet("{tmp_path}/assigned")')  # the JVM's folder is not the test's
    code = shown(kept)
    outputs = texts(code, printed(code, tmp_path))
    assert outputs[-1][0] == outputs[-1][1]
    assert list((tmp_path / "assigned").glob("*.parquet"))


@pytest.mark.spark
def test_the_guide_prints_what_it_shows(spark, tmp_path):
    code = shown(GUIDE.read_text(encoding="utf-8"))
    outputs = texts(code, printed(code, tmp_path, spark=spark))
    assert [kept for kept, _ in outputs] == [now for _, now in outputs]
