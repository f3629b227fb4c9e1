"""Define the version of a ledger's tables, for readers with and without Spark."""

SCHEMA_VERSION = 6
"""The version of all declarations together; stored in `runs` and in the ledger's table properties.

2: `runs.removed`; statistics of moments; constraints. 4: previous_member_epoch, member_state, subscribed_regex and
tasks of `member_snapshots`. 5: least_moves_certainty, fewest_rounds, attributed_to and attribution of `rebalances`.
6: leader_epoch of `log_records`.
"""
VERSION_PROPERTY = "groupledger.schemaVersion"
"""The property of each table that holds it."""


def version_problem(place: str, got: int) -> tuple[str, str] | None:
    """Return what is wrong with a ledger of this version, as a code and a message; None if nothing is."""
    if got > SCHEMA_VERSION:
        message = f"the ledger at {place} has schema version {got}, this groupledger knows {SCHEMA_VERSION}"
        return "LEDGER_NEWER", f"{message}: use a groupledger that knows version {got}"
    if got < SCHEMA_VERSION:
        message = f"the ledger at {place} has schema version {got}, this groupledger writes {SCHEMA_VERSION}"
        return "LEDGER_OLDER", f"{message}: `groupledger migrate` brings it forward"
    return None


def no_ledger(place: str, table: str) -> tuple[str, str]:
    """Return the code and message for a ledger in which a table is missing."""
    return "LEDGER_MISSING", f"there is no ledger at {place} (no table {table}): `groupledger init` makes one"
