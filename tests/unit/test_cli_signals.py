"""Ending on a signal, with real ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
import trio

from pi_trio.cli.signals import until_signal


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """After a signal they are not given back, since the program is about to end."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


async def test_without_a_signal_the_status_is_that_of_the_work() -> None:
    async def work() -> int:
        return 7

    assert await until_signal(work) == 7


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
async def test_the_first_signal_cancels_and_waits_for_the_cleaning_up(number: int, status: int) -> None:
    cleaned = []

    async def work() -> int:
        os.kill(os.getpid(), number)
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
                cleaned.append(True)

    assert await until_signal(work) == status
    assert cleaned


@pytest.fixture
def ignored_hangup() -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("ignored_hangup")
async def test_what_nohup_ignores_stays_ignored() -> None:
    async def work() -> int:
        os.kill(os.getpid(), signal.SIGHUP)
        await trio.lowlevel.checkpoint()
        return 0

    assert await until_signal(work) == 0


_STUBBORN = """
import os, signal, trio
from pi_trio.cli import signals
signals._GRACE = 0

async def work():
    os.kill(os.getpid(), signal.SIGTERM)
    try:
        await trio.sleep_forever()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        with trio.CancelScope(shield=True):
            await trio.sleep_forever()

trio.run(signals.until_signal, work)
"""


def test_a_further_signal_ends_what_does_not_end_by_itself() -> None:
    done = subprocess.run([sys.executable, "-c", _STUBBORN], timeout=30)
    assert done.returncode == 143


_SHOWERED = """
import os, signal, sys, trio
from pi_trio.cli.signals import until_signal

async def work():
    os.kill(os.getpid(), FIRST)
    try:
        await trio.sleep_forever()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
        with trio.CancelScope(shield=True):
            await trio.lowlevel.checkpoint()
        print("cleaned")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)

status = trio.run(until_signal, work)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    os.kill(os.getpid(), number)
sys.exit(status)
"""


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_that_come_together_are_one(first: signal.Signals) -> None:
    """While it cleans up, after that, and while Python ends."""
    program = _SHOWERED.replace("FIRST", str(int(first)))
    done = subprocess.run([sys.executable, "-c", program], timeout=30, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (128 + first, b"cleaned\n", b"")
