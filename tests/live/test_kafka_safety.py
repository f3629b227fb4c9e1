"""Security, rights and restarts on a real broker: what works, and one line for what does not."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from groupledger.config.kafka_options import client_options, properties
from groupledger.core.faults import Fault
from groupledger.core.log.read_plan import OffsetRange
from groupledger.engine.java import java
from groupledger.sources.kafka_log import Address, Cluster, StretchReader
from tests.kafka.groups import LOG, SECONDS, Member, ends, fill
from tests.live.broker import CLUSTER_ID, Broker
from tests.live.topics import Topics

pytestmark = pytest.mark.xdist_group("secured")  # all but one use one broker
WORD = "a-password-nobody-sees"
USERS = ("reader", "describer", "nobody")
MORE = """\
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SCRAM:SASL_PLAINTEXT,TLS:SSL,BOTH:SASL_SSL
listener.name.scram.sasl.enabled.mechanisms=SCRAM-SHA-256
listener.name.scram.scram-sha-256.sasl.jaas.config={module} required;
listener.name.both.sasl.enabled.mechanisms=SCRAM-SHA-256
listener.name.both.scram-sha-256.sasl.jaas.config={module} required;
ssl.keystore.location={folder}/broker.p12
ssl.keystore.password={word}
ssl.keystore.type=PKCS12
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A broker with SCRAM, TLS and both, whose users have different rights."""
    folder = tmp_path_factory.mktemp("secured")
    store = [*("-keystore", str(folder / "broker.p12"), "-storepass", WORD, "-alias", "broker")]
    made = [*("-genkeypair", "-keyalg", "RSA", "-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1", *store)]
    for arguments in (made, ["-exportcert", "-rfc", "-file", str(folder / "ca.pem"), *store]):
        subprocess.run([str(java().with_name("keytool")), *arguments], check=True, capture_output=True)
    users = [f"--add-scram=SCRAM-SHA-256=[name={user},password={WORD}-{user}]" for user in USERS]
    more = MORE.format(module=MODULE, folder=folder, word=WORD)
    broker = Broker(folder, ("SCRAM", "TLS", "BOTH"), more, users)
    try:
        broker.start()
        Topics(broker.address).create({"orders": 3})
        with Member(broker.address, "payments", "orders") as member:
            member.commit()
        _grant(broker.address)
        yield broker, folder
    finally:
        broker.stop()


def _grant(address):
    allowed = [(LOG, "reader", "READ"), (LOG, "describer", "DESCRIBE"), ("*", "reader", "DESCRIBE")]
    kinds = (ResourceType.TOPIC, ResourcePatternType.LITERAL)
    bindings = [
        AclBinding(kinds[0], topic, kinds[1], f"User:{user}", "*", AclOperation[right], AclPermissionType.ALLOW)
        for topic, user, right in allowed
    ]
    admin = AdminClient({"bootstrap.servers": address})  # collected before the answers are there, it gives none
    for answer in admin.create_acls(bindings).values():
        answer.result(SECONDS)


def login(user, word=None, protocol="SASL_PLAINTEXT"):
    """As a properties file of Kafka's tools has it."""
    jaas = f'{MODULE} required username="{user}" password="{word or f"{WORD}-{user}"}";'
    return f"security.protocol={protocol}\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={jaas}\n"


def address(secured, listener, text, seconds=10):
    return Address(secured[0].addresses[listener], client_options(properties(text)), seconds)


def log_of(where):
    """All records of the log, by a reader of ours."""
    state = Cluster(where, time.monotonic).state()
    assert state.cluster_id == CLUSTER_ID
    found = list(StretchReader(where, offset_commits=True).read(OffsetRange(0, 0, state.ends[0].end)))
    return sum(batch.num_rows for batch in found[:-1]), [topic for topic, *_ in state.topics]


def trust(secured):
    return f"ssl.truststore.type=PEM\nssl.truststore.location={secured[1]}/ca.pem\n"


def test_login_and_tls_work(secured):
    reader = login("reader")
    both = login("reader", protocol="SASL_SSL") + trust(secured)
    plain = log_of(address(secured, "SCRAM", reader))
    assert plain[0] >= 5
    assert plain[1] == [LOG, "orders"]
    assert log_of(address(secured, "BOTH", both)) == plain
    assert log_of(address(secured, "TLS", "security.protocol=SSL\n" + trust(secured))) == plain


CASES = {
    "a wrong password": ("SCRAM", login("reader", "wrong-word-nobody-sees"), "KAFKA_REFUSED", "refused the login"),
    "an unknown user": ("SCRAM", login("stranger"), "KAFKA_REFUSED", "refused the login"),
    "no login at all": ("SCRAM", "", "KAFKA_UNREACHABLE", "security.protocol"),
    "TLS that nobody vouches for": ("TLS", "security.protocol=SSL", "KAFKA_REFUSED", "no TLS connection"),
    "no TLS": ("TLS", "", "KAFKA_UNREACHABLE", "security.protocol"),
    "TLS where there is none": ("SCRAM", "security.protocol=SSL", "KAFKA_REFUSED", "no TLS connection"),
    "no right to describe": ("SCRAM", login("nobody"), "KAFKA_NOT_ALLOWED", "Describe and Read on the topic"),
    "no right to read": ("SCRAM", login("describer"), "KAFKA_NOT_ALLOWED", "Describe and Read on the topic"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_work_is_one_line(name, secured):
    listener, text, code, says = CASES[name]
    with pytest.raises(Fault) as caught:
        log_of(address(secured, listener, text, 4))
    message = caught.value.message
    assert caught.value.code == code, message
    assert says in message
    assert "\n" not in message
    assert "nobody-sees" not in message


def doctor(secured, tmp_path, text):
    (tmp_path / "client.properties").write_text(text)
    options = ["--bootstrap", secured[0].addresses["SCRAM"], "--command-config", str(tmp_path / "client.properties")]
    command = [sys.executable, "-m", "groupledger", "doctor", *options, "--json"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_doctor_says_which_right_is_missing(secured, tmp_path):
    fine = doctor(secured, tmp_path, login("reader"))
    assert (fine.returncode, '"ok": false' in fine.stdout) == (0, False), fine.stdout + fine.stderr
    for user, said in (("describer", "read the log"), ("nobody", "cluster")):
        found = doctor(secured, tmp_path, login(user))
        assert found.returncode == 2
        assert said in found.stdout
        assert "grant this user Describe and Read on the topic __consumer_offsets" in found.stdout
        assert "nobody-sees" not in found.stdout + found.stderr


def test_a_restart_of_the_broker_is_survived(tmp_path):
    """In the middle of a stretch: every record once, in order."""
    broker = Broker(tmp_path)
    try:
        broker.start()
        asked = Cluster(Address(broker.address, {}, 10), time.monotonic)
        assert [asked.state().ends, asked.state().topics] == [{}, ()], "to ask for the log makes none"
        Topics(broker.address).create({"wide": 500})
        fill(broker.address, "g", "wide", 500, 60)
        end = ends(broker.address)[0]
        slowly = {"queued.min.messages": "100", "queued.max.messages.kbytes": "64", "fetch.message.max.bytes": "4096"}
        reader = StretchReader(Address(broker.address, slowly, 60), offset_commits=True)
        batches = reader.read(OffsetRange(0, 0, end))
        found = next(batches).column("offset").to_pylist()
        assert found[-1] < end - 10_000
        broker.stop()
        broker.start()
        for batch in batches:
            found += batch.column("offset").to_pylist()
        assert found == [*range(end), None, None], "each record, and last the two counts"
    finally:
        broker.stop()
