"""The rebalance protocol itself (KIP-429, KIP-792, KIP-848): consumer, leader and coordinator, and whole groups.

Read `script` and `events` (what is played), `consumer` and `leader` (pure: one member, one plan), `simulator`,
`simulated_group` and `classic_group` (what all groups share), then a driver: `rounds`, `timed` or `consumer_group`.
`recorded` reads calls back from a ledger, `rolling_migration` and `comparison` plan with all of it. Called by `cli`,
`listener`, `notebook` and the answers.

from groupledger.core.protocol import events as e
from groupledger.core.protocol.simulator import Script, simulate

joined = simulate(Script({"orders": 4}, [e.Join("a", ("orders",)), e.Join("b", ("orders",))]))[1]
[took.generation for took in joined.rounds]   # [2, 3]: revoke, then give
"""
