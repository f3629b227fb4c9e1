"""Configuration: what is read, and that every complaint names the key, the place and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupledger.config import Config, ConfigFault, LedgerSettings, SourceSettings, load, parse
from groupledger.config.loading import TEMPLATE, entries, page
from groupledger.config.settings import OFFSETS
from groupledger.core.secrets import without_secrets
from tests.pages import blocks

ROOT = Path(__file__).parent.parent.parent
LEAST = "cluster_id: c\nledger: {location: tables}\n"


def test_the_least_configuration_takes_every_default():
    assert parse(LEAST, "a.yaml") == Config(cluster_id="c", ledger=LedgerSettings(location="tables"))


@pytest.mark.parametrize(
    ("overrides", "read", "expected"),
    [
        (["assign.snapshots=every"], lambda c: c.assign.snapshots, "every"),
        (["assign.mode=kip", "assign.mode=as-kafka"], lambda c: c.assign.mode, "as-kafka"),
        (["buckets=8"], lambda c: c.buckets, 8),
        (["buckets=8", "buckets=null"], lambda c: c.buckets, None),
        (["ledger.location=a=b"], lambda c: c.ledger.location, "a=b"),
        (["spark.conf.spark.sql.shuffle.partitions=4"], lambda c: c.spark.conf, {"spark.sql.shuffle.partitions": "4"}),
        (["spark.conf.spark.ui.enabled=true"], lambda c: c.spark.conf, {"spark.ui.enabled": "true"}),
        (
            ["sources.0.kind=topics-jsonl", "sources.0.path=x"],
            lambda c: c.sources,
            (SourceSettings(kind="topics-jsonl", path="x"),),
        ),
        (["limits={max_quarantined: 3}"], lambda c: c.limits.max_quarantined, 3),
        (["sources="], lambda c: c.sources, ()),
    ],
)
def test_an_override_replaces_one_key(overrides, read, expected):
    assert read(parse(LEAST, "a.yaml", overrides)) == expected


def test_custom_assignors_are_those_that_are_named_once_each():
    overrides = ["assign.overrides.0={groups: a, assignor: 'm.n:f'}", "assign.overrides.1={groups: b, assignor: range}"]
    assert parse(LEAST, "a.yaml", overrides).assign.custom_assignors == ("m.n:f",)
    both = parse(
        LEAST, "a.yaml", [*overrides, "assign.assignor=m:f", "assign.overrides.2={groups: c, assignor: 'm:f'}"]
    )
    assert both.assign.custom_assignors == ("m.n:f", "m:f")


def test_columns_are_said_by_field_and_are_no_secrets():
    text = LEAST + "sources: [{kind: offsets-delta, path: a, columns: {key: kafka_key, offset: meta.offset}}]"
    config = parse(text, "a.yaml", ["sources.0.columns.partition='1'", "sources.0.columns.key=k"])
    assert config.sources[0].columns == {"key": "k", "offset": "meta.offset", "partition": "1"}
    assert without_secrets("kafka_key is read from k by offset") == "kafka_key is read from k by offset"


def test_a_later_source_is_appended_and_an_earlier_one_changed():
    text = LEAST + "sources: [{kind: offsets-jsonl, path: a}]"
    config = parse(text, "a.yaml", ["sources.0.path=b", "sources.1={kind: snapshots, path: c, format: csv}"])
    assert config.sources == (
        SourceSettings(kind="offsets-jsonl", path="b"),
        SourceSettings(kind="snapshots", path="c", format="csv"),
    )


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("clusterid: x", "clusterid", "did you mean cluster_id? allowed: cluster_id, ledger"),
        (LEAST + "assign: {asignor: range}", "assign.asignor", "did you mean assignor?"),
        (
            LEAST + "assign: {assignor: rnge}",
            "assign.assignor",
            "is 'rnge'; did you mean range? expected one of recorded",
        ),
        (LEAST + "assign: {assignor: 'a b:c'}", "assign.assignor", "or module:function, or an entry point"),
        (LEAST + "assign: {overrides: [{groups: a}]}", "assign.overrides.0.assignor", "is missing"),
        (LEAST + "assign: {scenario: A b}", "assign.scenario", "up to 64 of"),
        (LEAST + "assign: {scenario: recorded, assignor: range}", "assign.scenario", "runs no assignor"),
        (LEAST + "assign: {carried: true, scenario: x}", "assign.snapshots", "expected every"),
        (LEAST + "assign: {carried: true, snapshots: every}", "assign.scenario", "expected another name"),
        (LEAST + "assign: [1]", "assign", "expected keys: assignor"),
        (LEAST + "sources: {kind: a}", "sources", "expected a list"),
        (LEAST + "sources: [{kind: kinesis, path: x}]", "sources.0.kind", "one of offsets-jsonl"),
        (LEAST + "sources: [{kind: snapshots, path: ''}]", "sources.0.path", "not empty"),
        (
            LEAST + "sources: [{kind: offsets-delta, path: x, columns: {ofset: a}}]",
            "sources.0.columns.ofset",
            "is not a key; did you mean offset? allowed: partition, offset,",
        ),
        (LEAST + "sources: [{kind: offsets-delta, path: x, columns: [a]}]", "sources.0.columns", "names and values"),
        (
            LEAST + "sources: [{kind: offsets-delta, path: x, columns: {key: a, value: a}}]",
            "sources.0.columns.value",
            "is 'a', and so is key; expected a column for each",
        ),
        (LEAST + "sources: [{kind: offsets-jsonl, path: x, columns: {key: ''}}]", "sources.0.columns.key", "is empty"),
        *(
            (
                LEAST + f"sources: [{{kind: offsets-jsonl, path: x, columns: {{offset: {text}}}}}]",
                "sources.0.columns.offset",
                f"expected a text: YAML reads {words} as no text unless quoted, write '{quoted}'",
            )
            for text, words, quoted in (
                ("off", "off, no and false", "off"),
                ("no", "off, no and false", "off"),
                ("yes", "on, yes and true", "on"),
                ("7", "it", "7"),
                ("2026-01-01", "it", "2026-01-01"),
            )
        ),
        ("cluster_id: 7\nledger: {location: l}", "cluster_id", "YAML reads it as no text unless quoted, write '7'"),
        ("cluster_id: no\nledger: {location: l}", "cluster_id", "unless quoted, write 'off'"),
        ("cluster_id: a\nledger: {catalog: a b}", "ledger.catalog", "each of letters, digits, _ and -"),
        (
            LEAST + "sources: [{kind: kafka, bootstrap: a, columns: {key: b}}]",
            "sources.0.columns",
            "expected it under offsets-jsonl, offsets-parquet, offsets-delta, offsets-table and snapshots only",
        ),
        (
            LEAST + "sources: [{kind: topics-jsonl, path: x, offset_commits: true}]",
            "sources.0.offset_commits",
            "stands in a source of kind topics-jsonl; expected it under offsets-jsonl, offsets-parquet, offsets-delta, "
            "offsets-table, kafka and segments only",
        ),
        (LEAST + "sources: [{kind: offsets-table}]", "sources.0.table", "is missing; expected its name in the session"),
        (
            LEAST + "sources: [{kind: offsets-delta, table: a.b}]",
            "sources.0.table",
            "it under offsets-table and snapshots only",
        ),
        (LEAST + "sources: [{kind: offsets-table, table: a, path: b}]", "sources.0.path", "has table instead"),
        (LEAST + "sources: [{kind: offsets-delta}]", "sources.0.path", "is missing; expected a file or folder"),
        (LEAST + "limits: {max_id_bytes: 0}", "limits.max_id_bytes", "a whole number >= 1"),
        (LEAST + "limits: {max_id_bytes: true}", "limits.max_id_bytes", "is True"),
        (LEAST + "limits: {max_id_bytes: 1.5}", "limits.max_id_bytes", "is 1.5"),
        (LEAST + "spark: {driver_memory: 2 GB}", "spark.driver_memory", "as in 2g"),
        (LEAST + "spark: {master: yarn}", "spark.master", "local[N]"),
        (LEAST + "spark: {conf: {a: [1]}}", "spark.conf.a", "a text, a number"),
        (LEAST + "spark: {conf: 1}", "spark.conf", "expected names and values"),
        (LEAST + "buckets: 0", "buckets", "a whole number >= 1 or null"),
        (LEAST + "1: 2", "1", "is not a key"),
        ("cluster_id: c\nledger: {}", "ledger", "has neither of location and catalog"),
        ("cluster_id: c\nledger: {location: a, catalog: b}", "ledger", "has both"),
        ("- a", "the top level", "expected keys: cluster_id"),
        ("", "ledger", "has neither"),
    ],
)
def test_a_bad_value_is_named(text, key, says):
    with pytest.raises(ConfigFault) as raised:
        parse(text, "conf/a.yaml")
    assert raised.value.code == ("UNKNOWN_ASSIGNOR" if key == "assign.assignor" else "CONFIG_INVALID")
    assert raised.value.message.startswith(f"conf/a.yaml: {key} ")
    assert says in raised.value.message
    assert "\n" not in raised.value.message


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("assign", "expected key=value"),
        ("=1", "expected key=value"),
        ("assign.mode=kap", "assign.mode is 'kap'"),
        ("cluster_id.x=1", "has no key 'x' below it"),
        ("sources.1.path=x", "expected 0 to 0"),
        ("sources.first.path=x", "sources is {'first'"),
        ("buckets=[", "not YAML"),
    ],
)
def test_a_bad_override_is_named_and_no_other(override, says):
    with pytest.raises(ConfigFault) as raised:
        parse(LEAST, "a.yaml", ["limits.max_quarantined=7", override])
    assert f"--set {override}" in raised.value.message
    assert "max_quarantined" not in raised.value.message
    assert says in raised.value.message


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, "CONFIG_MISSING"), (b"\xff\xfe\x00", "CONFIG_MISSING"), (b"a: [", "CONFIG_SYNTAX")],
)
def test_a_file_that_cannot_be_read_is_one_line(tmp_path, content, code):
    path = tmp_path / "a.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigFault) as raised:
        load(path)
    assert raised.value.code == code
    assert str(path) in raised.value.message
    assert "\n" not in raised.value.message


@pytest.mark.parametrize("file", [TEMPLATE, ROOT / "conf" / "cluster.yaml"], ids=lambda path: path.name)
def test_the_example_configurations_load(file):
    assert load(file).cluster_id


def test_the_template_names_and_explains_every_key():
    text = " ".join(TEMPLATE.read_text(encoding="utf-8").replace("#", " ").split())
    for entry in entries():
        assert f"{entry.name.split('.')[-1]}:" in text
        assert entry.doc in text, f"template.yaml does not say of {entry.name}: {entry.doc}"


def test_every_block_of_the_page_on_tables_can_be_copied():
    found = blocks((ROOT / "docs" / "operate/read-tables.md").read_text(encoding="utf-8"), "yaml")
    kinds = {source.kind for block in found for source in parse(block, "docs/operate/read-tables.md").sources}
    assert kinds == {*OFFSETS, "snapshots"}


def test_the_blocks_of_the_page_on_clusters_can_be_copied():
    whole, *parts = blocks((ROOT / "docs" / "operate/run-on-spark.md").read_text(encoding="utf-8"), "yaml")
    assert parse(whole, "docs/operate/run-on-spark.md").spark.profile == "cluster"
    assert all(parse(f"cluster_id: c\n{part}", "docs/operate/run-on-spark.md") for part in parts)


def test_the_configuration_page_is_the_declaration():
    written = (ROOT / "docs" / "reference/configuration.md").read_text(encoding="utf-8")
    assert written == page(), "python -m groupledger.config.loading > docs/reference/configuration.md"
