"""Two Dagster assets, the ledger of a cluster and the verdicts of its rebalances, with a schedule for both.

    GROUPLEDGER_CONFIG=prod.yaml dagster dev -f examples/dagster_assets.py

Exit code 5 and a cluster that does not answer are retried; every other failure is reported at once.
"""

import json
import os
import shlex
import subprocess
from typing import Any

import dagster as dg

RETRY = {"WRITE_CONFLICT", "KAFKA_UNREACHABLE", "KAFKA_FAILED", "LOG_MOVED"}
POLICY = dg.RetryPolicy(max_retries=3, delay=30, backoff=dg.Backoff.EXPONENTIAL)


def run(command: str, *options: str) -> dict[str, Any]:
    """Run a groupledger command and return its JSON. Raises `Failure`, with or without retries."""
    program = shlex.split(os.environ.get("GROUPLEDGER_COMMAND", "groupledger"))
    config = os.environ["GROUPLEDGER_CONFIG"]
    ran = subprocess.run(  # noqa: S603 the command is the operator's own
        [*program, command, "--config", config, "--json", *options], stdout=subprocess.PIPE, text=True, check=False
    )
    said: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1]) if ran.stdout.strip() else {}
    if ran.returncode:
        what = said.get("code") or said.get("status")
        text = f"groupledger {command}: exit code {ran.returncode}: {what}"
        raise dg.Failure(text, metadata={"said": said}, allow_retries=what in RETRY)
    return said


@dg.asset(retry_policy=POLICY, kinds={"kafka", "deltalake"})
def ledger() -> dg.MaterializeResult[None]:
    """Ingest everything that was recorded about consumer groups."""
    said = run("ingest")
    return dg.MaterializeResult(metadata={"run_id": said["run_id"], "nothing_new": said["nothing_new"]})


@dg.asset(deps=[ledger], retry_policy=POLICY, kinds={"spark", "deltalake"})
def rebalances(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Compute what each rebalance moved, and whether the leader gave the assignment of Kafka's own assignor."""
    said = run("assign", "--run-id", f"assign-{context.run_id}")
    return dg.MaterializeResult(metadata={"run_id": said["run_id"], "verdicts": said["verdicts"]})


defs = dg.Definitions(
    assets=[ledger, rebalances],
    schedules=[dg.ScheduleDefinition("groupledger", cron_schedule="*/15 * * * *", target="*")],
)
