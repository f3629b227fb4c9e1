"""A coordinator that tells each client which group it leads, and keeps what the client gives the members.

Of librdkafka no assignor is public. A client that joins here is told that it is the leader and who the members are; it
asks for the topics' partitions, runs its assignor and sends the assignments in SyncGroup, which is answered with
REBALANCE_IN_PROGRESS: it joins again and gets the next group. Requests are read in versions before KIP-482, the newest
that each message has without tagged fields.
"""

from __future__ import annotations

import asyncio
import base64
import json
from asyncio.subprocess import PIPE
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from groupledger.core.wire import codec
from groupledger.core.wire.codec import Wire, plain_struct
from groupledger.core.wire.consumer_protocol import decode_assignment

Asked = dict[str, Any]
Result = dict[str, Any]

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 0, 1, 2, 3, 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, API_VERSIONS = 11, 12, 13, 14, 18
NEWEST = {
    PRODUCE: 7,
    FETCH: 11,
    LIST_OFFSETS: 5,
    METADATA: 4,
    OFFSET_COMMIT: 7,
    OFFSET_FETCH: 5,
    FIND_COORDINATOR: 1,
    JOIN_GROUP: 5,
    HEARTBEAT: 3,
    LEAVE_GROUP: 3,
    SYNC_GROUP: 3,
    API_VERSIONS: 0,
}
UNKNOWN_TOPIC_OR_PARTITION, REBALANCE_IN_PROGRESS, UNSUPPORTED_VERSION = 3, 27, 35
HOST = "127.0.0.1"
NODE = 1
OWN_TOPIC = "any"
"""What the clients themselves subscribe to."""
CLUSTER_ID = "c" * 4096
"""Long: for what it parses librdkafka sets memory aside by the length of the response, too little for many small topics
in this old version, and then joins again as if its assignor had failed."""


def _struct(*fields: Wire) -> Wire:
    return plain_struct(fields)


def _array(item: Wire, *, nullable: bool = False) -> Wire:
    return codec.array("array", item, nullable=nullable, compact=False)


_int8, _int16, _int32 = (codec.integer(kind, kind) for kind in ("int8", "int16", "int32"))
_string = codec.text("string", nullable=False, compact=False)
_optional = codec.text("string", nullable=True, compact=False)
_bytes = codec.blob("bytes", nullable=False, compact=False)

_HEADER = _struct(_int16, _int16, _int32, _optional)  # request key, version, correlation id, client id
_REQUESTS = {
    METADATA: _struct(_array(_string, nullable=True), _int8),
    SYNC_GROUP: _struct(_string, _int32, _string, _optional, _array(_struct(_string, _bytes))),
}
_partition = _struct(_int16, _int32, _int32, _array(_int32), _array(_int32))  # error, number, leader, replicas, in sync
_RESPONSES = {
    API_VERSIONS: _struct(_int16, _array(_struct(_int16, _int16, _int16))),
    METADATA: _struct(
        _int32,
        _array(_struct(_int32, _string, _int32, _optional)),
        _optional,
        _int32,
        _array(_struct(_int16, _string, _int8, _array(_partition))),
    ),
    FIND_COORDINATOR: _struct(_int32, _int16, _optional, _int32, _string, _int32),
    JOIN_GROUP: _struct(_int32, _int16, _int32, _string, _string, _string, _array(_struct(_string, _optional, _bytes))),
    SYNC_GROUP: _struct(_int32, _int16, _bytes),
    HEARTBEAT: _struct(_int32, _int16),
    LEAVE_GROUP: _struct(_int32, _int16, _array(_struct(_string, _optional, _int16))),
}


@dataclass
class Coordinator:
    """Groups that wait for a leader; `results` in their order, None for those that are not answered yet."""

    asked: list[Asked]
    results: list[Result | None] = field(init=False)
    leading: dict[str, int] = field(default_factory=dict)  # the group that a client was told of last
    done: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    def __post_init__(self) -> None:
        """Nothing is answered yet."""
        self.results = [None] * len(self.asked)
        self._waiting = iter(range(len(self.asked)))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until it ends."""
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                response = self._answer(await reader.readexactly(size))
                if response is not None:
                    writer.write(len(response).to_bytes(4, "big") + response)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client is gone
        finally:
            writer.close()

    def finish(self, client: str, result: Result) -> None:
        """What became of the group that a client leads."""
        self.results[self.leading.pop(client)] = result
        if None not in self.results:
            self.done.set()

    def _answer(self, request: bytes) -> bytes | None:
        (key, version, correlation, client), at = _HEADER.read(request, 0)
        body: tuple[Any, ...] | None
        if key == API_VERSIONS:
            error = UNSUPPORTED_VERSION if version else 0
            body = error, [(each, 0, newest) for each, newest in NEWEST.items()]
        elif key == METADATA:
            body = self._metadata(client, _REQUESTS[key].read(request, at)[0][0])
        elif key == FIND_COORDINATOR:
            body = 0, 0, None, NODE, HOST, self.port
        elif key == JOIN_GROUP:
            body = self._join(client)
        elif key == SYNC_GROUP:
            given = _REQUESTS[key].read(request, at)[0][4]
            self.finish(client, {"lists": {member: _pairs(data) for member, data in given}})
            body = 0, REBALANCE_IN_PROGRESS, b""
        elif key in (HEARTBEAT, LEAVE_GROUP):
            body = (0, 0) if key == HEARTBEAT else (0, 0, [])
        else:
            raise ValueError(f"request {key} of {client}; expected one of a consumer without partitions")
        if body is None:
            return None
        response = bytearray(codec.INT32.pack(correlation))
        _RESPONSES[key].write(body, response)
        return bytes(response)

    def _metadata(self, client: str, names: Iterable[str] | None) -> tuple[Any, ...]:
        """Topics sorted by name, as if the cluster kept them so."""
        topics = {OWN_TOPIC: 1}
        if client in self.leading:
            topics |= self.asked[self.leading[client]]["topics"]
        told = [
            (0, name, 0, [(0, number, NODE, [NODE], [NODE]) for number in range(topics[name])])
            if name in topics
            else (UNKNOWN_TOPIC_OR_PARTITION, name, 0, [])
            for name in sorted(names or ())
        ]
        return 0, [(NODE, HOST, self.port, None)], CLUSTER_ID, NODE, told

    def _join(self, client: str) -> tuple[Any, ...] | None:
        """The next group; no answer after the last one.

        A leader that joins again without a word has failed; librdkafka's does where no member names a topic.
        """
        if client in self.leading:
            self.finish(client, {"error": "no members"})
        number = next(self._waiting, None)
        if number is None:
            return None
        self.leading[client] = number
        asked = self.asked[number]
        members = [
            (each["id"], each["instance_id"], base64.b64decode(each["subscription"])) for each in asked["members"]
        ]
        return 0, 0, number + 1, asked["assignor"], asked["leader"], asked["leader"], members


def _pairs(assignment: bytes) -> list[list[Any]]:
    return [[topic, number] for topic, numbers in decode_assignment(assignment).partitions for number in numbers]


async def _lead(coordinator: Coordinator, client: str, command: list[str]) -> str:
    """A client, started again as often as it dies; its version."""
    version = ""
    while not coordinator.done.is_set():
        process = await asyncio.create_subprocess_exec(
            *command, str(coordinator.port), client, coordinator.asked[0]["assignor"], stdin=PIPE, stdout=PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        version = json.loads(await process.stdout.readline())["version"]
        done = asyncio.create_task(coordinator.done.wait())
        await asyncio.wait({done, asyncio.create_task(process.wait())}, return_when=asyncio.FIRST_COMPLETED)
        if process.returncode is not None and client in coordinator.leading:
            coordinator.finish(client, {"crash": f"signal {-process.returncode}"})
        process.stdin.close()
        await process.wait()
    return version


async def _answers(asked: list[Asked], command: list[str], clients: int) -> tuple[str, list[Result]]:
    coordinator = Coordinator(asked)
    server = await asyncio.start_server(coordinator.serve, HOST, 0)
    coordinator.port = server.sockets[0].getsockname()[1]
    async with server:
        names = [f"leader-{number}" for number in range(min(clients, len(asked)))]
        versions = await asyncio.gather(*(_lead(coordinator, name, command) for name in names))
    return versions[0], [result for result in coordinator.results if result is not None]


def answers(asked: list[Asked], command: list[str], clients: int) -> tuple[str, list[Result]]:
    """The library's version, and what its leaders gave to each group, in order; at least one group."""
    return asyncio.run(_answers(asked, command, clients))
