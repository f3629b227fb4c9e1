"""When a kernel runs compiled: small work never waits for a compiler."""

import importlib
import pkgutil
from collections import Counter
from types import CodeType, FunctionType, ModuleType

import pytest

import groupledger.core
from groupledger.core.arrays import kernels


@kernels.kernel
def least(a: int) -> int:
    return a


@pytest.mark.parametrize(
    ("wish", "before", "cells", "expected"),
    [
        ("auto", False, kernels.WORTH_LOADING, False),
        ("auto", False, kernels.WORTH_COMPILING - 1, False),
        ("auto", False, kernels.WORTH_COMPILING, True),
        ("auto", True, kernels.WORTH_LOADING, True),
        ("python", True, 10**9, False),
        ("numba", False, 1, True),
    ],
)
def test_what_was_never_compiled_takes_much_more_work_to_be_worth_it(monkeypatch, wish, before, cells, expected):
    monkeypatch.setenv("GROUPLEDGER_KERNELS", wish)
    monkeypatch.setattr(kernels, "_compiled_before", lambda _: before)
    monkeypatch.setattr(kernels, "_INTERPRETED", Counter())
    assert kernels.runs_compiled(least, cells) is expected


def test_many_calls_of_little_work_are_worth_it_together(monkeypatch):
    """A bucket alone never is: a worker that calculates many of them would stay with the interpreter."""
    monkeypatch.setenv("GROUPLEDGER_KERNELS", "auto")
    monkeypatch.setattr(kernels, "_compiled_before", lambda _: False)
    monkeypatch.setattr(kernels, "_INTERPRETED", Counter())
    cells = kernels.WORTH_COMPILING // 3 + 1
    assert [kernels.runs_compiled(least, cells) for _ in range(4)] == [False, False, True, True]


def test_what_a_kernel_compiles_of_the_names_in_it_is_in_its_digest():
    """A name of another kind would change what is compiled, and leave the digest as it is."""
    for module in pkgutil.walk_packages(groupledger.core.__path__, "groupledger.core."):
        importlib.import_module(module.name)
    others = {
        (function.__name__, name)
        for function in kernels._KERNELS - kernels._COMPILED_AS.keys()
        for name, value in kernels._globals(function).items()
        if name in function.__code__.co_names
        and not isinstance(value, ModuleType)
        and not (isinstance(value, FunctionType) and value in kernels._KERNELS)
        and kernels._constant(value) == ""
    }
    assert others == set()
    nested = [each.__name__ for each in kernels._KERNELS for it in each.__code__.co_consts if isinstance(it, CodeType)]
    assert nested == [], "the text of a nested function has its address"


def test_a_kernel_whose_types_are_named_anew_is_compiled_anew():
    """numba cannot read a cache that names a type which is gone."""

    def least(a: int) -> int:
        return a

    least.__annotations__ = least.__annotations__ | {"a": "Former"}
    former = kernels._digest.__wrapped__(least)
    least.__annotations__ = least.__annotations__ | {"a": "Latter"}
    assert kernels._digest.__wrapped__(least) != former
