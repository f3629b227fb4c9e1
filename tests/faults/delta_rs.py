"""The faults of the file systems (tests/faults/java) where delta-rs writes, which passes Hadoop by.

The same places have the same names: a file of data is made; an entry of the log is made, and put in its place.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError

from groupledger.sinks import append

TORN_BYTES = b"PAR1 and no more"
_ERRORS = {"No space left": errno.ENOSPC, "Permission denied": errno.EACCES}

_WRITE, _COMMIT = append._write_file, DeltaTable.create_write_transaction

Passing = Callable[[str, Path], bool]
"""Pass a place: an operation and a file. True where the bytes about to be written are to be torn."""


def lay(jvm: Any) -> None:
    """Let this process ask the JVM, as its file systems do, before each step of a commit by delta-rs."""
    path_of, faults = jvm.org.apache.hadoop.fs.Path, jvm.groupledger.faults.Faults

    def passing(operation: str, file: Path) -> bool:
        try:
            return bool(faults.pass_(operation, path_of(f"file:{file}")))
        except Py4JJavaError as error:
            said = str(error.java_exception)
            code = next(code for words, code in _ERRORS.items() if words in said)
            raise OSError(code, said) from error

    setattr(append, "_write_file", _data(passing))  # noqa: B010 - a module's own function
    setattr(DeltaTable, "create_write_transaction", _entry(passing))  # noqa: B010 - another's class


def _data(passing: Passing) -> Callable[..., Any]:
    def written(folder: Path, name: str, *others: Any) -> Any:
        if passing("create", folder / name):
            (folder / name).write_bytes(TORN_BYTES)
            raise OSError(errno.ENOSPC, "No space left on device (injected)")
        return _WRITE(folder, name, *others)

    return written


def _entry(passing: Passing) -> Callable[..., None]:
    def committed(table: DeltaTable, *arguments: Any, **named: Any) -> None:
        """delta-rs makes the entry beside its place and links it there, so that it is never seen in part."""
        entry = Path(table.table_uri.removeprefix("file://"), "_delta_log", f"{table.version() + 1:020}.json")
        if passing("create", entry):
            entry.with_name(f"{entry.name}#1").write_bytes(b'{"add')
            raise OSError(errno.ENOSPC, "No space left on device (injected)")
        passing("rename", entry)
        _COMMIT(table, *arguments, **named)
        passing("renamed", entry)

    return committed
