"""What Kafka's sticky assignors take from a member's bytes: the questions, and the golden answers of the real jar.

    python -m tests.oracle.member_data

asks kafka-clients 4.4.0 about every client's form of user data, each cut, prefixed, extended or with a number changed,
in subscriptions of every version with a generation or without, and writes tests/data/parity/member-data.jsonl.gz.
Then it does the same for groups whose members contradict one another by such bytes: user-data.jsonl.gz.
"""

from __future__ import annotations

import gzip
import json
import random
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from groupledger.core.wire.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from tests.core.assignors.golden import PARITY
from tests.oracle.live import CLIENT, HERE, Oracle

MEMBER_DATA = HERE / "MemberDataOracle.java"
ASSIGNORS = ("sticky", "cooperative-sticky")
NUMBERS = (-(2**31), -7, -2, -1, 0, 1, 7, 65_536, 2**31 - 1)
OWNED = (("b", (2, 0)), ("a", (1,)))

Question = dict[str, Any]


def int32(number: int) -> bytes:
    """Four bytes, big-endian."""
    return number.to_bytes(4, "big", signed=True)


def topic(name: bytes, *partitions: int, length: int | None = None, count: int | None = None) -> bytes:
    """One topic of KIP-54; `length` and `count` may lie."""
    head = (len(name) if length is None else length).to_bytes(2, "big", signed=True) + name
    return head + int32(len(partitions) if count is None else count) + b"".join(map(int32, partitions))


def kip_54(*topics: bytes, count: int | None = None) -> bytes:
    """What a member owned, version 0; `count` may lie."""
    return int32(len(topics) if count is None else count) + b"".join(topics)


def user_data() -> Iterator[bytes | None]:
    """The bytes beside a subscription, each once."""
    yield from dict.fromkeys(_user_data())


def _user_data() -> Iterator[bytes | None]:
    yield None
    yield from (b"", b"\0", b"\0\0\0", b"\x80\xff\xff")
    yield from map(int32, NUMBERS)
    a, b, none = topic(b"a", 1), topic(b"b", 0, 2), topic(b"a")
    both = kip_54(a, b)
    owned = (kip_54(), kip_54(a), both, kip_54(b, a, topic(b"b", 1)), kip_54(none), kip_54(topic(b"a", -1, 2**31 - 1)))
    for version_0 in owned:
        yield from (version_0, b"\0\1" + version_0)  # kafka-python writes the second, with a generation
        for generation in NUMBERS:
            yield from (version_0 + int32(generation), b"\0\1" + version_0 + int32(generation))
    dated = both + int32(5)
    yield from (dated[:cut] for cut in range(len(dated)))
    yield from ((b"\0\1" + dated)[:cut] for cut in range(0, len(dated), 3))
    yield from (dated + b"\xaa" * more for more in (1, 3, 4, 9))
    yield from (kip_54(a, count=count) + int32(5) for count in (-1, 0, 2, 3, 65_537, 2**31 - 1))
    yield from (kip_54(topic(b"a", 1, count=count)) + int32(5) for count in (-1, 0, 2, 3, 2**31 - 1))
    yield from (kip_54(topic(b"a", 1, length=length)) + int32(5) for length in (-1, 0, 2, 8, 9, 2**15 - 1))
    for name in (b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xc0\x80x", b"", b"\0"):
        yield kip_54(topic(name, 3), a) + int32(5)
        yield kip_54(a, topic(name, 3))
        yield b"\0\1" + kip_54(topic(name, 3), a) + int32(5)
    dice = random.Random(54)  # noqa: S311 seeded on purpose, nothing secret
    for _ in range(60):
        changed = bytearray(dice.choice((dated, b"\0\1" + dated, both)))
        for _ in range(dice.randint(1, 3)):
            changed[dice.randrange(len(changed))] = dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        yield bytes(changed)


def subscriptions(data: bytes | None) -> Iterator[ConsumerProtocolSubscription]:
    """Every version, with a generation and without; one of a version to come is read as the newest known."""
    yield ConsumerProtocolSubscription(0, ("a", "b"), data)
    yield ConsumerProtocolSubscription(1, ("a", "b"), data, OWNED)
    for generation in (None, 0, 4):
        yield ConsumerProtocolSubscription(2, ("a", "b"), data, OWNED, generation)
    for generation in (-7, -(2**31), 2**31 - 1):
        yield ConsumerProtocolSubscription(3, ("a", "b"), data, OWNED, generation, "rack")
    yield ConsumerProtocolSubscription(4, ("a", "b"), data, (*OWNED, ("b", (1,))), None, None, b"tail")


def questions() -> Iterator[Question]:
    """Assignor and subscription in base64."""
    for assignor in ASSIGNORS:
        for data in user_data():
            for subscription in subscriptions(data):
                told = b64encode(encode_subscription(subscription)).decode()
                yield {"assignor": assignor, "subscription": told}


def groups(seed: int = 54, number: int = 240) -> Iterator[dict[str, Any]]:
    """Scenarios of two to four members that claim the same partitions by different bytes."""
    forms = [None if data is None else b64encode(data).decode() for data in user_data()]
    for at in range(number):
        dice = random.Random(f"{seed}-{at}")  # noqa: S311 seeded on purpose, nothing secret
        members = [
            {
                "id": f"m{one}-{dice.randrange(1000)}",
                "instance_id": None,
                "topics": ["a", "b"],
                "owned": [["a", 1], ["b", dice.randrange(3)]],
                "generation": dice.choice((-1, -1, -7, 0, 5, 7)),
                "rack": None,
                "user_data": dice.choice(forms[1:]),
            }
            for one in range(dice.randint(2, 4))
        ]
        members[-1]["topics"] = dice.choice((["a", "b"], ["a", "b"], ["b"]))
        topics = {"a": dice.randint(2, 4), "b": dice.randint(3, 5)}
        name = f"user-data-{seed}-{at}"
        yield {"id": name, "assignor": ASSIGNORS[at % 2], "topics": topics, "members": members}


def write(name: str, pairs: list[dict[str, Any]]) -> None:
    """A golden file: the same pairs give the same bytes."""
    text = "".join(json.dumps(pair, ensure_ascii=True, sort_keys=True) + "\n" for pair in pairs)
    (PARITY / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def kept(result: dict[str, Any]) -> dict[str, Any]:
    """The part of a result that the other golden files have."""
    return {name: result[name] for name in ("id", "assignment", "path", "error") if name in result}


def main() -> None:
    """Ask the jar and write both files."""
    with Oracle(MEMBER_DATA) as oracle:
        write("member-data", [{**asked, "result": oracle.ask(asked)} for asked in questions()])
    with Oracle(CLIENT) as oracle:
        write("user-data", [{"scenario": asked, "result": kept(oracle.ask(asked))} for asked in groups()])


if __name__ == "__main__":
    main()
