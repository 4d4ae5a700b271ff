"""Files that the program writes into the agent directory."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import trio

from pi_trio import private_files
from pi_trio.errors import StorageError
from pi_trio.private_files import locked, write_new, write_private


def test_a_file_is_replaced_as_a_whole_and_links_stay(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_private(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("there", ["file", "link", "folder"])
def test_a_new_file_never_replaces(tmp_path: Path, there: str) -> None:
    target = tmp_path / "deep" / "target"
    assert write_new(target, b"first")
    target.unlink()
    {
        "file": lambda: target.write_bytes(b"ours"),
        "link": lambda: target.symlink_to("nowhere"),
        "folder": lambda: target.mkdir(),
    }[there]()
    before = target.lstat()
    assert not write_new(target, b"second")
    assert target.lstat().st_ino == before.st_ino
    assert [path.name for path in target.parent.iterdir()] == ["target"]


def test_what_cannot_be_written_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(StorageError, match="cannot be made"):
        write_private(tmp_path / "file" / "below", b"new")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="cannot be written"):
        write_private(tmp_path / "folder", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


async def test_one_writer_waits_for_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trust.json"
    order: list[str] = []
    waited = threading.Event()
    monkeypatch.setattr(private_files.time, "sleep", lambda _seconds: waited.set())

    def second() -> None:
        with locked(path):
            order.append("second")

    async with trio.open_nursery() as nursery:
        with locked(path):
            nursery.start_soon(trio.to_thread.run_sync, second)
            await trio.to_thread.run_sync(waited.wait)
            order.append("first")
    assert order == ["first", "second"]
    assert not list(tmp_path.iterdir())


def test_a_lock_of_the_dead_is_broken_and_one_of_the_living_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "trust.json.lock"
    lock.mkdir()
    monkeypatch.setattr(private_files, "_PATIENCE", 0.0)
    with (
        pytest.raises(StorageError, match="being changed by another program"),
        locked(tmp_path / "trust.json"),
    ):
        raise AssertionError("it was locked")
    os.utime(lock, (0, 0))
    monkeypatch.undo()
    with locked(tmp_path / "trust.json"):
        assert lock.is_dir()
    assert not lock.exists()
