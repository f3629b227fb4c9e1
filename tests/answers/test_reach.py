"""From when to when a ledger knows anything: what runs that were not committed wrote is left out."""

from datetime import timedelta

import pytest

from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import known, newest, reaches
from groupledger.core.faults import Fault
from tests.answers.ledgers import MOMENT, write


def snapshot(cluster, minute, attempt="a"):
    place = {"cluster_id": cluster, "group_id": "pay", "snapshot_id": f"log/{cluster}/0/{minute}", "source": "log"}
    at = MOMENT + timedelta(minutes=minute)
    return place | {"log_partition": 0, "offset": max(0, minute), "observed_at": at, "attempt_id": attempt}


def minutes(found):
    return {cluster: tuple((at - MOMENT) // timedelta(minutes=1) for at in both) for cluster, both in found.items()}


CASES = {
    "all committed": ([], {"dev": (1, 5), "edge": (3, 9)}),
    "a dead run wrote the last record": ([snapshot("dev", 7, "dead")], {"dev": (1, 5), "edge": (3, 9)}),
    "a dead run wrote the first one": ([snapshot("edge", 0, "dead")], {"dev": (1, 5), "edge": (3, 9)}),
    "a dead run wrote between them": ([snapshot("edge", 4, "dead")], {"dev": (1, 5), "edge": (3, 9)}),
    "a dead run wrote of a third cluster": ([snapshot("new", 4, "dead")], {"dev": (1, 5), "edge": (3, 9)}),
}
WRITTEN = [snapshot("dev", 1), snapshot("dev", 2), snapshot("dev", 5), snapshot("edge", 3), snapshot("edge", 9)]


@pytest.mark.parametrize(("more", "found"), CASES.values(), ids=CASES)
def test_reach(tmp_path, more, found):
    reader = LedgerReader(write(tmp_path, group_snapshots=WRITTEN + more))
    assert minutes(reaches(reader, [])) == found
    assert minutes(reaches(reader, ["dev"])) == {"dev": found["dev"]}
    assert newest(reader) == MOMENT + timedelta(minutes=9)
    assert newest(reader, "dev") == MOMENT + timedelta(minutes=5)


@pytest.mark.parametrize("written", [[], [snapshot("dev", 1, "dead")]], ids=["empty", "of a dead run"])
def test_a_ledger_that_knows_nothing(tmp_path, written):
    reader = LedgerReader(write(tmp_path, group_snapshots=written))
    assert (reaches(reader, []), known(reader).newest) == ({}, None)
    with pytest.raises(Fault) as raised:
        newest(reader)
    assert raised.value.code == "EMPTY_LEDGER"
