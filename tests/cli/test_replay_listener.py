"""`rehearse` drives a listener over a group's recorded history, by its offset commits where there are any."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from groupledger.answers.reader import LedgerReader
from groupledger.answers.recorded_history import recorded_history
from groupledger.cli.commands import main
from groupledger.core.protocol.recorded import recorded_calls
from groupledger.listener import OffsetAndMetadata, RebalanceListener
from tests.answers.captured import ledger_of
from tests.cli.test_json_schemas import complaints

GROUP = "java-cooperative-sticky"


class Committing(RebalanceListener):
    def on_partitions_assigned(self, partitions, consumer):
        consumer.pause(partitions)

    def on_partitions_revoked(self, partitions, consumer):
        consumer.commit_sync({each: OffsetAndMetadata(1) for each in partitions})


class Greedy(Committing):
    """Seeks what it does not have."""

    def on_partitions_revoked(self, partitions, consumer):
        consumer.seek(("nowhere", 0), 1)


class Chatty(Committing):
    """Prints what it gets."""

    def on_partitions_assigned(self, partitions, consumer):
        print("assigned", partitions)  # noqa: T201 what is tested


class Forgetful(Committing):
    def on_partitions_assigned(self, partitions, consumer): ...

    def on_partitions_revoked(self, partitions, consumer): ...


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return ledger_of(tmp_path_factory.mktemp("ledger"), ["dev", "storm"])


def rehearse(place, listener, group=GROUP, *words):
    told = ["rehearse", group, "--listener", f"{__name__}:{listener}", "--ledger", place, *words]
    return CliRunner(env={"COLUMNS": "200"}).invoke(main, told)


def test_a_listener_is_replayed(place):
    done = rehearse(place, "Committing", GROUP, "--json")
    told = json.loads(done.stdout)
    history = recorded_history(LedgerReader(place), GROUP)
    assert done.exit_code == 0
    assert told["calls"] == len(list(recorded_calls(*history)))
    assert told["commits"] == 10
    assert told["did"]["pause"] > told["did"]["commit"] > 0
    assert told["errors"] == []
    assert complaints("rehearse", told) == []


def test_what_a_listener_does_wrong_is_told_and_exits_with_4(place):
    done = rehearse(place, "Greedy", GROUP, "--json")
    errors = json.loads(done.stdout)["errors"]
    assert done.exit_code == 4
    assert {error["did"] for error in errors} == {"seek", "raised IllegalStateError"}
    assert all("nowhere-0" in error["error"] for error in errors)


def test_recorded_commits_say_what_was_read(place):
    done = rehearse(place, "Forgetful")
    assert done.exit_code == 4
    assert "was read up to offset 1, and nothing is committed" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("10 offset commits")


def test_without_commits_one_record_of_each_partition_is_read(place):
    done = rehearse(place, "Forgetful", "storm")
    assert done.exit_code == 4
    assert "left uncommitted" in done.stdout
    assert done.stdout.splitlines()[-1].endswith(
        "the ledger has no offset commit of the group, so one record of each partition per generation"
    )
    assert json.loads(rehearse(place, "Forgetful", "storm", "--json").stdout)["commits"] == 0


def test_what_a_listener_prints_is_not_among_the_results(place):
    done = rehearse(place, "Chatty", GROUP, "--json")
    assert json.loads(done.stdout)["status"] == "done"
    assert "assigned" in done.stderr
