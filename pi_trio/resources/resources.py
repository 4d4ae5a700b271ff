"""What a session is furnished with, besides its model and tools: texts from files.

They come from the agent directory, from the person's `~/.agents`, and from the project if it
is trusted. Context files such as AGENTS.md are always read: they are text for the model and
nothing else.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from pi_trio.errors import ConfigError
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.context_files import ContextFile, ContextFiles, load_context_files
from pi_trio.resources.paths import absolute, home_directory, is_file
from pi_trio.resources.prompt_text import read_prompt_text
from pi_trio.resources.skills import Skill, SkillFolder, expand_skill, load_skills
from pi_trio.resources.system_prompt import build_system_prompt
from pi_trio.resources.templates import PromptTemplate, expand_template, load_templates
from pi_trio.resources.trust import agents_skill_folders
from pi_trio.tool import Tool

__all__ = ["SKILL_PREFIX", "Resources", "load_resources"]

SKILL_PREFIX = "skill:"
_COMMAND = re.compile(r"/(\S+)\s*(.*)", re.DOTALL)


@frozen(kw_only=True)
class Resources:
    """The texts for the sessions of one folder. `system_prompt` replaces the preamble, tools and
    rules; `addendum` is added to them. `findings` say what was left out, and why.
    """

    cwd: Path
    context_files: tuple[ContextFile, ...] = ()
    system_prompt: str | None = None
    addendum: str | None = None
    skills: tuple[Skill, ...] = ()
    templates: tuple[PromptTemplate, ...] = ()
    findings: tuple[str, ...] = ()

    def sections(self, tools: Sequence[Tool]) -> dict[str, str]:
        """The sections of the system prompt for these tools, today."""
        return build_system_prompt(
            tools,
            self.context_files,
            self.cwd,
            datetime.date.today(),
            custom=self.system_prompt,
            addendum=self.addendum,
            skills=self.skills,
        )

    def expand(self, text: str) -> str:
        """The prompt that `text` stands for: `/skill:name …` or `/template …`; any other is itself.

        Raises `ConfigError` if the skill's file is gone.
        """
        match = _COMMAND.fullmatch(text)
        if match is None:
            return text
        name, arguments = match[1], match[2].strip()
        for skill in self.skills:
            if name == SKILL_PREFIX + skill.name:
                return expand_skill(skill, arguments)
        for template in self.templates:
            if name == template.name:
                return expand_template(template, arguments)
        return text


def load_resources(config: RuntimeConfig) -> Resources:
    """Read what there is for a session in `config.cwd`. Never raises for the sake of a file."""
    home = home_directory()
    context = (
        ContextFiles()
        if "context-files" in config.without
        else load_context_files(config.agent_dir, config.cwd)
    )
    skills = load_skills(_skill_folders(config, home))
    templates = load_templates(_template_places(config))
    system = _Texts(config, "SYSTEM.md", config.system_prompt)
    addendum = _Texts(config, "APPEND_SYSTEM.md", config.addendum)
    return Resources(
        cwd=config.cwd,
        context_files=context.files,
        system_prompt=system.text,
        addendum=addendum.text,
        skills=skills.skills,
        templates=templates.templates,
        findings=(
            *context.findings,
            *system.findings,
            *addendum.findings,
            *skills.findings,
            *templates.findings,
        ),
    )


def _folders(config: RuntimeConfig) -> Iterator[Path]:
    """Where pi's files are: the agent directory, and the project's own folder if it is trusted."""
    yield config.agent_dir
    if config.trust.trusted:
        yield config.cwd / ".pi"


def _skill_folders(config: RuntimeConfig, home: Path) -> Iterator[SkillFolder]:
    if "skills" not in config.without:
        yield from _found_skill_folders(config, home)
    for path in config.skills:
        yield SkillFolder(absolute(path), single_files=True)


def _found_skill_folders(config: RuntimeConfig, home: Path) -> Iterator[SkillFolder]:
    for folder in _folders(config):
        yield SkillFolder(folder / "skills", single_files=True)
    yield SkillFolder(home / ".agents" / "skills")
    if config.trust.trusted:
        yield from map(SkillFolder, agents_skill_folders(config.cwd, home))
    for path in config.settings.skills:
        yield SkillFolder(absolute(path), single_files=True)


def _template_places(config: RuntimeConfig) -> Iterator[Path]:
    if "prompt-templates" not in config.without:
        for folder in _folders(config):
            yield folder / "prompts"
        yield from map(absolute, config.settings.prompts)
    yield from map(absolute, config.prompt_templates)


class _Texts:
    """The text of a file that the project may replace: the nearest one counts, alone. `given` wins."""

    def __init__(self, config: RuntimeConfig, name: str, given: str | None) -> None:
        self.text = given
        self.findings: list[str] = []
        paths = [path for folder in _folders(config) if is_file(path := folder / name)]
        if paths and given is None:
            try:
                self.text = read_prompt_text(paths[-1]).strip() or None
            except ConfigError as error:
                self.findings.append(str(error))
