"""The slash commands about the program itself: settings, theme, mouse, and what fills the context.

A screen opens a view of its own for them; in plain lines they tell and take the same in words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from pi_trio.commands import Command, CommandContext
from pi_trio.errors import UsageError
from pi_trio.remote.interface import CommandInfo, ContextUse, Runtime
from pi_trio.resources.setting_changes import Scope, SettingInfo, parse_value

__all__ = ["VIEW_COMMANDS", "HasContextUse", "HasSettings", "context_lines", "with_settings"]

BAR = 24
"""Cells of the bars of `/context`."""


@runtime_checkable
class HasSettings(Protocol):
    """A runtime whose settings can be seen and changed."""

    async def settings(self, session_id: str) -> Sequence[SettingInfo]: ...

    async def change_setting(self, session_id: str, scope: Scope, key: str, value: Any) -> None: ...


@runtime_checkable
class HasContextUse(Protocol):
    """A runtime that knows what fills a context."""

    async def context_use(self, session_id: str) -> ContextUse: ...


# ------------------------------------------------------------------ settings


async def _settings(context: CommandContext, arguments: str) -> None:
    if not arguments and context.open_view("settings", ""):
        return
    runtime = with_settings(context.runtime)
    infos = await runtime.settings(context.session_id)
    if not arguments:
        context.tell("\n".join(map(_setting_line, infos)))
        return
    key, _, text = arguments.partition(" ")
    info = next((info for info in infos if info.key == key), None)
    if info is None:
        raise UsageError(f"{key} is not a setting: /settings lists them.")
    if not text.strip():
        context.tell(f"{_setting_line(info)}\n{info.meaning}")
        return
    if key != "theme" or not context.open_view("theme", text.strip()):  # a screen shows it at once
        await _set(context, runtime, info, text)


async def _set(context: CommandContext, runtime: HasSettings, info: SettingInfo, text: str) -> None:
    value = None if text.strip() == "default" else parse_value(info, text)
    await runtime.change_setting(context.session_id, "global", info.key, value)
    said = f"{info.key} is now {_shown(info.default if value is None else value)}."
    over = " This folder's own settings say otherwise, and count here." if info.scope == "project" else ""
    context.tell(f"{said}{over} It holds in new sessions, and here after /reload.")


async def _setting_names(context: CommandContext) -> Sequence[str]:
    runtime = context.runtime
    if not isinstance(runtime, HasSettings):
        return ()
    return [info.key for info in await runtime.settings(context.session_id)]


def with_settings(runtime: Runtime) -> HasSettings:
    """The runtime as one with settings. Raises `UsageError` if it has none."""
    if not isinstance(runtime, HasSettings):
        raise UsageError("/settings is not possible here: this runtime does not offer it.")
    return runtime


def _setting_line(info: SettingInfo) -> str:
    where = f" ({info.scope})" if info.scope else ""
    return f"{info.key}: {_shown(info.value)}{where}"


def _shown(value: Any) -> str:
    return "–" if value is None else json.dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------ screen


async def _theme(context: CommandContext, arguments: str) -> None:
    if not context.open_view("theme", arguments):
        await _settings(context, f"theme {arguments}".strip())


async def _mouse(context: CommandContext, arguments: str) -> None:
    if arguments not in ("", "on", "off"):
        raise UsageError("Say /mouse on or /mouse off.")
    if not context.open_view("mouse", arguments):
        raise UsageError("There is no mouse in plain lines.")


async def _on_off(_context: CommandContext) -> Sequence[str]:
    return ("on", "off")


# ------------------------------------------------------------------ context


async def _context(context: CommandContext, _arguments: str) -> None:
    if not isinstance(context.runtime, HasContextUse):
        raise UsageError("/context is not possible here: this runtime does not offer it.")
    use = await context.runtime.context_use(context.session_id)
    context.tell("\n".join(context_lines(use)))


def context_lines(use: ContextUse) -> list[str]:
    """The parts as lines with bars, and what is free."""
    how = "as its provider counts; the parts are estimates" if use.measured else "estimated"
    of = f" of {use.window:,}, {use.tokens / use.window:.0%}" if use.window else ""
    rows = [(part.name, part.tokens) for part in use.parts]
    if use.window:
        rows.append(("free", max(use.window - use.tokens, 0)))
    whole = use.window or max(use.tokens, 1)
    width = max(len(name) for name, _ in rows) if rows else 0
    return [
        f"The context holds {use.tokens:,} tokens{of} ({how}):",
        *(
            f"  {name:<{width}}  {_bar(tokens / whole)}  {tokens:>9,}  {tokens / whole:>6.1%}"
            for name, tokens in rows
        ),
    ]


def _bar(share: float) -> str:
    cells = min(round(share * BAR), BAR)
    return ("█" * cells or ("▏" if share else "")).ljust(BAR, "·")


VIEW_COMMANDS = (
    Command(
        CommandInfo("settings", "show or change the settings", "builtin", "[KEY [VALUE|default]]"),
        _settings,
        _setting_names,
        HasSettings,
    ),
    Command(CommandInfo("theme", "the colours of the screen", "builtin", "[NAME]"), _theme),
    Command(
        CommandInfo("mouse", "give the mouse to the terminal, or take it", "builtin", "[on|off]"),
        _mouse,
        _on_off,
    ),
    Command(
        CommandInfo("context", "what fills the model's window", "builtin"), _context, needs=HasContextUse
    ),
)
"""In the order in which they are listed."""
