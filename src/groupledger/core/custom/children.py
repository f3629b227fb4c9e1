"""Manage the processes of custom assignors: one for each, started when it is first needed.

A process serves many groups, and ends when this one closes its pipe or ends itself. Its answers are data: a line of
JSON that carries the nonce of the request. A process that has ended, hangs or writes anything else is killed with all
that it started, and a new one answers for the next group.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import select
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from groupledger.core.custom import messages
from groupledger.core.custom.custom_group import CustomAssignor, Group, Protocol
from groupledger.core.custom.messages import (
    READ,
    Finding,
    Unusable,
    keep_end,
    last_words,
    line,
    parsed,
    printable,
    read_findings,
    refused,
    write_group,
)
from groupledger.core.faults import CURRENT_FOLDER

START_SECONDS, GRACE_SECONDS = 5, 20
"""Extra time for the process beyond the limit for its code: to start; to read large groups and to clean up."""
MOST_LINE_BYTES = 80 << 20
AHEAD = 2
"""Batches sent before the process has answered, so that it need not wait for us."""
MOST_TOGETHER, MOST_SIZE_TOGETHER = 32, 10_000
"""Groups in a batch, and the sum of their members, subscriptions and claims."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""Set to 1 if unset: a process is forked for each group, and threads do not survive a fork."""

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from groupledger.core.custom.child import main; main()"
)


class Gone(Exception):
    """The process does not answer any more; the message says why."""


class Hung(Gone):
    """No answer in time, long after the process's own time limit should have ended it."""


class Child:
    """One process with one assignor in it. Raises Gone if it does not answer, Unusable if its import fails."""

    def __init__(self, custom: CustomAssignor, *, digest: bool = False) -> None:
        """`digest`: whether the digest of the module's source is wanted, too."""
        self.limits = limits = custom.limits
        self.started_by = os.getpid()  # a fork of that process has children of its own
        self.unsent, self.received, self.errors = bytearray(), bytearray(), bytearray()
        theirs, self.requests = os.pipe()
        self.answers, ours = os.pipe()
        self.process = subprocess.Popen(  # noqa: S603  # our own interpreter and code
            [
                sys.executable,
                "-P",
                "-c",
                _START,
                json.dumps([*map(str, sys.path), CURRENT_FOLDER]),
                str(theirs),
                str(ours),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs, ours),
            start_new_session=True,
            env={**dict.fromkeys(ONE_THREAD, "1"), **os.environ},
        )
        os.close(theirs)
        os.close(ours)
        assert self.process.stderr is not None
        self.stderr = self.process.stderr.fileno()
        for each in (self.requests, self.answers, self.stderr):
            os.set_blocking(each, False)
        own = {"name": custom.name, "source": custom.source, "digest": digest}
        try:
            nonce = self._send(own | {"seconds": limits.seconds, "memory_mb": limits.memory_mb})
            self.described = _described(self._receive(nonce, START_SECONDS), custom)
        except BaseException:
            self.close()
            raise

    def ask_each(self, batches: Sequence[Sequence[Group]]) -> Iterator[list[Finding] | None]:
        """Yield the function's findings for each group of each batch, in order; None: ask about each group alone.

        Some batches are sent ahead.
        """
        waiting: deque[tuple[str, int]] = deque()
        rest = iter(batches)
        while True:
            while len(waiting) < AHEAD and (batch := next(rest, None)) is not None:
                nonce = self._send({"groups": [write_group(group) for group in batch]})
                waiting.append((nonce, len(batch)))
            if not waiting:
                return
            nonce, groups = waiting.popleft()
            answers = self._receive(nonce, GRACE_SECONDS + (self.limits.seconds if groups > 1 else 0)).get("answers")
            try:
                found = None if answers is None and groups > 1 else read_findings(answers, groups)
            except ValueError as error:
                raise Gone(f"wrote something else than an answer: {error}") from error
            yield found

    def _send(self, message: dict[str, Any]) -> str:
        """Queue a message to be sent; return the nonce that its answer must carry."""
        nonce = secrets.token_hex(8)
        self.unsent += line({"nonce": nonce, **message})
        return nonce

    def _receive(self, nonce: str, grace_seconds: int) -> dict[str, Any]:
        """Return the next answer."""
        text = self._next_line(self.limits.seconds + grace_seconds)
        try:
            answer = parsed(text)
        except ValueError as error:
            raise Gone("wrote something else than an answer") from error
        if answer.get("nonce") != nonce:
            raise Gone("answered something that it was not asked")
        return answer

    def _next_line(self, seconds: int) -> bytes:
        """Read a line while writing what is queued, so that neither side blocks the other."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self.answers, select.POLLIN)
        poll.register(self.stderr, select.POLLIN)
        if self.unsent:
            poll.register(self.requests, select.POLLOUT)
        while (end := self.received.find(b"\n")) < 0:
            ready = dict(poll.poll(max((deadline - time.monotonic()) * 1_000, 0)))
            if not ready:
                raise Hung(f"did not answer within {seconds} s")
            if self.stderr in ready and not keep_end(self.stderr, self.errors):
                poll.unregister(self.stderr)
            if self.requests in ready and not self._write():
                poll.unregister(self.requests)
            if self.answers in ready:
                some = os.read(self.answers, READ)
                self.received += some
                if not some or len(self.received) > MOST_LINE_BYTES:
                    raise Gone(self._how_it_ended() if not some else "answered too much")
        text = bytes(self.received[:end])
        del self.received[: end + 1]
        return text

    def _write(self) -> bool:
        """Write what the pipe takes; False if nothing is left."""
        try:
            del self.unsent[: os.write(self.requests, self.unsent[:READ])]
        except BlockingIOError:
            return True
        except BrokenPipeError:  # the pipe of answers shows it as well
            self.unsent.clear()
        return len(self.unsent) > 0

    def _how_it_ended(self) -> str:
        try:
            return f"ended with status {self.process.wait(1)}{last_words(self.errors)}"
        except subprocess.TimeoutExpired:
            return "closed the pipe for its answers"

    def close(self) -> None:
        """Kill the process and all that it started."""
        messages.end_all(self.process.pid)
        messages.kill(self.process.pid)
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()
        os.close(self.requests)
        os.close(self.answers)


def _described(answer: dict[str, Any], custom: CustomAssignor) -> CustomAssignor:
    """Return the assignor with what its function declares about itself, and the SHA-256 of its module's source."""
    fault: Any = answer.get("fault")
    said: Any = answer.get("described")
    if type(fault) is str:
        raise Unusable(printable(fault))
    try:
        protocols, name, digest = (said[each] for each in ("protocols", "name", "digest"))
        if not all(type(each) is str for each in (*protocols, digest)) or type(name) not in (str, type(None)):
            raise TypeError(custom.source)
        supported = frozenset(Protocol(each) for each in protocols)
        return replace(custom, supported_protocols=supported, protocol_name=name, digest=digest)
    except (TypeError, KeyError, ValueError) as error:
        raise Gone(f"said something else of {custom.source} than was asked") from error


_known: dict[str, tuple[CustomAssignor, Child]] = {}
_lock = threading.RLock()


def described(custom: CustomAssignor) -> CustomAssignor:
    """Return it with what its function declares, using a process that ends afterwards. Raises Unusable."""
    try:
        child = Child(custom, digest=True)
    except Gone as gone:
        raise Unusable(f"cannot import {custom.source}: its process {gone}") from gone
    child.close()
    return child.described


def ask_all(custom: CustomAssignor, groups: Sequence[Group]) -> list[Finding]:
    """Return the assignor's findings for each group, or how its process failed."""
    found: list[Finding | None] = []
    with _lock:
        for some in _asked(custom, list(_batches(groups))):
            found += some
        for last in (False, True):  # a process that ends may have been asked about another group before
            left = [at for at, each in enumerate(found) if each is None]
            for at, (each,) in zip(left, _asked(custom, [[groups[at]] for at in left], last=last), strict=True):
                found[at] = each
    return [each for each in found if each is not None]


def _asked(
    custom: CustomAssignor, batches: Sequence[Sequence[Group]], *, last: bool = False
) -> list[list[Finding | None]]:
    """Return the findings of each batch's groups; None where no answer came, which is a finding the `last` time."""
    found: list[list[Finding | None]] = []
    while len(found) < len(batches):
        try:
            for some in _child(custom).ask_each(batches[len(found) :]):
                found.append([None] * len(batches[len(found)]) if some is None else [*some])
        except Unusable as error:
            found += [[refused("ASSIGNOR_NOT_FOUND", str(error))] * len(batch) for batch in batches[len(found) :]]
        except Hung as hung:
            lost = _lost(custom, "ASSIGNOR_TIMED_OUT", hung)
            batch = batches[len(found)]
            found.append([lost] if len(batch) == 1 else [None] * len(batch))
        except Gone as gone:
            lost = _lost(custom, "ASSIGNOR_DIED", gone)
            found.append([lost if last else None] * len(batches[len(found)]))
    return found


def _batches(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """Form batches of groups: large enough that a fork costs little, small enough to ask again about one group."""
    batch: list[Group] = []
    size = 0
    for group in groups:
        own = len(group.members) + sum(len(each.topics) + len(each.owned) for each in group.members)
        if batch and (len(batch) == MOST_TOGETHER or size + own > MOST_SIZE_TOGETHER):
            yield batch
            batch, size = [], 0
        batch.append(group)
        size += own
    if batch:
        yield batch


def _lost(custom: CustomAssignor, code: str, gone: Gone) -> Finding:
    """Report how the process failed, and end it."""
    forget(custom.name)
    return refused(code, f"the process of {custom.name} {gone}; expected an answer for any group")


def _child(custom: CustomAssignor) -> Child:
    of, child = _known.get(custom.name, (None, None))
    if child is None or of != custom or child.started_by != os.getpid():
        forget(custom.name)
        child = Child(custom)
        _known[custom.name] = custom, child
    return child


def forget(name: str) -> None:
    """End the process of an assignor, if it has one; after a fork, the parent's process is not ours to end."""
    _, child = _known.pop(name, (None, None))
    if child is not None and child.started_by == os.getpid():
        child.close()


def forget_all() -> None:
    """End all processes."""
    for name in list(_known):
        forget(name)


atexit.register(forget_all)
