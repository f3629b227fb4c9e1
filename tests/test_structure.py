"""What the package's files may be to one another: no cycle, no two types of one name, no file that only forwards.

import-linter holds the layers; this holds the files in them. Each check also sees a violation planted for it.
What still breaks a rule is listed, by name; the list only ever gets shorter, and a test says when an entry can go.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent / "src"

NOTEBOOK = "groupledger.notebook."
TYPE_CYCLES: set[frozenset[str]] = set()
"""Files that form a cycle only through imports for type checkers."""
CODE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")


class When(Enum):
    """When an import is done."""

    LOADED = "when the file is loaded"
    CALLED = "when a function is called"
    CHECKED = "by type checkers alone"


class Source:
    """The files of a package by module name, parsed."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """`texts`: by path below the folder of sources, such as `groupledger/core/rebalance/step.py`."""
        self.files = {_module(path): ast.parse(text) for path, text in texts.items()}
        self.packages = {_module(path) for path in texts if path.endswith("__init__.py")}

    def imports(self, *, but: frozenset[When] = frozenset()) -> dict[str, set[str]]:
        """For each module the modules that it imports itself, without imports done at the times `but`."""
        return {
            module: {self._meant(*name) for when, name in _imports(tree, When.LOADED) if when not in but}
            & self.files.keys() - {module}
            for module, tree in self.files.items()
        }

    def _meant(self, module: str, name: str | None) -> str:
        """`from package import module` imports the module."""
        return f"{module}.{name}" if f"{module}.{name}" in self.files else module

    def types(self) -> dict[str, set[str]]:
        """The modules that define each public type: classes and aliases; one in a function or a class is nobody's."""
        found = defaultdict(set)
        for module, tree in self.files.items():
            for name in filter(_is_type_name, _defined(tree.body)):
                found[name].add(module)
        return found

    def forwarding(self) -> Iterator[str]:
        """Modules that only hand on what others have; a package's `__init__` may, it is the package's face."""
        for module, tree in self.files.items():
            if module not in self.packages and all(map(_forwards, tree.body)):
                yield module

    def odd_codes(self) -> Iterator[str]:
        """Codes of faults that are not written LIKE_THIS, with their modules."""
        for module, tree in self.files.items():
            for node in ast.walk(tree):
                match node:
                    case ast.Call(ast.Name("Fault"), [ast.Constant(str(code)), *_]) if not CODE.fullmatch(code):
                        yield f"{module}: {code}"


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports(node: ast.AST, when: When) -> Iterator[tuple[When, tuple[str, str | None]]]:
    """All imports below a node: when they are done, the module, and the name in it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((when, (each.name, None)) for each in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: expected the full name of the module"
            yield from ((when, (child.module or "", each.name)) for each in child.names)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _imports(child, When.CALLED if when is When.LOADED else when)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from _imports(child, When.CHECKED)
        else:
            yield from _imports(child, when)


def _defined(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp | ast.Call):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.If):
            yield from _defined(node.body)


def _is_type_name(name: str) -> bool:
    """Written as types are, and not a type variable."""
    return re.fullmatch(r"[A-Z][a-z]\w*", name) is not None


def _forwards(node: ast.stmt) -> bool:
    """Imports, texts, `__all__`, another name for something, and functions that pass all they are given to another."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant()) | ast.If(test=ast.Name()):
            return True
        case ast.Assign(targets=[ast.Name(name)]) if name == "__all__" or isinstance(node.value, ast.Name):
            return True
        case ast.FunctionDef(body=[*_, ast.Return(ast.Call(args=passed, keywords=named))]):
            before = all(map(_forwards, node.body[:-1]))
            return before and all(isinstance(each, ast.Name) for each in [*passed, *(each.value for each in named)])
    return False


def cycles(imports: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """Modules that reach one another, largest together (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for other in sorted(imports[module]):
            if other not in number:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], number[other])
        if low[module] == number[module]:
            at = stack.index(module)
            together = frozenset(stack[at:])
            del stack[at:]
            if len(together) > 1:
                found.append(together)

    for module in sorted(imports):
        if module not in number:
            visit(module)
    return found


@pytest.fixture(scope="module")
def source() -> Source:
    paths = sorted(SOURCES.rglob("*.py"))
    return Source({path.relative_to(SOURCES).as_posix(): path.read_text(encoding="utf-8") for path in paths})


def test_no_file_imports_itself_by_way_of_others(source):
    assert len(source.files) > 100
    assert cycles(source.imports(but=frozenset({When.CHECKED}))) == []


def test_no_cycle_through_imports_for_type_checkers_is_new(source):
    assert set(cycles(source.imports())) == TYPE_CYCLES, "no cycle any more? take it out"


def test_a_type_name_stands_in_one_file(source):
    assert {name: sorted(modules) for name, modules in source.types().items() if len(modules) > 1} == {}


def test_no_file_only_forwards(source):
    assert list(source.forwarding()) == []


def test_codes_of_faults_are_written_one_way(source):
    assert list(source.odd_codes()) == []


LOADS_B, CALLS_B, CHECKS_B = "from p.b import f", "def g():\n    from p import b", "if TYPE_CHECKING:\n    import p.b"


@pytest.mark.parametrize(
    ("a", "b", "at_run_time", "for_checkers"),
    [
        (LOADS_B, "x = 1", 0, 0),
        (LOADS_B, "import p.a", 1, 1),
        (CALLS_B, "class C:\n    def m(self):\n        from p.a import g", 1, 1),
        (CHECKS_B, "from p import a", 0, 1),
    ],
)
def test_a_planted_cycle_is_seen(a, b, at_run_time, for_checkers):
    planted = Source({"p/__init__.py": "", "p/a.py": a, "p/b.py": b})
    run_time = cycles(planted.imports(but=frozenset({When.CHECKED})))
    assert (len(run_time), len(cycles(planted.imports()))) == (at_run_time, for_checkers)


@pytest.mark.parametrize(
    ("a", "b", "twice"),
    [
        ("class Plan: ...", "class Plan: ...", {"Plan"}),
        ("class Plan: ...", "Plan = dict[str, int]", {"Plan"}),
        ("class Plan: ...", "from p.a import Plan", set()),
        ("class _Plan: ...", "class _Plan: ...", set()),
        ("T = TypeVar('T')\nLIMIT = 1 + 1", "T = TypeVar('T')\nLIMIT = 1 + 1", set()),
    ],
)
def test_a_planted_twin_is_seen(a, b, twice):
    types = Source({"p/a.py": a, "p/b.py": b}).types()
    assert {name for name, modules in types.items() if len(modules) > 1} == twice


@pytest.mark.parametrize(
    ("text", "forwards"),
    [
        ('"""Text."""\nfrom p.b import f\n\n__all__ = ["f"]\nother = f', True),
        ("def g(a, b):\n    from p.b import f\n    return f(a, key=b)", True),
        ("def g(a):\n    return f(a + 1)", False),
        ("class C: ...", False),
        ("LIMIT = 3", False),
    ],
)
def test_a_planted_file_that_only_forwards_is_seen(text, forwards):
    assert list(Source({"p/a.py": text, "p/__init__.py": text}).forwarding()) == (["p.a"] if forwards else [])


def test_a_planted_odd_code_is_seen():
    planted = Source({"p/a.py": "raise Fault('bad-json', 'what')\nraise Fault('BAD_JSON', 'what')"})
    assert list(planted.odd_codes()) == ["p.a: bad-json"]


def test_every_package_has_a_map():
    """What it is, in which order to read it, and who calls it; every module that the map names is there."""
    for package in sorted(SOURCES.rglob("__init__.py")):
        if package.parent == SOURCES / "groupledger":
            continue
        text = " ".join((ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or "").split())
        assert re.search(r"\bRead `", text), f"{package}: the order to read it in"
        assert "Called by " in text, f"{package}: who calls it"
        read, _, calls = text.partition("Read `")[2].partition("Called by ")
        for name in re.findall(r"`([a-z_0-9.]+)`", "`" + read):
            there = [root / name.replace(".", "/") for root in (package.parent, SOURCES / "groupledger")]
            assert any(path.with_suffix(".py").exists() or path.is_dir() for path in there), f"{package}: {name}"
        assert calls


def test_no_file_name_is_used_twice():
    """A name that is said aloud, in a trace or a review, means one file; tests are found by it too."""
    named = Counter(path.name for path in SOURCES.rglob("*.py") if path.name not in ("__init__.py", "__main__.py"))
    assert not [name for name, files in named.items() if files > 1]
