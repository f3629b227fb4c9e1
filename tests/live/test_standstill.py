"""What failed while everything stood still is played anew; what failed otherwise is not."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.live.standstill import SECONDS, play_undisturbed


def stand_still():
    """This process is stopped, and another one lets it go on."""
    going_on = subprocess.Popen(["/bin/sh", "-c", f"sleep {SECONDS + 1}; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)
    going_on.wait()


def test_a_standstill_is_seen_and_its_failure_does_not_count():
    played = []

    def play(name):
        played.append(name)
        if len(played) == 1:
            stand_still()
        assert len(played) > 1, "the first one fails"

    play_undisturbed(play, "group")
    assert played == ["group-0", "group-1"]


def test_a_failure_without_one_counts_at_once():
    played = []

    def play(name):
        played.append(name)
        raise AssertionError(name)

    with pytest.raises(AssertionError, match="group-0"):
        play_undisturbed(play, "group")
    assert played == ["group-0"]
