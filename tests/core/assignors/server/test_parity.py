"""Every recorded pair of Kafka's own server-side assignors, sets and record order."""

import pytest

from groupledger.core.assignors.server import iteration_orders
from groupledger.core.assignors.server.java_collections import HashedKey, JavaTable
from groupledger.core.assignors.server.orders import table_size
from groupledger.core.assignors.server.server_batch import assign, path_word, written
from groupledger.core.assignors.server.server_group import encode
from groupledger.core.scenarios.solving import read, solve_server_group
from tests.core.assignors.golden import gold

RECORDED = ("server-homog", "server-hetero", "server-chain")


def differences(pairs):
    """Ids of the pairs that one batch a kind of assignor answers otherwise than Kafka."""
    wrong = []
    for name in ("range", "uniform"):
        mine = [pair for pair in pairs if pair["scenario"]["assignor"] == f"server-{name}"]
        batch, names = encode([read(pair["scenario"]) for pair in mine])
        result = assign(name, batch)
        for group, pair in enumerate(mine):
            records = written(batch, names, result, group)
            order = {member: [[topic, each] for topic, each in record] for member, record in records.items()}
            same = order == pair["result"]["order"] and path_word(result.path, group) == pair["result"]["path"]
            wrong += [] if same else [pair["scenario"]["id"]]
    return wrong


@pytest.mark.parity
@pytest.mark.parametrize("name", RECORDED)
def test_all_recorded_pairs_are_equal(name):
    pairs = gold(name)
    assert len(pairs) in (600, 1000)
    assert differences(pairs) == []


@pytest.mark.parametrize("kernels", ["python", "numba"])
def test_compiled_and_plain_answer_alike(kernels, monkeypatch):
    monkeypatch.setenv("GROUPLEDGER_KERNELS", kernels)
    assert differences([pair for name in RECORDED for pair in gold(name)[::25]]) == []


def test_joining_members_and_tables_that_were_larger_are_equal():
    pairs = gold("server-live")
    assert differences(pairs) == []
    assert sum(pair["scenario"].get("joining") is not None for pair in pairs) >= 40


def test_who_joined_and_who_left_is_needed():
    """The same pairs without `joining` and `history` are not all equal: both are inputs, not ornaments."""
    pairs = gold("server-live")
    for pair in pairs:
        pair["scenario"] |= {"joining": None, "history": None}
    assert differences(pairs) != []


def test_trees_are_emulated(monkeypatch):
    kept = iteration_orders.record
    monkeypatch.setattr(iteration_orders, "record", lambda *given: kept(*given)[::-1])
    assert differences(gold("server-live")[:12]) != []
    monkeypatch.undo()
    assert differences(gold("server-live")[:12]) == []


@pytest.mark.parametrize("name", RECORDED)
def test_solve_answers_the_whole_result(name):
    for pair in gold(name)[::50]:
        assert solve_server_group(pair["scenario"]) == pair["result"]


def test_java_tables_are_walked_as_java_walks_them():
    trees = 0
    for each in gold("java-tables"):
        table = JavaTable(table_size(each["capacity"]))
        for change, hashed, rank in each["ops"]:
            if change == "p":
                table.put(HashedKey(hashed, rank, rank))
            elif change == "c":
                table.compute_if_absent(HashedKey(hashed, rank, rank))
            else:
                table.remove(rank)
        assert list(table) == each["walk"]
        trees += any(bucket.is_tree() for bucket in table.buckets.values())
    assert trees > 100
