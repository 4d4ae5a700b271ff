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
