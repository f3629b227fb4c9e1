"""Small wrong changes to source text: each one comparison, sum, number, condition or unary sign at a time.

mutmut 3 runs every mutant or those of named functions and rewrites functions into trampolines, through which the
kernels' own lookup of their callees does not see; it cannot draw by seed. Hence this: a change is a span of text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

SWAPPED: dict[type[ast.AST], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "&",
    ast.And: "or",
    ast.Or: "and",
}

Spanned = ast.expr | ast.stmt


@dataclass(frozen=True, slots=True)
class Mutant:
    """Replace `old`, which begins at `offset` of the encoded source, by `new`."""

    line: int
    offset: int
    old: str
    new: str

    def applied(self, source: bytes) -> bytes:
        """The mutated source."""
        return source[: self.offset] + self.new.encode() + source[self.offset + len(self.old.encode()) :]


def mutants(source: bytes, *, wide: bool = False) -> list[Mutant]:
    """Every mutant of a file, in the order of the text.

    `wide`: also without a statement that calls, raises, returns nothing or writes to an object, and with a condition
    that is a name or a call turned round; for code that acts more than it counts.
    """
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = _Finder(source, starts, wide).of(ast.parse(source))
    return sorted(found, key=lambda each: (each.offset, each.new))


def statement_at(source: bytes, line: int) -> int | None:
    """The line at which the innermost statement around a line begins; None where it runs when the file is loaded."""
    statements = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.stmt)]
    around = [each for each in statements if each.lineno <= line <= (each.end_lineno or each.lineno)]
    innermost = max(around, key=lambda each: each.lineno)
    inside = any(isinstance(each, ast.FunctionDef) and each is not innermost for each in around)
    return innermost.lineno if inside else None


@dataclass(frozen=True, slots=True)
class _Finder:
    source: bytes
    starts: list[int]
    wide: bool

    def of(self, tree: ast.AST) -> Iterator[Mutant]:
        """What no test can see is left alone: annotations, decorators, asserts, `strict=` of zip, the one element
        more of a work array, and `cells=`, which only decides whether a kernel is worth compiling."""
        yield from self._here(tree)
        if self.wide:
            yield from self._widely(tree)
        for name, value in ast.iter_fields(tree):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _unseen(child) and not _is_room(tree, child):
                    yield from self.of(child)

    def _here(self, node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for at, operator in enumerate(node.ops):
                yield from self._operator(operands[at], operator, operands[at + 1])
        elif isinstance(node, ast.BinOp):
            yield from self._operator(node.left, node.op, node.right)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self._operator(left, node.op, right)
        elif isinstance(node, ast.AugAssign):
            yield from self._operator(node.target, node.op, node.value)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            sign = "not" if isinstance(node.op, ast.Not) else "-"
            yield self._mutant(self._at(node), self._at(node) + len(sign), "")
        elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
            new = str(node.value + 1) if type(node.value) is int else str(not node.value)
            yield self._mutant(self._at(node), self._end(node), new)
        elif isinstance(node, ast.Break | ast.Continue):
            new = "continue" if isinstance(node, ast.Break) else "break"
            yield self._mutant(self._at(node), self._end(node), new)

    def _widely(self, node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.stmt) and _acts(node):
            yield self._mutant(self._at(node), self._end(node), "pass")
        condition = getattr(node, "test", None)
        for each in [*([condition] if condition else []), *getattr(node, "ifs", ())]:
            if isinstance(each, ast.Name | ast.Attribute | ast.Call):
                text = self.source[self._at(each) : self._end(each)].decode()
                yield self._mutant(self._at(each), self._end(each), f"(not {text})")

    def _operator(self, left: ast.expr, operator: ast.AST, right: ast.expr) -> Iterator[Mutant]:
        """The operator's own text lies between the operands, beside brackets and blanks."""
        new = SWAPPED.get(type(operator))
        first, last = self._end(left), self._at(right)
        words = self.source[first:last].decode()
        old = words.strip(" ()\n")
        if new is None or not old or words.count(old) != 1 or "#" in words:
            return
        at = first + len(words[: words.index(old)].encode())
        yield self._mutant(at, at + len(old.encode()), new + "=" if old.endswith("=") and _sum(operator) else new)

    def _at(self, node: Spanned) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def _end(self, node: Spanned) -> int:
        assert node.end_lineno is not None  # a parsed tree has both
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def _mutant(self, first: int, last: int, new: str) -> Mutant:
        line = self.source.count(b"\n", 0, first) + 1
        return Mutant(line, first, self.source[first:last].decode(), new)


def _acts(node: ast.stmt) -> bool:
    """A statement without which a function still runs."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Yield | ast.YieldFrom)
    if isinstance(node, ast.Assign):
        return all(isinstance(each, ast.Attribute | ast.Subscript) for each in node.targets)
    return isinstance(node, ast.Raise | ast.Delete) or (isinstance(node, ast.Return) and node.value is None)


def _sum(operator: ast.AST) -> bool:
    """Arithmetic, which an augmented assignment may hold (`+=`); a comparison's `<=` is a whole operator."""
    return isinstance(operator, ast.operator)


def _is_room(call: ast.AST, size: ast.AST) -> bool:
    """`n + 1` in `np.zeros(n + 1, ..)`: a work array that is one longer holds as much."""
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args[:1] == [size]):
        return False
    is_sum = isinstance(size, ast.BinOp) and isinstance(size.op, ast.Add) and isinstance(size.right, ast.Constant)
    return is_sum and call.func.attr in ("zeros", "empty")


def _unseen(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Assert) or (isinstance(node, ast.keyword) and node.arg in ("strict", "cells"))
