"""The rebalance protocol itself (KIP-429, KIP-792): consumer, leader and coordinator, and whole groups on paper.

from groupledger.core.protocol import events as e
from groupledger.core.protocol.simulator import Script, simulate

joined = simulate(Script({"orders": 4}, [e.Join("a", ("orders",)), e.Join("b", ("orders",))]))[1]
[took.generation for took in joined.rounds]   # [2, 3]: revoke, then give
"""
