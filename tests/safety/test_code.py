"""Nothing that data says is run: no pickle, no evaluation, no import by a name from data, no SQL but from one place."""

import ast
import json
import os
from pathlib import Path

import pytest

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.custom.assignor_names import find_all
from groupledger.core.scenarios.solving import solve_lines

SOURCES = sorted((Path(__file__).parents[2] / "src").rglob("*.py"))
JOBS = sorted((Path(__file__).parents[2] / "jobs").rglob("*.py"))
UNPICKLING = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "jsonpickle"}
EVALUATION = {"eval", "exec", "compile", "__import__"}
IMPORTS_BY_NAME = {
    "__init__.py": "the public names, by a table of literals",
    "cli/commands.py": "the modules of commands, by a table of literals",
    "cli/json_schemas.py": "the modules of answers, as they are installed",
    "cli/report.py": "the functions of answers, by a table of literals",
    "core/faults.py": "names from a configuration or a command line",
    "core/custom/child.py": "a name from a configuration or a command line, in the process of custom code",
    "core/arrays/kernels.py": "numba, by literals",
    "core/assignors/__init__.py": "functions that the registry names",
    "listener/live.py": "client libraries, by literals",
}
WRITES_SQL = {"sinks/ledger_tables.py", "sinks/append.py", "sinks/location.py"} | {
    "sources/delta_growth.py",
    "sinks/current.py",  # the queries of `tables.views`, of declared names alone
    "pipeline/frames.py",
}
LITERAL_SQL = {"engine/archive.py"}


def relative(path):
    return path.as_posix().partition("groupledger/")[2] if "groupledger/" in path.as_posix() else path.name


def complaints(path, text):
    """What a file must not do."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (f"imports {name}" for name in names if name.split(".")[0] in UNPICKLING)
        if isinstance(node, ast.Call):
            yield from called(path, node)


def called(path, node):
    name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
    plain = isinstance(node.func, ast.Name)
    constant = bool(node.args) and isinstance(node.args[0], ast.Constant)
    if plain and name in EVALUATION:
        yield f"calls {name}"
    if name == "import_module" and not constant and path not in IMPORTS_BY_NAME:
        yield "imports by a name that is computed"
    if name in ("load", "unsafe_load", "full_load") and getattr(getattr(node.func, "value", None), "id", "") == "yaml":
        yield "reads YAML that may make objects"
    if name == "sql" and path not in WRITES_SQL | LITERAL_SQL:
        yield "writes SQL"
    if name == "sql" and path in LITERAL_SQL and not constant:
        yield "computes SQL"
    if name in ("loads", "load") and getattr(getattr(node.func, "value", None), "id", "") in ("np", "numpy"):
        yield "may unpickle an array"


@pytest.mark.parametrize("path", [*SOURCES, *JOBS], ids=relative)
def test_no_file_runs_what_it_reads(path):
    assert list(complaints(relative(path), path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from cloudpickle import loads",
        "eval(x)",
        "yaml.load(x)",
        "importlib.import_module(name)",
        "spark.sql(f'select {x}')",
        "np.load(x, allow_pickle=True)",
    ],
)
def test_a_planted_violation_is_seen(text):
    assert len(list(complaints("pipeline/planted.py", text))) == 1


HOSTILE_NAMES = ["os:system", "builtins:exec", "subprocess:run", "../../evil:f", "__import__('os')", "os.system('x')"]


@pytest.fixture
def no_shell(monkeypatch):
    called = []
    monkeypatch.setattr(os, "system", lambda *given: called.append(given))
    return called


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_an_assignor_that_data_names_is_not_imported(no_shell, name):
    scenario = {
        "id": "a",
        "assignor": name,
        "topics": {"orders": 3},
        "members": [{"id": "m1", "topics": ["orders"], "assignor": name}],
    }
    [answer] = solve_lines([json.dumps(scenario)])
    assert "error" in json.loads(answer)
    assert no_shell == []


def test_only_what_a_configuration_names_is_found():
    assert find_all(()) == {}
    assert not any(":" in name for name in ASSIGNORS)
