"""A disk that fills up at any byte of a turn: told at once, nothing half written, nothing sent after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_bench import Bench, open_bench

from pi_trio.errors import StorageError
from pi_trio.session.check import check_file
from pi_trio.session.repository import SessionRepository
from pi_trio.testing import Call
from pi_trio.testing.storage import LimitedDisk


class WatchedDisk(LimitedDisk):
    """Notes how many requests had been sent when a write failed."""

    bench: Bench
    sent_at_failures: list[int]

    def __call__(self, descriptor: int, data: bytes) -> int:
        written = 0
        try:
            written = super().__call__(descriptor, data)
        finally:
            if written < len(data):
                self.sent_at_failures.append(len(self.bench.model.requests))
        return written


async def turn_on_a_disk_of(folder: Path, space: int | None) -> int:
    """A turn with a tool on a disk with so much room, then one with more. Gives the bytes of the first."""
    disk = WatchedDisk()
    disk.sent_at_failures = []
    repository = SessionRepository(folder / "agent", folder, write=disk)
    session = repository.create()
    async with open_bench(session, "one", *[Call("echo", {"n": 1}), "done"] * 3) as bench:
        disk.bench = bench
        await bench.say("a")
        path = session.path
        assert path is not None
        before = path.stat().st_size
        disk.space = space
        if space is None:
            await bench.say("b")
        else:
            with pytest.raises(StorageError):
                await bench.say("b")
            assert set(disk.sent_at_failures) == {len(bench.model.requests)}
            assert path.read_bytes().endswith(b"\n")
        needed = path.stat().st_size - before
        disk.space = None
        await bench.say("c")
        assert bench.texts()[-1] == "done"
        context = bench.session.build_context()
    session.close()
    assert not [each for each in check_file(path) if "no result" not in each.text]
    again = repository.open(str(path))
    assert again.build_context() == context
    again.close()
    return needed


async def test_a_disk_that_is_full_at_any_place_of_a_turn(tmp_path: Path) -> None:
    """SF-08"""
    needed = await turn_on_a_disk_of(tmp_path / "whole", None)
    for space in range(0, needed - 300, needed // 40):  # times differ in their digits from turn to turn
        await turn_on_a_disk_of(tmp_path / str(space), space)
