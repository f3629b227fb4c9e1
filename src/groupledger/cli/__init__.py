"""Provide the command `groupledger`. Nothing heavy is imported until a command runs, so `--help` answers at once."""

from groupledger.cli.commands import main

__all__ = ["main"]
