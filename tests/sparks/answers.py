"""What a command answered, without what is another one in every run; and where two answers differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

OWN = frozenset({"run_id", "attempt_id", "timings"})
"""Keys whose values no two runs share."""


def facts(answer: Any) -> Any:
    """The answer of `--json` without names and times of its run."""
    if isinstance(answer, dict):
        return {key: facts(value) for key, value in answer.items() if key not in OWN}
    if isinstance(answer, list):
        return [facts(value) for value in answer]
    return answer


def digests(answer: dict[str, Any]) -> tuple[str, ...]:
    """Every result digest, in the order in which they are told; an answer without one is none to compare."""
    found = tuple(value for key, value in _leaves(answer, "") if key.endswith(".result_digest"))
    if not found or not all(found):
        raise AssertionError(f"{len(found)} result digests, some of them empty; expected one or more")
    return found


def differences(one: Any, other: Any) -> list[str]:
    """The places at which two answers differ, each with both values."""
    ours, theirs = dict(_leaves(facts(one), "")), dict(_leaves(facts(other), ""))
    missing = "nothing"
    return [
        f"{place}: {ours.get(place, missing)!r}, not {theirs.get(place, missing)!r}"
        for place in sorted(ours.keys() | theirs.keys())
        if ours.get(place, missing) != theirs.get(place, missing)
    ]


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, f"{place}.{key}")
    elif isinstance(value, list):
        yield f"{place}.length", len(value)
        for number, each in enumerate(value):
            yield from _leaves(each, f"{place}.{number}")
    else:
        yield place, value
