"""An answer that has to match a JSON Schema: which schemas can be used, and how answers are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_trio.cli.answer_schema import AnswerSchema, MismatchError
from pi_trio.cli.prompts import Prompt
from pi_trio.errors import UsageError

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}}},
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"tag": {"enum": ["a", "b"]}},
}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "a JSON Schema is an object"),
        ({"type": "strin"}, r"\$\.type: 'strin' is not"),
        ({"properties": {"a": {"minimum": "1"}}}, r"\$\.properties\.a\.minimum: '1' is not of type 'number'"),
        ({"pattern": "("}, r"\$\.pattern: '\(' is not a 'regex'"),
        ({"items": {"$ref": "#/$defs/none"}}, r"#/\$defs/none' leads to nothing"),
        ({"$ref": "https://example.invalid/schema.json"}, "leads to nothing in it"),
        ({"$schema": "https://example.invalid/draft"}, "is not known"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_the_place(document: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        AnswerSchema(document)


@pytest.mark.parametrize(
    "document",
    [
        True,
        PERSON,
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"a": {}},
            "$ref": "#/definitions/a",
        },
        {"$id": "https://example.com/x", "$defs": {"a": {"$id": "a", "type": "string"}}, "$ref": "a"},
    ],
)
def test_a_sound_schema_is_taken(document: Any) -> None:
    AnswerSchema(document)


def test_the_file_is_named(tmp_path: Path) -> None:
    for name, content, told in (
        ("none", None, "none cannot be read: No such file"),
        ("text", "{", "text is not JSON: "),
        ("odd", '{"type": 1}', r"odd is not a JSON Schema that can be used: \$\.type"),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_text(content)
        with pytest.raises(UsageError, match=told):
            AnswerSchema.load(path)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "x"}',
        '\n {"name": "x"} \n',
        '```json\n{"name": "x"}\n```',
        'Here it is:\n\n```\n{"name": "x"}\n```\nAnything else?\n',
    ],
)
def test_an_answer_is_read_bare_or_in_a_fence(text: str) -> None:
    assert AnswerSchema(PERSON).read(text) == {"name": "x"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is not JSON"),
        ("Sure!", "it is not JSON"),
        ("```\n1\n```\n```\n2\n```", "it is not JSON"),
        ("```\n{\n```", "what is in its code fence is not JSON"),
        ("{}", r"^\$: 'name' is a required property$"),
        ('{"name": "x", "tags": ["a", "c"]}', r"^\$\.tags\[1\]: 'c' is not one of \['a', 'b'\]$"),
        ('{"name": 1, "more": 2}', r"Additional properties.*; \$\.name: 1 is not of type 'string'$"),
    ],
)
def test_what_does_not_match_is_told_with_its_path(text: str, told: str) -> None:
    with pytest.raises(MismatchError, match=told):
        AnswerSchema(PERSON).read(text)


def test_what_is_told_stays_short() -> None:
    schema = AnswerSchema({"type": "array", "items": {"type": "string"}})
    with pytest.raises(MismatchError, match=r"; and 95 more$") as raised:
        schema.read(json.dumps([{"k": "v" * 10_000}] * 100))
    assert len(str(raised.value)) < 2_000


def test_only_the_last_prompt_asks_for_it() -> None:
    first, last = AnswerSchema(PERSON).ask([Prompt("one"), Prompt("two\n")])
    assert first == Prompt("one")
    assert last.text.startswith("two\n\n")
    assert json.loads(last.text.splitlines()[-1]) == PERSON
