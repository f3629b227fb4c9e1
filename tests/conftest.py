"""What all tests share: the one Spark session, started by the first test that asks for it, and empty ledgers."""

from __future__ import annotations

import shutil

import pytest

from groupledger.config import SparkSettings


def pytest_collection_modifyitems(items):
    """Whatever uses the session is a Spark test: `-m "not spark"` starts no JVM, `--dist loadgroup` only one."""
    for item in items:
        if "spark" in item.fixturenames:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=lambda item: "pipeline" not in item.path.parts)  # the longest first: no session waits for them


@pytest.fixture(autouse=True)
def no_width(monkeypatch):
    """What is printed does not depend on who runs the tests: pytest-xdist gives its workers COLUMNS."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from groupledger.engine.session import session

    settings = SparkSettings(
        profile="small",  # many short jobs: neither the second compiler nor a parallel collector pays on two cores
        master="local[2]",
        driver_memory="2g",
        conf={
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
            "spark.network.timeout": "1h",  # a process that was stopped for minutes goes on as if nothing was
        },
    )
    made = session(settings, "groupledger tests")
    yield made
    made.stop()


@pytest.fixture(scope="session")
def first_ledger(spark, tmp_path_factory):
    """An empty ledger in a folder with an odd name, and the tables that `init` says it made: copied, not written to."""
    from groupledger.sinks.ledger_tables import LedgerLocation, init

    location = LedgerLocation(path=str(tmp_path_factory.mktemp("empty") / "odd `name' here"))
    return location, init(spark, location)


@pytest.fixture(scope="session")
def new_ledger(first_ledger):
    """`new_ledger(folder)`: an empty ledger there. Its tables are made once a session, and copied."""
    from groupledger.sinks.ledger_tables import LedgerLocation

    def copied(folder):
        shutil.copytree(first_ledger[0].path, folder, dirs_exist_ok=True)
        return LedgerLocation(path=str(folder))

    return copied
