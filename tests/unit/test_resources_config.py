"""From flags and settings to what a runtime is opened with."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_trio.errors import ConfigError
from pi_trio.resources.config import RuntimeConfig


@pytest.fixture
def agent_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "agent"
    folder.mkdir()
    monkeypatch.setenv("PI_TRIO_DIR", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def test_without_a_folder_sessions_are_kept_by_project(agent_dir: Path, tmp_path: Path) -> None:
    config = RuntimeConfig.load()
    assert (config.cwd, config.agent_dir, config.session_dir) == (tmp_path, agent_dir, None)


def test_one_folder_for_all_may_be_chosen_and_the_flag_wins(agent_dir: Path, tmp_path: Path) -> None:
    (agent_dir / "settings.json").write_text('{"sessionDir": "all", "maxRetrys": 1}')
    config = RuntimeConfig.load()
    assert config.session_dir == tmp_path / "all"
    assert len(config.findings) == 1
    assert RuntimeConfig.load(session_dir="/else").session_dir == Path("/else")


@pytest.mark.usefixtures("agent_dir")
def test_an_unknown_thinking_level_is_refused() -> None:
    assert RuntimeConfig.load(thinking_level="high").thinking_level == "high"
    with pytest.raises(ConfigError, match="'hig' is not a thinking level: it is one of off, minimal"):
        RuntimeConfig.load(thinking_level="hig")


@pytest.mark.usefixtures("agent_dir")
def test_the_environment_says_how_long_prompts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert RuntimeConfig.load().cache_retention == "short"
    monkeypatch.setenv("PI_CACHE_RETENTION", "long")
    assert RuntimeConfig.load().cache_retention == "long"
    monkeypatch.setenv("PI_CACHE_RETENTION", "forever")
    with pytest.raises(ConfigError, match="'forever'; it may be one of none, short, long"):
        RuntimeConfig.load()
