"""Which tests reach a statement of the source, and how long each takes: a pytest plugin, and what it found.

Draws of tests repeat by seed, so up to the statement that it changes a mutant runs as the source does: a test that does
not reach that cannot see it. What is computed once and kept, by a fixture or a cache, counts for all that may use it.
"""

from __future__ import annotations

import ast
import builtins
import functools
import gc
import json
import py_compile
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

PROCESSES = ("os.fork", "os.posix_spawn", "os.system", "subprocess.Popen")
"""Events of a test that starts a process: what that reaches is not seen, and may be any statement."""
ANY = -1


@dataclass(frozen=True, slots=True)
class Statement:
    """The statement that begins at a line of a file."""

    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class Reached:
    """Processor time in seconds of each test, the statements it reaches, and those that run when a file is loaded."""

    seconds: Mapping[str, float]
    tests: Mapping[str, frozenset[Statement]]
    loaded: frozenset[Statement]
    apart: frozenset[str]
    """Tests that start processes."""

    @staticmethod
    def read(path: Path, wanted: Sequence[Statement]) -> Reached:
        """What `Recorder` wrote."""
        told = json.loads(path.read_text())
        tests = {test: frozenset(wanted[at] for at in found if at != ANY) for test, found in told["tests"].items()}
        apart = frozenset(test for test, found in told["tests"].items() if ANY in found)
        return Reached(told["seconds"], tests, frozenset(wanted[at] for at in told["loaded"] if at != ANY), apart)

    def tests_of(self, statement: Statement | None) -> list[str]:
        """The tests that reach a statement, the quickest first; all for one that runs when its file is loaded."""
        everyone = statement is None or statement in self.loaded
        found = [test for test, of in self.tests.items() if everyone or statement in of or test in self.apart]
        return sorted(found, key=lambda test: self.seconds[test])


@dataclass(frozen=True, slots=True)
class Chosen:
    """The plugin that runs these tests in this order, and those that the source as it is does not have (`known`)."""

    tests: list[str]
    known: frozenset[str]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what does not reach the mutant."""
        place = {test: at for at, test in enumerate(self.tests)}
        left = [item for item in items if item.nodeid in place or item.nodeid not in self.known]
        items[:] = sorted(left, key=lambda item: place.get(item.nodeid, len(place)))


class Recorder:
    """The plugin that notes which statements of the source in a folder each test reaches, and its processor time."""

    def __init__(self, place: Path, wanted: Sequence[Statement], output: Path) -> None:
        self.numbers: dict[str, dict[int, int]] = {}
        for number, each in enumerate(wanted):
            self.numbers.setdefault(str(place / each.path), {})[each.line] = number
        self.output = output
        self.reached: dict[str, set[int]] = {"loaded": set()}
        self.current = "loaded"
        self.seconds: dict[str, float] = {}
        self.caches: list[Any] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        """Watch from before the first file is loaded."""
        load, code = SourceFileLoader.exec_module, SourceFileLoader.get_code

        def loaded(loader: SourceFileLoader, module: Any) -> None:
            with self._noting("loaded"):
                load(loader, module)

        def noted(loader: SourceFileLoader, name: str) -> CodeType | None:
            path = loader.get_filename(name)
            return _noted(path, self.numbers[path]) if path in self.numbers else code(loader, name)

        SourceFileLoader.exec_module = loaded  # type: ignore[assignment,method-assign]
        SourceFileLoader.get_code = noted  # type: ignore[assignment,method-assign]
        setattr(builtins, NOTE, self.reached["loaded"].add)
        sys.addaudithook(lambda event, _: self.reached[self.current].add(ANY) if event in PROCESSES else None)

    def pytest_collection_finish(self) -> None:
        """Note the caches: each test is to reach what it would reach alone."""
        every = (each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper))
        self.caches = [each for each in every if each.__module__.startswith(("groupledger", "tests"))]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note what the test reaches, and its time."""
        for each in self.caches:
            each.cache_clear()
        began = time.process_time()
        with self._noting(item.nodeid):
            done = yield
        self.seconds[item.nodeid] = time.process_time() - began
        for name in getattr(item, "fixturenames", ()):
            self.reached[item.nodeid] |= self.reached.get(f"fixture {name}", set())
        return done

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """A fixture that several tests share is reached by each of them."""
        if fixturedef.scope == "function":
            return (yield)
        with self._noting(f"fixture {fixturedef.argname}"):
            return (yield)

    def pytest_sessionfinish(self) -> None:
        """Write down what was found, and the compiled files that have no notes in them."""
        tests = {test: sorted(self.reached[test]) for test in self.seconds}
        told = {"seconds": self.seconds, "tests": tests, "loaded": sorted(self.reached["loaded"])}
        self.output.write_text(json.dumps(told))
        for path in self.numbers:
            py_compile.compile(path)

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        before, self.current = self.current, name
        setattr(builtins, NOTE, self.reached.setdefault(name, set()).add)
        try:
            yield
        finally:
            self.current = before
            setattr(builtins, NOTE, self.reached[before].add)


NOTE = "_note_that_this_is_reached"


def _noted(path: str, numbers: Mapping[int, int]) -> CodeType:
    """The code of a file that notes the numbers of statements before it runs them."""
    tree = ast.parse(Path(path).read_bytes(), path)
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, [each for statement in block for each in (*_note(statement, numbers), statement)])
    return compile(tree, path, "exec", dont_inherit=True)


def _note(statement: ast.stmt, numbers: Mapping[int, int]) -> list[ast.stmt]:
    if statement.lineno not in numbers:
        return []
    call = ast.parse(f"{NOTE}({numbers[statement.lineno]})").body[0]
    for each in ast.walk(call):
        ast.copy_location(each, statement)
    return [call]
