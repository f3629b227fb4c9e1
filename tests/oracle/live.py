"""Kafka's own assignors in a JVM: a scenario in, a result out, one line each."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from groupledger.engine.jars import class_path
from groupledger.engine.java import java

HERE = Path(__file__).parent
LINES = HERE / "JsonLines.java"  # the loop of all oracles
CLIENT = HERE / "ClientOracle.java"
SERVER = HERE / "ServerOracle.java"
TASK_STEPS = HERE / "TaskStepOracle.java"
OPTIONS = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:-OmitStackTraceInFastThrow")
"""The last: else compiled code leaves the message out of a NullPointerException that it throws often."""


class Oracle:
    """A running oracle, whose source is compiled when it starts, which needs a JDK. Use it in a `with`."""

    def __init__(self, source: Path) -> None:
        self._classes = tempfile.TemporaryDirectory()
        kafka, compiled = class_path("oracle"), self._classes.name
        compiler = [str(java()), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-cp", kafka, "-d", compiled]
        subprocess.run([*compiler, str(LINES), str(source)], check=True)
        command = [str(java()), *OPTIONS, "-cp", f"{compiled}{os.pathsep}{kafka}", source.stem]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._classes.cleanup()

    def ask(self, scenario: dict[str, Any]) -> dict[str, Any]:
        """Kafka's result of one scenario."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(scenario) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the oracle ended at scenario {scenario.get('id')!r}; is a JDK on PATH?")
        result: dict[str, Any] = json.loads(line)
        return result
