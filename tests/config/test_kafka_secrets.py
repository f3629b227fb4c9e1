"""Secrets of a Kafka client come from the environment or a file, and are hidden once they are known."""

import pytest

from groupledger.config import ConfigFault, parse
from groupledger.config.kafka_options import from_file, resolved
from groupledger.core.secrets import without_values

KAFKA = "ledger: {location: t}\nsources: [{kind: kafka, bootstrap: 'h:9092'}]"


def test_references_are_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("KAFKA_WORD", "from-the-environment")
    (tmp_path / "word").write_text("from-a-file\n")
    (tmp_path / "p.properties").write_text("a=1\nword=from-a-key\n")
    options = {
        "sasl.password": "${env:KAFKA_WORD}",
        "ssl.key.password": f"${{file:{tmp_path}/word}}",
        "ssl.keystore.password": f"${{file:{tmp_path}/p.properties:word}}",
        "client.id": "plain",
    }
    assert list(resolved(options).values()) == ["from-the-environment", "from-a-file", "from-a-key", "plain"]
    said = without_values("a from-the-environment b from-a-file c from-a-key d plain")
    assert said == "a *** b *** c *** d plain"


def test_a_secret_inside_of_a_referred_text_is_hidden_too(tmp_path):
    """A whole JAAS configuration in a file: its password alone is no more to be seen than all of it."""
    (tmp_path / "jaas").write_text('ScramLoginModule required username="u" password="word-inside-of-jaas";\n')
    found = resolved({"sasl.jaas.config": f"${{file:{tmp_path}/jaas}}"})
    assert found["sasl.jaas.config"].endswith('password="word-inside-of-jaas";')
    assert without_values("the broker said word-inside-of-jaas") == "the broker said ***"


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("${env:NO_SUCH_VARIABLE}", "variable that is not set: NO_SUCH_VARIABLE"),
        ("${file:/no/such}", "/no/such, which cannot be read"),
    ],
)
def test_a_reference_to_nothing_is_named(reference, says):
    with pytest.raises(ConfigFault, match=says) as caught:
        resolved({"sasl.password": reference})
    assert "option sasl.password" in caught.value.message


def test_a_file_without_the_key(tmp_path):
    (tmp_path / "p").write_text("a=1")
    with pytest.raises(ConfigFault, match="names the key b"):
        resolved({"sasl.password": f"${{file:{tmp_path}/p:b}}"})
    assert from_file(tmp_path / "p") == {"a": "1"}


def test_options_of_a_source_are_named_whole():
    config = parse(KAFKA, "a.yaml", ["sources.0.options.sasl.password=${env:X}", "sources.0.options.client.id=7"])
    assert config.sources[0].options == {"sasl.password": "${env:X}", "client.id": "7"}
    assert config.cluster_id is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{kind: kafka}", "sources.0.bootstrap is missing"),
        ("{kind: kafka, bootstrap: h, path: x}", "sources.0.path is 'x'; a source of kind kafka has bootstrap"),
        ("{kind: offsets-jsonl}", "sources.0.path is missing"),
        ("{kind: offsets-jsonl, path: x}", "sources.0.cluster_id is missing, and so is that of the whole file"),
        ("{kind: offsets-jsonl, path: x, bootstrap: h}", "sources.0.bootstrap stands in a source of kind offsets"),
        ("{kind: offsets-jsonl, path: x, max_records: 1}", "sources.0.max_records stands in a source of kind offsets"),
        ("{kind: kafka, bootstrap: h, timeout_seconds: 0}", "a whole number >= 1"),
        ("{kind: kafka, bootstrap: h, options: [a]}", "expected names and values"),
    ],
)
def test_what_a_source_needs(text, says):
    with pytest.raises(ConfigFault) as caught:
        parse(f"ledger: {{location: t}}\nsources: [{text}]", "a.yaml")
    assert says in caught.value.message
