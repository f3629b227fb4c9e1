"""The command `groupledger`. Nothing heavy is imported until a command runs: `--help` answers at once."""

from groupledger.cli.commands import main

__all__ = ["main"]
