"""Spark's daemon of Python workers, whose workers may be made to die in the middle of a batch.

Named by `spark.python.daemon.module`. The file that GROUPLEDGER_AMBUSH names says who is to die where, such as
`worker before fold`: the worker itself, or the JVM it works for (`executor`), before a bucket is
folded or `after` it.
It strikes once: whoever takes the file away first.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from groupledger.core.rebalance import computation as rebalances
from groupledger.engine import envelope, fold_slices, group_arrays, result_rows

AMBUSH = "GROUPLEDGER_AMBUSH"
PLACES = {
    "fold": (fold_slices, "fold_records"),
    "file": (envelope, "write_file"),
    "decode": (group_arrays, "decode"),
    "compute": (rebalances, "rebalance"),
    "encode": (result_rows, "encode_results"),
}
"""Where a worker can be met: a function of the product, by module."""


def lay() -> None:
    """Put an ambush before each place; workers inherit them."""
    for place, (module, name) in PLACES.items():
        setattr(module, name, _ambushed(place, getattr(module, name)))


def _ambushed(place: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        _pass(f"before {place}")
        answer = function(*arguments, **named)
        _pass(f"after {place}")
        return answer

    return call


def _pass(place: str) -> None:
    """Die here if this is the place."""
    order = Path(os.environ[AMBUSH])
    if not order.exists():
        return
    whom, _, where = order.read_text(encoding="utf-8").partition(" ")
    if where != place:
        return
    try:
        order.rename(order.with_suffix(".done"))
    except FileNotFoundError:
        return  # another worker was first
    os.kill(os.getpid() if whom == "worker" else _parent(os.getppid()), signal.SIGKILL)


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


if __name__ == "__main__":
    lay()
    from pyspark.daemon import manager

    manager()
