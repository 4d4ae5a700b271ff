"""Skills: instructions for one kind of work, which the model reads when it needs them.

A skill is a folder with a `SKILL.md`, or in pi's own folders also a single `.md` file. The
prompt lists names, descriptions and places; `/skill:name` puts the instructions themselves
into a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from pi_trio.errors import ConfigError
from pi_trio.plain_file import read_plain_file
from pi_trio.resources.paths import is_file, is_folder
from pi_trio.resources.prompt_text import read_document

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["Skill", "SkillFolder", "Skills", "expand_skill", "load_skills", "skills_section"]

MAX_NAME = 64
MAX_DESCRIPTION = 1024
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_IGNORE_FILES = (".gitignore", ".ignore", ".fdignore")

_INTRODUCTION = """\
A skill is a file with instructions for one kind of work. When one of these fits what you are asked \
to do, read its file first. Relative paths in it start in the folder that it is in."""


@frozen
class Skill:
    """A skill and the file it is in. A `hidden` one is not in the prompt; a person can still use it."""

    name: str
    description: str
    path: Path
    hidden: bool = False


@frozen
class SkillFolder:
    """Where skills are looked for. `single_files`: a `.md` file at its top is a skill too."""

    path: Path
    single_files: bool = False


@frozen
class Skills:
    """The skills by their order of finding; `findings` say what is odd, and what was left out."""

    skills: tuple[Skill, ...] = ()
    findings: tuple[str, ...] = ()


def load_skills(folders: Iterable[SkillFolder]) -> Skills:
    """Read the skills. The first of a name wins. Never raises for the sake of a file."""
    found: dict[str, Skill] = {}
    findings: list[str] = []
    seen: set[Path] = set()
    for path in _files(folders):
        real = path.resolve()
        if real in seen:
            continue
        seen.add(real)
        try:
            skill = _read(path, findings)
        except ConfigError as error:
            findings.append(str(error))
            continue
        first = found.setdefault(skill.name, skill)
        if first is not skill:
            findings.append(f"{path} was left out: the skill {skill.name} is also in {first.path}")
    return Skills(tuple(found.values()), tuple(findings))


def skills_section(skills: Sequence[Skill]) -> str:
    """What the system prompt says of the skills; empty if there is none to say."""
    shown = [skill for skill in skills if not skill.hidden]
    if not shown:
        return ""
    elements = "\n".join(map(_element, shown))
    return f"{_INTRODUCTION}\n\n<available_skills>\n{elements}\n</available_skills>"


def expand_skill(skill: Skill, arguments: str = "") -> str:
    """The prompt that `/skill:name arguments` stands for. Raises `ConfigError` if the file is gone."""
    body = read_document(skill.path).body.strip()
    text = (
        f'<skill name="{escape(skill.name)}" location="{escape(str(skill.path))}">\n'
        f"Relative paths in it start in {skill.path.parent}.\n\n{body}\n</skill>"
    )
    return f"{text}\n\n{arguments}" if arguments else text


# ------------------------------------------------------------------ reading one


def _read(path: Path, findings: list[str]) -> Skill:
    """The skill of a file; what only breaks a rule of style goes to `findings`."""
    document = read_document(path)
    default = path.parent.name if path.name == "SKILL.md" else path.stem
    name, description = document.text("name") or default, document.text("description")
    if not description:
        raise ConfigError(f"{path} was left out: a skill needs a description in its front matter")
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        findings.append(
            f"{path}: the skill's name {name!r} should be at most {MAX_NAME} "
            "lower-case letters, digits and single hyphens"
        )
    if len(description) > MAX_DESCRIPTION:
        findings.append(f"{path}: the skill's description has more than {MAX_DESCRIPTION} characters")
    return Skill(name, description, path, document.head.get("disable-model-invocation") is True)


def _element(skill: Skill) -> str:
    return (
        "  <skill>\n"
        f"    <name>{escape(skill.name)}</name>\n"
        f"    <description>{escape(skill.description)}</description>\n"
        f"    <location>{escape(str(skill.path))}</location>\n"
        "  </skill>"
    )


# ------------------------------------------------------------------ finding them


def _files(folders: Iterable[SkillFolder]) -> Iterator[Path]:
    for folder in folders:
        if is_file(folder.path):
            yield folder.path
        else:
            yield from _Walk(folder).files(folder.path)


class _Walk:
    """A walk through one folder of skills. Each real folder is entered once, so links may form rings."""

    def __init__(self, folder: SkillFolder) -> None:
        self._folder = folder
        self._entered: set[Path] = set()
        self._ignored: list[tuple[Path, GitIgnoreSpec]] = []

    def files(self, folder: Path) -> Iterator[Path]:
        """The skill files of a folder. One with a SKILL.md is a skill as a whole."""
        real = folder.resolve()
        try:
            names = sorted(path.name for path in folder.iterdir())
        except OSError:  # it is not there, or not for us
            return
        if real in self._entered:
            return
        self._entered.add(real)
        if "SKILL.md" in names and is_file(folder / "SKILL.md"):
            yield folder / "SKILL.md"
            return
        self._read_ignore_files(folder, names)
        top = folder == self._folder.path
        for name in names:
            path = folder / name
            if name.startswith(".") or name == "node_modules" or self._is_ignored(path):
                continue
            if is_folder(path):
                yield from self.files(path)
            elif top and self._folder.single_files and name.endswith(".md") and is_file(path):
                yield path

    def _read_ignore_files(self, folder: Path, names: Sequence[str]) -> None:
        for name in _IGNORE_FILES:
            if name in names:
                from pathspec import GitIgnoreSpec  # here, because few folders have one

                try:
                    lines = read_plain_file(folder / name).decode("utf-8", "replace").splitlines()
                except OSError:
                    continue  # it cannot say what to leave out
                self._ignored.append((folder, GitIgnoreSpec.from_lines(lines)))

    def _is_ignored(self, path: Path) -> bool:
        slash = "/" if is_folder(path) else ""
        return any(
            spec.match_file(f"{path.relative_to(base).as_posix()}{slash}")
            for base, spec in self._ignored
            if base in path.parents
        )
