"""What annotations mean as JSON: for each kind a schema, and the value that is read of what fits it."""

from __future__ import annotations

import dataclasses
import datetime
import sys
from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict

import attrs
import pytest
from jsonschema import Draft202012Validator

from pi_trio.annotations import Place, form_of
from pi_trio.errors import UsageError

UserId = NewType("UserId", int)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Place2D(TypedDict):
    x: float
    y: NotRequired[Annotated[float, "up"]]


@dataclasses.dataclass
class Street:
    name: str
    number: int = 1
    scale: dataclasses.InitVar[int] = 1
    label: str = dataclasses.field(init=False)
    tags: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self, scale: int) -> None:
        self.label = f"{self.name} {self.number * scale}"


@attrs.frozen
class House:
    street: Street
    _colours: tuple[Colour, ...] = ()


@dataclasses.dataclass
class Node:
    children: list[Node]


@dataclasses.dataclass
class Dated:
    when: datetime.date


def schema(annotation: Any) -> Any:
    found = form_of(annotation, Place("f.x")).schema
    Draft202012Validator.check_schema(found)
    return found


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (UserId, {"type": "integer"}),
        (list, {"type": "array", "items": {}}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (dict, {"type": "object", "additionalProperties": {}}),
        (Mapping[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1], {"type": ["string", "integer"], "enum": ["a", 1]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Literal[Colour.RED], {"type": "string", "enum": ["red"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (int | None, {"type": ["integer", "null"]}),
        (Colour | None, {"anyOf": [{"type": "string", "enum": ["red", "blue"]}, {"type": "null"}]}),
        (UserId | int, {"type": ["integer"]}),
        (list[int] | None, {"type": ["array", "null"], "items": {"type": "integer"}}),
        (
            list[int] | str | None,
            {
                "anyOf": [
                    {"type": "array", "items": {"type": "integer"}},
                    {"type": "string"},
                    {"type": "null"},
                ]
            },
        ),
        (Annotated[int, "How many", 7], {"type": "integer", "description": "How many"}),
        (Annotated[int, {"minimum": 1}], {"type": "integer", "minimum": 1}),
        (
            Place2D,
            {
                "type": "object",
                "properties": {"x": {"type": "number"}, "y": {"type": "number", "description": "up"}},
                "required": ["x"],
                "additionalProperties": False,
            },
        ),
    ],
    ids=str,
)
def test_schema(annotation: Any, expected: Any) -> None:
    assert schema(annotation) == expected


def test_the_schema_of_a_class_is_its_constructors() -> None:
    house = schema(House)
    assert house["required"] == ["street"]
    assert list(house["properties"]) == ["street", "colours"]
    street = house["properties"]["street"]
    assert street["required"] == ["name"]
    assert list(street["properties"]) == ["name", "number", "scale", "tags"]
    assert street["properties"]["number"] == {"type": "integer", "default": 1}


@pytest.mark.parametrize(
    ("annotation", "given", "expected"),
    [
        (int, 3.0, 3),
        (float, 3, 3.0),
        (None, None, None),
        (Any, {"a": [1]}, {"a": [1]}),
        (list[float], [1, 2], [1.0, 2.0]),
        (set[str], ["a"], {"a"}),
        (frozenset[str], ["a"], frozenset("a")),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[int, Colour], [1, "red"], (1, Colour.RED)),
        (dict[str, Colour], {"sky": "blue"}, {"sky": Colour.BLUE}),
        (Literal[1, True], True, True),
        (Literal[True, 1], 1, 1),
        (Level, 2.0, Level.HIGH),
        (Colour | int, "blue", Colour.BLUE),
        (Colour | int, 4, 4),
        (Street | Colour | None, {"name": "Low Road"}, Street("Low Road")),
        (Street | Colour | None, None, None),
        (Street | None, {"name": "A"}, Street("A")),
        (list[float] | None, [1], [1.0]),
        (list[float] | None, None, None),
        (Place2D, {"x": 1}, {"x": 1.0}),
        (House, {"street": {"name": "A"}, "colours": ["red"]}, House(Street("A"), (Colour.RED,))),
        (Street, {"name": "A", "number": 2, "scale": 3}, Street("A", 2, 3)),
    ],
    ids=str,
)
def test_read(annotation: Any, given: Any, expected: Any) -> None:
    form = form_of(annotation, Place("f.x"))
    assert Draft202012Validator(form.schema).is_valid(given)
    found = form.read(given)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement came with Python 3.12")
def test_type_statement() -> None:
    names: dict[str, Any] = {}
    exec("type Port = int\nports = list[Port]", names)
    assert schema(names["ports"]) == {"type": "array", "items": {"type": "integer"}}


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (datetime.date, "f.x: date cannot be said in JSON. What can: str, int"),
        (Dated, "f.x.when: date cannot be said"),
        (list[Dated], "f.x.when: date cannot be said"),
        (dict[int, str], "f.x: the keys of a JSON object are text: use dict[str, …]"),
        (Literal[b"a"], "f.x: b'a' is no value that JSON has"),
        (Node, "f.x.children: Node is a part of itself"),
        (type[int], "f.x: type[int] cannot be said in JSON"),
        ("int", "f.x: 'int' cannot be said in JSON"),
        ([int], "f.x: [<class 'int'>] cannot be said in JSON"),
    ],
    ids=str,
)
def test_what_json_cannot_say_is_told_with_its_place(annotation: Any, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        form_of(annotation, Place("f.x"))
    assert str(refused.value).startswith(message)


def test_a_value_of_no_member_of_a_union_is_refused() -> None:
    with pytest.raises(ValueError, match="none of what is expected"):
        form_of(int | None, Place("f.x")).read("much")
    with pytest.raises(ValueError, match="none of"):
        form_of(Colour, Place("f.x")).read("green")
