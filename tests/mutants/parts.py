"""Parts of the source that mutants are drawn from, and the tests that are to see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path("src", "groupledger")
CORE = PACKAGE / "core"

CLIENT = (
    "test_pieces",
    "test_parity",
    "test_plain",
    "test_pinned",
    "test_corners",
    "test_transfers",
    "test_librdkafka",
    "test_kip615",
    "test_kip315",
    "test_safe",
    "test_rejoin",
    "test_properties",
)
SERVER = (
    "test_orders",
    "test_judgement",
    "test_certainty",
    "test_captures",
    "test_promises",
    "test_trees",
    "test_parity",
)
PINNED_ON_SERVER = "tests/core/assignors/test_pinned.py::test_targets_that_a_coordinator_writes_too"
CLOSEST = (
    ("assignors/server", ()),
    ("assignors/kip315", ("test_kip315",)),
    ("assignors/kip615.py", ("test_kip615",)),
    ("assignors/librdkafka.py", ("test_librdkafka",)),
    ("assignors/movements.py", ("test_transfers",)),
    ("assignors/plain.py", ("test_plain",)),
    ("assignors/safe.py", ("test_safe", "test_rejoin")),
    ("assignors/transfers.py", ("test_transfers",)),
    ("assignors", ()),
)
"""What runs before the others, by the beginning of a path below the core."""


@dataclass(frozen=True, slots=True)
class Part:
    """`files` below a root, and `tests`: what runs for one of them, the closest first; `wide` as in `sites.mutants`.

    `closest`: what runs alone before all of them, where to collect all takes longer than these few.
    """

    files: Callable[[Path], list[Path]]
    tests: Callable[[Path], list[str]]
    wide: bool
    closest: Callable[[Path], list[str]] = lambda _: []


def _assignor_files(root: Path) -> list[Path]:
    return [*sorted((root / CORE / "assignors").rglob("*.py")), root / CORE / "step.py"]


def _assignor_tests(path: Path) -> list[str]:
    if path == CORE / "step.py":
        return ["tests/core/step", "tests/core/test_scenario.py", "tests/engine/test_compute.py"]
    first = next(names for begin, names in CLOSEST if path.is_relative_to(CORE / begin))
    if path.is_relative_to(CORE / "assignors" / "server"):
        server = [f"tests/core/assignors/server/{name}.py" for name in SERVER]
        return ["tests/core/assignors/test_pieces.py", *server, PINNED_ON_SERVER]
    names = dict.fromkeys((*first, *CLIENT))
    return [*(f"tests/core/assignors/{name}.py" for name in names), "tests/core/test_scenario.py"]


def _below(*folders: Path) -> Callable[[Path], list[Path]]:
    return lambda root: [path for folder in folders for path in sorted((root / folder).rglob("*.py"))]


def _of_protocol(*names: str) -> tuple[str, ...]:
    """Test files of the protocol by name; others by their path below `tests`."""
    return tuple(f"tests/{name}.py" if "/" in name else f"tests/core/protocol/test_{name}.py" for name in names)


OF_CONSUMER_GROUPS = (
    *("consumer_group", "consumer_migration", "consumer_page", "share_group", "streams_group", "story"),
    *("consumer_reality", "consumer_timed"),
)
CLOSEST_OF_PROTOCOL = {
    "listener/recorded": _of_protocol("listener/test_recorded", "listener/test_rehearsal"),
    "listener/timed": _of_protocol("listener/test_timed"),
    "listener/turns": _of_protocol("listener/test_timed", "listener/test_recorded"),
    "listener/rehearsal": _of_protocol("listener/test_rehearsal", "listener/test_hand_over"),
    "listener/naming": _of_protocol("listener/test_naming"),
    "listener/confluent": _of_protocol("listener/test_live"),
    "listener/kafka_python": _of_protocol("listener/test_live"),
    "listener/live": _of_protocol("listener/test_live"),
    "listener": _of_protocol(
        *("kips/test_kip_1306", "kips/test_kip_1306_view", "listener/test_hosted", "listener/test_hand_over"),
    ),
    "core/protocol/timed": _of_protocol("timed", "timed_scripts", "comparison", "topic_patterns"),
    "core/protocol/clocked": _of_protocol("consumer_timed"),
    "core/protocol/application": _of_protocol("timed_scripts", "consumer_timed"),
    "core/protocol/consumer_group/t": _of_protocol("task_reconciliation", *OF_CONSUMER_GROUPS),
    "core/protocol/consumer_group": _of_protocol(*OF_CONSUMER_GROUPS),
    "core/protocol/recorded_clients": _of_protocol("recorded_clients"),
    "core/protocol/recorded_": _of_protocol("recorded_hand_overs", "listener/test_recorded"),
    "core/protocol/recorded": _of_protocol("recorded"),
    "core/protocol/handwriting": _of_protocol("recorded_clients"),
    "core/protocol/client_library": _of_protocol("client_library"),
    "core/protocol/comparison": _of_protocol("comparison"),
    "core/protocol/metrics": _of_protocol("metrics"),
    "core/protocol/ownership": _of_protocol("ownership", "unavailable", "comparison"),
    "core/protocol/topic_patterns": _of_protocol("topic_patterns"),
    "core/protocol/variants": _of_protocol("variants", "comparison"),
    "core/protocol/migration": _of_protocol("migration", "kips/test_kip_429_upgrade", "cli/test_plan_migration"),
    "core/protocol/dangers": _of_protocol("migration", "cli/test_plan_migration"),
    "core/protocol/planning": _of_protocol("simulator", "migration"),
    "core/protocol/compatibility": _of_protocol("client_library", "migration", "cli/test_plan_migration"),
    "core/protocol/times": _of_protocol("timed_scripts", "story"),
    "core/protocol/records": _of_protocol("timed_scripts", "timed"),
    "core/protocol/story": _of_protocol("story", "cli/test_simulate"),
    "core/protocol/script": _of_protocol("story", "timed_scripts", "streams_group", "cli/test_simulate"),
    "core/protocol/topology": _of_protocol("streams_group", "story"),
    "core/protocol/group_kinds": _of_protocol("story", "share_group", "streams_group", "consumer_group"),
    "core/protocol/consumer_group_json": _of_protocol("story", "consumer_page", "streams_group", "share_group"),
    "core/protocol/events": _of_protocol("story", "simulator"),
    "core/protocol": _of_protocol(
        *("simulator", "coordinator", "kips/test_kip_429", "kips/test_kip_792", "reality", "unavailable", "ownership"),
    ),
}
"""Tests of parts of the protocol and the listeners, by the beginning of a path below the package; the first counts."""


def _closest_of_protocol(path: Path) -> list[str]:
    name = path.relative_to(PACKAGE).as_posix()
    return list(next(tests for begin, tests in CLOSEST_OF_PROTOCOL.items() if name.startswith(begin)))


def _protocol_tests(path: Path) -> list[str]:
    closest = ["tests/kips", "tests/listener"]
    if path.is_relative_to(PACKAGE / "listener"):
        closest.reverse()
    return [*closest, "tests/core/protocol", "tests/cli/test_simulate.py", "tests/cli/test_plan_migration.py"]


PARTS = {
    "assignors": Part(_assignor_files, _assignor_tests, wide=False),
    "protocol": Part(
        _below(CORE / "protocol", PACKAGE / "listener"), _protocol_tests, wide=True, closest=_closest_of_protocol
    ),
    "wire": Part(_below(CORE / "wire"), lambda _: ["tests/core/wire", "tests/core/history"], wide=True),
    "custom": Part(
        _below(CORE / "custom"),
        lambda _: ["tests/core/custom", "tests/kips", "tests/cli/test_solve_custom.py"],
        wide=True,
    ),
}
