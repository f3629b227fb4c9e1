"""Without pyspark: what needs none works, and all else is one line that names the extra."""

import subprocess
import sys

import pytest

from tests.answers.ledgers import write

HIDDEN = (
    "import sys; sys.modules['pyspark'] = None; sys.argv[0] = 'groupledger'; from groupledger.cli import main; main()"
)


@pytest.mark.parametrize("words", ["init", "ingest", "assign", "demo", "doctor", "jars", "maintain", "rebuild"])
def test_a_missing_spark_is_one_line_that_names_the_extra(tmp_path, words):
    ran = run(words, tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("groupledger: pyspark is not installed here; expected 4.0 or newer, below 4.3")
    assert last.endswith("pip install 'groupledger[local]' [SPARK_MISSING]")
    assert "Traceback" not in ran.stderr


def test_a_ledger_is_shown_without(tmp_path):
    write(tmp_path / "ledger")
    commands = (("show",), ("audit",), ("report", "storms"), ("readiness",), ("openmetrics",))
    for words in (*commands, ("sql", "SELECT * FROM current_runs")):
        ran = run(words, tmp_path)
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr


@pytest.mark.parametrize("words", ["--version", "new-config", "solve", "simulate"])
def test_what_needs_no_spark_works_without(tmp_path, words):
    ran = run(words, tmp_path)
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False)


def run(words, folder):
    command = (sys.executable, "-c", HIDDEN, *([words] if isinstance(words, str) else words))
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
