"""Places at which a ledger would be in pieces, or gone with the session, are refused before anything is made."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from groupledger.config import LedgerSettings
from groupledger.sinks import ledger_tables
from groupledger.sinks.ledger_tables import require_lasting_catalog, require_reachable
from groupledger.sinks.location import LedgerFault, LedgerLocation

LOCAL = ["local", "local[*]", "local-cluster[2,1,1024]"]
CLUSTERS = ["spark://head:7077", "yarn", "k8s://https://api:6443", "mesos://m:5050"]


def session(master="local[2]", file_system="file:///", catalog="in-memory", **more):
    """A session as far as it is asked for its place."""
    hadoop = SimpleNamespace(get=lambda name: file_system)
    told = {"spark.sql.catalogImplementation": catalog}
    return SimpleNamespace(
        sparkContext=SimpleNamespace(master=master),
        _jvm=object(),
        _jsc=SimpleNamespace(hadoopConfiguration=lambda: hadoop),
        conf=SimpleNamespace(get=lambda name, default=None: told.get(name, default)),
        **more,
    )


@pytest.mark.parametrize("master", CLUSTERS)
@pytest.mark.parametrize("path", ["/data/ledger", "file:///data/ledger", "file:/data/ledger"])
def test_a_local_folder_is_no_place_for_executors_of_other_machines(master, path):
    with pytest.raises(LedgerFault) as refused:
        require_reachable(session(master), LedgerLocation(path=path))
    assert refused.value.code == "LOCAL_LEDGER"
    assert f"a folder of this machine, and Spark's executors run on others (master {master})" in str(refused.value)
    assert "set ledger.shared: true" in str(refused.value)


@pytest.mark.parametrize(
    ("spark", "location"),
    [
        *((session(master), LedgerLocation(path="/data/ledger")) for master in LOCAL),
        *((session(CLUSTERS[0]), LedgerLocation(path=path)) for path in ("s3a://lake/ledger", "hdfs://n/ledger")),
        (session(CLUSTERS[0], "hdfs://n"), LedgerLocation(path="/ledger")),
        (session(CLUSTERS[0]), LedgerLocation(path="/nfs/ledger", shared=True)),
        (session(CLUSTERS[0]), LedgerLocation(catalog="main.ledger")),
        (SimpleNamespace(), LedgerLocation(path="/of/the/connect/server")),
    ],
)
def test_other_places_are_taken(spark, location):
    require_reachable(spark, location)


def test_the_configuration_says_that_a_mount_is_shared():
    assert LedgerLocation.of(LedgerSettings(location="/nfs/l", shared=True)).shared
    assert not LedgerLocation.of(LedgerSettings(location="/nfs/l")).shared


@pytest.mark.parametrize("opened", [ledger_tables.init, ledger_tables.check_for_writing])
def test_it_is_refused_before_anything_is_asked_of_spark(opened):
    with pytest.raises(LedgerFault, match="a folder of this machine"):
        opened(session("yarn"), LedgerLocation(path="/data/ledger"))


@pytest.mark.parametrize("catalog", ["kl", "spark_catalog.kl"])
def test_a_catalog_in_memory_ends_with_the_session(catalog):
    with pytest.raises(LedgerFault) as refused:
        require_lasting_catalog(session(), LedgerLocation(catalog=catalog))
    assert refused.value.code == "CATALOG_IN_MEMORY"
    assert f"ledger.catalog is {catalog}, and this Spark's catalog is in memory" in str(refused.value)


def test_other_catalogs_last():
    require_lasting_catalog(session(catalog="hive"), LedgerLocation(catalog="kl"))
    require_lasting_catalog(session(), LedgerLocation(catalog="main.kl"))
    require_lasting_catalog(session(), LedgerLocation(path="/data/ledger"))


def test_names_with_hyphens_are_quoted():
    assert LedgerLocation(catalog="my-lake.kafka-ledger").schema == "`my-lake`.`kafka-ledger`"
