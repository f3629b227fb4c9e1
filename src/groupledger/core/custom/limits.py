"""How long custom code may run, and how much memory it may take: `limits.custom_*` of the configuration."""

from __future__ import annotations

from dataclasses import dataclass

SECONDS, MEMORY_MB = 30, 2_048
"""What custom code may take where nothing else is said."""


@dataclass(frozen=True, slots=True)
class CustomLimits:
    """Of all calls for one group together, and of the import of the function's module."""

    seconds: int = SECONDS
    memory_mb: int = MEMORY_MB


DEFAULT = CustomLimits()
