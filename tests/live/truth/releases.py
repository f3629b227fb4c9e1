"""Groups of KIP-848 on a broker of an earlier release: what its coordinator assigns, by each of its assignors."""

from __future__ import annotations

from collections.abc import Generator

from tests.live.truth.day import Play, playing, way
from tests.live.truth.group import Group, Scene

JAVA, LIBRDKAFKA = "java", "confluent-kafka"


def assigns(assignor: str) -> Play:
    """Members of two libraries with one subscription, and one with another."""

    def play(scene: Scene) -> Generator[Group, None, None]:
        name = f"{assignor}.848"
        with playing(scene, name, way(JAVA, name, assignor, "consumer"), 7, 5) as (group, orders, carts):
            a, b, c, d, e, f = (f"{name}.{each}" for each in "abcdef")
            both = (orders, carts)
            group.join(a, topics=both)
            group.join(b, topics=both, library=LIBRDKAFKA)
            group.join(c, topics=both, library=LIBRDKAFKA)
            group.grow(carts, 8)
            group.join(d, topics=both, library=LIBRDKAFKA)
            group.leave(b)
            group.join(e, topics=both, library=LIBRDKAFKA)
            group.kill(a)
            yield group
            group.grow(orders, 9)
            group.join(f, topics=(orders,), library=LIBRDKAFKA)
            group.leave(c)
            group.leave(d)
            group.leave(f)
            group.leave(e)

    return play


def matches(scene: Scene) -> Generator[Group, None, None]:
    """Members that subscribe to a regular expression, and one that names a topic; a topic that matches appears."""
    name = "regex.848"
    with playing(scene, name, way(JAVA, name, protocol="consumer"), 6, 4) as (group, orders, carts):
        a, b, c = (f"{name}.{each}" for each in "abc")
        pattern = "^regex[.]848-.*"
        group.join(a, topics=(pattern,))
        group.join(b, topics=(pattern,), library=LIBRDKAFKA)
        group.appear("regex.848-clicks", 3)
        group.join(c, topics=(carts,))
        yield group
        group.grow(orders, 8)
        group.leave(a)
        group.kill(c)
        group.leave(b)


PLAYS: tuple[Play, ...] = (assigns("uniform"), assigns("range"), matches)
