"""Limit how long custom code may run and how much memory it may use: `limits.custom_*` of the configuration."""

from __future__ import annotations

from dataclasses import dataclass

SECONDS, MEMORY_MB = 30, 2_048
"""Default limits for custom code."""


@dataclass(frozen=True, slots=True)
class CustomLimits:
    """Limits for all calls for one group together, and for the import of the function's module."""

    seconds: int = SECONDS
    memory_mb: int = MEMORY_MB


DEFAULT = CustomLimits()
