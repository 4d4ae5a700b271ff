"""A JSON Schema for the answer: how it is asked for, read, and corrected.

It is asked for in words and held against the schema here, so that every model of every provider
can be asked, whatever forms of output that provider knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from pi_trio import codec
from pi_trio.cli.prompts import Prompt
from pi_trio.errors import UsageError
from pi_trio.plain_file import read_plain_file

__all__ = ["AnswerSchema", "MismatchError"]

_FENCED = re.compile(r"^```\w*[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_MOST_FAULTS = 5
_LONGEST_FAULT = 300


class MismatchError(Exception):
    """An answer does not match. The text names each place and what is wrong there."""


class AnswerSchema:
    """The schema in `document`. Raises `UsageError` if it is none."""

    def __init__(self, document: Any) -> None:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import validator_for
        from referencing.jsonschema import EMPTY_REGISTRY

        if not isinstance(document, (dict, bool)):
            raise UsageError("a JSON Schema is an object, or true or false")
        _check_dialect(document)
        kind = validator_for(document, default=Draft202012Validator)
        fault = next(kind(kind.META_SCHEMA, format_checker=kind.FORMAT_CHECKER).iter_errors(document), None)
        if fault is not None:
            raise UsageError(f"{fault.json_path}: {_short(fault.message)}")
        _check_references(document)
        self.document: dict[str, Any] | bool = document
        self._validator = kind(document, registry=EMPTY_REGISTRY)

    @classmethod
    def load(cls, path: Path) -> AnswerSchema:
        """The schema of a file. Raises `UsageError`, which names the file and the place in it."""
        try:
            return cls(codec.loads(read_plain_file(path)))
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise UsageError(f"{path} is not JSON: {error}") from error
        except UsageError as error:
            raise UsageError(f"{path} is not a JSON Schema that can be used: {error}") from None

    def ask(self, prompts: Sequence[Prompt]) -> list[Prompt]:
        """The prompts, the last of which also says what the answer has to be."""
        *before, last = prompts
        schema = codec.dumps(self.document).decode()
        text = (
            f"{last.text.rstrip()}\n\nWhen everything is done, answer with one JSON value that matches this "
            f"JSON Schema, and with nothing else: no other text, no code fence.\n{schema}"
        )
        return [*before, evolve(last, text=text)]

    def read(self, answer: str) -> Any:
        """The value of an answer, perhaps in a code fence. Raises `MismatchError`."""
        value = _value(answer)
        faults = sorted(self._validator.iter_errors(value), key=lambda fault: fault.json_path)
        if faults:
            told = [f"{fault.json_path}: {_short(fault.message)}" for fault in faults[:_MOST_FAULTS]]
            more = [f"and {len(faults) - _MOST_FAULTS} more"] if len(faults) > _MOST_FAULTS else []
            raise MismatchError("; ".join([*told, *more]))
        return value

    def correct(self, error: MismatchError) -> Prompt:
        """What a model is told whose answer did not match."""
        return Prompt(
            f"Your last answer does not match the JSON Schema: {error}\n"
            "Answer again with the whole JSON value, corrected, and with nothing else."
        )


def _value(answer: str) -> Any:
    try:
        return codec.loads(answer)
    except ValueError as error:
        fenced = _FENCED.findall(answer)
        if len(fenced) != 1:
            raise MismatchError(f"it is not JSON: {error}") from None
    try:
        return codec.loads(fenced[0])
    except ValueError as error:
        raise MismatchError(f"what is in its code fence is not JSON: {error}") from None


def _check_dialect(document: Any) -> None:
    from referencing.jsonschema import UnknownDialect, specification_with

    if isinstance(document, dict) and "$schema" in document:
        try:
            specification_with(str(document["$schema"]))
        except UnknownDialect as error:
            raise UsageError(f'"$schema": {error.uri!r} is not known') from None


def _check_references(document: Any) -> None:
    """Raise `UsageError` for a `$ref` that leads nowhere; nothing is fetched from elsewhere."""
    from referencing import Resource
    from referencing.exceptions import NoSuchResource, Unresolvable
    from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

    def visit(resource: Resource[Any], resolver: Any) -> None:
        reference = resource.contents.get("$ref") if isinstance(resource.contents, dict) else None
        if isinstance(reference, str):
            try:
                resolver.lookup(reference)
            except (Unresolvable, NoSuchResource):
                raise UsageError(f'"$ref": {reference!r} leads to nothing in it') from None
        for inner in resource.subresources():
            visit(inner, resolver.in_subresource(inner))

    root = Resource.from_contents(document, default_specification=DRAFT202012)
    visit(root, EMPTY_REGISTRY.resolver_with_root(root))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_FAULT else f"{text[:_LONGEST_FAULT]}…"
