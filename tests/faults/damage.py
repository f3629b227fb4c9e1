"""Files of a ledger that were harmed: refused by the table's name, and their rows made again by `rebuild`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from groupledger.core.faults import Fault
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.rebuild import STAMPED, rebuild
from groupledger.sinks.append import stored
from groupledger.sinks.ledger import LedgerLocation
from groupledger.sinks.refusals import RAW, named
from groupledger.tables import Table
from tests.faults.bench import Bench, Verdict
from tests.faults.injections import Injection
from tests.faults.story import STEPS, steady

DATA, ENTRY = "*.parquet", "_delta_log/*.json"


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
    """Each table's first data file and last log entry, harmed in turn in one of the ways."""
    number = 0
    for table in STAMPED:
        for kind in (DATA, ENTRY):
            files = sorted((bench.folder / "after all" / table.name).glob(kind))
            if len(files) > (kind == ENTRY):
                harm = HARMS[number % len(HARMS)]
                number += 1
                what = f"{'data file' if kind == DATA else 'log entry'} of {table.name}"
                yield _damaged(bench, table, files[-1 if kind == ENTRY else 0], harm, what)


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
    refusal = _refusal(bench, location, table)
    wrong = [] if table.name in refusal else [f"not refused by name: {refusal}"]
    if table.name not in RAW:
        config = bench.story.config(ledger, STEPS[0])
        invocation = Invocation(attempt_id=f"rebuild-{next(bench.numbers)}", now=steady, seconds=lambda: 0.0)
        again = bench.attempt(lambda: rebuild(bench.spark, location, config, invocation))
        wrong += [] if again == "went through" else [f"rebuild {again}"]
        wrong += bench.unlike(ledger, STEPS[-1])
    bench.files.forget()
    shutil.rmtree(ledger)
    return injection, Verdict(injection.name, f"refused ({refusal[:160]})", 0, "; ".join(wrong))


def _refusal(bench: Bench, location: LedgerLocation, table: Table) -> str:
    """What a reader of the table is told; empty where it reads on."""
    try:
        with named():
            found = stored(bench.spark, location, table)
    except Fault as fault:
        return f"{fault.code}: {fault.message}"
    return f"read {sum(each.rows for each in found.values())} rows"
