"""The group of commands. Each command imports what it needs when it runs."""

from __future__ import annotations

import click

from groupledger import __version__
from groupledger.cli.audit import audit
from groupledger.cli.callbacks import callbacks
from groupledger.cli.demo import demo
from groupledger.cli.diff import diff
from groupledger.cli.exits import Commands
from groupledger.cli.explain import explain
from groupledger.cli.json_schemas import schema
from groupledger.cli.maintain import maintain
from groupledger.cli.migrate import migrate
from groupledger.cli.openmetrics import openmetrics
from groupledger.cli.plan_migration import plan_migration
from groupledger.cli.readiness import readiness
from groupledger.cli.rebuild import rebuild
from groupledger.cli.replay import replay
from groupledger.cli.report import report
from groupledger.cli.runs import assign, ingest
from groupledger.cli.setup import doctor, init, jars, new_config
from groupledger.cli.show import show
from groupledger.cli.simulate import simulate
from groupledger.cli.solve import solve
from groupledger.cli.sql import sql, views
from groupledger.cli.timeline import timeline
from groupledger.cli.who import who


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="groupledger")
def main() -> None:
    """Flight recorder and simulator for Kafka consumer-group rebalances.

    A first session: `new-config`, `init`, `ingest`, `assign`, `show`. Without data of your own: `demo`.

    \b
    Exit codes: 0 done, 1 a bug of ours (with its traceback), 2 usage,
    configuration or environment, 3 bad input (over the quarantine limit, or
    bad lines), 4 audit violations, 5 write conflict, worth a retry,
    130 interrupted, 141 whoever read the output closed it.
    """


for command in (
    new_config,
    init,
    ingest,
    assign,
    show,
    who,
    timeline,
    explain,
    diff,
    audit,
    report,
    sql,
    openmetrics,
    callbacks,
    replay,
    doctor,
    maintain,
    migrate,
    rebuild,
    views,
    solve,
    simulate,
    plan_migration,
    readiness,
    demo,
    jars,
    schema,
):
    main.add_command(command)
