"""Histories of one fault or one cause each, written record by record; the fault is in the bytes of the log."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import getmembers, isfunction

from tests.corpus import assignor_excess, coordinator_faults, leader_faults, member_faults, ordinary
from tests.corpus.history import History

PARTS = (ordinary, leader_faults, member_faults, coordinator_faults, assignor_excess)


def faulty() -> Iterator[History]:
    """Each function of these modules is a history; its name is the title, its docstring says what happened."""
    for part in PARTS:
        for name, make in getmembers(part, isfunction):
            if make.__module__ == part.__name__ and not name.startswith("_"):
                log = make()
                log.title, log.what = name.replace("_", "-"), " ".join((make.__doc__ or "").split())
                yield log.history()
