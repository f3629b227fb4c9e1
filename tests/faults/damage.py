"""Files of a ledger that were harmed: refused by the table's name, and their rows made again by `rebuild`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from deltalake import DeltaTable

from groupledger.core.faults import Fault
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.rebuild import rebuild
from groupledger.sinks.append import stored
from groupledger.sinks.ledger_tables import STAMPED, LedgerLocation
from groupledger.sinks.location import RAW, engine_errors_as_faults
from groupledger.tables import Table
from tests.faults.bench import Bench, Verdict
from tests.faults.injections import Injection
from tests.faults.story import STEPS, steady

DATA, ENTRY = "data file", "log entry"
_WORDS = 160


def halved(file: Path) -> None:
    """Cut in the middle, as by a crash."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def emptied(file: Path) -> None:
    """Of no bytes, as by a full disk."""
    file.write_bytes(b"")


def overwritten(file: Path) -> None:
    """Other bytes in the middle."""
    content = bytearray(file.read_bytes())
    third = len(content) // 3
    content[third : 2 * third] = b"\xff" * third
    file.write_bytes(bytes(content))


def removed(file: Path) -> None:
    """Gone."""
    file.unlink()


HARMS: tuple[Callable[[Path], None], ...] = (halved, emptied, overwritten, removed)


def damages(bench: Bench) -> Iterator[tuple[Injection, Verdict]]:
    """Of each table a data file and a log entry, harmed in one way each: all ways in turn, from table to table."""
    whole = bench.folder / "after all"
    filled = [table for table in STAMPED if _data(whole / table.name)]
    for number, table in enumerate(filled):
        of_file, of_entry = (HARMS[(number + turn) % len(HARMS)] for turn in (0, 1))
        yield _damaged(bench, table, _data(whole / table.name)[0], of_file, f"{DATA} of {table.name}")
        yield _damaged(bench, table, _entry(whole / table.name, of_entry), of_entry, f"{ENTRY} of {table.name}")


def _data(table: Path) -> list[Path]:
    """The files that the table consists of; others may lie beside them."""
    return sorted(table / Path(uri).name for uri in DeltaTable(str(table)).file_uris())


def _entry(table: Path, harm: Callable[[Path], None]) -> Path:
    """The last log entry; where one is to go, the first: a table without its last is whole, as of the one before."""
    entries = sorted((table / "_delta_log").glob("*.json"))
    return entries[0] if harm is removed else entries[-1]


def _damaged(
    bench: Bench, table: Table, file: Path, harm: Callable[[Path], None], what: str
) -> tuple[Injection, Verdict]:
    injection = Injection("damage", STEPS[-1], what, harm.__name__)
    whole = bench.folder / "after all"
    ledger = bench.folder / f"damaged-{next(bench.numbers)}"
    shutil.copytree(whole, ledger)
    target = ledger / file.relative_to(whole)
    harm(target)
    target.with_name(f".{target.name}.crc").unlink(missing_ok=True)  # as on a store that keeps no checksums
    location = LedgerLocation(path=str(ledger))
    bench.files.forget()
    refusal = _refusal(bench, location, table).replace(f"{ledger}/", "")
    unseen = harm is emptied and what.startswith(ENTRY)  # Delta takes it for a commit of nothing; rebuild counts
    wrong = [] if table.name in refusal or unseen else [f"not refused by name: {refusal}"]
    invocation = Invocation(attempt_id=f"rebuild-{next(bench.numbers)}", now=steady, seconds=lambda: 0.0)
    again = bench.attempt(lambda: rebuild(bench.spark, location, bench.story.config(ledger, STEPS[0]), invocation))
    raw = table.name in RAW
    if not again.startswith("died (LEDGER_DAMAGED" if raw else "went through"):
        wrong.append(f"rebuild {again}")
    wrong += [] if raw else bench.unlike(ledger, STEPS[-1])
    bench.files.forget()
    shutil.rmtree(ledger)
    then = "rebuild refuses it: the others are made of it" if raw else "rebuilt: same"
    ended = "not seen by readers" if unseen else f"refused ({refusal[:_WORDS]})"
    return injection, Verdict(injection.name, ended, 0, "; ".join(wrong), then)


def _refusal(bench: Bench, location: LedgerLocation, table: Table) -> str:
    """What a reader of the table is told; empty where it reads on."""
    try:
        with engine_errors_as_faults(location):
            found = stored(bench.spark, location, table)
    except Fault as fault:
        return f"{fault.code}: {fault.message}"
    return f"read {sum(each.rows for each in found.values())} rows"
