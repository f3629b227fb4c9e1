"""Run loops over integers from one source: compiled by numba if there is much work, as plain Python otherwise.

A kernel is a module-level function over numpy arrays, numbers and named tuples of them. It remains an ordinary Python
function; `run` compiles it and the kernels it calls when first needed. `import numba` costs 0.65 s, and compilation
takes seconds once per machine, so a handful of groups is not worth it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import platform
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

WORTH_LOADING = 20_000
"""Array cells above which loading already compiled kernels (about a second) is faster than the interpreter."""

WORTH_COMPILING = 2_000_000
"""Array cells, in all calls, above which it pays to compile a kernel for the first time on this machine (up to a
minute)."""

ERROR_MODEL = "numpy"  # kernels never divide by zero

_KERNELS: set[Any] = set()
_COMPILED_AS: dict[Any, Callable[[], Callable[..., Any]]] = {}
_INTERPRETED: Counter[Any] = Counter()
"""Cells by kernel, for kernels not compiled on this machine when this process first asked."""


def kernel(function: F) -> F:
    """Mark a function as compilable; it may call only other kernels, no other Python code."""
    _KERNELS.add(function)
    return function


def compiled_as(make: Callable[[], Callable[..., Any]]) -> Callable[[F], F]:
    """Mark a function as a kernel that compiles to what `make` returns, for what a loop cannot express.

    Interpreted, it calls a library; compiled, it uses an instruction of the processor. Other kernels call it.
    """

    def mark(function: F) -> F:
        _COMPILED_AS[function] = make
        return kernel(function)

    return mark


def run(function: Callable[..., Any], *arguments: Any, cells: int) -> Any:
    """Call a kernel that will touch about `cells` array cells; the result is the same compiled or not."""
    if not runs_compiled(function, cells):
        return function(*arguments)
    return compiled(function)(*arguments)


def runs_compiled(function: Callable[..., Any], cells: int) -> bool:
    """Return whether a kernel runs compiled on work of this size: never without numba.

    Once numba is loaded, whatever was compiled before runs compiled. A kernel that never was is compiled by a process
    whose calls add up to enough work.
    """
    wish = os.environ.get("GROUPLEDGER_KERNELS", "auto")
    if wish in ("python", "numba") or not _numba_found():
        return wish == "numba" and _numba_found()
    if not _compiled_before(function):
        _INTERPRETED[function] += cells
        return _INTERPRETED[function] >= WORTH_COMPILING
    return cells >= WORTH_LOADING or compiled.cache_info().currsize > 0


@functools.cache
def _compiled_before(function: Callable[..., Any]) -> bool:
    return is_kept(_compiled_name(function))


def _compiled_name(function: Callable[..., Any]) -> str:
    return f"{function.__name__}_{_digest(function)[:12]}"


@functools.cache
def _numba_found() -> bool:
    return importlib.util.find_spec("numba") is not None


@functools.cache
def compiled(function: Callable[..., Any], *, cached: bool = True) -> Callable[..., Any]:
    """Return the numba dispatcher of a kernel with its callees, cached on disk under a digest of all of them."""
    if function in _COMPILED_AS:
        return _COMPILED_AS[function]()
    numba: Any = importlib.import_module("numba")
    callees = {name: compiled(callee, cached=False) for name, callee in _callees(function)}
    structs = {name: _struct(known) for name, known in _globals(function).items() if _is_named_tuple(known)}
    twin = FunctionType(function.__code__, dict(_globals(function)) | callees | structs, function.__name__)
    twin.__module__ = function.__module__
    twin.__qualname__ = _compiled_name(function)
    dispatcher: Any = numba.njit(error_model=ERROR_MODEL)(twin)
    if cached:
        dispatcher._cache = importlib.import_module("groupledger.core.arrays.kernel_cache").KernelCache(twin)
    return dispatcher  # type: ignore[no-any-return]


def _is_named_tuple(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, tuple) and hasattr(candidate, "_fields")


@functools.cache
def _struct(named_tuple: Any) -> Any:
    """Return a heap struct with the same fields, which kernels build instead of a named tuple when compiled.

    It is passed on as one pointer, where a tuple of twenty arrays is passed as two hundred values (and takes ten times
    as long to compile).
    """
    types: Any = importlib.import_module("numba.core.types")
    structref: Any = importlib.import_module("numba.experimental.structref")
    kind = structref.register(type(f"{named_tuple.__name__}Struct", (types.StructRef,), {}))
    proxy = type(named_tuple.__name__, (structref.StructRefProxy,), {})
    structref.define_constructor(proxy, kind, named_tuple._fields)
    structref.define_attributes(kind)
    return proxy


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    return vars(sys.modules[function.__module__])


def _callees(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Return the kernels that a kernel calls, with the names that it uses for them."""
    known = _globals(function)
    named = [(name, known[name]) for name in function.__code__.co_names if name in known]
    return [(name, value) for name, value in named if isinstance(value, FunctionType) and value in _KERNELS]


@functools.cache
def _digest(function: Callable[..., Any]) -> str:
    """Return the digest of a kernel's code, of the constants and named tuples in it, of its callees and annotations."""
    code, known = function.__code__, _globals(function)
    constants = [(name, _constant(known[name])) for name in code.co_names if name in known]
    callees = [(name, _digest(callee)) for name, callee in _callees(function)]
    if function in _COMPILED_AS:  # the module that gives its compiled form
        source = inspect.getsource(sys.modules[_COMPILED_AS[function].__module__])
        callees.append(("", hashlib.sha256(source.encode()).hexdigest()))
    types = sorted((name, str(kind)) for name, kind in function.__annotations__.items())
    text = repr((ERROR_MODEL, code.co_code, code.co_consts, code.co_names, code.co_varnames, constants, callees, types))
    return hashlib.sha256(text.encode()).hexdigest()


def _constant(value: Any) -> Any:
    """Return what a kernel compiles of a global name that is no kernel: a number, an array, or a tuple's fields."""
    if _is_named_tuple(value):
        return value._fields
    if hasattr(value, "tobytes"):
        return str(value.dtype), value.tobytes()
    return value if isinstance(value, int | float) else ""


# Name the folders of compiled kernels: by numba, Python and processor, never by where the code lies.
#
# They are asked for a kernel before numba is loaded, which takes longer than a small piece of work.

VARIABLE = "GROUPLEDGER_KERNEL_CACHE"
"""A folder to look in first, such as the unpacked archive of `groupledger kernels`."""


def is_kept(name: str) -> bool:
    """Return whether a kernel of this name was compiled before, in a form that can run here."""
    kinds = [kind(generic=generic) for generic in (False, True)]
    return any(any((root / each).glob(f"{name}-*.nbi")) for root in roots() for each in kinds)


def roots() -> list[Path]:
    """Return the folders that kernels are read from; the first that can be written to gets new ones.

    The last is for homes that cannot be written to. What is in it is run, so it is left out if others can write to it.
    """
    named, cache = os.environ.get(VARIABLE), os.environ.get("XDG_CACHE_HOME")
    found = [Path(named).absolute()] if named else []
    with suppress(RuntimeError):  # a user without a home
        found.append(Path(cache or Path.home() / ".cache", "groupledger", "kernels"))
    last = Path(tempfile.gettempdir(), f"groupledger-kernels-{os.getuid()}")
    there = last.lstat() if os.path.lexists(last) else None
    ours = there is None or (there.st_uid == os.getuid() and not there.st_mode & 0o022)
    return [*found, last] if ours else found


@functools.cache
def kind(*, generic: bool) -> str:
    """Return the folder of kernels compiled for this processor, or for every processor of its kind."""
    try:
        numba = importlib.metadata.version("numba")
    except importlib.metadata.PackageNotFoundError:
        numba = "unknown"
    cpu = "generic" if generic else _features()
    return f"numba-{numba}-{sys.implementation.cache_tag}-{sys.platform}-{platform.machine()}-{cpu}"


def _features() -> str:
    """Return a digest of what the processor can do: a home may be shared by machines of several kinds."""
    try:
        with Path("/proc/cpuinfo").open("rb") as listed:
            found = re.search(rb"^(?:flags|Features)\s*:(.*)$", listed.read(1 << 13), re.MULTILINE)
    except OSError:
        found = None
    return hashlib.sha256(found[1]).hexdigest()[:8] if found else "own"
