"""An Airflow DAG that ingests a cluster's new records every 15 minutes and then judges its rebalances.

Settings are Airflow variables: `groupledger_config` (path of the YAML file), `groupledger_command` (default
`groupledger`). To use spark-submit instead of a local session, set the command to
`spark-submit [options] PATH`, with the path that `groupledger job-file` prints. A worker needs the package, and Java 17
for the local session.

Airflow's own Spark operator treats every non-zero exit code as a failure and retries it. This DAG retries only what a
retry can fix: 5 is retried, 3 and 4 are committed runs that somebody has to look at, 2 is an error in the setup.
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
    """Run a groupledger command and return its JSON. Raises what Airflow retries, or what it does not."""
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
    max_active_runs=1,  # of two concurrent ingests of a cluster, one would have to be run again
    default_args={"retries": 3, "retry_delay": timedelta(seconds=30), "execution_timeout": timedelta(minutes=30)},
)
def groupledger() -> None:
    """Ingest, then assign."""

    @task
    def ingest() -> bool:
        """Ingest new records; return whether there were any. A retry continues after the last committed run."""
        return not run("ingest")["nothing_new"]

    @task
    def assign() -> None:
        """Recompute the recorded rebalances. A retry has the same run id: repeating a committed run changes nothing."""
        run("assign", "--run-id", f"assign-{get_current_context()['run_id']}")

    @task.short_circuit
    def anything_new(*, new: bool) -> bool:
        """Skip the rest if there was nothing new."""
        return new

    anything_new(new=ingest()) >> assign()


groupledger()
