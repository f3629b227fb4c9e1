"""Add options to commands whose lines may name custom assignors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from groupledger.core.custom.limits import MEMORY_MB, SECONDS, CustomLimits

F = TypeVar("F", bound=Callable[..., Any])


def custom_assignors(command: F) -> F:
    """Add `--assignor` and its limits; the command gets `custom` (names) and `limits`."""

    @functools.wraps(command)
    def with_limits(*args: Any, custom_seconds: int, custom_memory_mb: int, **options: Any) -> Any:
        return command(*args, limits=CustomLimits(custom_seconds, custom_memory_mb), **options)

    told: Any = with_limits
    for option in (
        _limit("--custom-memory-mb", 64, MEMORY_MB, "Memory of the process a custom assignor runs in, in MiB."),
        _limit("--custom-seconds", 1, SECONDS, "Seconds a custom assignor may take for one group."),
        click.option(
            "--assignor",
            "custom",
            multiple=True,
            metavar="MODULE:FUNCTION",
            help="A custom assignor that lines may name.",
        ),
    ):
        told = option(told)
    return told  # type: ignore[no-any-return]


def _limit(name: str, least: int, default: int, words: str) -> Callable[[Any], Any]:
    return click.option(name, type=click.IntRange(least), default=default, show_default=True, help=words)
