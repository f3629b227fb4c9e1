"""An Airflow DAG: every quarter of an hour what is new in a cluster's log, then the verdicts of its rebalances.

Settings are Airflow variables: `groupledger_config` (path of the YAML file), `groupledger_command` (default
`groupledger`). For spark-submit in place of a local session, let the command be one that calls it with `jobs/*.py`.

Airflow's own Spark operator fails on every exit code that is not 0, and tries again. Here each code means what it is:
5 is worth a retry, 3 and 4 are committed runs that somebody has to look at, 2 is a mistake that no retry mends.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from datetime import UTC, datetime, timedelta

from airflow.sdk import Variable, dag, get_current_context, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

RETRY = {"WRITE_CONFLICT", "KAFKA_UNREACHABLE", "KAFKA_FAILED", "LOG_MOVED"}


def run(command: str, *options: str) -> dict[str, object]:
    """Run a command of groupledger; give what it says of its run. Raises what Airflow retries, or does not."""
    config = Variable.get("groupledger_config")
    program = shlex.split(Variable.get("groupledger_command", default="groupledger"))
    ran = subprocess.run(  # noqa: S603 the command is the operator's own
        [*program, command, "--config", config, "--json", *options], stdout=subprocess.PIPE, text=True, check=False
    )
    said = json.loads(ran.stdout.splitlines()[-1]) if ran.stdout.strip() else {}
    if ran.returncode == 0:
        return said
    text = f"groupledger {command}: exit code {ran.returncode}: {said.get('code') or said.get('status')}"
    if said.get("code") in RETRY:
        raise AirflowException(text)
    raise AirflowFailException(text)


@dag(
    schedule=timedelta(minutes=15),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,  # two ingests of a cluster at once: one of them would have to be run again
    default_args={"retries": 3, "retry_delay": timedelta(seconds=30), "execution_timeout": timedelta(minutes=30)},
)
def groupledger() -> None:
    """Ingest, then assign."""

    @task
    def ingest() -> bool:
        """Read what is new; whether there was anything. A retry goes on where the last committed run stopped."""
        return not run("ingest")["nothing_new"]

    @task
    def assign() -> None:
        """Recompute what was recorded, under a name that a retry has too: a committed run changes nothing."""
        run("assign", "--run-id", f"assign-{get_current_context()['run_id']}")

    @task.short_circuit
    def anything_new(*, new: bool) -> bool:
        """Skip the rest of a quiet quarter of an hour."""
        return new

    anything_new(new=ingest()) >> assign()


groupledger()
