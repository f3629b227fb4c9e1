"""A group whose rounds are driven by time: clients that poll and heartbeat, and a coordinator that waits for them.

Read `timed_group` (members, clocks, the queue), `coordination` (the coordinator), `timed_play` (the client, the events,
the loop). Called by `core.protocol.simulator`.

from groupledger.core.protocol import events as e
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.protocol.consumer import Times

first = simulate(Script({"orders": 4}, [e.Join("a", ("orders",))], times=Times()))[0]
first.unavailable_ms[("orders", 0)]  # 3000: group.initial.rebalance.delay.ms
"""
