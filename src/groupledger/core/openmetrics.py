r"""The text format of OpenMetrics 1.0 for gauges, which Prometheus's older text format reads the same.

Help has no quotation marks, since the two formats escape them differently; labels are escaped alike in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Gauge:
    """A family of samples: a value for each set of labels. The name ends in the `unit`, if there is one."""

    name: str
    help: str
    values: Mapping[Labels, int | float]
    unit: str | None = None

    def __post_init__(self) -> None:
        """Check names and units, which are ours: a wrong one is a bug."""
        labels = {label for labels in self.values for label, _ in labels}
        assert all(_NAME.match(name) for name in (self.name, *labels))
        assert self.unit is None or self.name.endswith(f"_{self.unit}")
        assert not set('"\\\n') & set(self.help)


def exposition(gauges: Iterable[Gauge]) -> str:
    """Return all gauges as text, samples sorted by labels; it ends in `# EOF` and a line feed."""
    return "".join(f"{line}\n" for line in _lines(gauges))


def _lines(gauges: Iterable[Gauge]) -> Iterator[str]:
    for gauge in gauges:
        yield f"# TYPE {gauge.name} gauge"
        if gauge.unit is not None:
            yield f"# UNIT {gauge.name} {gauge.unit}"
        yield f"# HELP {gauge.name} {gauge.help}"
        for labels, value in sorted(gauge.values.items()):
            told = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
            yield f"{gauge.name}{{{told}}} {value}" if told else f"{gauge.name} {value}"
    yield "# EOF"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
