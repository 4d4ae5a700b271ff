"""What a runtime is opened with: the flags of a command line and the settings file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from attrs import evolve, field, frozen

from pi_trio.approval import GateMode
from pi_trio.errors import ConfigError
from pi_trio.llm.protocol import CacheRetention, ThinkingLevel
from pi_trio.llm.thinking import LEVELS
from pi_trio.resources.paths import absolute, find_agent_dir, folder_to_be, home_directory, working_directory
from pi_trio.resources.settings import Settings, load_settings
from pi_trio.resources.trust import Trust, TrustStore, decide_trust

__all__ = ["Kind", "RuntimeConfig"]

Kind: TypeAlias = Literal[
    "extensions", "extension-tools", "skills", "prompt-templates", "themes", "context-files"
]
"""What a session is furnished with by itself, unless it is told not to be."""


@frozen(kw_only=True)
class RuntimeConfig:
    """Everything that is decided before the first session is opened.

    `model` and `thinking_level` are what was asked for now, and win over what a session
    remembers, which wins over the settings. `session_dir` is one folder for the sessions of
    all projects; None keeps them in the agent directory, by project. `approve` is the word of
    a person on the own resources of `cwd`, for this time; `trust` is what came of it.
    `extensions`, `skills` and `prompt_templates` were named, as paths; of the kinds in `without` nothing
    else is loaded. `tools` chooses, as `defaultTools` does, in its place. `system_prompt` and `addendum`
    stand for `SYSTEM.md` and `APPEND_SYSTEM.md`. `offline`: only the model's provider is asked.
    `mode` wins over that of the settings. `cache_retention` is how long providers are asked to keep a prompt.
    `max_cost` (US dollars) and `max_steps` win over those of the settings.
    `log` is the file for `pi_trio.trace`.
    `can_ask`: somebody is there who answers questions (`Runtime.answer`). `findings` are
    sentences about odd things in the settings files.
    """

    cwd: Path
    agent_dir: Path
    session_dir: Path | None = None
    settings: Settings = field(factory=Settings)
    model: str | None = None
    thinking_level: ThinkingLevel | None = None
    cache_retention: CacheRetention = "short"
    api_key: str | None = field(default=None, repr=False)
    demo: bool = False
    no_session: bool = False
    approve: bool | None = None
    trust: Trust = field(factory=lambda: Trust(False))
    extensions: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    prompt_templates: tuple[str, ...] = ()
    without: frozenset[Kind] = frozenset()
    tools: tuple[str, ...] | None = None
    system_prompt: str | None = None
    addendum: str | None = None
    offline: bool = False
    mode: GateMode | None = None
    log: Path | None = None
    max_cost: float | None = None
    max_steps: int | None = None
    can_ask: bool = False
    findings: tuple[str, ...] = ()

    @classmethod
    def load(
        cls,
        *,
        model: str | None = None,
        thinking_level: str | None = None,
        session_dir: str | None = None,
        api_key: str | None = None,
        demo: bool = False,
        no_session: bool = False,
        approve: bool | None = None,
        extensions: Sequence[str] = (),
        mode: GateMode | None = None,
    ) -> RuntimeConfig:
        """The configuration for this environment and working directory.

        `approve` is the word of a person on the project's own resources, for this time. Raises
        `ConfigError` if there is no usable home or working directory, if the settings are not
        JSON, or if there is no such thinking level or cache retention.
        """
        level = next((each for each in LEVELS if each == thinking_level), None)
        if thinking_level is not None and level is None:
            raise ConfigError(f"{thinking_level!r} is not a thinking level: it is one of {', '.join(LEVELS)}")
        cwd, agent_dir = working_directory(), find_agent_dir()
        trust, settings, findings = _judge(agent_dir, cwd, approve)
        chosen = session_dir or settings.session_dir
        return cls(
            cwd=cwd,
            agent_dir=agent_dir,
            session_dir=folder_to_be(absolute(chosen), "keep sessions") if chosen else None,
            settings=settings,
            model=model,
            thinking_level=level,
            cache_retention=_cache_retention(os.environ.get("PI_CACHE_RETENTION", "")),
            api_key=api_key,
            demo=demo,
            no_session=no_session,
            approve=approve,
            trust=trust,
            extensions=tuple(str(absolute(path)) for path in extensions),
            mode=mode,
            findings=findings,
        )

    def at(self, cwd: Path) -> RuntimeConfig:
        """The configuration for another folder, or for this one as it is now.

        What a person said of this folder's resources says nothing of another's. Raises
        `ConfigError` like `load`.
        """
        approve = self.approve if cwd == self.cwd else None
        trust, settings, findings = _judge(self.agent_dir, cwd, approve)
        return evolve(self, cwd=cwd, approve=approve, trust=trust, settings=settings, findings=findings)


def _judge(agent_dir: Path, cwd: Path, approve: bool | None) -> tuple[Trust, Settings, tuple[str, ...]]:
    """Whether the folder's own resources are used, the settings with or without its own, and findings."""
    settings, findings = load_settings(agent_dir / "settings.json")
    trust = decide_trust(
        TrustStore(agent_dir),
        cwd,
        home_directory(),
        approve=approve,
        default=settings.default_project_trust,
    )
    if trust.trusted:
        settings, findings = load_settings(agent_dir / "settings.json", cwd / ".pi" / "settings.json")
    told = (trust.finding,) if trust.finding else ()
    return trust, settings, (*findings, *told)


def _cache_retention(word: str) -> CacheRetention:
    """How long prompts are to be kept, as the environment says it."""
    known: tuple[CacheRetention, ...] = get_args(CacheRetention)
    found = next((each for each in known if each == (word or "short")), None)
    if found is None:
        raise ConfigError(f"PI_CACHE_RETENTION is {word!r}; it may be one of {', '.join(known)}")
    return found
