"""Options as Kafka's tools and as librdkafka spell them."""

import pytest

from groupledger.config.kafka_options import bootstrap_servers, client_options, java_options, properties
from groupledger.core.faults import Fault

TEXT = """\
# what --command-config takes
! and another comment
security.protocol = SASL_SSL
sasl.mechanism:SCRAM-SHA-256

sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="alice" password="a\\"b;c=d";
key.deserializer  org.example.Bytes
path=C:\\\\keys\\u0041
empty=
"""


def test_a_properties_file():
    found = properties(TEXT)
    assert found.pop("sasl.jaas.config").endswith('required username="alice" password="a"b;c=d";')
    assert found == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "key.deserializer": "org.example.Bytes",
        "path": "C:\\keysA",
        "empty": "",
    }


JAAS = "org.apache.kafka.common.security.{} required username={} password={};"
CASES = [
    ({"sasl.username": "u", "client.id": "x"}, {"sasl.username": "u", "client.id": "x"}),
    (
        {"sasl.jaas.config": JAAS.format("plain.PlainLoginModule", '"u"', r'"p\"q;"')},
        {"sasl.username": "u", "sasl.password": 'p"q;'},
    ),
    (
        {"sasl.jaas.config": JAAS.format("scram.ScramLoginModule", "'u'", "word")},
        {"sasl.username": "u", "sasl.password": "word"},
    ),
    (
        {"ssl.truststore.location": "ca.pem", "ssl.truststore.type": "PEM", "ssl.truststore.password": "x"},
        {"ssl.ca.location": "ca.pem"},
    ),
    (
        {"ssl.keystore.location": "me.pem", "ssl.keystore.type": "PEM", "ssl.key.password": "x"},
        {"ssl.certificate.location": "me.pem", "ssl.key.location": "me.pem", "ssl.key.password": "x"},
    ),
    (
        {"ssl.keystore.location": "me.p12", "ssl.keystore.type": "PKCS12", "ssl.keystore.password": "x"},
        {"ssl.keystore.location": "me.p12", "ssl.keystore.password": "x"},
    ),
    ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
    ({"key.deserializer": "x", "request.timeout.ms": "1"}, {}),
]


@pytest.mark.parametrize(("given", "expected"), CASES)
def test_options_in_librdkafkas_words(given, expected):
    assert client_options(given) == expected


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"group.id": "mine"}, "group.id is set by the reader, which never joins a group"),
        ({"enable.auto.commit": "true"}, "never commits"),
        ({"bootstrap.servers": "x:1"}, "sources"),
        ({"ssl.truststore.location": "ca.jks"}, "a store of type JKS"),
        ({"ssl.keystore.location": "me.jks"}, "a store of type JKS"),
        ({"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"}, "sasl.jaas.config is none of"),
    ],
)
def test_an_option_that_cannot_be_given(given, says):
    with pytest.raises(Fault, match=says) as caught:
        client_options(given)
    assert caught.value.code == "KAFKA_OPTION"


def test_no_message_quotes_a_password():
    with pytest.raises(Fault) as caught:
        client_options({"sasl.jaas.config": "Foo required password=hunter2hunter2;"})
    assert "hunter2" not in caught.value.message


SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
JAVA_CASES = [
    ({"security.protocol": "SSL", "ssl.ca.location": "ca.pem"},
     {"security.protocol": "SSL", "ssl.truststore.location": "ca.pem", "ssl.truststore.type": "PEM"}),
    ({"ssl.ca.pem": "-----"}, {"ssl.truststore.certificates": "-----", "ssl.truststore.type": "PEM"}),
    ({"ssl.key.location": "me.pem", "ssl.certificate.location": "me.pem", "ssl.key.password": "p"},
     {"ssl.keystore.location": "me.pem", "ssl.keystore.type": "PEM", "ssl.key.password": "p"}),
    ({"ssl.certificate.pem": "c", "ssl.key.pem": "k"},
     {"ssl.keystore.certificate.chain": "c", "ssl.keystore.key": "k", "ssl.keystore.type": "PEM"}),
    ({"ssl.truststore.location": "ca.jks", "ssl.truststore.password": "p"},
     {"ssl.truststore.location": "ca.jks", "ssl.truststore.password": "p"}),
    ({"ssl.endpoint.identification.algorithm": "none"}, {"ssl.endpoint.identification.algorithm": ""}),
    ({"sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "al", "sasl.password": 'a"b\\c'},
     {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": f'{SCRAM} username="al" password="a\\"b\\\\c";'}),
    ({"sasl.mechanism": "GSSAPI", "sasl.jaas.config": "Krb5LoginModule required;"},
     {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": "Krb5LoginModule required;"}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), JAVA_CASES)
def test_options_in_a_java_clients_words(given, expected):
    assert java_options(given) == expected


def test_a_login_survives_both_ways():
    given = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "al", "sasl.password": 'w"o\\r;d='}
    assert client_options(java_options(given)) == given


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sasl.oauthbearer.client.id": "x"}, "is none of Spark's Kafka source"),
        ({"enable.ssl.certificate.verification": "false"}, "is none of Spark's Kafka source"),
        ({"ssl.key.location": "k.pem", "ssl.certificate.location": "c.pem"}, "put both into one PEM file"),
        ({"sasl.username": "x", "sasl.password": "y"}, "sasl.mechanism is missing"),
    ],
)
def test_an_option_that_a_java_client_cannot_be_given(given, says):
    with pytest.raises(Fault, match=says) as caught:
        java_options(given)
    assert caught.value.code == "KAFKA_OPTION"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a:9093", "a:9093"),
        ("a", "a:9092"),
        (" a:1 , b_2.example.com:65535 ,", "a:1,b_2.example.com:65535"),
        ("PLAINTEXT://a:9093,plaintext://b", "a:9093,b:9092"),
        ("[::1]:9093,[fe80::1]", "[::1]:9093,[fe80::1]:9092"),
    ],
)
def test_addresses_come_in_one_form(given, expected):
    assert bootstrap_servers(given, {}) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "bootstrap is ''; expected host:port"),
        (" , ", "bootstrap is ' , '; expected host:port"),
        ("a:70000", "'a:70000'; expected host:port, or several separated by commas, with ports of 1 to 65535"),
        ("a:0", "'a:0'; expected host:port"),
        ("b:1,a:port", "'a:port'; expected host:port"),
        (":9092", "':9092'; expected host:port"),
        ("a 9092", "'a 9092'; expected host:port"),
        ("a:9092/topic", "'a:9092/topic'; expected host:port"),
        ("::1", "'::1'; expected host:port"),
        ("user:word@a:9092", "bootstrap has '...@a:9092'; expected host:port"),
        ("http://a:9092", "'http://a:9092'; expected host:port, the address of a Kafka broker"),
        ("SASL_SSL://a:9092", "the option security.protocol is PLAINTEXT: leave SASL_SSL:// out, and set the option"),
    ],
)
def test_an_address_that_a_client_would_misread_is_refused(given, said):
    with pytest.raises(Fault) as caught:
        bootstrap_servers(given, {})
    assert caught.value.code == "KAFKA_OPTION"
    assert said in caught.value.message


def test_an_address_may_name_the_protocol_that_the_options_name():
    assert bootstrap_servers("SASL_SSL://a", {"security.protocol": "sasl_ssl"}) == "a:9092"
