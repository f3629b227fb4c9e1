"""The parts of `python -m tests.faults`, each in sessions of its own: commits, faults, deaths, executors, and so on."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import click

from tests.faults import injections
from tests.faults.bench import Bench, Verdict
from tests.faults.commits import contest
from tests.faults.damage import damages
from tests.faults.executors import MASTER, executors
from tests.faults.injections import Injection, Killing, in_turn
from tests.faults.poison import poison
from tests.faults.sameness import sameness, seeds
from tests.faults.sessions import compile_java, faulty_session
from tests.faults.story import STEPS, Story

PARTS = COMMITS, FAULTS, DEATHS, EXECUTORS, OTHERS, POISON = (
    *("commits", "faults", "deaths"),
    *("executors", "others", "poison"),
)
Account = Counter[str]
Judged = Iterator[tuple[Injection, Verdict]]


def part(name: str, arguments: argparse.Namespace) -> Account:
    """One part in a session of its own, or in one for each of two writers."""
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        if name == COMMITS:
            found = contest(folder, arguments.commits, locked=not arguments.unlocked)
            tell(f"{found}{'' if found.locked else '; without the lock'}")
            return Account(wrong=found.wrong)
        classes, ambush = compile_java(folder / "classes"), folder / "ambush"
        master = MASTER if name == EXECUTORS else "local[2]"
        bench = Bench(faulty_session(classes, ambush, master), Story.written(folder / "sources"), folder)
        if name == POISON:
            count = Account(wrong=told(poison(bench)))
        else:
            bench.prepare()
            bench.narrow(arguments.table)
            tell(f"{name}, undisturbed: {sum(map(len, bench.places.values()))} places at which files change")
            count = told_of(name, bench, arguments, classes, ambush)
        bench.spark.stop()
    return count


def told_of(name: str, bench: Bench, arguments: argparse.Namespace, classes: Path, ambush: Path) -> Account:
    """A part that knows the undisturbed story."""
    if name == OTHERS:
        for line in costs(bench):
            tell(line)
        return Account(wrong=told(chain(sameness(bench), seeds(bench, classes))))
    faults = {
        FAULTS: lambda: warm(bench, arguments, ambush),
        DEATHS: lambda: deaths(bench, arguments, classes),
        EXECUTORS: lambda: executors(bench, classes, ambush),
    }
    return counted(name, faults[name](), arguments.ends_at)


def counted(name: str, faults: Judged, ends_at: float) -> Account:
    """Tell each fault and count it, until the time is over."""
    count: Account = Counter()
    for injection, verdict in faults:
        count["faults"] += 1
        count["real kills"] += injection.real
        count["wrong"] += bool(verdict.wrong)
        count["dead rows"] += verdict.dead_rows
        tell(f"{name} {count['faults']:3} {verdict}")
        if time.monotonic() > ends_at:
            count["not all"] = 1
            break
    return count


def warm(bench: Bench, arguments: argparse.Namespace, ambush: Path) -> Judged:
    """What is raised in the warm session, its workers that die, and its clock."""
    rows = in_turn(*(rows_of(bench, step, arguments) for step in STEPS))
    for row in list(rows)[: arguments.most or None]:
        yield from injections.in_a_row(bench, row, ambush)


def rows_of(bench: Bench, step: str, arguments: argparse.Namespace) -> list[list[Injection]]:
    """The faults of a step for the warm session, in rows of so many."""
    others = () if arguments.table else (*injections.workers(step), *injections.clocks(step))
    faults, length = [*others, *injections.raised(bench, step)], arguments.row
    return [faults[start : start + length] for start in range(0, len(faults), length)]


def deaths(bench: Bench, arguments: argparse.Namespace, classes: Path) -> Judged:
    """Processes that die, one after the other, each in a ledger of its own; damaged files beside them."""
    fatal = [*(() if arguments.table else injections.limited()), *injections.killed(bench, arguments.kills)]
    killings = [Killing(each, bench.lay(each.step)) for each in fatal]
    with ThreadPoolExecutor(1) as pool:
        dying = [(killing, pool.submit(killing.run, bench, classes)) for killing in killings]
        try:
            for fault in () if arguments.table else damages(bench):
                yield fault
                while dying and dying[0][1].done():
                    killing, code = dying.pop(0)
                    yield killing.injection, killing.judged(bench, *code.result())
            for killing, code in dying:
                yield killing.injection, killing.judged(bench, *code.result())
        finally:
            pool.shutdown(cancel_futures=True)  # where the time is over


def told(ways: Iterable[tuple[str, str]]) -> int:
    """Whether order, planning, hash seeds or poison changed anything; gives how many did."""
    number = wrong = 0
    for way, differing in ways:
        number, wrong = number + 1, wrong + bool(differing)
        tell(f"{way}: {f'WRONG: {differing}' if differing else 'as it must be'}")
    tell(f"{number} ways, {wrong} of them not as they must be")
    return wrong


def costs(bench: Bench) -> Iterator[str]:
    """What a re-run does of work that counts already: which files of the ledger it opens and makes."""
    ledger = bench.folder / "after all"
    for step in STEPS:
        bench.files.watch(ledger)
        bench.story.take(bench.spark, ledger, step)
        passed = bench.files.trace()
        data = [place for place in passed if place.startswith("open ") and place.split()[2] == "data"]
        made = [place for place in passed if not place.startswith("open ")]
        tables = sorted({place.split()[1] for place in data})
        yield (
            f"re-run of the committed {step}: reads {len(data)} data files, of {tables}, makes {len(made)};"
            f" the run itself read {sum(' data ' in place for place in bench.opened[step])}"
            f" and made {len(bench.places[step])}"
        )


def judged(count: Account) -> int:
    """The account, and the exit status."""
    if count["faults"]:
        tell(
            f"{count['faults']} faults, {count['real kills']} of them real kills of real processes;"
            f" {count['dead rows']} dead rows, none of them seen; {count['wrong']} lost or doubled anything"
        )
    if count["wrong"]:
        return 1
    return 2 if count["not all"] else 0


def tell(line: str) -> None:
    """At once: the list is long in the making."""
    click.echo(line)
