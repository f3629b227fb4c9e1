"""What is measured: the sizes for which ratios are promised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.assignors.groups import Groups, alike, disjoint, halves, one_less, one_more


@dataclass(frozen=True, slots=True)
class Case:
    """Groups and the assignor that gets them."""

    name: str
    title: str
    goal: str
    make: Callable[[int], Groups]  # of sizes divided by its argument
    assignor: str = "cooperative-sticky"
    by_group: bool = False  # tell times a group, not a batch
    peers: bool = True  # False: too large for them


def _million(less: int) -> Groups:
    return alike(1, 2_000 // less, 2_000 // less, 500)


def _square(less: int) -> Groups:
    return alike(64, 2_100 // less, 1, 2_100 // less)


def _single(less: int) -> Groups:
    return alike(1, 2_100 // less, 1, 2_100 // less)


def _many(less: int) -> Groups:
    return alike(100_000 // less, 5, 2, 15)


def _half(less: int) -> Groups:
    return halves(500 // less, 200 // less, 50)


def _disjoint(less: int) -> Groups:
    return disjoint(1_000 // less, 100, 100 // less, 5)


def _half_million(less: int) -> Groups:
    return halves(2_000 // less, 2_000 // less, 500)


_MILLION = "2,000 members x 1M partitions (2,000 topics)"
_SQUARE = "2,100 members x 2,100 partitions"
_MANY = "100,000 groups of 5 x 30"
_HALF = "random halves, 500 x 200 topics x 50"
_FIVE = "five disjoint, 1,000 x 10,000 partitions"
_HUGE = "random halves, 2,000 x 2,000 topics x 500"

CASES = (
    Case("million-fresh", f"{_MILLION}, fresh", "kernel 20, whole 1 x Java", _million),
    Case(
        "million-more",
        f"{_MILLION}, one more",
        "kernel 100 x Java, 10 x franz-go; whole 20, 1.5",
        lambda less: one_more(_million(less)),
    ),
    Case("million-less", f"{_MILLION}, one less", "the same", lambda less: one_less(_million(less))),
    Case("million-range", f"{_MILLION}, range", "whole 5 x both", _million, "range"),
    Case("million-roundrobin", f"{_MILLION}, roundrobin", "whole 5 x both", _million, "roundrobin"),
    Case("square-fresh", f"64 x {_SQUARE}, fresh, a group", "whole 1 x franz-go", _square, by_group=True),
    Case(
        "square-more",
        f"64 x {_SQUARE}, one more, a group",
        "whole 1 x franz-go",
        lambda less: one_more(_square(less)),
        by_group=True,
    ),
    Case("single-fresh", f"one call of {_SQUARE}, fresh", "reported", _single),
    Case("single-more", f"one call of {_SQUARE}, one more", "reported", lambda less: one_more(_single(less))),
    Case("many-fresh", f"{_MANY}, fresh", "whole 3 x the faster", _many),
    Case("many-more", f"{_MANY}, one more", "whole 3 x the faster", lambda less: one_more(_many(less))),
    Case("many-range", f"{_MANY}, range", "reported", _many, "range"),
    Case("many-roundrobin", f"{_MANY}, roundrobin", "reported", _many, "roundrobin"),
    Case("half-fresh", f"{_HALF}, fresh", "whole 20 x Java", _half),
    Case("half-more", f"{_HALF}, one more", "whole 10 x Java", lambda less: one_more(_half(less))),
    Case("disjoint-fresh", f"{_FIVE}, fresh", "reported", _disjoint),
    Case("disjoint-more", f"{_FIVE}, one more", "whole 100 x Java", lambda less: one_more(_disjoint(less))),
    Case("huge-fresh", f"{_HUGE}, fresh", "whole under 10,000 ms", _half_million, peers=False),
    Case(
        "huge-more",
        f"{_HUGE}, one more",
        "whole under 10,000 ms",
        lambda less: one_more(_half_million(less)),
        peers=False,
    ),
)
