"""The pipelines of `examples/` in Airflow and Dagster: a ledger is filled, and each exit code means what it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from groupledger.config.loading import CAPTURES
from groupledger.sinks.current import current
from groupledger.sinks.ledger_tables import LedgerLocation, init
from groupledger.tables import REBALANCES, RUNS

pytestmark = pytest.mark.live
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
BIN = ROOT / ".venv-orchestrators" / "bin"
SECONDS = 600
WORDS = {0: "done", 2: "CONFIG_INVALID", 3: "quarantine-over-limit", 5: "WRITE_CONFLICT"}
"""What a command says at each exit code."""


@pytest.fixture
def configured(spark, tmp_path):
    """A configuration of one captured cluster, and its ledger."""
    ledger = tmp_path / "ledger"
    init(spark, LedgerLocation(path=str(ledger)))
    kinds = {"topics-jsonl": "topics.jsonl.gz", "offsets-jsonl": "offsets.jsonl.gz"}
    sources = [{"kind": kind, "path": str(CAPTURES / "storm" / name)} for kind, name in kinds.items()]
    config = tmp_path / "prod.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "cluster_id": "storm",
                "ledger": {"location": str(ledger)},
                "sources": sources,
                "spark": {"profile": "small"},
            }
        )
    )
    return config, ledger


def ran(arguments, folder, config, command, **more):
    """A command of an orchestrator, with all that it keeps in `folder`."""
    environment = os.environ | {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_VAR_GROUPLEDGER_CONFIG": str(config),
        "AIRFLOW_VAR_GROUPLEDGER_COMMAND": command,
        "DAGSTER_HOME": str(folder),
        "GROUPLEDGER_CONFIG": str(config),
        "GROUPLEDGER_COMMAND": command,
        "PYTHONPATH": str(EXAMPLES),
    }
    given = [str(BIN / arguments[0]), *arguments[1:]]
    return subprocess.run(given, env=environment | more, cwd=folder, capture_output=True, text=True, timeout=SECONDS)


def ours(folder):
    """The command as this environment has it, whatever PYTHONPATH the orchestrator sets."""
    script = folder / "groupledger"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT / "src"}" exec "{sys.executable}" -m groupledger "$@"\n')
    script.chmod(0o755)
    return str(script)


def airflow(folder, config, command):
    (folder / "dags").mkdir()
    shutil.copy(EXAMPLES / "airflow_dag.py", folder / "dags")
    for arguments in (["db", "migrate"], ["dags", "reserialize"]):
        made = ran(["airflow", *arguments], folder, config, command)
        assert made.returncode == 0, made.stderr
    return ran(["airflow", "dags", "test", "groupledger"], folder, config, command)


def dagster(folder, config, command):
    arguments = ["asset", "materialize", "--select", "*", "-f", str(EXAMPLES / "dagster_assets.py")]
    return ran(["dagster", *arguments], folder, config, command)


@pytest.mark.parametrize("orchestrator", [airflow, dagster])
def test_a_pipeline_fills_a_ledger(orchestrator, configured, spark, tmp_path):
    config, ledger = configured
    folder = tmp_path / "orchestrator"
    folder.mkdir()
    found = orchestrator(folder, config, ours(tmp_path))
    assert found.returncode == 0, found.stdout + found.stderr
    location = LedgerLocation(path=str(ledger))
    kinds = [row.kind for row in current(spark, location, RUNS).orderBy("sequence").collect()]
    assert kinds == ["ingest", "assign"]
    assert current(spark, location, REBALANCES).count() > 0


OUTCOMES = {
    "airflow": """
import airflow_dag
airflow_dag.Variable.get = lambda name, default=None: COMMAND
try:
    airflow_dag.run("ingest")
except airflow_dag.AirflowFailException:
    print("fail")
except airflow_dag.AirflowException:
    print("retry")
else:
    print("done")
""",
    "dagster": """
import dagster_assets
try:
    dagster_assets.run("ingest")
except dagster_assets.dg.Failure as error:
    print("retry" if error.allow_retries else "fail")
else:
    print("done")
""",
}
"""Programs that run a command by way of an example, and print what its orchestrator is told."""


@pytest.mark.parametrize("code", WORDS)
@pytest.mark.parametrize("orchestrator", OUTCOMES)
def test_each_exit_code_means_what_it_is(orchestrator, code, tmp_path):
    said = json.dumps({"status": WORDS[code]} if code in (0, 3) else {"status": "failed", "code": WORDS[code]})
    script = tmp_path / "says"
    script.write_text(f"#!/bin/sh\necho '{said}'\nexit {code}\n")
    script.chmod(0o755)
    program = f"COMMAND = {str(script)!r}\n{OUTCOMES[orchestrator]}"
    found = ran(["python", "-c", program], tmp_path, "prod.yaml", str(script))
    expected = {0: "done", 5: "retry"}.get(code, "fail")
    assert found.stdout.splitlines()[-1] == expected, found.stderr
