"""Read the configuration, and describe it.

Read `settings` (all keys), `loading` (files, environment, messages), `reference` (the page of them), then
`kafka_options` (clients' options, and secrets in them). Called by `cli` and the jobs.
"""

from groupledger.config.loading import load, parse
from groupledger.config.settings import (
    AssignSettings,
    Config,
    ConfigFault,
    LedgerSettings,
    LimitSettings,
    MaintainSettings,
    OverrideSettings,
    RedactionSettings,
    RetentionSettings,
    SourceSettings,
    SparkSettings,
)

__all__ = [
    "AssignSettings",
    "Config",
    "ConfigFault",
    "LedgerSettings",
    "LimitSettings",
    "MaintainSettings",
    "OverrideSettings",
    "RedactionSettings",
    "RetentionSettings",
    "SourceSettings",
    "SparkSettings",
    "load",
    "parse",
]
