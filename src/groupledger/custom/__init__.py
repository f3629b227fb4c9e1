"""Offer the types of custom assignors to users' code: docs/guides/decide/write-an-assignor.md.

    from groupledger.custom import Group, assignor

Read `core.custom`, where they are declared. Called by users.
"""

from groupledger.core.custom import *  # noqa: F403
from groupledger.core.custom import __all__ as __all__
