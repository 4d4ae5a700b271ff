"""The gate: what may run, what may not, and what a person is asked about first.

`Gate` is the last `before_tool_call` handler. A policy judges each call; the default one,
`Policy`, goes by a mode, by rules, and by two things that are asked about in every mode: files
that are known to keep secrets, and links inside the working directory that lead out of it.
This guards against accidents and against being talked into things by a text. It is not a
sandbox: a command can do in ways that nobody can read from it whatever its user may do.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

from attrs import field, frozen

from pi_trio.approval import Ask, GateMode, Question
from pi_trio.loop.hooks import BeforeToolCallContext, BeforeToolCallResult
from pi_trio.messages import as_tuple
from pi_trio.tools import READING_TOOLS
from pi_trio.tools.commandline import SimpleCommand, read_command_line
from pi_trio.tools.edit import preview_edit
from pi_trio.tools.environment import ToolEnvironment
from pi_trio.tools.expansion import expanded
from pi_trio.tools.failure import ToolError
from pi_trio.tools.rules import Rule, exact_rule, parse_rules
from pi_trio.tools.secrets import is_secret

__all__ = ["Gate", "JudgesCalls", "Policy", "Verdict"]

_MAX_PATHS = 100
_FILE_TOOLS = (*READING_TOOLS, "edit", "write")


@frozen
class Verdict:
    """What becomes of a call. `reason` is a sentence; `rules` are what an answer `always` allows."""

    action: Literal["allow", "deny", "ask"]
    reason: str = ""
    rules: tuple[str, ...] = field(default=(), converter=as_tuple)


ALLOW = Verdict("allow")


class JudgesCalls(Protocol):
    """The seam for other policies."""

    async def judge(self, tool: str, args: Mapping[str, Any]) -> Verdict:
        """What becomes of a call whose arguments have been validated."""

    def remember(self, rules: Sequence[str]) -> None:
        """Allow from now on what these rules say."""


class Gate:
    """Stands before every call. Without `ask` nobody is there, and what would be asked is denied."""

    def __init__(
        self,
        policy: JudgesCalls,
        ask: Ask | None = None,
        preview: Callable[[str, Mapping[str, Any]], Awaitable[str | None]] | None = None,
    ) -> None:
        self._policy = policy
        self._ask = ask
        self._preview = preview

    async def before_tool_call(self, context: BeforeToolCallContext) -> BeforeToolCallResult | None:
        """The hook. See `pi_trio.loop.hooks.Hooks`."""
        name, args = context.tool_call.name, context.args
        verdict = await self._policy.judge(name, args)
        if verdict.action == "allow":
            return None
        if verdict.action == "deny":
            return _blocked(f"Not allowed: {verdict.reason}")
        if self._ask is None:
            return _blocked(
                f"Not run, because a person must be asked and none is here: {verdict.reason}"
                + _way_out(verdict.rules)
            )
        preview = await self._preview(name, args) if self._preview else None
        answer = await self._ask(
            Question(
                id=context.tool_call.id,
                tool_name=name,
                args=args,
                reason=verdict.reason,
                rules=verdict.rules,
                preview=preview,
            )
        )
        if answer == "no":
            return _blocked("The user did not allow this call. Go on without it, or ask what to do instead.")
        if answer == "always":
            self._policy.remember(verdict.rules)
        return None


def _way_out(rules: Sequence[str]) -> str:
    if not rules:
        return ""
    return f" The user can allow it in the settings, in gate.allow, by {' and '.join(rules)}."


def _blocked(reason: str) -> BeforeToolCallResult:
    return BeforeToolCallResult(block=True, reason=reason)


async def edit_preview(environment: ToolEnvironment, name: str, args: Mapping[str, Any]) -> str | None:
    """The diff of a call of the edit tool; None for others, and for one that will fail anyway."""
    if name != "edit":
        return None
    try:
        return await preview_edit(environment, args)
    except ToolError:
        return None


# ---------------------------------------------------------------- the default policy


class Policy:
    """Judges by denying rules first, then `mode`, allowing rules, and what is odd about a call.

    `secrets` are files that keep some, though their names do not tell it. `mode` may be changed
    at any time. Raises `ValueError` for what is no rule.
    """

    def __init__(
        self,
        environment: ToolEnvironment,
        mode: GateMode = "auto",
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        secrets: Sequence[Path] = (),
    ) -> None:
        self.mode: GateMode = mode
        self._environment = environment
        self._allow = parse_rules(allow)
        self._deny = parse_rules(deny)
        self._secrets = {path for each in secrets for path in (each, Path(os.path.realpath(each)))}

    def remember(self, rules: Sequence[str]) -> None:
        """See `JudgesCalls`. Kept in memory: what a session was allowed ends with it."""
        self._allow += parse_rules(rules)

    async def judge(self, tool: str, args: Mapping[str, Any]) -> Verdict:
        """See `JudgesCalls`."""
        if tool == "bash":
            return await self._judge_command(str(args["command"]))
        if tool in _FILE_TOOLS:
            return await self._judge_path(tool, str(args.get("path") or "."))
        rule = self._first(self._deny, tool)
        if rule is not None:
            return _denied_by(rule)
        if self._first(self._allow, tool) is not None:
            return ALLOW
        return self._by_mode(tool, tool, (tool,))

    def _by_mode(self, tool: str, subject: str, rules: Sequence[str]) -> Verdict:
        if tool in READING_TOOLS:
            return ALLOW
        if self.mode == "read-only":
            return Verdict("deny", f"in this session things are only looked at, and {tool} may change them.")
        return ALLOW if self.mode == "auto" else Verdict("ask", f"{tool}: {subject}", rules)

    def _first(self, rules: Sequence[Rule], tool: str) -> Rule | None:
        """The first rule for all calls of a tool."""
        return next((rule for rule in rules if rule.names(tool) and rule.pattern is None), None)

    # ---- files

    async def _judge_path(self, tool: str, path: str) -> Verdict:
        meant = self._environment.place if tool == "write" else self._environment.find
        place = await meant(path)
        real = await self._environment.real_path(place)
        cwd = await self._environment.real_path(self._environment.cwd)
        rules = (exact_rule(tool, str(real)),)
        if (denying := self._fitting(self._deny, tool, place, real)) is not None:
            return _denied_by(denying)
        by_mode = self._by_mode(tool, str(real), rules)
        if by_mode.action == "deny":
            return by_mode
        if self._fitting(self._allow, tool, real) is not None:
            return ALLOW
        if self._keeps_secrets(place) or self._keeps_secrets(real):
            return Verdict("ask", f"{_leading(place, real)} is where secrets are kept.", rules)
        if not real.is_relative_to(cwd) and _looks_inside(place, self._environment.cwd):
            return Verdict(
                "ask", f"{place} is a link that leads out of the working directory, to {real}.", rules
            )
        return by_mode

    def _keeps_secrets(self, path: Path) -> bool:
        return is_secret(path) or path in self._secrets

    def _fitting(self, rules: Sequence[Rule], tool: str, *paths: Path) -> Rule | None:
        """The first rule for one of the paths."""
        cwd = self._environment.cwd
        fits = (
            rule for rule in rules if rule.names(tool) and any(rule.fits_path(each, cwd) for each in paths)
        )
        return next(fits, None)

    # ---- commands

    async def _judge_command(self, line: str) -> Verdict:
        commands = read_command_line(line)
        files = await self._files_of(commands or ())
        if (denying := self._denying(commands or (), files)) is not None:
            return _denied_by(denying)
        open_ones = [each for each in commands or () if not self._allows(each)]
        rules = [exact_rule("bash", each.text) for each in open_ones if each.known and not each.writes]
        if len(rules) < len(open_ones):
            rules = []  # no rule would cover all of it
        by_mode = self._by_mode("bash", line, rules)
        if by_mode.action == "deny":
            return by_mode
        if self._first(self._allow, "bash") or (commands and not open_ones):
            return ALLOW
        for place, real in files:
            if self._keeps_secrets(place) or self._keeps_secrets(real):
                return Verdict("ask", f"{_leading(place, real)} is where secrets are kept.", rules)
        if self._hides_programs(commands):
            return Verdict(
                "ask", "which programs this runs cannot be told before, and some are denied.", rules
            )
        return by_mode

    def _denying(self, commands: Sequence[SimpleCommand], files: Sequence[tuple[Path, Path]]) -> Rule | None:
        """The first rule that denies a command, or to read a file that one names."""
        for rule in self._deny:
            if rule.names("bash") and (rule.pattern is None or any(map(rule.denies_command, commands))):
                return rule
        fitting = (self._fitting(self._deny, "read", *paths) for paths in files)
        return next((rule for rule in fitting if rule is not None), None)

    def _allows(self, command: SimpleCommand) -> bool:
        return any(rule.names("bash") and rule.allows_command(command) for rule in self._allow)

    def _hides_programs(self, commands: Sequence[SimpleCommand] | None) -> bool:
        denies_some = any(rule.names("bash") for rule in self._deny)
        return denies_some and (commands is None or not all(each.known for each in commands))

    async def _files_of(self, commands: Sequence[SimpleCommand]) -> list[tuple[Path, Path]]:
        """The paths that the commands name, as written and where they lead."""
        files = []
        for word in islice(_paths_in(commands), _MAX_PATHS):
            with suppress(ToolError):  # then it is no path
                places = await expanded(self._environment, await self._environment.place(word))
                places.sort(key=self._keeps_secrets, reverse=True)
                files += [(place, await self._environment.real_path(place)) for place in places[:_MAX_PATHS]]
        return files


def _paths_in(commands: Sequence[SimpleCommand]) -> Iterator[str]:
    """Words that may be paths: `--file=x` and `@x` name one too, and what is printed names none."""
    for command in commands:
        yield from command.reads
        if command.words[:1] not in (("echo",), ("printf",)):
            for word in command.words:
                yield word.rpartition("=")[2].removeprefix("@")


def _denied_by(rule: Rule) -> Verdict:
    return Verdict("deny", f"the rule {rule} forbids it.")


def _leading(place: Path, real: Path) -> str:
    return str(place) if real == place else f"{place}, which leads to {real},"


def _looks_inside(place: Path, cwd: Path) -> bool:
    """Whether a path seems to be below the working directory, `..` taken at its word."""
    return Path(os.path.normpath(place)).is_relative_to(cwd)
