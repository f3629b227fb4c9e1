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
    """`files` below a root, and `tests`: what runs for one of them, the closest first; `wide` as in `sites.mutants`."""

    files: Callable[[Path], list[Path]]
    tests: Callable[[Path], list[str]]
    wide: bool


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


def _protocol_tests(path: Path) -> list[str]:
    closest = ["tests/kips", "tests/listener"]
    if path.is_relative_to(PACKAGE / "listener"):
        closest.reverse()
    return [*closest, "tests/core/protocol", "tests/cli/test_simulate.py", "tests/cli/test_plan_migration.py"]


PARTS = {
    "assignors": Part(_assignor_files, _assignor_tests, wide=False),
    "protocol": Part(_below(CORE / "protocol", PACKAGE / "listener"), _protocol_tests, wide=True),
    "wire": Part(_below(CORE / "wire"), lambda _: ["tests/core/wire", "tests/core/history"], wide=True),
    "custom": Part(
        _below(CORE / "custom"),
        lambda _: ["tests/core/custom", "tests/kips", "tests/cli/test_solve_custom.py"],
        wide=True,
    ),
}
