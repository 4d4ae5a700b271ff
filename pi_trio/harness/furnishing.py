"""What a session has besides its model: resources and extensions, and how they are read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from pi_trio.errors import UsageError
from pi_trio.extensions.api import ExtensionApi
from pi_trio.extensions.loading import load_extensions
from pi_trio.harness.configured import ToolChoice
from pi_trio.harness.extension_host import HarnessHost
from pi_trio.harness.harness import AgentHarness
from pi_trio.llm.registry import Models
from pi_trio.remote.interface import CommandInfo
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.resources import SKILL_PREFIX, Resources, load_resources
from pi_trio.resources.trust import TrustStore
from pi_trio.tool import Tool

__all__ = ["Furnishing"]


class Furnishing:
    """The resources of one session from the start, its extensions once they are loaded."""

    def __init__(self, config: RuntimeConfig) -> None:
        self.config = config
        self.resources: Resources = load_resources(config)
        self._extensions: list[ExtensionApi] = []
        self._host: HarnessHost | None = None
        self._load_findings: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[str, ...]:
        """What a person should know about settings, resources and extensions."""
        return (*self.config.findings, *self.resources.findings, *self._load_findings)

    def sections(self, tools: Sequence[Tool]) -> dict[str, str]:
        """The sections of the system prompt."""
        return self.resources.sections(tools)

    async def input(self, text: str) -> str:
        """The prompt that what a person wrote stands for. Raises `ConfigError`."""
        if self._host is not None:
            text = await self._host.input(text)
        return self.resources.expand(text)

    def set_trust(self, folder: str, trusted: bool) -> None:
        """Remember a decision about the session's folder or one above it. Raises `UsageError`."""
        config, place = self.config, Path(folder).resolve()
        if place not in (config.cwd.resolve(), *config.cwd.resolve().parents):
            raise UsageError(f"{folder} is neither {config.cwd} nor a folder above it")
        TrustStore(config.agent_dir).remember(place, trusted, config.cwd, config.trust.resources)

    # ------------------------------------------------------------------ extensions

    def load(self, harness: AgentHarness, models: Models) -> None:
        """Import the extensions and start them. What fails is a finding, or an event."""
        loaded = load_extensions(self.config)
        self._load_findings = loaded.findings
        if not loaded.extensions:
            return
        self._host = HarnessHost(harness, models, offers_tools="extension-tools" not in self.config.without)
        self._extensions = [ExtensionApi(each, self._host) for each in loaded.extensions]
        failures = [failure for each in self._extensions if (failure := each.start()) is not None]
        self._load_findings += tuple(failures)

    def set_tools(self, harness: AgentHarness, choice: ToolChoice) -> None:
        """Offer other tools of our own; those of extensions stay."""
        if self._host is not None:
            self._host.set_tools(choice)
        else:
            harness.options = attrs.evolve(
                harness.options, tools=choice.tools, active_tool_names=choice.active
            )

    async def unload(self) -> None:
        """Tell the extensions, then take away everything that they registered, the last first."""
        if self._host is not None:
            await self._host.shut_down()
        for extension in reversed(self._extensions):
            extension.unload()
        self._extensions, self._host = [], None

    # ------------------------------------------------------------------ commands

    @property
    def commands(self) -> list[CommandInfo]:
        """The slash commands of extensions, templates and skills; the first of a name counts."""
        found: dict[str, CommandInfo] = {}
        for each in (*self._extension_commands(), *self._texts()):
            found.setdefault(each.name, each)
        return list(found.values())

    async def run_command(self, name: str, arguments: str) -> str:
        """Run a command of an extension. Raises `UsageError` if there is none of the name."""
        for extension in self._extensions:
            if name in extension.commands:
                return await extension.run_command(name, arguments)
        raise UsageError(f"no extension has a command /{name}")

    @property
    def renderers(self) -> Mapping[str, str]:
        """Custom types to the templates that show them."""
        return {kind: text for each in self._extensions for kind, text in each.renderers.items()}

    def _extension_commands(self) -> list[CommandInfo]:
        return [command.info for each in self._extensions for command in each.commands.values()]

    def _texts(self) -> list[CommandInfo]:
        templates = [
            CommandInfo(each.name, each.description, "prompt", each.argument_hint, str(each.path))
            for each in self.resources.templates
        ]
        skills = [
            CommandInfo(SKILL_PREFIX + each.name, each.description, "skill", path=str(each.path))
            for each in self.resources.skills
        ]
        return [*templates, *skills]
