"""A day, in a quarter of an hour: what happens to each group, in the order in which it happens.

Every group has topics of its own, so that nothing happens to two groups at once but the end of the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import sleep

from tests.live.truth.facts import ASSIGNOR, DOWNGRADED, UPGRADED
from tests.live.truth.group import Group, Scene, Way
from tests.live.truth.log import compact

TOGETHER = 4
"""Groups that play at a time."""
DOWN_SECONDS, AFTER_RESTART_SECONDS = 2.0, 15.0
POLL_MS = 6_000
Play = Callable[[Scene], Generator[Group, None, None]]
"""What happens to a group until the broker's end, and after it."""


def way(library: str, group: str, assignor: str = "", protocol: str = "classic", max_poll_ms: int | None = None) -> Way:
    """A member that subscribes to its group's first topic."""
    return Way(library, (f"{group}-orders",), assignor, protocol, max_poll_ms)


@contextmanager
def playing(scene: Scene, group_id: str, taken: Way, *counts: int) -> Iterator[tuple[Group, str, str]]:
    """A group with two topics of its own, of 6 and 4 partitions unless said."""
    group = Group(scene, group_id, taken)
    orders, carts = f"{group_id}-orders", f"{group_id}-carts"
    group.create(dict(zip((orders, carts), counts or (6, 4), strict=True)))
    try:
        yield group, orders, carts
    finally:
        group.stop()


def comes_and_goes(library: str, assignor: str) -> Play:
    """The plainest life: joins, partitions added, an end without a word, a leave."""

    def play(scene: Scene) -> Generator[Group, None, None]:
        name = f"{library}.{assignor}"
        with playing(scene, name, way(library, name, assignor)) as (group, orders, _):
            a, b, c = (f"{name}.{each}" for each in "abc")
            group.join(a)
            group.join(b)
            group.grow(orders, 8)
            group.join(c)
            yield group
            group.kill(b)
            group.leave(c)
            group.leave(a)

    return play


def librdkafka(scene: Scene) -> Generator[Group, None, None]:
    """Subscriptions change, partitions are added, a process stands still."""
    name = "librdkafka.cooperative"
    with playing(scene, name, way("confluent-kafka", name, "cooperative-sticky")) as (group, orders, carts):
        a, b, c = (f"{name}.{each}" for each in "abc")
        group.join(a, topics=(orders, carts))
        group.join(b, topics=(orders, carts))
        group.join(c, topics=(orders, carts))
        group.subscribe(b, orders)
        group.grow(carts, 7)
        yield group
        group.subscribe(b, orders, carts)
        group.freeze(c)
        group.thaw(c)
        group.leave(c)
        group.kill(a)
        group.leave(b)


def librdkafka_848(scene: Scene) -> Generator[Group, None, None]:
    """The same where the coordinator assigns."""
    name = "librdkafka.848"
    with playing(scene, name, way("confluent-kafka", name, protocol="consumer")) as (group, orders, carts):
        a, b, c = (f"{name}.{each}" for each in "abc")
        group.join(a)
        group.join(b)
        group.join(c, topics=(orders, carts))
        group.grow(orders, 9)
        group.subscribe(a, orders, carts)
        yield group
        group.kill(b)
        group.remove(carts)
        group.remake(carts, 3)
        group.leave(c)
        group.leave(a)


def java(scene: Scene) -> Generator[Group, None, None]:
    """A member hangs beyond max.poll.interval.ms, and polls again; the group is deleted, and begins anew."""
    name = "java.range"
    with playing(scene, name, way("java", name, "range", max_poll_ms=POLL_MS)) as (group, orders, carts):
        a, b, c = (f"{name}.{each}" for each in "abc")
        group.join(a)
        group.join(b, topics=(orders, carts))
        group.hang(b)
        group.resume(b)
        yield group
        group.kill(b)
        group.leave(a)
        group.delete()
        group.join(c)
        group.leave(c)


def java_848(scene: Scene) -> Generator[Group, None, None]:
    """A member hangs; a topic is deleted and made again; a regular expression."""
    name = "java.848"
    with playing(scene, name, way("java", name, protocol="consumer", max_poll_ms=POLL_MS)) as (group, orders, carts):
        a, b, c = (f"{name}.{each}" for each in "abc")
        group.join(a, topics=(orders, carts))
        group.join(b, topics=(orders, carts))
        group.hang(b)
        group.resume(b)
        yield group
        group.remove(carts)
        group.remake(carts, 5)
        group.join(c, topics=(f"^{name.replace('.', '[.]')}-.*",))
        group.leave(b)
        group.freeze(a)
        group.thaw(a)
        group.leave(c)
        group.leave(a)


def static_classic(scene: Scene) -> Generator[Group, None, None]:
    """A static member starts again, and is taken over by another process, in a classic group."""
    name = "static.classic"
    with playing(scene, name, way("confluent-kafka", name, "range")) as (group, orders, _):
        a, b, c = (f"{name}.{each}" for each in "abc")
        group.join(a, instance="one")
        group.join(b, instance="two")
        group.restart(b, "two")
        group.take_over(b, c, "two")
        yield group
        group.grow(orders, 7)
        group.kill(c)
        group.leave(a)


def static_848(scene: Scene) -> Generator[Group, None, None]:
    """A static member starts again where the coordinator assigns."""
    name = "static.848"
    with playing(scene, name, way("confluent-kafka", name, protocol="consumer")) as (group, orders, _):
        a, b = (f"{name}.{each}" for each in "ab")
        group.join(a, instance="one")
        group.join(b, instance="two")
        group.restart(b, "two")
        group.grow(orders, 7)
        yield group
        group.kill(b)
        group.leave(a)


def assignors(scene: Scene) -> Generator[Group, None, None]:
    """The assignor changes when the last member that does not know the other one is gone."""
    name = "assignor.changes"
    with playing(scene, name, way("confluent-kafka", name, "range,roundrobin")) as (group, _, _):
        a, b, c = (f"{name}.{each}" for each in "abc")
        group.join(a)
        group.join(b)
        yield group
        group.join(c, assignor="roundrobin", also=[ASSIGNOR])
        group.leave(a)
        group.leave(c, also=[ASSIGNOR])
        group.leave(b)


def converts(scene: Scene) -> Generator[Group, None, None]:
    """A classic group becomes one of KIP-848, and classic again."""
    name = "converts"
    with playing(scene, name, way("java", name, "cooperative-sticky")) as (group, orders, _):
        a, b, c, d = (f"{name}.{each}" for each in "abcd")
        group.join(a)
        group.join(b)
        group.join(c, protocol="consumer", assignor="", also=[UPGRADED])
        group.grow(orders, 9)
        yield group
        group.leave(a)
        group.join(d)
        group.leave(c, also=[DOWNGRADED])
        group.leave(b)
        group.leave(d)


def converts_librdkafka(scene: Scene) -> Generator[Group, None, None]:
    """The same with other libraries: a rolling upgrade to the end."""
    name = "upgrade.range"
    with playing(scene, name, way("sarama", name, "range")) as (group, _, _):
        a, b, c, d = (f"{name}.{each}" for each in "abcd")
        group.join(a)
        group.join(b, library="confluent-kafka")
        group.join(c, library="confluent-kafka", protocol="consumer", assignor="", also=[UPGRADED])
        group.leave(b)
        yield group
        group.join(d, library="confluent-kafka", protocol="consumer", assignor="")
        group.leave(a)
        group.kill(c)
        group.leave(d)


def remakes(scene: Scene) -> Generator[Group, None, None]:
    """A classic group's topic is deleted and made again."""
    name = "remakes"
    with playing(scene, name, way("java", name, "range")) as (group, orders, carts):
        a, b = (f"{name}.{each}" for each in "ab")
        group.join(a, topics=(orders, carts))
        group.join(b, topics=(orders, carts))
        group.remove(carts)
        group.remake(carts, 4)
        yield group
        group.leave(b)
        group.leave(a)


def franz_go_848(scene: Scene) -> Generator[Group, None, None]:
    """franz-go where the coordinator assigns."""
    name = "franz-go.848"
    with playing(scene, name, way("franz-go", name, protocol="consumer")) as (group, orders, _):
        a, b, c = (f"{name}.{each}" for each in "abc")
        group.join(a)
        group.join(b)
        group.grow(orders, 7)
        yield group
        group.join(c)
        group.kill(a)
        group.leave(b)
        group.leave(c)


def mixed(scene: Scene) -> Generator[Group, None, None]:
    """Members of every library with one assignor; two leave at once."""
    name = "mixed.range"
    with playing(scene, name, way("franz-go", name, "range")) as (group, _, carts):
        names = [f"{name}.{each}" for each in "abcd"]
        libraries = ("franz-go", "sarama", "aiokafka", "kafka-python")
        for member, library in zip(names, libraries, strict=True):
            group.join(member, library=library)
        yield group
        group.kill(names[0])
        group.join(f"{name}.e", library="confluent-kafka", topics=(carts,))
        group.leave(*names[1:3])
        group.leave(names[3])
        group.leave(f"{name}.e")


def of_type(protocol: str) -> Play:
    """Share and Streams groups, whose members have no listener."""

    def play(scene: Scene) -> Generator[Group, None, None]:
        with playing(scene, protocol, way("java", protocol, protocol=protocol)) as (group, orders, carts):
            a, b = (f"{protocol}.{each}" for each in "ab")
            topics = (orders, carts)
            group.join(a, topics=topics)
            group.join(b, topics=topics)
            yield group
            group.kill(a)
            group.leave(b)

    return play


def connect(scene: Scene) -> Generator[Group, None, None]:
    """Workers of Kafka Connect, which share out connectors; with none of them, only who is there changes."""
    with playing(scene, "connect", Way("java", (), protocol="connect")) as (group, _, _):
        a, b = "connect.a", "connect.b"
        group.join(a)
        group.join(b)
        yield group
        group.kill(a)
        group.leave(b)


PLAYS: tuple[Play, ...] = (
    comes_and_goes("franz-go", "cooperative-sticky"),
    comes_and_goes("kafka-python", "sticky"),
    librdkafka,
    librdkafka_848,
    java,
    java_848,
    static_classic,
    static_848,
    assignors,
    converts,
    comes_and_goes("sarama", "range"),
    comes_and_goes("kafkajs", "roundrobin"),
    comes_and_goes("aiokafka", "roundrobin"),
    remakes,
    franz_go_848,
    converts_librdkafka,
    mixed,
    comes_and_goes("sarama", "sticky"),
    comes_and_goes("kafka-python", "cooperative-sticky"),
    of_type("share"),
    of_type("streams"),
    of_type("streams-classic"),
    connect,
)


def play(scene: Scene, plays: tuple[Play, ...], *, restarts: bool = True) -> None:
    """All of it: the first halves, the broker's end if it `restarts`, and the second halves."""
    lives = [each(scene) for each in plays]
    try:
        groups = side_by_side(lives)
        if restarts:
            restart(scene, [group for group in groups if group is not None])
        side_by_side(lives)
    finally:
        for life in lives:
            life.close()


def side_by_side(lives: list[Generator[Group, None, None]]) -> list[Group | None]:
    """The next half of each, some at a time; where one fails, the others end first."""
    with ThreadPoolExecutor(TOGETHER) as threads:
        halves = [threads.submit(next, life, None) for life in lives]
    return [half.result() for half in halves]


def restart(scene: Scene, groups: list[Group]) -> None:
    """End the broker without a word, and start it again; then what is in its log is compacted."""
    scene.journal.write("act", group=None, act="broker", clients=[])
    scene.broker.kill()
    sleep(DOWN_SECONDS)
    scene.broker.start()
    scene.connect()
    sleep(AFTER_RESTART_SECONDS)
    for group in groups:
        scene.journal.write("settled", group=group.group_id)
        group.describe()
    compact(scene.admin)
