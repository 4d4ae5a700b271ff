"""Where things live, in odd surroundings too."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from pi_trio.errors import ConfigError
from pi_trio.resources.paths import absolute, find_agent_dir, working_directory


def test_the_agent_directory_is_named_or_in_the_home() -> None:
    assert find_agent_dir({"HOME": "/home/u"}) == Path("/home/u/.pi-trio")
    assert find_agent_dir({"HOME": "/home/u", "PI_TRIO_DIR": "/else/where"}) == Path("/else/where")
    assert find_agent_dir({"HOME": "/home/u", "PI_TRIO_DIR": "~/x"}) == Path("/home/u/x")


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_without_home_the_password_file_tells(environ: dict[str, str]) -> None:
    """CF-03: HOME unset."""
    assert find_agent_dir(environ) == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".pi-trio"


def test_without_any_home_there_is_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """CF-03"""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(ConfigError, match="set HOME or PI_TRIO_DIR"):
        find_agent_dir({})


def test_what_can_be_no_folder_is_not_the_agent_directory(tmp_path: Path) -> None:
    (file := tmp_path / "file").write_text("")
    (dangling := tmp_path / "dangling").symlink_to("nowhere")
    (ring := tmp_path / "ring").symlink_to("ring")
    for path, problem in [
        (file, "it is no folder"),
        (file / "below", "Not a directory"),
        (dangling, "it is a link to nothing"),
        (ring, "Too many levels of symbolic links"),
        (tmp_path / ("long" * 100), "File name too long"),
    ]:
        with pytest.raises(ConfigError) as error:
            find_agent_dir({"PI_TRIO_DIR": str(path)})
        assert str(error.value) == f"{path} cannot be the agent directory: {problem}"


def test_a_relative_path_starts_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("a/b") == tmp_path / "a/b"
    assert absolute("~x/y") == tmp_path / "~x/y"


def test_a_deleted_working_directory_is_one_clear_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CF-03: cwd deleted."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="working directory"):
        working_directory()
