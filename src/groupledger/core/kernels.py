"""One source, two ways to run it: loops over integers, compiled by numba when there is much to do, plain Python otherwise.

A kernel is a module-level function over numpy arrays, numbers and named tuples of them. It stays an ordinary Python
function; `run` compiles it and the kernels it calls on first need. `import numba` costs 0.65 s and the compiler
seconds once a machine, so a handful of groups is not worth it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

WORTH_COMPILING = 20_000
"""Array cells touched from which loading the compiled kernels (about a second) beats the interpreter."""

_KERNELS: set[Any] = set()


def kernel(function: F) -> F:
    """Mark a function as compilable; it may call other kernels, no other Python code."""
    _KERNELS.add(function)
    return function


def run(function: Callable[..., Any], *arguments: Any, cells: int) -> Any:
    """Call a kernel that will touch about `cells` array cells; same result compiled or not."""
    if not worth_compiling(cells):
        return function(*arguments)
    return compiled(function)(*arguments)


def worth_compiling(cells: int) -> bool:
    """Whether work of this size runs compiled: never without numba, always once numba is loaded."""
    wish = os.environ.get("GROUPLEDGER_KERNELS", "auto")
    if wish == "python" or not _numba_found():
        return False
    return wish == "numba" or cells >= WORTH_COMPILING or compiled.cache_info().currsize > 0


@functools.cache
def _numba_found() -> bool:
    return importlib.util.find_spec("numba") is not None


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The numba dispatcher of a kernel, its callees compiled with it, cached on disk under a digest of all kernels."""
    import numba

    assert isinstance(function, FunctionType)
    module = sys.modules[function.__module__]
    namespace = dict(vars(module))
    for name in function.__code__.co_names:
        if callable(namespace.get(name)) and _is_kernel(namespace[name]):
            namespace[name] = compiled(namespace[name])
    twin = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__)
    twin.__qualname__ = function.__qualname__
    twin.__module__ = function.__module__
    kept = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_cache_home())
    try:
        dispatcher: Callable[..., Any] = numba.njit(cache=True)(twin)
    finally:
        numba.config.CACHE_DIR = kept
    return dispatcher


def _is_kernel(candidate: Any) -> bool:
    return isinstance(candidate, FunctionType) and candidate in _KERNELS


@functools.cache
def _cache_home() -> Path:
    """Machine code belongs to one state of all sources: numba itself notices a change in the calling file only."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if not os.access(home if home.exists() else home.parent, os.W_OK):
        home = Path(tempfile.gettempdir())
    return home / "groupledger" / f"kernels-{digest.hexdigest()[:16]}"
