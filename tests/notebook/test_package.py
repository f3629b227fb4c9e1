"""What the package offers: its public names, their page, and that it says it is typed."""

import re
import zipfile

import pytest
from hatchling.builders.wheel import WheelBuilder

import groupledger as gl
from groupledger.cli.options import DEMO_LEDGER
from tests.answers.captured import ledger_of
from tests.demo.conftest import ROOT
from tests.pages import blocks

PAGE = ROOT / "docs" / "guides/use/notebook.md"


@pytest.mark.parametrize("name", gl.__all__)
def test_a_public_name_is_there_and_on_its_page(name):
    assert getattr(gl, name) is not None
    assert name in dir(gl)
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["Ledger", "LedgerGroup"])
def test_every_question_is_on_the_page(kind):
    page = PAGE.read_text(encoding="utf-8")
    methods = [name for name in vars(getattr(gl, kind)) if not name.startswith("_") and name not in gl_fields(kind)]
    assert methods
    assert [name for name in methods if not re.search(rf"`\.{name}\(|`\.{name}`", page)] == []


def gl_fields(kind):
    return getattr(getattr(gl, kind), "__slots__", ())


def test_the_wheel_says_it_is_typed(tmp_path):
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(wheel).namelist()
    assert "groupledger/py.typed" in names
    assert "groupledger/answers/views.sql" in names


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The captured log of the demonstration, without what Spark computes of it."""
    return ledger_of(tmp_path_factory.mktemp("ledger"), ["dev"])


def test_the_code_of_the_pages_runs(place):
    readme = next(
        code for code in blocks((ROOT / "README.md").read_text(encoding="utf-8"), "python") if "gl.open" in code
    )
    pages = (PAGE, ROOT / "docs" / "start" / "tutorial-notebook.md")
    for code in (*("".join(blocks(page.read_text(encoding="utf-8"), "python")) for page in pages), readme):
        assert DEMO_LEDGER in code
        exec(compile(code.replace(DEMO_LEDGER, place), "page", "exec"), {})  # noqa: S102 - the documents' own examples
