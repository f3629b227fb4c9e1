"""A whole session with secrets in its settings and paths: none in any file of the ledger, none on any stream."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from groupledger.config.loading import CAPTURES
from tests.pipeline.test_erasure import contents
from tests.pipeline.test_ingest import LINES

WORD = "hunter2,Zr9/+x"
IN_PATH = "tok3n-In-A-Path"
SESSION = """
import sys
from groupledger.cli.commands import main

def run(*arguments):
    try:
        main([*arguments, "--config", sys.argv[1]])
    except SystemExit as ended:
        print("ended", ended.code)

run("init")
run("ingest", "--run-id", "nightly")
run("ingest", "--set", "sources.1.path=" + sys.argv[2])
run("assign")
run("show", "--quarantine", "--json")
run("show")
from pyspark.sql import SparkSession
spark = SparkSession.getActiveSession()
spark.sql("SET -v").count()
print("redacted", [row[1] for row in spark.sql("SET").collect() if row[0] == "spark.hadoop.fs.s3a.secret.key"])
spark.sql("SELECT * FROM no_such_table_" + sys.argv[4].replace("-", "_"))
"""


@pytest.mark.long
def test_no_byte_of_the_ledger_and_no_word_of_a_session_is_a_secret(tmp_path):
    """The words stand in settings, in the path of a source with a bad line, in a path that is not there; the
    session ends with an exception that quotes one."""
    held = tmp_path / f"token={WORD.split('/')[0]}" / IN_PATH
    held.mkdir(parents=True)
    log = held / "log.jsonl"
    log.write_text("".join(f"{line}\n" for line in [*LINES[:40], '{"off']), encoding="utf-8")
    secret = {"fs.s3a.secret.key": WORD, "my.tokens": f"{WORD},{IN_PATH}", "db.pwd": IN_PATH.replace("-", "_")}
    config = {
        "cluster_id": "edge",
        "ledger": {"location": str(tmp_path / "ledger")},
        "sources": [
            {"kind": "topics-jsonl", "path": str(CAPTURES / "edge" / "topics.jsonl.gz")},
            {"kind": "offsets-jsonl", "path": str(log)},
        ],
        "limits": {"max_quarantined": 9},
        "spark": {"profile": "small", "conf": {f"spark.hadoop.{name}": value for name, value in secret.items()}},
    }
    file = tmp_path / "conf.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    missing = f"/no/such/{IN_PATH}/s3a%3A%2F%2Fkey%3A{quote(WORD, safe='')}%40b"
    words = [str(file), missing, WORD.replace(",", "."), IN_PATH]
    command = [sys.executable, "-c", SESSION, *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    said = ran.stdout + ran.stderr
    assert ran.returncode == 1, said
    assert "Traceback" in ran.stderr
    assert ran.stderr.count("***") >= 3, said
    assert "redacted ['*********(redacted)']" in ran.stdout
    assert '"total"' in ran.stdout or "quarantine" in ran.stdout
    sought = {WORD, WORD.replace(",", "."), quote(WORD, safe=""), IN_PATH, IN_PATH.replace("-", "_"), "hunter2"}
    assert [said[max(0, said.index(word) - 200) :][:400] for word in sorted(sought) if word in said] == []
    found = {
        (word, str(path))
        for path, content in contents(Path(tmp_path, "ledger"))
        for word in sought
        if word.encode() in content
    }
    assert found == set()
