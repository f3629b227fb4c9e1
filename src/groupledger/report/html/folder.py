"""Write pages to their folder one at a time, each whole; other files are never touched.

A list of our files stands in the folder. It names every file before the file is written, and until after it is gone:
whenever this is ended, the next report knows what is ours. The index comes last: what it links to is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from groupledger.core.faults import Fault
from groupledger.report.html.page_parts import INDEX, PAGE_NAME

LIST = ".groupledger-report.json"
_NEW = ".new"


class ReportFolder:
    """A folder of pages: `write` each page, then `finish` with the index."""

    def __init__(self, place: Path) -> None:
        """Take a new or empty folder, or one that holds a report.

        Raises Fault: FOREIGN_FOLDER for one that holds anything else and no report, or that is no folder.
        """
        self._place = place
        if place.exists() and not place.is_dir():
            raise Fault("FOREIGN_FOLDER", f"{place} is a file; expected a folder, or a name that is not there yet")
        self._before = frozenset(_listed(place) if place.exists() else ())
        self._written: list[str] = []

    def write(self, name: str, text: str) -> None:
        """Put a page in its place; the first one creates the folder."""
        self._place.mkdir(parents=True, exist_ok=True)
        self._written.append(name)
        self._list(self._before.union(self._written))
        self._put(name, text)

    def finish(self, index: str) -> None:
        """Write the index, then remove the pages that it no longer links to."""
        self.write(INDEX, index)
        for name in sorted(self._before.difference(self._written)):
            (self._place / name).unlink(missing_ok=True)
            (self._place / f"{name}{_NEW}").unlink(missing_ok=True)
        self._list(self._written)

    def _list(self, names: Iterable[str]) -> None:
        self._put(LIST, json.dumps({"made_by": "groupledger report html", "files": sorted(names)}, indent=1) + "\n")

    def _put(self, name: str, text: str) -> None:
        new = self._place / f"{name}{_NEW}"
        new.unlink(missing_ok=True)  # where it is a link, what it leads to is not ours
        new.write_text(text, encoding="utf-8", newline="\n")
        new.replace(self._place / name)


def _listed(place: Path) -> Iterator[str]:
    """Return our files in the folder, by its list, ignoring names that our files never have."""
    try:
        told = json.loads((place / LIST).read_text(encoding="utf-8"))
        names = [str(name) for name in told["files"]]
    except FileNotFoundError:
        if next(_others(place), None) is not None:
            raise _foreign(place) from None
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _foreign(place) from error
    yield from (name for name in names if PAGE_NAME.fullmatch(name))


def _others(place: Path) -> Iterator[Path]:
    """Return what is in the folder, except a list that was being written when a report was interrupted."""
    return (each for each in place.iterdir() if each.name != f"{LIST}{_NEW}")


def _foreign(place: Path) -> Fault:
    return Fault(
        "FOREIGN_FOLDER",
        f"{place} holds files and no report of ours ({LIST}); expected a folder that is new, empty or a report: "
        "name another, or remove this one first",
    )
