"""Finding Java: one line that says what to install, and never a JVM started where a file tells."""

from __future__ import annotations

import os

import pytest

from groupledger.engine import java
from groupledger.engine.java import JavaFault


@pytest.mark.parametrize(
    ("text", "number"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("25-ea", 25), ("", None), ("x", None)]
)
def test_the_major_version_is_read_from_old_and_new_schemes(text, number):
    assert java.major(text) == number


def made(home, version, *, release=True):
    """A Java that only says its version: in its release file, or when asked."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="ascii")
    command.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n', encoding="ascii")
    return command


@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2"])
def test_a_new_enough_java_is_taken(tmp_path, monkeypatch, version, release):
    command = made(tmp_path, version, release=release)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.java() == command
    assert java.version(command) == version


@pytest.mark.parametrize(
    ("version", "code", "says"),
    [
        ("1.8.0_402", "JAVA_TOO_OLD", "is Java 8; Spark 4 needs 17"),
        ("11.0.2", "JAVA_TOO_OLD", "is Java 11"),
        ("?", "JAVA_TOO_OLD", "unknown version"),
        (None, "JAVA_MISSING", "which has no bin/java"),
    ],
)
def test_an_old_or_missing_java_is_one_line(tmp_path, monkeypatch, capsys, version, code, says):
    if version is not None:
        made(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaFault) as raised:
        java.java()
    assert raised.value.code == code
    assert says in raised.value.message
    assert "install a Java 17 or 21 runtime" in raised.value.message
    assert java.main() == 2
    assert capsys.readouterr().err == raised.value.message + "\n"


def test_no_java_anywhere_is_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaFault, match="no java on PATH"):
        java.java()


def test_the_first_java_on_the_path_counts_without_java_home(tmp_path, monkeypatch):
    command = made(tmp_path, "17.0.1")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", os.pathsep.join([str(command.parent), os.environ["PATH"]]))
    assert java.java() == command
    assert java.main() == 0
