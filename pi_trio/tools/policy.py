"""What of the calls of tools is allowed, denied, or asked about, unless a program has a policy of its own.

It goes by a mode, by rules, and by two things that are asked about in every mode: files that
are known to keep secrets, and links inside the working directory that lead out of it. This
guards against accidents and against being talked into things by a text. It is not a sandbox:
a command can do in ways that nobody can read from it whatever its user may do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product
from pathlib import Path, PurePath
from typing import Any

from attrs import frozen

from pi_trio.approval import GateMode
from pi_trio.tools import READING_TOOLS
from pi_trio.tools.commandline import UNKNOWN, SimpleCommand, read_command_line
from pi_trio.tools.environment import ToolEnvironment
from pi_trio.tools.expansion import alternatives, expanded
from pi_trio.tools.failure import ToolError
from pi_trio.tools.files import other_names
from pi_trio.tools.gate import ALLOW, Verdict
from pi_trio.tools.rules import Rule, exact_rule, parse_rules
from pi_trio.tools.secrets import could_be_secret, is_secret, secret_folders

__all__ = ["Policy"]

_MAX_PATHS = 100
_MAX_FOLDERS = 5
_OPEN = f"{UNKNOWN}*?[{{"
"""What stands for more than itself."""

_WORD = re.compile(r"[^\s;&|()<>'\"`=@]+")
"""What may be a path in a line that cannot be read."""

_SHELLS = ("sh", "bash", "dash", "ksh", "zsh", "eval")
_IN_CODE = re.compile(r"""['"(]([^'"()\s]+)['")]""")
"""A name in the code of another language: `open('x')`."""

_FILE_TOOLS = (*READING_TOOLS, "edit", "write")


@frozen
class _Target:
    """A file as a path calls it, where that leads, and other names that the file has."""

    place: Path
    real: Path
    others: Sequence[Path] = ()

    @property
    def names(self) -> tuple[Path, ...]:
        return (self.place, self.real, *self.others)

    def leading(self, name: Path) -> str:
        """The path, and how it comes to `name`."""
        if name in self.others:
            return f"{self.place}, which is the same file as {name},"
        return str(self.place) if self.real == self.place else f"{self.place}, which leads to {self.real},"


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
        self._granted: set[str] = set()
        self._secrets = {path for each in secrets for path in (each, Path(os.path.realpath(each)))}
        self._holders = {path.parent for path in self._secrets}
        self._folders = [environment.cwd, *self._holders]
        with suppress(RuntimeError):  # there is no home
            self._folders += secret_folders(Path.home())

    def remember(self, rules: Sequence[str], *, once: bool = False) -> None:
        """See `JudgesCalls`. Kept in memory: what a session was allowed ends with it."""
        self._granted.update(rules)
        if not once:
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

    def check(self, tool: str, place: Path, real: Path) -> None:
        """Judge again what a tool has really opened: a link may lead elsewhere by now.

        For the environment of this machine; blocks. Raises `ToolError` for what would not be
        allowed, unless a person has allowed this tool this very file.
        """
        target = _Target(place, real, other_names(real, self._folders))
        verdict = self._verdict(tool, target, self._real_cwd())
        if verdict.action != "allow" and exact_rule(tool, str(real)) not in self._granted:
            raise ToolError(f"{place} leads to {real} now, which was not allowed: {verdict.reason}")

    def _by_mode(self, tool: str, subject: str, rules: Sequence[str]) -> Verdict:
        if tool in READING_TOOLS:
            return ALLOW
        if self.mode == "read-only":
            return Verdict("deny", f"in this session things are only looked at, and {tool} may change them.")
        return ALLOW if self.mode == "auto" else Verdict("ask", f"{tool}: {subject}", rules)

    def _first(self, rules: Sequence[Rule], tool: str) -> Rule | None:
        """The first rule for all calls of a tool."""
        return next((rule for rule in rules if rule.names(tool) and rule.pattern is None), None)

    def unread(self, folder: Path) -> list[str]:
        """Globs for what a search of the folder must pass over, because to read it is denied."""
        denying = (rule for rule in self._deny if rule.names("read") or rule.names("grep"))
        globs = (rule.below(folder, self._environment.cwd) for rule in denying)
        return [glob for glob in globs if glob is not None]

    # ---- files

    async def _judge_path(self, tool: str, path: str) -> Verdict:
        target = await self._target(await self._environment.place(path) if tool == "write" else path)
        return self._verdict(tool, target, self._real_cwd())

    async def _target(self, path: str | Path) -> _Target:
        place, real, *others = await self._environment.real_names(path, self._folders)
        return _Target(place, real, others)

    def _real_cwd(self) -> Path:
        return Path(os.path.realpath(self._environment.cwd))

    def _verdict(self, tool: str, target: _Target, cwd: Path) -> Verdict:
        place, real = target.place, target.real
        rules = (exact_rule(tool, str(real)),)
        for each in dict.fromkeys((tool, "read" if tool == "grep" else tool)):
            if (denying := self._fitting(self._deny, each, *target.names)) is not None:
                return _denied_by(denying)
        by_mode = self._by_mode(tool, str(real), rules)
        if by_mode.action == "deny":
            return by_mode
        if self._fitting(self._allow, tool, real) is not None:
            return ALLOW
        if (secret := self._secret_of(target, inside=tool == "grep")) is not None:
            return Verdict("ask", secret, rules)
        if not real.is_relative_to(cwd) and _looks_inside(place, self._environment.cwd):
            return Verdict(
                "ask", f"{place} is a link that leads out of the working directory, to {real}.", rules
            )
        return by_mode

    def _secret_of(self, target: _Target, *, inside: bool = False) -> str | None:
        """A sentence about the secrets in a file or, if that counts, `inside` a folder that is searched."""
        for name in target.names:
            if self._keeps_secrets(name):
                return f"{target.leading(name)} is where secrets are kept."
        held = (each for each in self._secrets if inside and each.is_relative_to(target.real))
        found = next(held, None)
        return f"{found} is in {target.place}, and is where secrets are kept." if found else None

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
        folders, astray = await self._folders_of(commands or ())
        files = await self._files_of(commands or (), folders)
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
        for target in files:
            if (secret := self._secret_of(target, inside=target.real in self._holders)) is not None:
                return Verdict("ask", secret, rules)
        if (hidden := self._hidden(line, commands, astray)) is not None:
            return Verdict("ask", hidden, rules)
        return by_mode

    def _denying(self, commands: Sequence[SimpleCommand], files: Sequence[_Target]) -> Rule | None:
        """The first rule that denies a command, or to read a file that one names."""
        for rule in self._deny:
            if rule.names("bash") and (rule.pattern is None or any(map(rule.denies_command, commands))):
                return rule
        fitting = (self._fitting(self._deny, "read", *each.names) for each in files)
        return next((rule for rule in fitting if rule is not None), None)

    def _allows(self, command: SimpleCommand) -> bool:
        return any(rule.names("bash") and rule.allows_command(command) for rule in self._allow)

    def _hidden(self, line: str, commands: Sequence[SimpleCommand] | None, astray: bool) -> str | None:
        """A sentence about what the line does not tell, if it matters."""
        denied = {tool for tool in ("bash", "read") if any(rule.names(tool) for rule in self._deny)}
        if "bash" in denied and (commands is None or not all(each.known for each in commands)):
            return "which programs this runs cannot be told before, and some are denied."
        words = _WORD.findall(line) if commands is None else list(_paths_in(commands))
        if "read" in denied and (commands is None or any(UNKNOWN in each for each in words)):
            return "which files this names cannot be told before, and some are denied."
        names = [each.name for each in self._secrets]
        for number, each in enumerate(words):
            unclear = commands is None or number >= _MAX_PATHS or _leads_anywhere(each, astray)
            if unclear and could_be_secret(_pattern(each), names):
                shown = each.replace(UNKNOWN, "…")
                return f"it cannot be told before what {shown} is: perhaps where secrets are kept."
        return None

    async def _folders_of(self, commands: Sequence[SimpleCommand]) -> tuple[list[Path], bool]:
        """Where relative paths may begin, as `cd` says, and whether it may lead anywhere."""
        folders, astray = [self._environment.cwd], False
        for command in commands:
            if command.words[:1] in (("cd",), ("pushd",)):
                goal = command.shapes[-1] if len(command.shapes) > 1 else "~"
                if goal == "-" or any(each in goal for each in _OPEN):
                    astray = True
                else:
                    with suppress(ToolError):
                        folders.append(await self._environment.place(_below(folders[-1], goal)))
        return folders[:_MAX_FOLDERS], astray or len(folders) > _MAX_FOLDERS

    async def _files_of(self, commands: Sequence[SimpleCommand], folders: Sequence[Path]) -> list[_Target]:
        """The files that the commands name, as far as the line tells."""
        files = []
        words = [each for each in islice(_paths_in(commands), _MAX_PATHS) if not _leads_anywhere(each)]
        for folder, word in product(folders, words):
            with suppress(ToolError):  # then it is no path
                pattern = await self._environment.place(_below(folder, _pattern(word)))
                places = await expanded(self._environment, pattern, hidden=UNKNOWN in word)
                places.sort(key=self._keeps_secrets, reverse=True)
                files += [await self._target(place) for place in places[:_MAX_PATHS]]
        return files


def _below(folder: Path, path: str) -> str:
    return path if not path or path.startswith(("/", "~")) else f"{folder}/{path}"


def _paths_in(commands: Sequence[SimpleCommand]) -> Iterator[str]:
    """Words that may be paths: `--file=x` and `@x` name one too, and what is only printed names none."""
    for command in commands:
        yield from command.reads
        if command.feeds or command.words[:1] not in (("echo",), ("printf",)):
            has_shell = any(PurePath(word).name in _SHELLS for word in command.words)
            for word in command.shapes:
                for each in alternatives(word):
                    yield each.rpartition("=")[2].removeprefix("@")
                yield from _IN_CODE.findall(word)
                if has_shell and " " in word:
                    yield from _paths_in(read_command_line(word) or ())


def _pattern(word: str) -> str:
    return word.replace(UNKNOWN, "*")


def _leads_anywhere(word: str, astray: bool = False) -> bool:
    """Whether not even the folder can be told; `astray`: relative paths may begin anywhere.

    A name of which nothing is written counts as that, too.
    """
    folder, _, name = word.rpartition("/")
    if UNKNOWN in folder or (UNKNOWN in name and not any(each.isalnum() for each in name)):
        return True
    return astray and not word.startswith(("/", "~")) and any(each in word for each in _OPEN)


def _denied_by(rule: Rule) -> Verdict:
    return Verdict("deny", f"the rule {rule} forbids it.")


def _looks_inside(place: Path, cwd: Path) -> bool:
    """Whether a path seems to be below the working directory, `..` taken at its word."""
    return Path(os.path.normpath(place)).is_relative_to(cwd)
