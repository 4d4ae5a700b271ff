"""What a shell would run: the simple commands of a command line, however they are put together.

This reads the real line: `;`, `&&`, `|`, `&`, line ends, subshells, substitutions (also inside
double quotes) and redirections. It need not understand all of a shell's grammar, because of
what it does not know it makes commands that nobody allowed (`do rm x` is one), and never none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import define, evolve, field, frozen

__all__ = ["UNKNOWN", "SimpleCommand", "read_command_line"]

UNKNOWN = "\0"
"""Stands in a shape for what only the shell will know. No command can hold it."""

_MAX_DEPTH = 50
_REDIRECTION = re.compile(r"&>>?|[<>]\(|\d*(?:>>|>\||>&|<>|<<<|<<-?|<&|>|<)")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\}|[@*#?$!-])")
_BRACED = re.compile(rf"{UNKNOWN}\{{[#!]?\w+(?::?[-=+]([^{{}}]*)|[^{{}}]*)\}}")
_ASSIGNMENT = re.compile(r"(\w+)=(.*)", re.DOTALL)
_ASSIGNS_OTHERWISE = ("for", "select", "read", "printf", "mapfile", "readarray", "unset", "let")
_HARMLESS_TARGET = re.compile(r"/dev/(null|stdout|stderr)|\d+|-")


@frozen
class SimpleCommand:
    """A program and its arguments, without quotes. Expansions (`$x`) stand as they are written.

    In `shapes`, the same words again, what an expansion comes to stands in its place if the
    line itself tells, else `UNKNOWN`. `writes` and `reads` are the files that it is redirected
    to and from, `reads` as shapes. `known`: which program it is can be told from the words.
    `feeds`: what it prints becomes words or the input of another program.
    """

    words: tuple[str, ...]
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    known: bool = True
    shapes: tuple[str, ...] = ()
    feeds: bool = False

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
    shapes: list[str] = field(factory=list)
    writes: list[str] = field(factory=list)
    reads: list[str] = field(factory=list)
    known: bool = True


@define
class _Word:
    """A word that is being read. `plain`: it is just that, whatever variables hold."""

    text: str = ""
    shape: str = ""
    plain: bool = True

    def add(self, text: str, shape: str | None = None) -> None:
        """Without a shape it is the text."""
        self.text += text
        self.shape += text if shape is None else shape


class _Reader:
    """Goes through the line once."""

    def __init__(self, line: str, values: dict[str, str] | None = None) -> None:
        self.found: list[SimpleCommand] = []
        self._values = {"HOME": "~"} if values is None else values
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
                piped = character == "|" and self._line[self._at : self._at + 2] != "||"
                self._at += 1
                command = self._finish(command, feeds=piped)
            else:
                self._add_word(command)
        else:
            if end:
                raise _UnreadableError
        self._finish(command)
        self._at += 1
        self._depth -= 1

    def _finish(self, command: _Command, *, feeds: bool = False) -> _Command:
        """Take the command as complete, and give the next one."""
        if command.words or command.writes or command.reads:
            words, writes, reads = map(tuple, (command.words, command.writes, command.reads))
            shapes = tuple(command.shapes)
            self.found.append(SimpleCommand(words, writes, reads, command.known, shapes, feeds))
            self._note_values(shapes)
        return _Command()

    def _note_values(self, shapes: tuple[str, ...]) -> None:
        """What variables hold from here on; a second value, perhaps never given, makes them unknown."""
        for shape in shapes:
            if match := _ASSIGNMENT.fullmatch(shape):
                name, value = match.groups()
                self._values[name] = UNKNOWN if name in self._values else value
            elif shapes[0] in _ASSIGNS_OTHERWISE:
                self._values[shape] = UNKNOWN

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
        target = self._word()
        if ">" not in sign:
            command.reads.append(target.shape)
        elif not _HARMLESS_TARGET.fullmatch(target.text):
            command.writes.append(target.text)

    def _add_word(self, command: _Command) -> None:
        word = self._word()
        command.known = command.known and (word.plain or bool(command.words))
        command.words.append(word.text)
        command.shapes.append(word.shape)

    # ---- words

    def _word(self) -> _Word:
        """The next word without its quotes."""
        word = _Word()
        while (character := self._peek()) and character not in " \t\n;&|()<>":
            self._at += 1
            match character:
                case "'":
                    word.add(self._upto("'"))
                case '"':
                    self._double_quoted(word)
                case "\\":
                    word.add(self._next().replace("\n", ""))
                case "$" | "`":
                    self._expansion(character, word)
                case _:
                    word.add(character)
                    word.plain = word.plain and character not in "*?[{~="
        word.shape = _BRACED.sub(_either, word.shape)
        return word

    def _double_quoted(self, word: _Word) -> None:
        while (character := self._next()) != '"':
            if character == "\\":
                following = self._next()
                if following != "\n":
                    word.add(following if following in '$`"\\' else character + following)
            elif character in "$`":
                self._expansion(character, word)
            else:
                word.add(character)

    def _expansion(self, sign: str, word: _Word) -> None:
        """What `$` or a backquote begins, as it is written; the commands in it are read."""
        word.plain = False
        start = self._at - 1
        if sign == "`":
            inner = _Reader(re.sub(r"\\([$`\\])", r"\1", self._upto_backquote()), self._values)
            inner._depth = self._depth
            inner.commands("")
            self.found += inner.found
            shape = self._substituted(len(inner.found))
        elif self._peek() == "(":
            before = len(self.found)
            self._at += 1
            self.commands(")")
            shape = self._substituted(len(self.found) - before)
        elif self._peek() == "'":
            self._at += 1
            word.add("$" + (text := self._upto("'")), UNKNOWN if "\\" in text else text)
            return
        elif variable := _VARIABLE.match(self._line, start):
            self._at = variable.end()
            shape = self._values.get(variable[1] or variable[2], UNKNOWN)
        else:  # with a default or a pattern in it, whose letters stand for themselves
            shape = UNKNOWN
        word.add(self._line[start : self._at], shape)

    def _substituted(self, count: int) -> str:
        """What the last commands print, all that a substitution has; they do so into a word."""
        first = len(self.found) - count
        commands = [evolve(each, feeds=True) for each in self.found[first:]]
        self.found[first:] = commands
        plain = len(commands) == 1 and commands[0].words[:1] == ("echo",)
        shapes = commands[0].shapes[1:] if plain else (UNKNOWN,)
        return UNKNOWN if any(each.startswith("-") for each in shapes) else " ".join(shapes)

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


def _either(braced: re.Match[str]) -> str:
    """What a variable with more in its braces stands for; a default in them is one of two alternatives."""
    return f"{{{UNKNOWN},{braced[1]}}}" if braced[1] else UNKNOWN
