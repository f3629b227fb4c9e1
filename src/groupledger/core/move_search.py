"""Find the most partitions that can stay in place in a balanced assignment of one group, by integer programming.

Members with one subscription have loads that differ by at most one: a member with two more could pass one on. So each
kind of member has a base load, and some of its members have one more. With L the least load of a class's subscribers,
a member may be assigned partitions of the class only while its own load is at most L + 1. That is all that makes the
problem more than a flow; the solver (HiGHS) branches on it.

Worked example: A subscribes to t, B to t and u; A holds all 4 of t, nobody the 1 of u. B gets u and one of t: 1 move.
Worked example: A subscribes to t, B to t and u; A holds all 4 of t, nobody the 1 of u. B gets u, one of t: 1 move.
"""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from groupledger.core.move_problem import MoveProblem, kept_by_repair

MOST_ARCS = 400
MOST_WORK = 10_000
"""Arcs x switches. Larger problems are not solved: at this size it takes a second or two of CPU."""

MOST_PARTITIONS = 20_000
"""A similar limit: the solver's tolerances are for numbers of moderate size."""

MOST_NODES = 200
"""Limit of the solver's search tree. Not a time: the same problem gives the same answer on a slow machine."""

TOLERANCE = 1e-4  # counts of partitions are whole numbers; the solver's are within about 1e-6 of them


class Kept(NamedTuple):
    """Partitions that a balanced assignment keeps: a known one keeps `found`, none keeps more than `most`."""

    found: int
    most: int


class _Bounds(NamedTuple):
    base: list[int]  # of each kind, least load
    most: list[int]  # of each kind, most load of any member
    share: list[int]  # of each class, most load of a member that is assigned one of its partitions
    floor: list[int]  # of each class, the most that its least loaded subscriber can have


@dataclass
class _Model:
    """Columns and rows of an integer program; minimised."""

    cost: list[float] = field(default_factory=list)
    bounds: list[tuple[float, float]] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[float, dict[int, float], float]] = field(default_factory=list)

    def column(self, low: int, high: int, *, whole: bool = False, cost: float = 0.0) -> int:
        self.cost.append(cost)
        self.bounds.append((low, high))
        self.whole.append(whole)
        return len(self.cost) - 1

    def at_most(self, high: float, terms: dict[int, float]) -> None:
        self.rows.append((-math.inf, terms, high))

    def equal(self, value: float, terms: dict[int, float]) -> None:
        self.rows.append((value, terms, value))


def is_small(problem: MoveProblem) -> bool:
    """Return whether `search` takes a second or two at most."""
    arcs = problem.arcs
    return arcs <= MOST_ARCS and arcs * problem.switches <= MOST_WORK and problem.partitions <= MOST_PARTITIONS


def most_kept(problem: MoveProblem) -> Kept:
    """Find how many partitions can stay; for a large problem, what the repair keeps and a bound."""
    if is_small(problem):
        return search(problem)
    return Kept(kept_by_repair(problem) or 0, problem.held - _least_gained(problem))


@functools.lru_cache(maxsize=4_000)  # of small problems, about 10 kB each
def search(problem: MoveProblem) -> Kept:
    """Find how many partitions can stay; `found` and `most` differ if the search ends before the proof.

    The solver is asked only for an assignment that keeps more than a known one. Usually there is none, which it sees at
    once; finding the known one again would take it ten times as long.
    """
    held = problem.held
    known = (kept_by_repair(problem) or 0) if held > 0 else 0
    if known == held:
        return Kept(held, held)
    found = _solved(_model(problem, known + 1))
    if found is None:
        return Kept(known, known)
    best, proven = found
    return Kept(max(known, math.floor(best + TOLERANCE)), math.floor(min(held, proven + TOLERANCE)))


def _least_gained(problem: MoveProblem) -> int:
    """Bound the moves from below by what members must gain to reach their least load, beyond unheld partitions."""
    having = [0] * len(problem.kinds)
    for _, members, partitions in problem.holdings:
        for member in members:
            having[member] += partitions
    base = _base(problem)
    gained = sum(max(base[kind] - own, 0) for kind, own in zip(problem.kinds, having, strict=True))
    return max(gained - (problem.partitions - problem.held), 0)


def _base(problem: MoveProblem) -> list[int]:
    """Compute the least load of each kind in any balanced assignment.

    A class of n partitions leaves each of its s subscribers at least n // s, else a holder had two more than one.
    """
    base = [0] * (max(problem.kinds) + 1)
    for each, subscribers in zip(problem.classes, problem.subscribers, strict=True):
        for kind in each.kinds:
            base[kind] = max(base[kind], each.partitions // subscribers)
    return base


def _bounds(problem: MoveProblem) -> _Bounds:
    """Bound the loads of balanced assignments.

    A holder with load L leaves each other subscriber at least L - 1. All of them together have no more than the
    partitions of the classes that any of them subscribes to, and leave the others their least loads.
    """
    base = _base(problem)
    size: list[int] = np.bincount(problem.kinds).tolist()
    least = sum(base[kind] * size[kind] for kind in range(len(size)))
    most, share, floor = [0] * len(size), [], []
    for each, subscribers in zip(problem.classes, problem.subscribers, strict=True):
        elsewhere = least - sum(base[kind] * size[kind] for kind in each.kinds)
        near = sum(other.partitions for other in problem.classes if not set(each.kinds).isdisjoint(other.kinds))
        together = min(problem.partitions - elsewhere, near)
        floor.append(together // subscribers)
        share.append((together + subscribers - 1) // subscribers)
        for kind in each.kinds:
            most[kind] = max(most[kind], share[-1])
    return _Bounds(base, most, share, floor)


def _model(problem: MoveProblem, least_kept: int) -> _Model:
    """Build the program: each member has the base load of its kind or one more, and as much as possible is kept.

    An assignment that keeps less than `least_kept` is not accepted.
    """
    model, bounds = _Model(), _bounds(problem)
    base = [model.column(low, high, whole=True) for low, high in zip(bounds.base, bounds.most, strict=True)]
    more = [model.column(0, 1, whole=True) for _ in problem.kinds]
    load: list[dict[int, float]] = [
        {base[kind]: -1.0, extra: -1.0} for kind, extra in zip(problem.kinds, more, strict=True)
    ]
    given = []
    for number in range(len(problem.classes)):
        given.append(_given(model, problem, number, bounds.share[number]))
        if len(problem.classes[number].kinds) > 1:
            _restrict(model, problem, number, bounds, base, more, given[-1])
        for member, column in given[-1].items():
            load[member][column] = 1.0
    for terms in load:
        model.equal(0, terms)
    for kind in range(len(base)):
        members = [at for at, own in enumerate(problem.kinds) if own == kind]
        model.at_most(max(len(members) - 1, 0), {more[at]: 1.0 for at in members})
    _keep(model, problem, given, least_kept)
    return model


def _given(model: _Model, problem: MoveProblem, number: int, share: int) -> dict[int, int]:
    """Add columns: how many of a class each subscriber is assigned. The whole class is assigned."""
    partitions, kinds = problem.classes[number]
    given = {
        member: model.column(0, min(partitions, share)) for member, kind in enumerate(problem.kinds) if kind in kinds
    }
    model.equal(partitions, dict.fromkeys(given.values(), 1.0))
    return given


def _restrict(
    model: _Model,
    problem: MoveProblem,
    number: int,
    bounds: _Bounds,
    base: list[int],
    more: list[int],
    given: dict[int, int],
) -> None:
    """Let a member be assigned partitions of a class only while it has at most one more than each subscriber.

    Two switches for each kind: members with its base load may have some of the class, and those with one more may.
    """
    kinds, share = problem.classes[number].kinds, min(problem.classes[number].partitions, bounds.share[number])
    low = min(bounds.base[kind] for kind in kinds)
    least = model.column(low, bounds.floor[number], whole=True)
    usual, higher = {}, {}
    for kind in kinds:
        model.at_most(0, {least: 1.0, base[kind]: -1.0})
        span = bounds.most[kind] - low
        if span > 1:
            usual[kind] = model.column(0, 1, whole=True)
            model.at_most(span, {base[kind]: 1.0, least: -1.0, usual[kind]: span - 1.0})
        if span > 0:
            higher[kind] = model.column(0, 1, whole=True)
            model.at_most(span, {base[kind]: 1.0, least: -1.0, higher[kind]: float(span)})
    for member, column in given.items():
        kind = problem.kinds[member]
        if kind in usual:
            model.at_most(0, {column: 1.0, usual[kind]: -float(share)})
        if kind in higher:
            model.at_most(share, {column: 1.0, higher[kind]: -float(share), more[member]: float(share)})


def _keep(model: _Model, problem: MoveProblem, given: list[dict[int, int]], least_kept: int) -> None:
    """Add columns: how many of a holding each holder keeps, of the partitions that it is assigned."""
    kept: dict[int, list[int]] = {}
    for number, members, partitions in problem.holdings:
        columns = [model.column(0, partitions, cost=-1.0) for _ in members]
        model.at_most(partitions, dict.fromkeys(columns, 1.0))
        for member, column in zip(members, columns, strict=True):
            kept.setdefault(given[number][member], []).append(column)
    for assigned, columns in kept.items():
        model.at_most(0, {**dict.fromkeys(columns, 1.0), assigned: -1.0})
    model.at_most(-least_kept, {column: -1.0 for columns in kept.values() for column in columns})


def _solved(model: _Model) -> tuple[float, float] | None:
    """Run HiGHS; return the most kept that was found, and an upper bound; None: less than the model asks for.

    The two differ by less than one if the proof is complete.
    """
    highs: Any = importlib.import_module("highspy")
    program = highs.HighsLp()
    program.num_col_, program.num_row_ = len(model.cost), len(model.rows)
    program.col_cost_ = np.array(model.cost)
    program.col_lower_, program.col_upper_ = np.array(model.bounds, np.float64).T
    program.row_lower_ = np.array([low for low, _, _ in model.rows])
    program.row_upper_ = np.array([high for _, _, high in model.rows])
    matrix = program.a_matrix_
    matrix.format_ = highs.MatrixFormat.kRowwise
    matrix.start_ = np.cumsum([0, *(len(terms) for _, terms, _ in model.rows)])
    matrix.index_ = np.array([column for _, terms, _ in model.rows for column in terms])
    matrix.value_ = np.array([factor for _, terms, _ in model.rows for factor in terms.values()])
    kinds = highs.HighsVarType
    program.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in model.whole]
    solver = highs.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("mip_max_nodes", MOST_NODES),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 1 - 10 * TOLERANCE),
    ):
        solver.setOptionValue(option, value)
    solver.passModel(program)
    solver.run()
    status = solver.getModelStatus()
    if status == highs.HighsModelStatus.kInfeasible:
        return None
    if status not in (highs.HighsModelStatus.kOptimal, highs.HighsModelStatus.kSolutionLimit):
        return 0.0, math.inf  # it gave up: one group's numbers must not end the job
    found = solver.getInfo()
    any_way = found.primal_solution_status == int(highs.SolutionStatus.kSolutionStatusFeasible)
    return -found.objective_function_value if any_way else 0.0, -found.mip_dual_bound
