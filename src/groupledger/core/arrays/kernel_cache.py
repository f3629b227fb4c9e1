"""Keep what numba compiled, under the digest of a kernel and the types that it was compiled for.

numba's own cache goes by the path of the source: code in a zip, a container or another checkout is compiled again. It
has one index for all overloads of a function, and of two processes that add to it at once, one gets the other's code.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from groupledger.core.arrays.kernels import kind, roots

caching: Any = importlib.import_module("numba.core.caching")

GENERIC = ("generic", "")
"""numba's name and features of a processor that is like all of its kind: NUMBA_CPU_NAME=generic."""


class KernelFiles:
    """The files of one kernel, in the place of numba's file: an index and its code for each overload."""

    def __init__(self, name: str, folders: Sequence[Path] | None = None) -> None:
        self._name = name
        self._folders = roots() if folders is None else folders

    def load(self, key: Any) -> Any:
        """Return what was saved under numba's key, or what serves every processor, or None; never an error."""
        signature, (triple, *_), code = key
        for each in (key, (signature, (triple, *GENERIC), code)):
            for file in self._files(each):
                try:
                    found = file.load(each)
                except Exception:  # noqa: BLE001, S112 what is damaged unpickles to any error, and is compiled again
                    continue
                if found is not None:
                    return found
        return None

    def save(self, key: Any, data: Any) -> None:
        """Save where it is possible; a full disk costs the next process its time, and this one nothing."""
        for file in self._files(key):
            path = Path(file._cache_path)
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.mkdir(exist_ok=True)
                file.flush()  # whatever is there could not be loaded
                file.save(key, data)
            except OSError:
                continue
            return

    def flush(self) -> None:
        """Keep what is there: other processes use it, and its name says what it is."""

    def _files(self, key: Any) -> Iterator[Any]:
        signature, magic, code = key
        what = repr((*map(_described, signature), magic, code))
        name = f"{self._name}-{hashlib.sha256(what.encode()).hexdigest()[:16]}"
        folder = kind(generic=tuple(magic[1:]) == GENERIC)
        return (caching.IndexDataCacheFile(str(root / folder), name, "") for root in self._folders)


def _described(kind_: Any) -> Any:
    """Return a type with the names of its fields: numba takes two named tuples whose fields changed places for one."""
    return str(kind_), getattr(kind_, "fields", ()), [_described(each) for each in getattr(kind_, "types", ())]


class _Locator(caching._CacheLocator):
    """Answer what numba asks of a place: `KernelFiles` has its own, and a kernel's name has the digest of its code."""

    _py_file = __file__  # numba warns of what cannot be kept

    @classmethod
    def from_function(cls, _function: Any, _file: str) -> _Locator:
        return cls()

    def ensure_cache_path(self) -> None:
        pass

    def get_cache_path(self) -> str:
        return str(roots()[0])

    def get_source_stamp(self) -> str:
        return ""

    get_disambiguator = get_source_stamp


class _Compiled(caching.CompileResultCacheImpl):
    _locator_classes = (_Locator,)  # numba knows more, all by the path of a file


class KernelCache(caching.FunctionCache):
    """numba's cache of a function, over `KernelFiles`."""

    _impl_class = _Compiled

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = KernelFiles(function.__qualname__)
