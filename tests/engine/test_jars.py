"""Jars: what is listed is what there is, and nothing half fetched ever counts. Ivy is replaced, no network is used."""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from groupledger.core.faults import Fault
from groupledger.engine import jars
from groupledger.engine.jars import JarsFault

CONTENT = b"a jar"
LISTED = {"delta": {"a-1.jar": hashlib.sha256(CONTENT).hexdigest(), "b-2.jar": hashlib.sha256(CONTENT).hexdigest()}}


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """An empty root, a list of two jars, and an Ivy that delivers what `shelf.delivers` holds."""

    class Shelf:
        root = tmp_path / "jars"
        delivers = dict.fromkeys(LISTED["delta"], CONTENT)
        calls = 0

    def retrieve(confs, into, _home):
        Shelf.calls += 1
        for conf in confs:
            (into / conf).mkdir()
            for name, content in Shelf.delivers.items():
                (into / conf / name).write_bytes(content)

    monkeypatch.setattr(jars, "_listed", lambda: LISTED)
    monkeypatch.setattr(jars, "_retrieve", retrieve)
    monkeypatch.setattr(jars, "java", lambda: Path("java"))
    return Shelf


def test_jars_are_fetched_once_and_sorted(shelf):
    first = jars.ensure(["delta"], shelf.root)
    assert [jar.name for jar in first] == ["a-1.jar", "b-2.jar"]
    assert all(jar.read_bytes() == CONTENT for jar in first)
    assert jars.ensure(["delta"], shelf.root) == first
    assert shelf.calls == 1
    assert jars.class_path("delta", shelf.root) == ":".join(str(jar) for jar in first)


@pytest.mark.parametrize(
    "delivers",
    [
        {"a-1.jar": CONTENT},
        {"a-1.jar": CONTENT, "b-2.jar": b"cut"},
        {"a-1.jar": CONTENT, "b-2.jar": CONTENT, "c.jar": b""},
    ],
)
def test_what_is_not_listed_is_refused_and_leaves_nothing(shelf, delivers):
    shelf.delivers = delivers
    with pytest.raises(JarsFault) as raised:
        jars.ensure(["delta"], shelf.root)
    assert raised.value.code == "JARS_DIFFER"
    assert [path for path in shelf.root.rglob("*") if path.is_file()] == []


def test_a_jar_taken_away_later_is_named(shelf):
    taken = jars.ensure(["delta"], shelf.root)[1]
    taken.unlink()
    with pytest.raises(JarsFault, match=r"b-2\.jar is missing"):
        jars.ensure(["delta"], shelf.root)


def test_another_process_that_was_faster_wins(shelf, tmp_path):
    theirs = jars.home(shelf.root) / "delta"
    made = tmp_path / "made"
    for folder, content in ((theirs, CONTENT), (made, b"ours")):
        folder.mkdir(parents=True)
        (folder / "a-1.jar").write_bytes(content)
    jars._adopt(made, theirs)
    assert (theirs / "a-1.jar").read_bytes() == CONTENT
    assert not made.exists()


def test_an_unknown_set_is_named():
    brokers = "broker, broker-kafka3, broker-kafka40, broker-kafka42"
    there = f"{brokers}, connect, delta, delta-4.0, delta-4.1, delta-4.2, kafka-source, .*, oracle, streams"
    with pytest.raises(JarsFault, match=f"no set of jars is called 'hive'; there are: {there}"):
        jars.ensure(["hive"])


def test_no_network_is_one_line_that_says_where_to_put_the_jars(tmp_path, monkeypatch):
    settings = tmp_path / "settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="m"/><resolvers>'
        f'<filesystem name="m"><artifact pattern="{tmp_path}/none/[artifact]"/></filesystem></resolvers></ivysettings>',
        encoding="ascii",
    )
    monkeypatch.setenv(jars.SETTINGS_VARIABLE, str(settings))
    with pytest.raises(JarsFault) as raised:
        jars.ensure(["delta"], tmp_path / "jars")
    assert raised.value.code == "JARS_UNAVAILABLE"
    assert "module not found: io.delta#" in raised.value.message
    assert str(jars.home(tmp_path / "jars")) in raised.value.message
    assert "\n" not in raised.value.message


def test_the_root_is_the_variable_else_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(jars.ROOT_VARIABLE, str(tmp_path / "named"))
    assert jars.home().parent == tmp_path / "named"
    monkeypatch.delenv(jars.ROOT_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert jars.home().parent == tmp_path / "cache" / "groupledger" / "jars"


def test_the_list_holds_every_pin_and_nothing_that_spark_has():
    pins = ElementTree.parse(Path(jars.__file__).with_name("ivy.xml")).iter("dependency")  # noqa: S314 our own file
    listed = jars._listed()
    for pin in pins:
        for conf in pin.attrib["conf"].split("->")[0].split(","):
            assert f"{pin.attrib['name']}-{pin.attrib['rev']}.jar" in listed[conf]
    sparks = {jar.name.rsplit("-", 1)[0] for jar in jars.spark_jars().glob("*.jar")}
    assert len(sparks) > 100
    for conf in ("delta", "kafka-source"):
        assert sparks.isdisjoint(name.rsplit("-", 1)[0] for name in listed[jars.jar_set(conf)])


@pytest.mark.parametrize("version", ["4.0.2", "4.1.1", "4.2.0"])
def test_delta_is_the_one_for_the_spark_here(monkeypatch, version):
    monkeypatch.setattr(jars, "spark_version", lambda: version)
    minor = version.rpartition(".")[0]
    assert [jars.jar_set(conf) for conf in jars.configurations()] == [
        *(
            "broker",
            "broker-kafka3",
            "broker-kafka40",
            "broker-kafka42",
            "connect",
            f"delta-{minor}",
            f"kafka-source-{minor}",
            "oracle",
            "streams",
        )
    ]
    assert jars.jar_set("delta-4.0") == "delta-4.0"


def test_for_a_spark_without_a_delta_no_jar_is_fetched(monkeypatch, tmp_path):
    monkeypatch.setattr(jars, "spark_version", lambda: "4.3.0")
    monkeypatch.setattr(jars, "_retrieve", lambda *_: pytest.fail("fetched jars"))
    with pytest.raises(Fault, match=r"this is pyspark 4\.3\.0; expected 4\.0 or newer, below 4\.3"):
        jars.ensure(["delta"], tmp_path)
