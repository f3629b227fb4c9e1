"""A standalone Spark cluster on this machine, and a Spark Connect server: real processes that tests start and end."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
START_SECONDS = 90
LOCAL = "127.0.0.1"


@dataclass
class Cluster:
    """A master and its workers."""

    url: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def lose_a_worker(self) -> None:
        """Kill the first worker and all it runs, at once, as a machine that goes away."""
        process = psutil.Process(self.workers[0].pid)
        for each in [*process.children(recursive=True), process]:
            each.send_signal(signal.SIGKILL)

    def is_calculating(self) -> bool:
        """Whether an executor of the first worker has Python workers."""
        children = psutil.Process(self.workers[0].pid).children(recursive=True)
        return any("pyspark.daemon" in " ".join(_command_line(each)) for each in children)


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Workers of one core and a gigabyte each; their logs are in `folder`."""
    port = _free_port()
    master = (MASTER, "--host", LOCAL, "--port", str(port), "--webui-port", "0")
    found = Cluster(f"spark://{LOCAL}:{port}")
    with _running(master, folder / "master.log", "I have been elected leader"):
        try:
            for number in range(workers):
                home = folder / f"worker-{number}"
                options = ("--host", LOCAL, "--webui-port", "0", "--cores", "1", "--memory", "1200m")
                command = (WORKER, *options, "--work-dir", str(home), found.url)
                found.workers.append(_started(command, folder / f"worker-{number}.log"))
            for number in range(workers):
                _await(folder / f"worker-{number}.log", "Successfully registered with master")
            yield found
        finally:
            for worker in found.workers:
                _end(worker)


@contextmanager
def connect_server(folder: Path, options: dict[str, str], python: Path) -> Iterator[str]:
    """A Spark Connect server; its address."""
    port = _free_port()
    conf = {**options, "spark.connect.grpc.binding.port": str(port), "spark.connect.grpc.binding.address": LOCAL}
    arguments = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    submit = ("org.apache.spark.deploy.SparkSubmit", "--class", CONNECT, *arguments, "spark-internal")
    environment = {"PYSPARK_PYTHON": str(python)}
    with _running(submit, folder / "connect.log", "Spark Connect server started", environment):
        yield f"sc://{LOCAL}:{port}"


@contextmanager
def _running(
    command: tuple[str, ...], log: Path, ready: str, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    process = _started(command, log, environment)
    try:
        _await(log, ready)
        yield process
    finally:
        _end(process)


def _started(command: tuple[str, ...], log: Path, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """A Java process of Spark's, in a process group of its own."""
    variables = {**os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": LOCAL, **(environment or {})}
    with log.open("wb") as written:
        return subprocess.Popen(
            (str(SPARK_HOME / "bin" / "spark-class"), *command),
            stdout=written,
            stderr=subprocess.STDOUT,
            env=variables,
            start_new_session=True,
        )


def _await(log: Path, words: str) -> None:
    def is_there() -> bool:
        return re.search(words, log.read_text(errors="replace")) is not None

    if not until(is_there, START_SECONDS):
        raise AssertionError(f"{log} does not say {words!r} after {START_SECONDS} s: {log.read_text()[-2000:]}")


def until(holds: Callable[[], bool], seconds: float) -> bool:
    """Wait for something to hold; whether it does."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind((LOCAL, 0))
        return int(listening.getsockname()[1])
