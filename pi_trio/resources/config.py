"""What a runtime is opened with: the flags of a command line and the settings file."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen

from pi_trio.llm.protocol import ThinkingLevel
from pi_trio.resources.paths import absolute, find_agent_dir, project_session_dir, working_directory
from pi_trio.resources.settings import Settings, load_settings

__all__ = ["RuntimeConfig"]


@frozen(kw_only=True)
class RuntimeConfig:
    """Everything that is decided before the first session is opened.

    `model` and `thinking_level` are what was asked for now, and win over what a session
    remembers, which wins over the settings. `flat_session_dir` tells that `session_dir` is
    shared by all projects. `findings` are sentences about odd things in the settings file.
    """

    cwd: Path
    agent_dir: Path
    session_dir: Path
    flat_session_dir: bool = False
    settings: Settings = field(factory=Settings)
    model: str | None = None
    thinking_level: ThinkingLevel | None = None
    api_key: str | None = None
    demo: bool = False
    no_session: bool = False
    findings: tuple[str, ...] = ()

    @classmethod
    def load(
        cls,
        *,
        model: str | None = None,
        thinking_level: ThinkingLevel | None = None,
        session_dir: str | None = None,
        api_key: str | None = None,
        demo: bool = False,
        no_session: bool = False,
    ) -> RuntimeConfig:
        """The configuration for this environment and working directory.

        Raises `ConfigError` if there is no usable home or working directory, or if the
        settings are not JSON.
        """
        cwd, agent_dir = working_directory(), find_agent_dir()
        settings, findings = load_settings(agent_dir / "settings.json")
        chosen = session_dir or settings.session_dir
        return cls(
            cwd=cwd,
            agent_dir=agent_dir,
            session_dir=absolute(chosen) if chosen else project_session_dir(agent_dir, cwd),
            flat_session_dir=bool(chosen),
            settings=settings,
            model=model,
            thinking_level=thinking_level,
            api_key=api_key,
            demo=demo,
            no_session=no_session,
            findings=findings,
        )
