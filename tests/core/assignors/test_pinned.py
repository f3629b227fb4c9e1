"""Answers that stay as they are: to the first of the groups that `make parity` draws, where a real Kafka answers alike.

A digest that changes proves no mistake, but another answer: show that to `make parity` before it is pinned anew. Of the
assignors that no Kafka has, what is pinned is what their own tests found right.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache

import pytest

from groupledger.core.scenarios.solving import solve
from groupledger.core.scenarios.solving import solve_server_group as solve_on_server
from tests.core.assignors.server.scenarios import chains as server_chains
from tests.oracle.client_groups import ASSIGNORS, answerable, chains

SEED = 1
ASKED = {"transferring": True, "is_sticky": True}


def digest(results):
    text = json.dumps(list(results), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@cache
def drawn():
    return tuple(chains(SEED, 900))


@pytest.mark.parametrize(
    ("assignor", "pinned"),
    [
        ("range", "65d66f2fe3ea3b04"),
        ("roundrobin", "9fa2a84f3e984bdc"),
        ("sticky", "a75312dbc19d34fc"),
        ("cooperative-sticky", "1845a166de577fc1"),
    ],
)
def test_answers_that_kafka_gives_too(assignor, pinned):
    assert digest(solve(each | ASKED) for each in drawn() if each["assignor"] == assignor) == pinned


@pytest.mark.parametrize(
    ("assignor", "pinned"),
    [
        ("librdkafka-cooperative-sticky", "8f9e88d782fb6a9d"),
        ("constrained-cooperative-sticky", "9431810678ab4bfa"),
        ("sticky-stream-join", "ce98a3fecaed6f41"),
    ],
)
def test_answers_that_no_kafka_gives(assignor, pinned):
    assert assignor not in ASSIGNORS
    assert digest(solve(answerable(each)) for each in chains(SEED, 100, (assignor,))) == pinned


def test_targets_that_a_coordinator_writes_too():
    assert digest(map(solve_on_server, server_chains(SEED, 25))) == "4c5dd18f2c7dfd96"
