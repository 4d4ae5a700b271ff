"""Rules that allow or deny tool calls: `write`, `bash(git status*)`, `read(~/secret/*)`.

A rule names a tool and, in brackets, a pattern for its command or path; `*` stands for
anything, `?` for one character. A relative path is one below the working directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from attrs import frozen

from pi_trio.tools.commandline import SimpleCommand
from pi_trio.written_path import home_expanded

__all__ = ["Rule", "exact_rule", "parse_rules"]

_FORM = re.compile(r"([\w*-]+)(?:\((.+)\))?", re.DOTALL)
_WILD = re.compile(r"[*?\[]")


@frozen
class Rule:
    """`pattern` None stands for every call of the tool."""

    tool: str
    pattern: str | None = None

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Raises `ValueError` for what is no rule."""
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a rule such as bash(git status*)")
        return cls(match[1], match[2])

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    def names(self, tool: str) -> bool:
        """Whether it is about this tool."""
        return fnmatchcase(tool, self.tool)

    def allows_command(self, command: SimpleCommand) -> bool:
        """Whether it is for just this program and nothing else that the line does beside it."""
        if self.pattern is None:
            return True
        return command.known and not command.writes and fnmatchcase(command.text, self.pattern)

    def denies_command(self, command: SimpleCommand) -> bool:
        """Whether it is for this program, also behind a wrapper or by its path."""
        if self.pattern is None:
            return True
        texts = [*command.tails(), *(tail.rpartition("/")[2] for tail in command.tails())]
        return any(fnmatchcase(text, self.pattern) for text in texts)

    def below(self, folder: Path, cwd: Path) -> str | None:
        """A glob, as ripgrep knows them, that fits its paths below `folder`; None if there are none.

        A `*` in a rule stands for slashes, too, so a glob may fit more than the rule, never less
        but for names with a `*` between other letters.
        """
        path = cwd / home_expanded(self.pattern or "*")
        if path.is_relative_to(folder):
            inside = f"/{path.relative_to(folder)}"
            return inside.replace("/*", "/**/*").replace("**/**", "**")
        fixed = Path(_WILD.split(str(path), maxsplit=1)[0] + "x").parent
        return f"/**/{path.name}" if folder.is_relative_to(fixed) else None

    def fits_path(self, path: Path, cwd: Path) -> bool:
        """Whether it is for this absolute path."""
        if self.pattern is None:
            return True
        return fnmatchcase(str(path), str(cwd / home_expanded(self.pattern)))


def parse_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """The rules. Raises `ValueError` for the first that is none."""
    return tuple(map(Rule.parse, texts))


def exact_rule(tool: str, text: str) -> str:
    """The rule for this command or path alone."""
    return str(Rule(tool, _WILD.sub(lambda match: f"[{match[0]}]", text)))
