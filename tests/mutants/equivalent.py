"""Mutants that are no other program, each with the reason: what survives them is no gap in the tests."""

from __future__ import annotations

from tests.mutants.equivalent_assignors import ASSIGNORS
from tests.mutants.equivalent_protocol import PROTOCOL
from tests.mutants.keys import Key

EQUIVALENT: dict[Key, str] = ASSIGNORS | PROTOCOL
