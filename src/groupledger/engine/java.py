"""The Java that Spark will start: where it is, and whether it is new enough. Asking starts no JVM, if possible."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from groupledger.core.faults import Fault

OLDEST = 17
_INSTALL = "install a Java 17 or 21 runtime (Debian, Ubuntu: openjdk-17-jre-headless; macOS: brew install openjdk@17)"


class JavaFault(Fault):
    """Java is missing or too old; the message says what to install."""


def java() -> Path:
    """Path of the `java` command: the one of JAVA_HOME, else the first on PATH (as Spark's own scripts choose).

    Raises JavaFault (JAVA_MISSING, JAVA_TOO_OLD) with one line.
    """
    command = _command()
    found = major(version(command))
    if found is None or found < OLDEST:
        said = f"Java {found}" if found else "a Java of unknown version"
        raise JavaFault(
            "JAVA_TOO_OLD", f"{command} is {said}; Spark 4 needs {OLDEST} or newer: {_INSTALL} and set JAVA_HOME"
        )
    return command


def version(command: Path) -> str:
    """Return what the runtime calls itself, such as "17.0.15" or "1.8.0_402"; "" where it does not say."""
    release = command.resolve().parent.parent / "release"
    text = release.read_text(encoding="utf-8") if release.is_file() else _ask(command)
    found = re.search(r'(?:JAVA_VERSION=|version )"([^"]+)"', text)
    return found[1] if found else ""


def major(text: str) -> int | None:
    """17 for "17.0.15", 8 for "1.8.0_402" (the old scheme), None for anything else."""
    found = re.match(r"(?:1\.)?(\d+)", text)
    return int(found[1]) if found else None


def _command() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        command = Path(home, "bin", "java")
        if command.is_file():
            return command
        raise JavaFault("JAVA_MISSING", f"JAVA_HOME is {home}, which has no bin/java: correct it or {_INSTALL}")
    found = shutil.which("java")
    if found is None:
        raise JavaFault("JAVA_MISSING", f"no java on PATH and JAVA_HOME is not set: {_INSTALL}")
    return Path(found)


def _ask(command: Path) -> str:
    asked = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 the user's Java
    return asked.stderr + asked.stdout


def main() -> int:
    """Say in one line what is wrong with the Java here, if anything; the Makefile asks before it installs anything."""
    try:
        java()
    except JavaFault as fault:
        print(fault.message, file=sys.stderr)  # noqa: T201 a command's answer
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
