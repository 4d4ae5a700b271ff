"""The instructions that people keep beside their code: AGENTS.md and its relatives.

One file for each directory, from the agent directory, then from the file system's root
down to the working directory. What cannot be used is left out and told as a finding.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import frozen

from pi_trio.errors import ConfigError
from pi_trio.plain_file import read_plain_file
from pi_trio.resources.prompt_text import read_prompt_text

__all__ = ["ContextFile", "ContextFiles", "load_context_files"]

NAMES = ("AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD")


@frozen
class ContextFile:
    """Text for the system prompt, letter for letter, and where it came from."""

    path: Path
    text: str


@frozen
class ContextFiles:
    """The files in the order of the prompt; `findings` say what was left out, and why."""

    files: tuple[ContextFile, ...] = ()
    findings: tuple[str, ...] = ()


def load_context_files(agent_dir: Path, cwd: Path) -> ContextFiles:
    """Read the files for a session in `cwd`. Never raises for the sake of a file."""
    files: dict[Path, ContextFile] = {}
    findings = []
    for path in _candidates([agent_dir, *_project_directories(cwd)]):
        try:
            files.setdefault(path.resolve(), ContextFile(path, read_prompt_text(path)))
        except ConfigError as error:
            findings.append(str(error))
    return ContextFiles(tuple(file for file in files.values() if file.text.strip()), tuple(findings))


def _candidates(directories: Iterable[Path]) -> Iterator[Path]:
    """The first name that exists in each directory; one that cannot be entered has none."""
    for directory in directories:
        for name in NAMES:
            path = directory / name
            if os.path.lexists(path):
                yield path
                break


def _project_directories(cwd: Path) -> list[Path]:
    """From the root down to `cwd`. A worktree inside its main checkout hides that checkout."""
    upward = [cwd, *cwd.parents]
    for place, directory in enumerate(upward):
        main = _main_checkout(directory)
        if main is not None and main in directory.parents:
            upward = [*upward[: place + 1], *main.parents]
            break
    return upward[::-1]


def _main_checkout(worktree: Path) -> Path | None:
    """The checkout that this linked git worktree belongs to. None for any other directory."""
    try:
        text = read_plain_file(worktree / ".git").decode("utf-8")
    except (OSError, UnicodeDecodeError):  # usually .git is absent, or a folder
        return None
    link = re.fullmatch(r"gitdir: (/.*)/\.git/worktrees/[^/]+\s*", text)
    return Path(link[1]) if link else None
