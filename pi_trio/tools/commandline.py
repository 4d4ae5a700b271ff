"""What a shell would run: the simple commands of a command line, however they are put together.

This reads the real line: `;`, `&&`, `|`, `&`, line ends, subshells, substitutions (also inside
double quotes) and redirections. It need not understand all of a shell's grammar, because of
what it does not know it makes commands that nobody allowed (`do rm x` is one), and never none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import define, field, frozen

__all__ = ["SimpleCommand", "read_command_line"]

_MAX_DEPTH = 50
_REDIRECTION = re.compile(r"&>>?|[<>]\(|\d*(?:>>|>\||>&|<>|<<<|<<-?|<&|>|<)")
_HARMLESS_TARGET = re.compile(r"/dev/(null|stdout|stderr)|\d+|-")


@frozen
class SimpleCommand:
    """A program and its arguments, without quotes. Expansions (`$x`) stand as they are written.

    `writes` and `reads` are the files that it is redirected to and from. `known`: which program
    it is can be told from the words.
    """

    words: tuple[str, ...]
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    known: bool = True

    @property
    def text(self) -> str:
        """The words with a blank between them."""
        return " ".join(self.words)

    def tails(self) -> Iterator[str]:
        """The text from each word on: what a wrapper such as `sudo` or `xargs` would run."""
        return (" ".join(self.words[start:]) for start in range(len(self.words)))


def read_command_line(line: str) -> list[SimpleCommand] | None:
    """All commands that the line runs, the inner ones too; None if it cannot be read to its end."""
    reader = _Reader(line)
    try:
        reader.commands("")
    except _UnreadableError:
        return None
    return reader.found


class _UnreadableError(Exception):
    """A quote or bracket stays open, or they are too deep."""


@define
class _Command:
    """A command that is being read."""

    words: list[str] = field(factory=list)
    writes: list[str] = field(factory=list)
    reads: list[str] = field(factory=list)
    known: bool = True


class _Reader:
    """Goes through the line once."""

    def __init__(self, line: str) -> None:
        self.found: list[SimpleCommand] = []
        self._line = line
        self._at = 0
        self._depth = 0

    def commands(self, end: str) -> None:
        """Read commands up to the character `end`, and past it; without one to the end of the line."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _UnreadableError
        command = _Command()
        while self._at < len(self._line):
            character = self._line[self._at]
            redirection = _REDIRECTION.match(self._line, self._at)
            if end and character == end:
                break
            if redirection:
                self._redirect(command, redirection[0])
            elif character in " \t":
                self._at += 1
            elif self._line.startswith("\\\n", self._at):
                self._at += 2
            elif character == "#":
                self._skip_comment()
            elif character == "(":
                command = self._finish(command)
                self._at += 1
                self.commands(")")
            elif character in ";&|\n)":
                self._at += 1
                command = self._finish(command)
            else:
                self._add_word(command)
        else:
            if end:
                raise _UnreadableError
        self._finish(command)
        self._at += 1
        self._depth -= 1

    def _finish(self, command: _Command) -> _Command:
        """Take the command as complete, and give the next one."""
        if command.words or command.writes or command.reads:
            words, writes, reads = map(tuple, (command.words, command.writes, command.reads))
            self.found.append(SimpleCommand(words, writes, reads, command.known))
        return _Command()

    def _skip_comment(self) -> None:
        end = self._line.find("\n", self._at)
        self._at = end if end >= 0 else len(self._line)

    def _redirect(self, command: _Command, sign: str) -> None:
        self._at += len(sign)
        if sign in ("<(", ">("):  # a command in the place of a file
            self.commands(")")
            return
        while self._peek() in (" ", "\t"):
            self._at += 1
        target, _ = self._word()
        if ">" not in sign:
            command.reads.append(target)
        elif not _HARMLESS_TARGET.fullmatch(target):
            command.writes.append(target)

    def _add_word(self, command: _Command) -> None:
        word, plain = self._word()
        command.known = command.known and (plain or bool(command.words))
        command.words.append(word)

    # ---- words

    def _word(self) -> tuple[str, bool]:
        """The next word without its quotes, and whether it is just that, whatever variables hold."""
        pieces: list[str] = []
        plain = True
        while (character := self._peek()) and character not in " \t\n;&|()<>":
            self._at += 1
            match character:
                case "'":
                    pieces.append(self._upto("'"))
                case '"':
                    text, still = self._double_quoted()
                    pieces.append(text)
                    plain = plain and still
                case "\\":
                    pieces.append(self._next().replace("\n", ""))
                case "$" | "`":
                    pieces.append(self._expansion(character))
                    plain = False
                case _:
                    pieces.append(character)
                    plain = plain and character not in "*?[{~="
        return "".join(pieces), plain

    def _double_quoted(self) -> tuple[str, bool]:
        pieces: list[str] = []
        plain = True
        while (character := self._next()) != '"':
            if character == "\\":
                following = self._next()
                pieces.append(following if following in '$`"\\' else character + following)
                if following == "\n":
                    pieces.pop()
            elif character in "$`":
                pieces.append(self._expansion(character))
                plain = False
            else:
                pieces.append(character)
        return "".join(pieces), plain

    def _expansion(self, sign: str) -> str:
        """What follows `$` or a backquote, as it is written; the commands in it are read."""
        start = self._at - 1
        if sign == "`":
            inner = _Reader(re.sub(r"\\([$`\\])", r"\1", self._upto_backquote()))
            inner._depth = self._depth
            inner.commands("")
            self.found += inner.found
        elif self._peek() == "(":
            self._at += 1
            self.commands(")")
        return self._line[start : self._at]

    def _upto_backquote(self) -> str:
        pieces: list[str] = []
        while (character := self._next()) != "`":
            pieces.append(character + self._next() if character == "\\" else character)
        return "".join(pieces)

    def _upto(self, quote: str) -> str:
        end = self._line.find(quote, self._at)
        if end < 0:
            raise _UnreadableError
        text, self._at = self._line[self._at : end], end + 1
        return text

    def _peek(self) -> str:
        return self._line[self._at : self._at + 1]

    def _next(self) -> str:
        if self._at >= len(self._line):
            raise _UnreadableError
        self._at += 1
        return self._line[self._at - 1]
