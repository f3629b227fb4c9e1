"""The broker of all live tests, and topics on it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.live.broker import broker
from tests.live.consumer_stage import PROPERTIES
from tests.live.members import Member, Programs
from tests.live.topics import Topics
from tests.pipeline.ledgers import Workspace

HERE = Path(__file__).parent


STAGES, ADDRESS = pytest.StashKey[ExitStack](), pytest.StashKey[str]()
STAGES_ADDRESS = "stages"


def pytest_collection_modifyitems(items):
    """Everything here is live."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.live)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Of several processes (`pytest -n`), all play on one broker, which the first of them makes theirs."""
    config = node.config
    if STAGES not in config.stash:
        config.stash[STAGES] = stack = ExitStack()
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="groupledger-stages-")))
        config.stash[ADDRESS] = stack.enter_context(broker(folder, PROPERTIES))
    node.workerinput[STAGES_ADDRESS] = config.stash[ADDRESS]


def pytest_unconfigure(config):
    """The broker of several processes ends with them."""
    if STAGES in config.stash:
        config.stash[STAGES].close()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """The address of a running Kafka that nobody else uses: its log holds what a test has done."""
    with broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture(scope="session")
def stages(request, tmp_path_factory):
    """The address of a running Kafka on which groups play side by side."""
    shared = getattr(request.config, "workerinput", {}).get(STAGES_ADDRESS)
    if shared is not None:
        yield shared
        return
    with broker(tmp_path_factory.mktemp("stages"), PROPERTIES) as address:
        yield address


@pytest.fixture(scope="session")
def topics(kafka):
    return Topics(kafka)


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """What members of every library run."""
    return Programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def starter(programs, tmp_path):
    """How a member of a library starts, which joins when it is told to."""
    return lambda library: lambda settings: Member(programs.command(library, settings, (), tmp_path))


@pytest.fixture
def dumped(spark, new_ledger, tmp_path):
    """A ledger to read a dump of the log into."""
    return Workspace(spark, new_ledger, tmp_path / "dumped")
