"""The rebalance protocol itself (KIP-429, KIP-792, KIP-848): consumer, leader and coordinator, and whole groups.

`simulator` plays `events` of a `script`; `simulated_group` and `classic_group` have what all groups share; `rounds`,
`timed` and `consumer_group` drive them. `consumer`, `coordinator` and `leader` are pure.

from groupledger.core.protocol import events as e
from groupledger.core.protocol.simulator import Script, simulate

joined = simulate(Script({"orders": 4}, [e.Join("a", ("orders",)), e.Join("b", ("orders",))]))[1]
[took.generation for took in joined.rounds]   # [2, 3]: revoke, then give
"""
