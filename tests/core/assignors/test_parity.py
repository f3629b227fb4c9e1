"""List for list what Kafka answers to all recorded groups, interpreted and compiled; `make parity` draws more."""

from __future__ import annotations

import functools
from collections import Counter

import pytest

from groupledger.core.arrays import kernels
from groupledger.core.scenarios.solving import solve
from tests.core.assignors.golden import PROFILES, pairs

SAMPLE = 17


@pytest.fixture(params=["python", "numba"])
def running(request, monkeypatch):
    monkeypatch.setenv("GROUPLEDGER_KERNELS", request.param)
    return request.param


def differences(profile, step):
    return [scenario["id"] for scenario, result in pairs(profile, step) if solve(scenario) != result]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_sample_equals_kafka_list_for_list(profile, running):
    assert differences(profile, SAMPLE) == []


@pytest.mark.parity
@pytest.mark.parametrize("profile", PROFILES)
def test_all_pairs_equal_kafka_list_for_list(profile, running):
    assert differences(profile, 1) == []


def test_the_pairs_are_all_there():
    assert sum(1 for profile in PROFILES for _ in pairs(profile)) == 4_960


def test_a_tiny_group_does_not_load_the_compiler(monkeypatch):
    monkeypatch.setenv("GROUPLEDGER_KERNELS", "auto")
    monkeypatch.setattr(kernels, "compiled", functools.cache(lambda function: pytest.fail("compiled")))
    monkeypatch.setattr(kernels, "_INTERPRETED", Counter())  # of other tests, on a machine that compiled nothing yet
    scenario, result = next(pairs("homog"))
    assert solve(scenario) == result
