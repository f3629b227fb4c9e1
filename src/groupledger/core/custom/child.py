"""Run custom code in a process of its own, which imports one assignor, then forks for the groups it is asked about.

A fork is a fresh copy of the process after the import: whatever the code changes in it (patches, globals, memory, open
files) ends with it. It has a pipe of its own for its answer; the pipes to the requesting process are closed in it. The
process here limits the fork's time, and afterwards kills whatever it started.

Two forks answer for a batch of groups, one of them in reverse order: a group that affects those after it affects
different groups in each. Unless the two agree on all groups there is no answer, and each group is asked about alone.

None of that keeps out a malicious user with the rights of this user.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO, NoReturn

from groupledger.core.custom import messages
from groupledger.core.custom.custom_group import CustomLimits, Group, Protocol
from groupledger.core.custom.messages import (
    READ,
    Unusable,
    call_all,
    call_twice,
    dumped,
    error_text,
    keep_end,
    last_words,
    line,
    parsed,
    read_group,
    refused,
    shown,
    write_finding,
)

REQUESTS_ENDED = 64
"""Exit status if the requesting process has closed its pipe."""
MOST_ANSWER_BYTES = 64 << 20
"""Limit for one group; a partition takes a few bytes, so this is many more than any group has."""
MOST_PROCESSES = 32
"""Processes that the code may run at once for one group."""
GLANCE_MS = 50
"""How often a slow fork is checked."""
NO_ANSWER = "wrote something else than an answer"

_MEGABYTE = 1 << 20


def main() -> NoReturn:
    """Serve until the other end is closed; the last two arguments are the descriptors of requests and answers."""
    requests, answers = (int(each) for each in sys.argv[-2:])
    with os.fdopen(requests, "rb") as reader, os.fdopen(answers, "wb", buffering=0) as writer:
        settings = parsed(reader.readline())
        limits = CustomLimits(settings["seconds"], settings["memory_mb"])
        messages.adopt_orphans()
        _limit_memory(limits)
        try:
            function, described = _load(settings["source"], digest=settings["digest"])
        except BaseException as error:  # noqa: BLE001  # a foreign module may fail in any way during its import
            words = (
                str(error)
                if isinstance(error, Unusable)
                else f"cannot import {settings['source']}: {error_text(error)}"
            )
            writer.write(line({"nonce": settings["nonce"], "fault": words}))
            os._exit(0)
        writer.write(line({"nonce": settings["nonce"], "described": described}))
        gc.freeze()
        _serve(settings["name"], function, limits, reader, writer)
    os._exit(0)


def _limit_memory(limits: CustomLimits) -> None:
    size = limits.memory_mb * _MEGABYTE
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
        with contextlib.suppress(ValueError, OSError):  # a lower limit is already set, or the system has none
            resource.setrlimit(kind, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _load(source: str, *, digest: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the function of `module:function`, and what it declares."""
    module, _, attribute = source.partition(":")
    function = getattr(importlib.import_module(module), attribute)
    if not callable(function):
        raise Unusable(f"{source} is a {type(function).__name__}; expected a function of a Group")
    protocols = getattr(function, "supported_protocols", (Protocol.EAGER,))
    try:
        supported = sorted({Protocol(each).value for each in protocols})
    except (TypeError, ValueError) as error:
        words = f"supported_protocols of {source} is {protocols!r}; expected EAGER, COOPERATIVE"
        raise Unusable(words) from error
    name = getattr(function, "assignor_name", None)
    if name is not None and not isinstance(name, str):
        raise Unusable(f"the name of {source} is {name!r}; expected a text or None")
    source_digest = _digest(function) if digest else ""
    return function, {"protocols": supported, "name": name and str.__str__(name), "digest": source_digest}


def _digest(function: Callable[..., Any]) -> str:
    """Return the digest of its module's source."""
    import hashlib
    import inspect

    try:
        text = inspect.getsource(sys.modules[function.__module__])
    except (OSError, TypeError, AttributeError, KeyError):  # compiled, or not a plain function
        text = repr(type(function))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _serve(name: str, function: Callable[..., Any], limits: CustomLimits, reader: BinaryIO, writer: BinaryIO) -> None:
    pipes = reader.fileno(), writer.fileno()
    for text in iter(reader.readline, b""):
        request = parsed(text)
        groups = [read_group(each) for each in request["groups"]]
        ask = _together if len(groups) > 1 else _alone
        answers = ask(name, function, limits, groups, pipes)
        words = b'{"nonce":"%s","answers":%s}\n' % (request["nonce"].encode(), answers)
        while words:
            words = words[writer.write(words) :]


def _together(
    name: str, function: Callable[..., Any], limits: CustomLimits, groups: list[Group], pipes: tuple[int, int]
) -> bytes:
    """Return the answers of two forks, one asked in the order of the groups, the other in reverse.

    Null unless both agree: otherwise some group failed, or changed another group's answer.
    """

    def work(step: int) -> Any:
        found = [call_twice(name, function, group, again=step < 0) for group in groups[::step]]
        written = [write_finding(each) for each in found if each is not None]
        return written[::step] if len(written) == len(groups) else None

    answers = set()
    for step in (1, -1):
        text, _ = _forked(name, limits, pipes, partial(work, step))
        answers.add(text)
        if len(answers) > 1 or not text.startswith(b"["):
            return b"null"
    return answers.pop()


def _alone(
    name: str, function: Callable[..., Any], limits: CustomLimits, groups: list[Group], pipes: tuple[int, int]
) -> bytes:
    """Return a fork's answer for one group, or why there is none."""
    (group,) = groups
    text, complaint = _forked(name, limits, pipes, lambda: write_finding(call_all(name, function, group)))
    try:
        parsed(text)
    except ValueError:
        if complaint is None:
            complaint = "ASSIGNOR_DIED", f"the process of {name} {NO_ANSWER}"
    return b"[%s]" % (text if complaint is None else dumped(write_finding(refused(*complaint))))


def _forked(
    name: str, limits: CustomLimits, pipes: tuple[int, int], work: Callable[[], Any]
) -> tuple[bytes, tuple[str, str] | None]:
    """Return the line of a fork that does the work, or code and words if there is none."""
    fork = _Fork(name, limits, pipes[0])
    if fork.pid == 0:
        fork.answer(work, pipes)
    return fork.listened()


class _Fork:
    """A copy of this process that answers for some groups: `answer` runs in the fork, the rest in this process."""

    def __init__(self, name: str, limits: CustomLimits, asked_by: int) -> None:
        """`asked_by`: the pipe of requests; if it is closed, nobody waits for the answer any more."""
        self.name, self.limits, self.asked_by = name, limits, asked_by
        self.text, self.errors = bytearray(), bytearray()
        self.status: int | None = None
        self.deadline = time.monotonic() + limits.seconds
        self.next_glance = time.monotonic() + GLANCE_MS / 1_000
        self.pipe, self.own_pipe = os.pipe()
        self.stderr, self.own_stderr = os.pipe()
        self.pid = os.fork()

    def answer(self, work: Callable[[], Any], others: tuple[int, ...]) -> NoReturn:
        """Run in the fork: do the work, write its result as one line, exit."""
        status = 1
        try:
            os.setsid()
            messages.end_with_parent()
            os.dup2(self.own_stderr, 2)
            for each in (*others, self.pipe, self.stderr, self.own_stderr):
                os.close(each)
            resource.setrlimit(resource.RLIMIT_CPU, (self.limits.seconds + 1, self.limits.seconds + 2))
            text = dumped(self._worked(work)) + b"\n"
            while text:
                text = text[os.write(self.own_pipe, text) :]
            status = 0
        finally:
            os._exit(status)

    def _worked(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except MemoryError:
            return write_finding(refused("ASSIGNOR_OUT_OF_MEMORY", self._too_much()))
        except BaseException as error:  # noqa: BLE001  # KeyboardInterrupt and whatever else foreign code raises
            words = f"{self.name} raised {shown(error_text(error))}; expected an answer for any group"
            return write_finding(refused("ASSIGNOR_RAISED", words))

    def _too_much(self) -> str:
        most = f"{self.limits.memory_mb:,} MB"
        return f"{self.name} needed more than {most}; expected less, or raise limits.custom_memory_mb"

    def listened(self) -> tuple[bytes, tuple[str, str] | None]:
        """Return the fork's line, or code and words if there is none, once the fork and all it started have ended."""
        os.close(self.own_pipe)
        os.close(self.own_stderr)
        os.set_blocking(self.stderr, False)
        try:
            complaint = self._heard()
        finally:
            messages.kill(self.pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            if messages.reap():
                messages.end_all(os.getpid())
                messages.reap()
        keep_end(self.stderr, self.errors)
        os.close(self.pipe)
        os.close(self.stderr)
        if complaint is None:
            return bytes(self.text[:-1]), None
        code, words = complaint
        return b"", (code, words + last_words(self.errors))

    def _heard(self) -> tuple[str, str] | None:
        """Read until there is a line; return code and words if there is none."""
        poll = select.poll()
        for each in (self.pipe, self.stderr):
            poll.register(each, select.POLLIN)
        poll.register(self.asked_by, select.POLLHUP)
        while True:
            left_ms = (self.deadline - time.monotonic()) * 1_000
            if left_ms <= 0:
                got = f"{self.name} took longer than {self.limits.seconds} s"
                return "ASSIGNOR_TIMED_OUT", f"{got}; expected less, or raise limits.custom_seconds"
            ready = dict(poll.poll(min(left_ms, GLANCE_MS) + 1))
            if self.asked_by in ready and ready[self.asked_by] & ~select.POLLIN:
                messages.kill(self.pid)
                messages.end_all(os.getpid())
                os._exit(REQUESTS_ENDED)
            if self.stderr in ready and not keep_end(self.stderr, self.errors):
                poll.unregister(self.stderr)
            if self.pipe in ready and not self._read():
                return self._ended()
            if self.text.endswith(b"\n"):
                more = b"\n" in self.text[:-1]  # than one line: only code that found the pipe writes that
                return ("ASSIGNOR_DIED", f"the process of {self.name} {NO_ANSWER}") if more else None
            if self.pipe not in ready and self._is_time() and (refusal := self._looked_after()) is not None:
                return refusal

    def _is_time(self) -> bool:
        """Return whether the last check was a while ago."""
        now = time.monotonic()
        due = now >= self.next_glance
        if due:
            self.next_glance = now + GLANCE_MS / 1_000
        return due

    def _read(self) -> bool:
        """Read what is available; False at the end, or if it is too much."""
        some = os.read(self.pipe, READ)
        self.text += some
        return len(some) > 0 and len(self.text) <= MOST_ANSWER_BYTES

    def _looked_after(self) -> tuple[str, str] | None:
        """Check a slow fork; return code and words of what it has done wrong."""
        if self._has_ended():
            return None if select.select([self.pipe], [], [], 0)[0] else self._ended()
        messages.signal_group(self.pid, signal.SIGSTOP)  # no new processes while they are counted
        running = messages.descendants(os.getpid())
        if len(running) > MOST_PROCESSES:
            words = f"{self.name} started more than {MOST_PROCESSES} processes; expected a function that starts none"
            return "ASSIGNOR_DIED", words
        if sum(running.values()) > self.limits.memory_mb * _MEGABYTE:
            return "ASSIGNOR_OUT_OF_MEMORY", self._too_much()
        messages.signal_group(self.pid, signal.SIGCONT)
        return None

    def _has_ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def _ended(self) -> tuple[str, str]:
        """Explain why a fork closed its pipe without a line."""
        if len(self.text) > MOST_ANSWER_BYTES:
            words = f"{self.name} answered more than {MOST_ANSWER_BYTES >> 20} MB; expected partitions by member id"
            return "ASSIGNOR_ANSWER_MALFORMED", words
        while not self._has_ended() and time.monotonic() < self.deadline:
            keep_end(self.stderr, self.errors)
            time.sleep(0.001)
        how = "closed the pipe for its answer"
        if self.status is not None:
            code = os.waitstatus_to_exitcode(self.status)
            how = f"ended with status {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
        return "ASSIGNOR_DIED", f"the process of {self.name} {how} without an answer; expected one for any group"
