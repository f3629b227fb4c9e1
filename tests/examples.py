"""How many examples a property is tried on: few in `make test`, `GROUPLEDGER_EXAMPLES` in `make properties`."""

import os


def examples(least: int) -> int:
    """The number that the environment asks for, and at least `least`: enough to meet each kind of case."""
    return max(least, int(os.environ.get("GROUPLEDGER_EXAMPLES", "0")))
