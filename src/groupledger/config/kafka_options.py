"""Convert options of a Kafka client, in the spelling of Kafka's Java tools or of librdkafka, to librdkafka's."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from groupledger.config.settings import ConfigFault
from groupledger.core.faults import Fault
from groupledger.core.secrets import is_secret, remember, secrets_in

OURS = {
    "bootstrap.servers": "sources[].bootstrap",
    "metadata.broker.list": "sources[].bootstrap",
    "group.id": "the reader, which never joins a group",
    "group.instance.id": "the reader, which never joins a group",
    "enable.auto.commit": "the reader, which never commits",
    "enable.auto.offset.store": "the reader, which never commits",
    "enable.partition.eof": "the reader, which stops at the end",
    "auto.offset.reset": "the reader, which passes over nothing",
    "isolation.level": "the reader, which takes the log as it is",
    "allow.auto.create.topics": "the reader, which never writes",
}
"""Options that a user may not set, and who sets them."""
_JAVA_ONLY = frozenset(
    {
        *("key.deserializer", "value.deserializer", "key.serializer", "value.serializer"),
        *("default.api.timeout.ms", "request.timeout.ms", "ssl.enabled.protocols", "ssl.protocol"),
        *("ssl.truststore.password", "ssl.truststore.type", "ssl.keystore.type", "sasl.jaas.config"),
    }
)
_RENAMED = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_JAVA_NAMES = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
_VERIFIES = "enable.ssl.certificate.verification"
_CLIENT_ONLY = frozenset(
    {"sasl.username", "sasl.password", "ssl.certificate.location", "ssl.key.location", "bootstrap.servers", _VERIFIES}
)
_PORT, _MOST_PORTS = 9092, 65_535
_SERVER = re.compile(r"(?:(\w+)://)?(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+)(?::([0-9]+))?")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_QUOTED = re.compile(r'["\\]')
_JAAS = re.compile(r"\.(?:Plain|Scram)LoginModule\b")
_JAAS_VALUE = re.compile(r"\b(username|password)\s*=\s*(?:\"((?:\\.|[^\"\\])*)\"|'((?:\\.|[^'\\])*)'|([^\s;\"']+))")
_PAIR = re.compile(r"((?:\\.|[^\\:=\s])*)\s*[:=]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def properties(text: str) -> dict[str, str]:
    """Parse a Java properties file, such as Kafka's tools take with `--command-config`."""
    found = {}
    lines = iter(text.splitlines())
    for line in lines:
        entry = line.lstrip()
        if entry[:1] in ("", "#", "!"):
            continue
        while (len(entry) - len(entry.rstrip("\\"))) % 2:
            entry = entry[:-1] + next(lines, "").lstrip()
        match = _PAIR.fullmatch(entry)
        assert match is not None, "the expression takes any text"
        found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def bootstrap_servers(text: str, options: Mapping[str, str]) -> str:
    """Normalise a list of addresses. Raises Fault KAFKA_OPTION for what a client would misread.

    librdkafka takes port 70000 for 4464, and ignores what it does not understand. `"PLAINTEXT://a, b:9093,"` ->
    `"a:9092,b:9093"`
    """
    found = []
    for given in filter(None, map(str.strip, text.split(","))):
        match = _SERVER.fullmatch(given)
        port = int(match[3] or _PORT) if match else 0
        if match is None or not 0 < port <= _MOST_PORTS:
            said = "expected host:port, or several separated by commas, with ports of 1 to 65535"
            shown = given if "@" not in given else f"...@{given.rpartition('@')[2]}"  # a password may come first
            raise Fault("KAFKA_OPTION", f"bootstrap has {shown!r}; {said}")
        asked, named = (match[1] or "").upper(), options.get("security.protocol", "PLAINTEXT").upper()
        if asked and asked not in _PROTOCOLS:
            raise Fault("KAFKA_OPTION", f"bootstrap has {given!r}; expected host:port, the address of a Kafka broker")
        if asked not in ("", named):
            said = f"and the option security.protocol is {named}: leave {match[1]}:// out, and set the option"
            raise Fault("KAFKA_OPTION", f"bootstrap has {given!r}, {said}")
        found.append(f"{match[2]}:{port}")
    if not found:
        raise Fault("KAFKA_OPTION", f"bootstrap is {text!r}; expected host:port, or several separated by commas")
    return ",".join(found)


def client_options(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options for librdkafka. Raises Fault KAFKA_OPTION for one that users may not set or it cannot express.

    `sasl.jaas.config` of the plain and SCRAM modules becomes `sasl.username` and `sasl.password`; stores in PEM become
    librdkafka's; options that only a Java client uses are left out.
    """
    for name in given:
        if name in OURS:
            raise Fault("KAFKA_OPTION", f"option {name} is set by {OURS[name]}; leave it out")
    found = {_RENAMED.get(name, name): value for name, value in given.items() if name not in _JAVA_ONLY}
    if "sasl.jaas.config" in given:
        found = _logged_in(given["sasl.jaas.config"]) | found
    if "ssl.truststore.location" in found:
        _require_pem(given, "truststore", "ssl.ca.location")
        found["ssl.ca.location"] = found.pop("ssl.truststore.location")
    if given.get("ssl.keystore.type", "").upper() == "PEM" and "ssl.keystore.location" in found:
        store = found.pop("ssl.keystore.location")
        found |= {"ssl.certificate.location": store, "ssl.key.location": store}
    elif "ssl.keystore.location" in found and given.get("ssl.keystore.type", "JKS").upper() != "PKCS12":
        _require_pem(given, "keystore", "ssl.certificate.location and ssl.key.location")
    if found.get("ssl.endpoint.identification.algorithm") == "":
        found["ssl.endpoint.identification.algorithm"] = "none"
    return found


def java_options(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options for a Java client. Raises Fault KAFKA_OPTION for one that it cannot express.

    `sasl.username` and `sasl.password` become `sasl.jaas.config`, files in PEM the stores of that type.
    """
    found = {_JAVA_NAMES.get(name, name): value for name, value in given.items() if name not in _CLIENT_ONLY}
    for name, value in given.items():
        if name.startswith("sasl.oauthbearer.") or (name == _VERIFIES and value.lower() == "false"):
            raise Fault("KAFKA_OPTION", f"option {name} is none of Spark's Kafka source; leave out reader: spark")
    if "ssl.certificate.location" in given or "ssl.key.location" in given:
        if given.get("ssl.certificate.location") != given.get("ssl.key.location"):
            said = "ssl.certificate.location and ssl.key.location are two files, and a Java client reads one"
            raise Fault("KAFKA_OPTION", f"{said}; put both into one PEM file, or leave out reader: spark")
        found["ssl.keystore.location"] = given["ssl.key.location"]
    stores = (("truststore", ("location", "certificates")), ("keystore", ("location", "key")))
    for store, places in stores:
        of_pem = any(_JAVA_NAMES.get(name) in {f"ssl.{store}.{place}" for place in places} for name in given)
        if of_pem or (store == "keystore" and "ssl.key.location" in given):
            found.setdefault(f"ssl.{store}.type", "PEM")
    if found.get("ssl.endpoint.identification.algorithm") == "none":
        found["ssl.endpoint.identification.algorithm"] = ""
    if "sasl.username" in given and "sasl.jaas.config" not in given:
        found["sasl.jaas.config"] = _jaas(found.get("sasl.mechanism", ""), given)
    return found


def _jaas(mechanism: str, given: Mapping[str, str]) -> str:
    module = "scram.ScramLoginModule" if mechanism.startswith("SCRAM-") else "plain.PlainLoginModule"
    if module.startswith("plain") and mechanism != "PLAIN":
        said = f"sasl.mechanism is {mechanism or 'missing'}; with sasl.username expected PLAIN or SCRAM-SHA-256 or -512"
        raise Fault("KAFKA_OPTION", said)
    user, word = (_QUOTED.sub(r"\\\g<0>", given.get(f"sasl.{name}", "")) for name in ("username", "password"))
    return f'org.apache.kafka.common.security.{module} required username="{user}" password="{word}";'


def _require_pem(given: Mapping[str, str], store: str, instead: str) -> None:
    kind = given.get(f"ssl.{store}.type", "JKS").upper()
    if kind != "PEM":
        said = f"ssl.{store}.location is a store of type {kind}, which only Java reads"
        raise Fault("KAFKA_OPTION", f"{said}; export it as PEM and name it as {instead}")


def _logged_in(jaas: str) -> dict[str, str]:
    values = {
        name: next(value for value in found if value) if any(found) else ""
        for name, *found in _JAAS_VALUE.findall(jaas)
    }
    if _JAAS.search(jaas) is None or values.keys() != {"username", "password"}:
        said = "sasl.jaas.config is none of PlainLoginModule or ScramLoginModule with username and password"
        raise Fault("KAFKA_OPTION", f"{said}; expected one, or sasl.* options of librdkafka in its place")
    return {f"sasl.{name}": re.sub(r"\\(.)", r"\1", value) for name, value in values.items()}


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(
        lambda found: chr(int(found[1][1:], 16)) if len(found[1]) == 5 else _CONTROLS.get(found[1], found[1]), text
    )


# Resolve `${env:NAME}` and `${file:PATH}` in the configured options of a Kafka client.

_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")


def resolved(options: Mapping[str, str]) -> dict[str, str]:
    """Replace every reference in the options; their secrets are hidden in messages from now on.

    `${env:NAME}` is a variable of the environment, `${file:PATH}` the text of a file without the line feed at its end,
    `${file:PATH:KEY}` one key of a properties file, as Kafka's providers have them. Raises ConfigFault CONFIG_INVALID.
    """
    found = {name: _REFERENCE.sub(partial(_value, name), text) for name, text in options.items()}
    for name, value in found.items():
        remember(secrets_in(name, value))
    return found


def from_file(path: Path) -> dict[str, str]:
    """Read options from a properties file such as Kafka's tools take with `--command-config`."""
    return properties(_text("--command-config", path))


def _value(name: str, match: re.Match[str]) -> str:
    kind, reference = match[1], match[2]
    if kind == "env":
        value = os.environ.get(reference)
        if value is None:
            raise ConfigFault("CONFIG_INVALID", f"the option {name} names a variable that is not set: {reference}")
    else:
        value = _from_file(name, reference)
    if is_secret(name):
        remember([value])
    return value


def _from_file(name: str, reference: str) -> str:
    path, colon, key = reference.rpartition(":")
    if not colon or Path(reference).is_file():
        return _text(name, Path(reference)).removesuffix("\n").removesuffix("\r")
    found = properties(_text(name, Path(path)))
    if key not in found:
        raise ConfigFault("CONFIG_INVALID", f"the option {name} names the key {key}, which {path} has not")
    return found[key]


def _text(name: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigFault(
            "CONFIG_INVALID", f"the option {name} names {path}, which cannot be read: {reason}"
        ) from error
