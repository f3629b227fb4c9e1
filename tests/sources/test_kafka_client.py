"""Clusters that do not answer, without a broker: one line each, and no secret in it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from concurrent.futures import Future
from itertools import count
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from groupledger.core.faults import Fault, kafka_fault
from groupledger.core.log.lines import TOPIC
from groupledger.core.log.read_plan import LogEnds
from groupledger.core.secrets import remember
from groupledger.sources.kafka_log import Address, Cluster, silence

WORD = "a-password-nobody-sees"
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": WORD}


@contextlib.contextmanager
def listening(answer=None):
    """A socket that takes connections and, beyond `answer`, says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    taken.append(connection)
                    if answer:
                        connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            for each in taken:
                each.close()


def closed_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def fault(address, **options):
    with pytest.raises(Fault) as caught:
        Cluster(Address(address, options, 2), time.monotonic).state()
    message = caught.value.message
    assert "\n" not in message
    assert WORD not in message
    assert len(message) < 500, message
    return caught.value


def test_a_closed_port():
    address = closed_port()
    found = fault(address)
    assert found.code == "KAFKA_UNREACHABLE"
    assert f"no answer from {address} to describing the cluster within 2 s" in found.message
    assert "Connection refused" in found.message


@pytest.mark.parametrize("options", [{}, LOGIN], ids=["plain", "login"])
def test_a_socket_that_never_answers(options):
    with listening() as address:
        found = fault(address, **options)
    assert found.code == "KAFKA_UNREACHABLE"
    assert f"no answer from {address}" in found.message


def test_a_host_that_nobody_knows():
    found = fault("no-such-host.invalid:9092")
    assert found.code == "KAFKA_UNREACHABLE"
    assert "resolve" in found.message


@pytest.mark.parametrize("address", ["{closed}", "no-such-host.invalid:9092", "{closed},no-such-host.invalid:9092"])
def test_where_nobody_listens_at_any_address_the_cluster_is_given_up_early(address):
    began = time.monotonic()
    with pytest.raises(Fault) as caught:  # by a clock on which 30 s pass in 3
        Cluster(Address(address.format(closed=closed_port()), {}, 30), lambda: 10 * time.monotonic()).cluster_id()
    assert time.monotonic() - began < 2
    assert caught.value.code == "KAFKA_UNREACHABLE"
    assert "describing the cluster: " in caught.value.message


def test_tls_where_there_is_none():
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        found = fault(address, **{"security.protocol": "SSL"})
    assert found.code == "KAFKA_REFUSED"
    assert "no TLS connection" in found.message


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"no.such.option": "x"}, "no.such.option"),
        ({"security.protocol": "TELNET"}, "security.protocol"),
        ({"ssl.ca.location": "/no/such/file", "security.protocol": "SSL"}, "ssl.ca.location"),
    ],
)
def test_options_that_librdkafka_does_not_take(options, says):
    found = fault(closed_port(), **options)
    assert found.code == "KAFKA_OPTION"
    assert says in found.message


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("_AUTHENTICATION", "KAFKA_REFUSED"),
        ("_SSL", "KAFKA_REFUSED"),
        ("TOPIC_AUTHORIZATION_FAILED", "KAFKA_NOT_ALLOWED"),
        ("_ALL_BROKERS_DOWN", "KAFKA_UNREACHABLE"),
        ("COORDINATOR_NOT_AVAILABLE", "KAFKA_FAILED"),
    ],
)
def test_errors_by_name(name, code):
    remember([WORD])
    text = f"sasl_ssl://h:9/bootstrap: it said {WORD} (after 3ms in state CONNECT, 1 identical error(s) suppressed)"
    found = kafka_fault(name, text, "h:9", "reading")
    assert found.code == code
    assert "it said ***" in found.message
    assert "after 3ms" not in found.message
    assert "suppressed" not in found.message


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("error:0A00010B:SSL routines::wrong version number", "KAFKA_REFUSED"),
        ("error:0A000126:SSL routines::unexpected eof while reading", "KAFKA_UNREACHABLE"),
        ("Disconnected", "KAFKA_UNREACHABLE"),
    ],
)
def test_a_handshake_that_fails_as_a_lost_connection(said, code):
    text = f"ssl://h:9/bootstrap: {said} (after 0ms in state SSL_HANDSHAKE)"
    lost = KafkaError(KafkaError._TRANSPORT, text)
    assert kafka_fault(lost.name(), lost.str(), "h:9", "reading").code == code
    assert silence(Address("h:9", {}, 2), [lost], "reading").code == code


class BusyCluster(Cluster):
    """A cluster on which a topic is made while the ends of the log are asked for."""

    def __init__(self):
        super().__init__(Address(closed_port(), {}, 1), time.monotonic)
        self.names = [TOPIC, "orders"]

    def cluster_id(self):
        return "c"

    def partitions(self):
        return dict.fromkeys(self.names, 1)

    def described_topics(self, names):
        return [SimpleNamespace(name=name, topic_id=None, partitions=[]) for name in names]

    def _ends(self, partitions):
        self.names.append("made-meanwhile")
        return dict.fromkeys(range(partitions), LogEnds(0, 5))


def test_topics_of_the_records_below_the_ends_are_listed():
    state = BusyCluster().state()
    assert state.ends == {0: LogEnds(0, 5)}
    assert [name for name, *_ in state.topics] == [TOPIC, "made-meanwhile", "orders"]


def test_an_address_shows_no_options():
    assert WORD not in repr(Address("h:9", LOGIN, 1))


class Answers:
    """An admin client that answers one question with these errors in turn, and then with what is asked for."""

    def __init__(self, *errors):
        self.errors, self.asked = list(errors), 0

    def poll(self, seconds):
        pass

    def list_topics(self, timeout):
        self._fail()
        return SimpleNamespace(topics={"orders": SimpleNamespace(partitions={0: None, 1: None})})

    def describe_topics(self, topics, request_timeout):
        return {name: self._told(name) for name in ("gone", "orders")}

    def describe_cluster(self, request_timeout):
        return self._told(SimpleNamespace(cluster_id="c"))

    def list_offsets(self, asked, isolation_level, request_timeout):
        return {place: self._told(SimpleNamespace(offset=7)) for place in asked}

    def _told(self, answer):
        told = Future()
        try:
            self._fail()
            told.set_result(answer)
        except KafkaException as error:
            told.set_exception(error)
        return told

    def _fail(self):
        self.asked += 1
        if self.errors:
            raise KafkaException(self.errors.pop(0))


class Refusing(Answers):
    """An admin client that answers no more than one question, and says of these addresses that they refuse it."""

    def __init__(self, refused, until, *, answers):
        super().__init__()
        self.refused, self.until, self.answers, self.errors_of = refused, until, answers, []

    def poll(self, seconds):
        self.asked += 1
        text = "{}/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)"
        if self.asked < self.until:
            self.errors_of += [KafkaError(KafkaError._TRANSPORT, text.format(each)) for each in self.refused]

    def describe_cluster(self, request_timeout):
        self.answers, now = False, self.answers
        return super().describe_cluster(request_timeout) if now else Future()


@pytest.mark.parametrize(
    ("refused", "until", "answers", "early"),
    [
        (["a:1", "b:2"], 99, False, True),
        (["a:1"], 99, False, False),
        (["a:1", "b:2"], 2, False, False),
        (["a:1", "b:2"], 99, True, False),
    ],
)
def test_what_may_still_answer_is_waited_for(refused, until, answers, early):
    clock = count()
    cluster = Cluster(Address("a:1,b:2", {}, 30), lambda: next(clock))
    cluster._admin = admin = Refusing(refused, until, answers=answers)
    cluster._errors = admin.errors_of
    if answers:
        assert cluster.cluster_id() == "c"
    with pytest.raises(Fault) as caught:
        cluster.cluster_id()
    assert ("within 30 s (timeout_seconds)" not in caught.value.message) == early


NOT_YET = [KafkaError(KafkaError.UNKNOWN_LEADER_EPOCH), KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)]
QUESTIONS = {
    "cluster": (lambda cluster: cluster.cluster_id(), "c"),
    "topics": (lambda cluster: cluster.partitions(), {"orders": 2}),
    "descriptions": (lambda cluster: cluster.described_topics(["gone", "orders"]), ["gone", "orders"]),
    "ends": (lambda cluster: cluster._offsets(1, "latest"), {0: 7}),
}


def asked(question, admin, clock):
    cluster = Cluster(Address(closed_port(), {}, 30), lambda: next(clock))
    cluster._admin = admin
    return QUESTIONS[question][0](cluster)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_cluster_between_two_leaders_is_asked_again(question):
    admin = Answers(*NOT_YET)
    assert asked(question, admin, count()) == QUESTIONS[question][1]
    assert admin.asked >= 3


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_cluster_that_stays_between_two_leaders_is_a_fault_within_the_timeout(question):
    admin = Answers(*NOT_YET * 50)
    with pytest.raises(Fault) as caught:
        asked(question, admin, count())
    assert caught.value.code == "KAFKA_FAILED"
    assert 25 < admin.asked < 80


def test_an_error_that_does_not_pass_is_said_at_once():
    admin = Answers(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(Fault) as caught:
        asked("ends", admin, count())
    assert (caught.value.code, admin.asked) == ("KAFKA_NOT_ALLOWED", 1)
