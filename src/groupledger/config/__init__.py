"""The configuration: the settings (`settings`), how they are read (`loading`) and described (`reference`)."""

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
