"""Instructions beside the code: which files, in which order, and which are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pi_trio.resources.context_files import load_context_files
from pi_trio.resources.prompt_text import MAX_PROMPT_FILE_BYTES


@pytest.fixture
def agent_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "deep").mkdir(parents=True)
    return folder


def _texts(agent_dir: Path, cwd: Path) -> list[str]:
    loaded = load_context_files(agent_dir, cwd)
    assert loaded.findings == ()
    return [file.text for file in loaded.files]


def test_the_agent_directory_comes_first_then_downwards(agent_dir: Path, project: Path) -> None:
    (project / "deep" / "AGENTS.md").write_text("deep")
    (project / "CLAUDE.md").write_text("project")
    (agent_dir / "AGENTS.md").write_text("everywhere")
    assert _texts(agent_dir, project / "deep") == ["everywhere", "project", "deep"]


def test_one_file_for_each_directory(agent_dir: Path, project: Path) -> None:
    (project / "CLAUDE.md").write_text("second")
    (project / "AGENTS.md").write_text("first")
    assert _texts(agent_dir, project) == ["first"]
    (project / "AGENTS.override.md").write_text("over all")
    assert _texts(agent_dir, project) == ["over all"]


def test_the_same_file_is_loaded_once(agent_dir: Path, project: Path) -> None:
    (project / "AGENTS.md").write_text("rules")
    (project / "deep" / "CLAUDE.md").symlink_to("../AGENTS.md")
    assert _texts(agent_dir, project / "deep") == ["rules"]


def test_a_worktree_inside_its_checkout_hides_it(agent_dir: Path, project: Path) -> None:
    worktree = project / ".worktrees" / "fix"
    worktree.mkdir(parents=True)
    (project / "AGENTS.md").write_text("of the checkout")
    (worktree / "AGENTS.md").write_text("of the worktree")
    (project.parent / "AGENTS.md").write_text("above")
    assert _texts(agent_dir, worktree) == ["above", "of the checkout", "of the worktree"]
    (worktree / ".git").write_text(f"gitdir: {project}/.git/worktrees/fix\n")
    assert _texts(agent_dir, worktree) == ["above", "of the worktree"]


def test_a_pipe_in_the_place_of_git_is_not_waited_for(agent_dir: Path, project: Path) -> None:
    os.mkfifo(project / ".git")
    (project / "AGENTS.md").write_text("here")
    assert _texts(agent_dir, project) == ["here"]


def test_text_arrives_letter_for_letter(agent_dir: Path, project: Path) -> None:
    """CF-04"""
    odd = "$HOME ${x} {y} %s {{z}} [bold] \0 \x1b[31m\r\n"
    (project / "AGENTS.md").write_bytes(b"\xef\xbb\xbf" + odd.encode())
    assert _texts(agent_dir, project) == [odd]


def test_what_cannot_be_used_is_left_out_and_told(agent_dir: Path, project: Path) -> None:
    """CF-04: too big, a device, a pipe, not text, a broken link."""
    folders = {name: project / name for name in ("big", "device", "pipe", "bytes", "broken")}
    for folder in folders.values():
        folder.mkdir()
    (folders["big"] / "AGENTS.md").write_bytes(b"x" * (MAX_PROMPT_FILE_BYTES + 1))
    (folders["device"] / "AGENTS.md").symlink_to("/dev/zero")
    os.mkfifo(folders["pipe"] / "AGENTS.md")
    (folders["bytes"] / "AGENTS.md").write_bytes(b"\xff\xfe")
    (folders["broken"] / "AGENTS.md").symlink_to("nowhere")
    reasons = {name: load_context_files(agent_dir, folder).findings for name, folder in folders.items()}
    assert [len(findings) for findings in reasons.values()] == [1] * len(folders)
    assert "larger than 256 KiB" in reasons["big"][0]
    assert "not a regular file" in reasons["device"][0]
    assert "not a regular file" in reasons["pipe"][0]
    assert "not UTF-8" in reasons["bytes"][0]
    assert "No such file" in reasons["broken"][0]


def test_an_empty_file_says_nothing(agent_dir: Path, project: Path) -> None:
    (project / "AGENTS.md").write_text("\n")
    assert _texts(agent_dir, project) == []
