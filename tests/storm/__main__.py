"""Let many processes write one local ledger, kill them at random, read all the time; then compare with a quiet ledger.

python -m tests.storm [--seed N] [--minutes 30] [--workers 4] [--unlocked]

Workers ingest overlapping and late pieces of a captured log, assign under two configurations, derive calls, maintain
with vacuum, migrate, rebuild and show; in the last third of the time they redact, too. Leases run out, clocks jump,
disks are full, and processes are killed: Python, the JVM, or both. A checker reads through delta-rs meanwhile. Ends
with status 1 where anything was lost, doubled, torn, or ended as no command may end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from tests.storm.sources import LATER, Sources

ROOT = Path(__file__).parents[2]
KILLS = ("python", "jvm", "both")
KILL_SECONDS = (15.0, 75.0)
STUCK_SECONDS = 900.0
TICK_SECONDS = 0.5


@dataclass
class Worker:
    """A process that works, and the one that follows it when it is killed."""

    number: int
    folder: Path
    order: dict[str, Any]
    lives: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def journal(self) -> Path:
        """What this life did."""
        return self.folder / f"journal-{self.number}-{self.lives}.jsonl"

    def start(self) -> None:
        """Begin another life, with draws of its own."""
        self.lives += 1
        draws = f"{self.order['draws']}/{self.number}/{self.lives}"
        order = self.order | {"journal": str(self.journal), "draws": draws}
        with self.journal.with_suffix(".err").open("wb") as errors:
            self.process = _python("tests.storm.worker", order, stdout=errors, stderr=errors)

    def jvm(self) -> int | None:
        """The process of its JVM; None where it has none yet."""
        lines = _lines(self.journal)
        return lines[0]["jvm"] if lines else None

    def kill(self, how: str) -> bool:
        """Kill it; whether it lived, and had something to lose."""
        jvm = self.jvm()
        if jvm is None or self.process is None or self.process.poll() is not None:
            return False
        for number in {"python": [self.process.pid], "jvm": [jvm], "both": [jvm, self.process.pid]}[how]:
            os.kill(number, signal.SIGKILL)
        if how != "jvm":  # Python is to find out by itself
            self.process.wait()
        return True


@dataclass
class Account:
    """What happened, and what is wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def tell(self, workers: list[Worker], looks: list[dict[str, Any]]) -> None:
        """Print it."""
        done, ended, events = Counter[str](), Counter[str](), Counter[str]()
        for line in (line for worker in workers for life in _lives(worker) for line in _lines(life)):
            if "ended" in line:
                done[line["command"]] += line["ended"] == "done"
                ended[line["ended"]] += 1
                events.update(line["events"])
                events.update({name: line.get(name, 0) for name in ("lock waits", "retries")})
                if line["ended"] == "wrong":
                    self.wrong.append(f"{line['command']} {line['events']}: {line['detail']}")
        begun = sum("began" in line for worker in workers for life in _lives(worker) for line in _lines(life))
        click.echo(f"done: {_listed(done)}; {begun - sum(ended.values())} cut off")
        click.echo(f"ended: {_listed(ended)}; {_listed(events)}")
        click.echo(f"kills: {_listed(self.kills)}")
        read = ", ".join(f"{each['looks']} looks at {each['runs']} committed runs" for each in looks)
        self.wrong += [f"torn: {each}" for look in looks for each in look["torn"]]
        click.echo(f"the checker took {read}: {sum(len(each['torn']) for each in looks)} torn")
        click.echo("\n".join(f"WRONG: {each}" for each in self.wrong) or "0 lost, 0 doubled, 0 torn")


def main(arguments: argparse.Namespace) -> int:
    """Two storms on one ledger: before the comparison without redactions, after it with them."""
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(2**31)
    click.echo(f"seed {seed}, {arguments.minutes:g} minutes, {arguments.workers} workers, {os.cpu_count()} cores")
    draws, account = random.Random(seed), Account()  # noqa: S311 - the seed is the point
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder_name:
        folder = Path(arguments.keep or folder_name)
        sources = Sources.written(folder / "sources")
        pieces = list(sources.pieces)
        places = {"sources": str(sources.folder), "ledger": str(folder / "ledger"), "quiet": str(folder / "quiet")}
        account.wrong += _settling(folder, places | {"step": "prepare"})
        workers, looks = [], []
        for step, share, taken in (("compare", 2 / 3, pieces[:-LATER]), ("redacted", 1 / 3, pieces)):
            order = places | {"pieces": taken, "redact": step == "redacted", "locked": not arguments.unlocked}
            order |= {"stop": str(folder / f"stop-{step}"), "draws": f"{seed}/{step}"}
            crowd = [Worker(number, folder / step, order) for number in range(arguments.workers)]
            (folder / step).mkdir()
            workers += crowd
            looks.append(blow(crowd, order, 60 * arguments.minutes * share, draws, account))
            account.wrong += _settling(folder, places | {"pieces": taken, "step": step})
        account.tell(workers, looks)
    return 1 if account.wrong else 0


def blow(
    crowd: list[Worker], order: dict[str, Any], seconds: float, draws: random.Random, account: Account
) -> dict[str, Any]:
    """One storm: kill and start again, until the time is over; gives what the checker saw."""
    report = crowd[0].folder / "checker.json"
    checker = _python("tests.storm.checker", order | {"report": str(report)})
    for worker in crowd:
        worker.start()
    ends, next_kill = time.monotonic() + seconds, time.monotonic() + draws.uniform(*KILL_SECONDS)
    while time.monotonic() < ends:
        time.sleep(TICK_SECONDS)
        for worker in crowd:
            if worker.process is not None and worker.process.poll() is not None:
                worker.start()
        if time.monotonic() > next_kill:
            how = draws.choice(KILLS)
            account.kills[how] += draws.choice(crowd).kill(how)
            next_kill = time.monotonic() + draws.uniform(*KILL_SECONDS)
    Path(order["stop"]).touch()
    for worker in crowd:
        if worker.process is not None:
            try:
                worker.process.wait(STUCK_SECONDS)
            except subprocess.TimeoutExpired:
                account.wrong.append(f"worker {worker.number} did not come to an end: {_lines(worker.journal)[-1:]}")
                worker.kill("both")
    if checker.wait():
        account.wrong.append("the checker failed")
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return found


def _settling(folder: Path, order: dict[str, Any]) -> list[str]:
    report = folder / "settled.json"
    report.unlink(missing_ok=True)
    if _python("tests.storm.settling", order | {"report": str(report)}).wait():
        return [f"{order['step']} failed"]
    return [f"{order['step']}: {each}" for each in json.loads(report.read_text(encoding="utf-8"))]


def _python(module: str, order: dict[str, Any], **streams: Any) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        "GROUPLEDGER_KERNELS": "python",
    }
    return subprocess.Popen([sys.executable, "-m", module, json.dumps(order)], cwd=ROOT, env=environment, **streams)


def _lives(worker: Worker) -> list[Path]:
    return sorted(worker.folder.glob(f"journal-{worker.number}-*.jsonl"))


def _lines(journal: Path) -> list[dict[str, Any]]:
    """The whole lines; one may be cut off."""
    if not journal.exists():
        return []
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines() if line.endswith("}")]


def _listed(count: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(count.items()) if number) or "none"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="many writers of one local ledger, killed at random")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--minutes", type=float, default=30, help="of storm; the comparison takes some more")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--keep", help="an empty folder for the ledgers and journals, which stay")
    parser.add_argument("--unlocked", action="store_true", help="let the writers take no lock: it must be seen")
    raise SystemExit(main(parser.parse_args()))
