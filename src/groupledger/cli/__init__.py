"""Provide the command `groupledger`. Nothing heavy is imported until a command runs, so `--help` answers at once.

Read `commands` (all of them), `options` (what they share, and `Job`), `output` (all printing) and `exits` (codes); then
one command, such as `explain`. A command asks `answers` or starts a job of `pipeline`. Called by the shell and by
`jobs`; `notebook` prints with `output` too.
"""

from groupledger.cli.commands import main

__all__ = ["main"]
