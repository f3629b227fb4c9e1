"""Folders of damaged tables that `rebuild` moved out of the way: `<ledger>/<table>.damaged-<attempt>`.

Nobody reads them, and no vacuum of Delta sees them. They are kept for a person to look at, not for ever: what they hold
is subject to retention and redaction as it was in the table. A note in each says when it was moved, and after which
commit of the ledger.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from groupledger.sinks.location import has_scheme, local_folder

if TYPE_CHECKING:
    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.tables import Table

DAMAGED = ".damaged-"
NOTE = "_set_aside.json"
_SEQUENCE, _AT = "sequence", "at"


@dataclass(frozen=True, slots=True)
class Aside:
    """One such folder. `sequence` numbers the last commit before it was moved; 0 where no note says."""

    table: str
    folder: Path
    sequence: int
    at: datetime


def folder_of(location: LedgerLocation, table: Table) -> Path | None:
    """The folder of a table on this machine; None where it is elsewhere, or only a catalog knows."""
    if location.path is None:
        return None
    folder = local_folder(location.path) if has_scheme(location.path) else Path(location.path)
    return None if folder is None else folder / table.name


def move_aside(folder: Path, attempt_id: str, sequence: int, now: datetime) -> Path:
    """Move a table's folder out of the way. Killed in between, the table is where it was, with a note in it."""
    note = {_SEQUENCE: sequence, _AT: now.astimezone(UTC).isoformat()}
    Path(folder, NOTE).write_text(json.dumps(note), encoding="utf-8")
    aside = folder.with_name(f"{folder.name}{DAMAGED}{attempt_id}")
    folder.rename(aside)
    return aside


def set_aside(location: LedgerLocation, table: Table) -> tuple[Aside, ...]:
    """The folders of one table, in order of their names."""
    folder = folder_of(location, table)
    if folder is None or not folder.parent.is_dir():
        return ()
    found = (each for each in folder.parent.iterdir() if each.name.startswith(f"{table.name}{DAMAGED}"))
    return tuple(_aside(table, each) for each in sorted(found) if each.is_dir() and not each.is_symlink())


def _aside(table: Table, folder: Path) -> Aside:
    try:
        note = json.loads(Path(folder, NOTE).read_text(encoding="utf-8"))
        return Aside(table.name, folder, int(note[_SEQUENCE]), datetime.fromisoformat(note[_AT]))
    except (OSError, ValueError, KeyError, TypeError):  # of an older version, or a removal that was cut off
        return Aside(table.name, folder, 0, datetime.fromtimestamp(folder.stat().st_mtime, UTC))


def erase(aside: Aside) -> str:
    """Remove the folder with all it holds; says why it cannot be removed. Cut off, it can be repeated."""
    try:
        shutil.rmtree(aside.folder)
    except OSError as error:
        return f"cannot be removed: {error.strerror or error}"
    return ""
