"""Files that are something else are refused at once, wherever people or projects put them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pi_trio.cli.prompts import gather_prompts
from pi_trio.errors import ConfigError, UsageError
from pi_trio.jsonc import load_jsonc
from pi_trio.llm.catalogue import read_listed
from pi_trio.plain_file import read_plain_file


@pytest.fixture(params=["pipe", "device", "link to a device"])
def special(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "special"
    match request.param:
        case "pipe":
            os.mkfifo(path)
        case "device":
            return Path("/dev/zero")
        case _:
            path.symlink_to("/dev/zero")
    return path


def test_a_special_file_is_not_waited_for(special: Path) -> None:
    with pytest.raises(OSError, match="not a regular file"):
        read_plain_file(special)
    with pytest.raises(UsageError, match="not a regular file"):
        gather_prompts([f"@{special}", "x"], "")
    with pytest.raises(ConfigError, match="not a regular file"):
        load_jsonc(special)
    assert read_listed(special) == {}


def test_a_regular_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    assert (read_plain_file(path), read_plain_file(path, 4)) == (b"0123456789", b"0123")


def test_a_folder_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_plain_file(tmp_path)
