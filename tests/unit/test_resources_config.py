"""From flags and settings to what a runtime is opened with."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.paths import project_session_dir


@pytest.fixture
def agent_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "agent"
    folder.mkdir()
    monkeypatch.setenv("PI_TRIO_DIR", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def test_sessions_are_kept_by_project(agent_dir: Path, tmp_path: Path) -> None:
    config = RuntimeConfig.load()
    assert config.session_dir == project_session_dir(agent_dir, tmp_path)
    assert not config.flat_session_dir


def test_one_folder_for_all_may_be_chosen_and_the_flag_wins(agent_dir: Path, tmp_path: Path) -> None:
    (agent_dir / "settings.json").write_text('{"sessionDir": "all", "maxRetrys": 1}')
    assert RuntimeConfig.load().session_dir == tmp_path / "all"
    config = RuntimeConfig.load(session_dir="/else")
    assert (config.session_dir, config.flat_session_dir) == (Path("/else"), True)
    assert len(config.findings) == 1
