"""Parts of the source that mutants are drawn from, and the tests that are to see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path("src", "groupledger")
CORE = PACKAGE / "core"


@dataclass(frozen=True, slots=True)
class Part:
    """`files` below a root, and `tests`: what is to see their mutants; `wide` as in `sites.mutants`."""

    files: Callable[[Path], list[Path]]
    tests: tuple[str, ...]
    wide: bool


def _assignor_files(root: Path) -> list[Path]:
    return [*sorted((root / CORE / "assignors").rglob("*.py")), root / CORE / "rebalance/step.py"]


def _below(*folders: Path) -> Callable[[Path], list[Path]]:
    return lambda root: [path for folder in folders for path in sorted((root / folder).rglob("*.py"))]


PARTS = {
    "assignors": Part(
        _assignor_files,
        (
            *("tests/core/assignors", "tests/core/step", "tests/core/test_scenario.py"),
            *("tests/core/test_attribution.py", "tests/core/test_conversion.py"),
            *("tests/engine/test_choosable.py", "tests/engine/test_compute.py"),
        ),
        wide=False,
    ),
    "protocol": Part(
        _below(CORE / "protocol", PACKAGE / "listener"),
        (
            *("tests/core/protocol", "tests/kips", "tests/listener"),
            *("tests/cli/test_simulate.py", "tests/cli/test_plan_migration.py"),
        ),
        wide=True,
    ),
    "wire": Part(_below(CORE / "wire"), ("tests/core/wire", "tests/core/history"), wide=True),
    "custom": Part(
        _below(CORE / "custom"), ("tests/core/custom", "tests/kips", "tests/cli/test_solve_custom.py"), wide=True
    ),
}
