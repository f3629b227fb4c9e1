"""Kafka's Java and franz-go as programs: compiled once a run, started once a measurement, one thread each."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from groupledger.engine.jars import class_path
from groupledger.engine.java import java

HERE = Path(__file__).parents[1]
HEAP = "-Xmx6g"
NO_LOG = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
"""Kafka's sticky assignors log whole assignments at level INFO, which takes longer than some of them."""
FRANZ_GO = "github.com/twmb/franz-go"


@dataclass(frozen=True, slots=True)
class Measured:
    """What a peer printed: CPU seconds of each round, and for Java the digest of its answer."""

    seconds: tuple[float, ...]
    digest: int | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """A compiled program that takes folder, assignor, warm-up seconds and rounds."""

    name: str
    command: tuple[str, ...]
    digests: bool

    def measure(self, folder: Path, assignor: str, warm_up: float, rounds: int) -> Measured:
        """Run it on the groups in `folder`."""
        lines = _run([*self.command, str(folder), assignor, str(warm_up), str(rounds)]).split()
        digest = int(lines.pop(0)) if self.digests else None
        return Measured(tuple(int(line) / 1e9 for line in lines), digest)


def kafka(scratch: Path) -> Peer:
    """Kafka's assignors from kafka-clients 4.4.0."""
    jars = class_path("broker")
    classes = scratch / "classes"
    _run([str(java().with_name("javac")), "-cp", jars, "-d", str(classes), str(HERE / "java" / "AssignorBench.java")])
    options = ("-XX:+UseSerialGC", HEAP, NO_LOG, "-cp", f"{classes}:{jars}")
    return Peer("Java", (str(java()), *options, "AssignorBench"), digests=True)


def franz_go(scratch: Path) -> Peer:
    """franz-go's balancers, built inside a copy of its module: the sticky one is internal to it."""
    own = HERE / "go"
    _run(["go", "mod", "download", FRANZ_GO], own)
    copy = scratch / "franz-go"
    shutil.copytree(_run(["go", "list", "-m", "-f", "{{.Dir}}", FRANZ_GO], own).strip(), copy)
    for path in (copy, *copy.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    place = copy / "pkg" / "kgo" / "bench"
    place.mkdir()
    shutil.copy(own / "main.go", place)
    program = scratch / "franz-go-bench"
    _run(["go", "build", "-trimpath", "-o", str(program), "./pkg/kgo/bench"], copy)
    return Peer("franz-go", ("env", "GOMAXPROCS=1", str(program)), digests=False)


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 own words
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout
