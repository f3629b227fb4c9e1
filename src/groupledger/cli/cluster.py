"""Take a running cluster on the command line, instead of the configured sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

BOOTSTRAP, OPTIONS, FILE = "bootstrap", "kafka_options", "command_config"


def takes_cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--bootstrap`, `--kafka-option` and `--command-config`, which make the cluster the only source."""
    for option in (
        click.option(
            "--command-config", FILE, metavar="FILE", help="Client options in a properties file, as for Kafka's tools."
        ),
        click.option(
            "--kafka-option", OPTIONS, multiple=True, metavar="NAME=VALUE", help="An option of the Kafka client."
        ),
        click.option("--bootstrap", metavar="HOST:PORT,..", help="Read this running cluster; needs no --config."),
    ):
        command = option(command)
    return command


def cluster_given(options: dict[str, Any]) -> dict[str, Any]:
    """Convert the options of `takes_cluster` to configuration, and remove them from `options`."""
    bootstrap, named, file = (options.pop(name, None) for name in (BOOTSTRAP, OPTIONS, FILE))
    if bootstrap is None:
        if named or file:
            raise click.UsageError("--kafka-option and --command-config go with --bootstrap")
        return {}
    from groupledger.config.kafka_secrets import from_file

    found = from_file(Path(file)) if file else {}
    for each in named or ():
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise click.UsageError("--kafka-option: expected NAME=VALUE, such as security.protocol=SSL")
        found[name] = value
    return {"cluster_id": None, "sources": [{"kind": "kafka", "bootstrap": bootstrap, "options": found}]}
