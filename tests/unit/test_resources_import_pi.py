"""What is brought over from pi: copies of everything but logins, and nothing is replaced."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pi_trio.cli.main import main
from pi_trio.errors import ConfigError
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.import_pi import import_pi
from pi_trio.resources.paths import find_pi_dir

HEADER = '{"type":"session","version":3,"id":"01a2","timestamp":"2030-01-01T00:00:00.000Z","cwd":"/p"}\n'


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def pi(tmp_path: Path) -> Path:
    """pi's directory, with one of everything."""
    folder = tmp_path / "pi"
    _write(folder / "sessions" / "--p--" / "a.jsonl", HEADER)
    _write(folder / "sessions" / "--p--" / "odd.jsonl", "{}\n")
    _write(folder / "sessions" / "--p--" / "notes.txt", "no session")
    _write(folder / "skills" / "pdf" / "SKILL.md", "---\ndescription: d\n---\n")
    _write(folder / "skills" / "pdf" / "bin" / "run.sh", "echo")
    _write(folder / "skills" / "one.md", "---\ndescription: d\n---\n")
    _write(folder / "prompts" / "review.md", "Review $1")
    _write(folder / "themes" / "sea.json", "{}")
    keys = {
        "openai": {"type": "api_key", "key": "sk-secret"},
        "xai": {"type": "api_key", "key": "sk-theirs"},
        "anthropic": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1},
    }
    _write(folder / "auth.json", json.dumps(keys))
    return folder


@pytest.fixture
def config(tmp_path: Path) -> RuntimeConfig:
    return RuntimeConfig(cwd=tmp_path, agent_dir=tmp_path / "agent")


def _contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


EXPECTED = {
    "sessions/--p--/a.jsonl",
    "skills/pdf/SKILL.md",
    "skills/pdf/bin/run.sh",
    "skills/one.md",
    "prompts/review.md",
    "themes/sea.json",
}


def test_everything_is_copied_as_it_is(pi: Path, config: RuntimeConfig) -> None:
    before = _contents(pi)
    lines = import_pi(pi, config)
    after = _contents(config.agent_dir)
    assert {name: after[name] for name in EXPECTED} == {name: before[name] for name in EXPECTED}
    assert {name for name in after if not name.rpartition("/")[2].startswith(".")} == {*EXPECTED, "auth.json"}
    assert _contents(pi) == before
    assert "sessions copied: 1" in lines
    assert "skills copied: 2" in lines


def test_keys_are_taken_over_but_no_logins(pi: Path, config: RuntimeConfig) -> None:
    """SE-17: no key is told."""
    ours: dict[str, Any] = {"xai": {"type": "api_key", "key": "sk-ours"}}
    _write(config.agent_dir / "auth.json", json.dumps(ours))
    lines = import_pi(pi, config)
    stored = json.loads((config.agent_dir / "auth.json").read_text())
    assert stored == ours | {"openai": {"type": "api_key", "key": "sk-secret"}}
    assert "key of anthropic: a login, which is left there; log in here anew" in lines
    assert "key of xai: there already" in lines
    assert "sk-" not in "\n".join(lines)


def test_nothing_is_replaced_and_a_second_time_changes_nothing(pi: Path, config: RuntimeConfig) -> None:
    for name in ("sessions/--p--/a.jsonl", "skills/pdf/SKILL.md", "prompts/review.md"):
        _write(config.agent_dir / name, "ours")
    import_pi(pi, config)
    first = _contents(config.agent_dir)
    assert first["skills/pdf/SKILL.md"] == first["prompts/review.md"] == b"ours"
    assert "skills/pdf/bin/run.sh" not in first, "a skill is one thing: ours, or theirs"
    lines = import_pi(pi, config)
    assert _contents(config.agent_dir) == first
    assert not [line for line in lines if "copied" in line]


def test_a_session_is_known_by_its_id_whatever_its_file_is_called(pi: Path, config: RuntimeConfig) -> None:
    _write(config.agent_dir / "sessions" / "--p--" / "renamed.jsonl", HEADER)
    assert "sessions there already: 1" in import_pi(pi, config)
    assert not (config.agent_dir / "sessions" / "--p--" / "a.jsonl").exists()


def test_a_dry_run_lists_and_does_nothing(pi: Path, config: RuntimeConfig) -> None:
    lines = import_pi(pi, config, dry_run=True)
    assert f"session {pi}/sessions/--p--/a.jsonl: to be copied" in lines
    assert f"skill {pi}/skills/pdf: to be copied" in lines
    assert "key of openai: to be copied" in lines
    assert not config.agent_dir.exists()


def test_a_dry_run_counts_two_files_of_one_id_as_the_import_does(pi: Path, config: RuntimeConfig) -> None:
    _write(pi / "sessions" / "--p--" / "b.jsonl", HEADER)
    _write(pi / "sessions" / "--q--" / "c.jsonl", HEADER)
    told = import_pi(pi, config, dry_run=True)
    assert f"session {pi}/sessions/--p--/b.jsonl: there already" in told
    assert [line for line in told if line.startswith("sessions ")] == [
        "sessions to be copied: 1",
        "sessions there already: 2",
    ]
    done = import_pi(pi, config)
    assert [line for line in done if line.startswith("sessions ")] == [
        "sessions copied: 1",
        "sessions there already: 2",
    ]


def test_files_are_for_their_owner_only(pi: Path, config: RuntimeConfig) -> None:
    """SE-06"""
    before = os.umask(0)
    try:
        import_pi(pi, config)
    finally:
        os.umask(before)
    for path in config.agent_dir.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_links_are_followed_but_not_for_ever(pi: Path, config: RuntimeConfig) -> None:
    (pi / "skills" / "pdf" / "ring").symlink_to(pi / "skills")
    (pi / "skills" / "pdf" / "gone").symlink_to("nowhere")
    os.mkfifo(pi / "skills" / "pdf" / "pipe")
    (pi / "prompts" / "out.md").symlink_to(pi / "themes" / "sea.json")
    import_pi(pi, config)
    assert (config.agent_dir / "prompts" / "out.md").read_text() == "{}"
    assert not (config.agent_dir / "prompts" / "out.md").is_symlink()
    assert not (config.agent_dir / "skills" / "pdf" / "pipe").exists()


def test_a_target_that_is_a_link_is_not_written_through(
    pi: Path, config: RuntimeConfig, tmp_path: Path
) -> None:
    """SE-05"""
    victim = _write(tmp_path / "victim", "precious")
    (config.agent_dir / "prompts").mkdir(parents=True)
    (config.agent_dir / "prompts" / "review.md").symlink_to(victim)
    import_pi(pi, config)
    assert victim.read_text() == "precious"


def test_with_one_folder_for_all_sessions_they_lie_flat(pi: Path, tmp_path: Path) -> None:
    config = RuntimeConfig(cwd=tmp_path, agent_dir=tmp_path / "agent", session_dir=tmp_path / "all")
    import_pi(pi, config)
    assert (tmp_path / "all" / "a.jsonl").read_text() == HEADER


def test_a_directory_that_is_none_or_ours_is_refused(pi: Path, tmp_path: Path) -> None:
    config = RuntimeConfig(cwd=tmp_path, agent_dir=pi)
    with pytest.raises(ConfigError, match="used already"):
        import_pi(pi, config)
    with pytest.raises(ConfigError, match="is not there"):
        import_pi(tmp_path / "none", config)


def test_an_empty_directory_has_nothing(tmp_path: Path, config: RuntimeConfig) -> None:
    (tmp_path / "empty").mkdir()
    assert import_pi(tmp_path / "empty", config) == [f"There is nothing to import in {tmp_path}/empty."]


def test_pis_directory_is_found(tmp_path: Path) -> None:
    assert find_pi_dir({"HOME": "/h"}) == Path("/h/.pi/agent")
    assert find_pi_dir({"HOME": "/h", "PI_CODING_AGENT_DIR": "~/pi"}) == Path("/h/pi")


def test_the_subcommand_prints_what_it_did(
    pi: Path, tmp_path: Path, mistake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PI_TRIO_DIR", str(tmp_path / "agent"))
    monkeypatch.chdir(tmp_path)
    assert main(["import-pi", "--dry-run", str(pi)]) == 0
    assert "to be copied" in capsys.readouterr().out
    assert main(["import-pi", str(pi)]) == 0
    assert "sessions copied: 1" in capsys.readouterr().out
    assert "is not there" in mistake("import-pi", str(tmp_path / "none"))


def test_real_sessions_of_pi_open_after_the_import(
    shared: Path, tmp_path: Path, config: RuntimeConfig
) -> None:
    from pi_trio.session.session import Session

    source = tmp_path / "pi"
    for path in sorted((shared / "sessions" / "real-pi").glob("*.jsonl")):
        _write(source / "sessions" / "--p--" / path.name, path.read_text("utf-8"))
    import_pi(source, config)
    copies = sorted((config.agent_dir / "sessions").glob("*/*.jsonl"))
    assert len(copies) == len(list((source / "sessions" / "--p--").iterdir()))
    for copy in copies:
        Session.open(copy, writable=False).build_context()
