"""Credentials are kept for their owner only, and never lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pi_trio import private_files
from pi_trio.errors import ConfigError, StorageError
from pi_trio.llm.auth_file import read_entries, remove_entry, store_entry

KEY = {"type": "api_key", "key": "sk-é"}


def test_store_and_remove(tmp_path: Path) -> None:
    path = tmp_path / "new" / "auth.json"
    store_entry(path, "acme", KEY)
    store_entry(path, "other", {"type": "oauth", "access": "x", "future": [1]})
    assert read_entries(path) == {"acme": KEY, "other": {"type": "oauth", "access": "x", "future": [1]}}
    assert remove_entry(path, "acme")
    assert not remove_entry(path, "acme")
    assert list(read_entries(path)) == ["other"]
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [each.name for each in path.parent.iterdir()] == ["auth.json"]


def test_file_is_narrowed_to_its_owner_and_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "auth.json"
    real.write_text('\ufeff{"a": {"type": "api_key"},} // mine', encoding="utf-8")
    real.chmod(0o644)
    link.symlink_to(real)
    store_entry(link, "b", KEY)
    assert link.is_symlink()
    assert list(json.loads(real.read_bytes())) == ["a", "b"]
    assert real.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("broken", ["{", "[]", '{"a": '])
def test_broken_file_is_left_as_it_is(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "auth.json"
    path.write_text(broken)
    with pytest.raises(ConfigError):
        store_entry(path, "acme", KEY)
    assert path.read_text() == broken
    assert [each.name for each in tmp_path.iterdir()] == ["auth.json"]


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store_entry(path, f"p{number}", KEY), range(24)))
    assert len(read_entries(path)) == 24


def test_processes_that_store_at_once_lose_nothing(tmp_path: Path) -> None:
    """CC-02: every key is there, and whoever reads meanwhile reads a whole file."""
    path = tmp_path / "auth.json"
    program = (
        "import sys; from pathlib import Path; from pi_trio.llm.auth_file import store_entry\n"
        "for n in range(10): store_entry(Path(sys.argv[1]), sys.argv[2], {'type': 'api_key', 'key': str(n)})"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(path), f"p{n}"]) for n in range(4)]
    seen: set[str] = set()
    while any(writer.poll() is None for writer in writers):
        now = set(read_entries(path))
        assert seen <= now
        seen = now
    assert [writer.returncode for writer in writers] == [0] * 4
    assert {name: entry["key"] for name, entry in read_entries(path).items()} == {
        f"p{n}": "9" for n in range(4)
    }


def test_lock_of_another_program_is_respected_until_it_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock = tmp_path / "auth.json", tmp_path / "auth.json.lock"
    lock.mkdir()
    monkeypatch.setattr(private_files, "_PATIENCE", 0.0)
    with pytest.raises(StorageError, match="another program"):
        store_entry(path, "acme", KEY)
    assert not path.exists()
    monkeypatch.setattr(private_files, "_PATIENCE", 10.0)
    long_ago = time.time() - 60
    os.utime(lock, (long_ago, long_ago))
    store_entry(path, "acme", KEY)
    assert not lock.exists()


def test_disk_that_refuses(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be made"):
        store_entry(tmp_path / "file" / "auth.json", "acme", KEY)
