"""Prompt templates: Markdown files that `/name arguments` puts into a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attrs import frozen

from pi_trio.errors import ConfigError
from pi_trio.resources.paths import is_file, is_folder
from pi_trio.resources.prompt_text import read_document

__all__ = [
    "PromptTemplate",
    "PromptTemplates",
    "expand_template",
    "load_templates",
    "split_arguments",
    "substitute",
]

MAX_HINT = 60

_WORD = re.compile(r"""(?:[^\s"']|"[^"]*(?:"|\Z)|'[^']*(?:'|\Z))+""")
_QUOTED = re.compile(r""""([^"]*)(?:"|\Z)|'([^']*)(?:'|\Z)""")
_PLACE = re.compile(
    r"\$\{(?P<name>\d+|@|ARGUMENTS):-(?P<default>[^}]*)\}"
    r"|\$\{@:(?P<start>\d+)(?::(?P<length>\d+))?\}"
    r"|\$(?P<bare>\d+|@|ARGUMENTS)"
)


@frozen
class PromptTemplate:
    """A template. `argument_hint` says what follows its name, in a person's words."""

    name: str
    description: str
    body: str
    path: Path
    argument_hint: str = ""


@frozen
class PromptTemplates:
    """The templates in the order of finding; `findings` say what was left out, and why."""

    templates: tuple[PromptTemplate, ...] = ()
    findings: tuple[str, ...] = ()


def load_templates(places: Iterable[Path]) -> PromptTemplates:
    """Read the `.md` files of these folders, and single files. The first of a name wins."""
    found: dict[str, PromptTemplate] = {}
    findings: list[str] = []
    for path in _files(places):
        try:
            template = _read(path)
        except ConfigError as error:
            findings.append(str(error))
            continue
        first = found.setdefault(template.name, template)
        if first is not template and first.path.resolve() != path.resolve():
            findings.append(f"{path} was left out: the template {template.name} is also in {first.path}")
    return PromptTemplates(tuple(found.values()), tuple(findings))


def expand_template(template: PromptTemplate, arguments: str = "") -> str:
    """The prompt that `/name arguments` stands for."""
    return substitute(template.body, split_arguments(arguments))


def split_arguments(text: str) -> list[str]:
    """Words as a shell splits them, with single and double quotes; a missing quote ends the text."""
    return [_QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or "", word) for word in _WORD.findall(text)]


def substitute(body: str, arguments: Sequence[str]) -> str:
    """`body` with its `$1`, `$@`, `${1:-default}`, `${@:2}` … filled in, in one pass.

    A value is never looked through for places itself; an argument that is missing is empty.
    """

    def fill(place: re.Match[str]) -> str:
        if place["start"] is not None:
            start = max(int(place["start"]), 1) - 1
            end = start + int(place["length"]) if place["length"] else None
            return " ".join(arguments[start:end])
        return _value(place["name"] or place["bare"], arguments) or place["default"] or ""

    return _PLACE.sub(fill, body)


def _value(name: str, arguments: Sequence[str]) -> str:
    if not name.isdigit():
        return " ".join(arguments)
    number = int(name)
    return arguments[number - 1] if 1 <= number <= len(arguments) else ""


def _files(places: Iterable[Path]) -> Iterator[Path]:
    for place in places:
        if is_file(place):
            yield place
        elif is_folder(place):
            yield from sorted(path for path in place.glob("*.md") if is_file(path))


def _read(path: Path) -> PromptTemplate:
    document = read_document(path)
    description = document.text("description") or _first_line(document.body)
    return PromptTemplate(path.stem, description, document.body, path, document.text("argument-hint"))


def _first_line(body: str) -> str:
    line = next((line.strip() for line in body.splitlines() if line.strip()), "")
    return line if len(line) <= MAX_HINT else f"{line[:MAX_HINT]}..."
