"""What the package offers: its public names, their page, and that it says it is typed."""

import doctest
import inspect
import re
import subprocess
import sys
import zipfile

import pyarrow as pa
import pytest
from hatchling.builders.wheel import WheelBuilder

import groupledger as gl
from groupledger.cli.options import DEMO_LEDGER
from groupledger.notebook import assigned, plain
from tests.answers.captured import ledger_of
from tests.demo.conftest import ROOT
from tests.pages import blocks
from website.python_api import named

PAGE = ROOT / "docs" / "guides/use/notebook.md"


def test_the_package_shows_its_public_names_and_nothing_else():
    assert dir(gl) == sorted(gl.__all__)
    assert named() == set(gl.__all__)
    assert all(getattr(gl, name) is not None for name in gl.__all__)
    assert inspect.getdoc(gl).index("assign(members, topics)") < 200
    with pytest.raises(AttributeError, match="no attribute 'asign'"):
        gl.asign  # noqa: B018 - the attribute access is the test


def test_importing_the_package_imports_nothing_for_it():
    heavy = "import sys, groupledger; print([m for m in ('pyspark', 'pandas', 'numpy', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_what_needs_pyspark_says_so_where_there_is_none():
    code = (
        "import sys; sys.modules['pyspark'] = None; import groupledger as gl; print(gl.solve, gl.open)\n"
        "try: gl.assign\n"
        "except gl.Fault as fault: print(fault.code)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.endswith(">\nSPARK_MISSING\n")


@pytest.mark.parametrize("module", [assigned, plain])
def test_the_examples_of_docstrings_run(module):
    found = doctest.testmod(module)
    assert (found.failed, found.attempted > 0) == (0, True)


def test_one_group_in_plain_values():
    scenario = {"assignor": "range", "topics": {"t": 1}, "members": [{"id": "a", "topics": "t"}]}
    for wrong, code in (({**scenario}, "BAD_SCENARIO"), ({**scenario, "assignor": "ranje"}, "UNKNOWN_ASSIGNOR")):
        if code == "UNKNOWN_ASSIGNOR":
            wrong["members"] = []
        with pytest.raises(gl.Fault) as refused:
            gl.solve(wrong)
        assert refused.value.code == code
    with pytest.raises(gl.Fault):
        gl.simulate({"id": "x", "topics": {"t": 1}, "events": [{"event": "explode"}]})
    with pytest.raises(gl.Fault, match="no form"):
        gl.simulate({"id": object()})


def test_the_assignors_that_are_listed_are_those_that_can_be_used():
    members = pa.table({"group_id": ["g"], "member_id": ["a"], "topics": [["t"]]})
    topics = pa.table({"topic": ["t"], "partitions": [1]})
    for each in gl.assignors():
        if each.anywhere:
            assert (
                gl.assign(members, topics, each.java_class or each.name).groups.to_pylist()[0]["assignor"] == each.name
            )
        else:
            with pytest.raises(gl.Fault, match="expected one"):
                gl.assign(members, topics, each.name)


@pytest.mark.parametrize("kind", ["Ledger", "LedgerGroup"])
def test_every_question_is_on_the_page(kind):
    page = PAGE.read_text(encoding="utf-8")
    methods = [name for name in vars(getattr(gl, kind)) if not name.startswith("_") and name not in gl_fields(kind)]
    assert methods
    assert [name for name in methods if not re.search(rf"`\.{name}\(|`\.{name}`", page)] == []


def gl_fields(kind):
    return getattr(getattr(gl, kind), "__slots__", ())


def test_the_wheel_says_it_is_typed_and_has_what_is_submitted(tmp_path):
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    built = zipfile.ZipFile(wheel)
    names = built.namelist()
    assert "groupledger/py.typed" in names
    assert "groupledger/answers/views.sql" in names
    assert "groupledger/jobs/groupledger_job.py" in names
    [metadata] = [built.read(name).decode() for name in names if name.endswith(".dist-info/METADATA")]
    assert f"\nVersion: {gl.__version__}\n" in metadata
    assert "\nClassifier: Typing :: Typed\n" in metadata


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The captured log of the demonstration, without what Spark computes of it."""
    return ledger_of(tmp_path_factory.mktemp("ledger"), ["dev"])


def test_the_code_of_the_pages_runs(place):
    readme = next(
        code for code in blocks((ROOT / "README.md").read_text(encoding="utf-8"), "python") if "gl.open" in code
    )
    docs = ROOT / "docs"
    pages = (PAGE, docs / "start" / "tutorial-notebook.md", docs / "guides" / "decide" / "what-if.md")
    for code in (*("".join(blocks(page.read_text(encoding="utf-8"), "python")) for page in pages), readme):
        assert DEMO_LEDGER in code
        exec(compile(code.replace(DEMO_LEDGER, place), "page", "exec"), {})  # noqa: S102 - the documents' own examples
