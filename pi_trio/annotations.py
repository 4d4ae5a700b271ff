"""What an annotation means as JSON: a schema for models, and the reading of what fits it.

One function for each kind of annotation makes both, so they cannot disagree. Everything is
written out in place, without references: some providers know none.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping, MutableMapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, NotRequired, Required, Union, get_args, get_origin

import attrs
from attrs import frozen

from pi_trio.errors import UsageError

__all__ = ["Form", "Member", "Place", "hints_of", "object_form"]


@frozen
class Form:
    """`schema` is the JSON Schema; `read` makes the annotated value of JSON that fits it."""

    schema: Mapping[str, Any]
    read: Callable[[Any], Any]


@frozen
class Place:
    """Where an annotation stands, for a person to read, and the classes around it."""

    text: str
    inside: tuple[type, ...] = ()

    def member(self, name: str) -> Place:
        """The place of a member of what is here."""
        return Place(f"{self.text}.{name}", self.inside)

    def refusal(self, why: str) -> UsageError:
        """The error that names this place."""
        return UsageError(f"{self.text}: {why}")


@frozen
class Member:
    """A parameter of a function or a field of a class. Without a default it is required."""

    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty
    required: bool = True


_SCALARS: Mapping[Any, tuple[str, Callable[[Any], Any]]] = {
    str: ("string", str),
    bool: ("boolean", bool),
    int: ("integer", int),  # 3.0 is an integer too, as JSON Schema has it
    float: ("number", float),
    NoneType: ("null", lambda _: None),
    None: ("null", lambda _: None),
}
_ARRAYS: Mapping[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    Sequence: list,
    set: set,
    frozenset: frozenset,
}
_OBJECTS = (dict, Mapping, MutableMapping)
_WRAPPERS = (Required, NotRequired, *filter(None, [getattr(typing, "ReadOnly", None)]))
_ALIASES = tuple(filter(None, [getattr(typing, "TypeAliasType", None)]))  # from Python 3.12 on

KNOWN = (
    "str, int, float, bool, None, Any, Literal, Enum, list, tuple, set, dict[str, …], TypedDict, "
    "dataclasses, attrs classes, and unions of them"
)


def form_of(annotation: Any, place: Place) -> Form:
    """The form of one annotation. Raises `UsageError` that names `place` for what JSON cannot say."""
    kind, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if kind is Annotated:
        return _noted(form_of(arguments[0], place), arguments[1:])
    if kind in _WRAPPERS:
        return form_of(arguments[0], place)
    if isinstance(kind, NewType):
        return form_of(kind.__supertype__, place)
    if isinstance(kind, _ALIASES) and not arguments:
        return form_of(kind.__value__, place)
    if kind in (Union, UnionType):
        return _union([form_of(each, place) for each in arguments])
    if kind is Literal:
        return _choice(arguments, place)
    if kind is Any:
        return Form({}, _same)
    plain = _plain_form(kind, arguments, place) if isinstance(kind, Hashable) else None
    return plain or _class_form(annotation, place)


def hints_of(owner: Any, place: Place) -> Mapping[str, Any]:
    """The annotations of a function or class. Raises `UsageError` for names that lead nowhere."""
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except NameError as error:
        texts = inspect.get_annotations(owner).items()
        where = ", ".join(name for name, hint in texts if str(error.name) in str(hint))
        raise place.member(where).refusal(f"{error.name!r} is not known in its module") from None


def object_form(members: Iterable[Member], place: Place, make: Callable[..., Any]) -> Form:
    """A JSON object with these members. `make` is called with those that are given, by name."""
    members = tuple(members)
    forms = {each.name: form_of(each.annotation, place.member(each.name)) for each in members}
    schema = {
        "type": "object",
        "properties": {each.name: _with_default(forms[each.name].schema, each.default) for each in members},
        "required": [each.name for each in members if each.required],
        "additionalProperties": False,
    }
    return Form(schema, lambda value: make(**{name: forms[name].read(item) for name, item in value.items()}))


def _same(value: Any) -> Any:
    return value


def _noted(form: Form, notes: Iterable[Any]) -> Form:
    """A text describes the value; a mapping is JSON Schema that is laid over its own."""
    schema = dict(form.schema)
    for note in notes:
        if isinstance(note, str):
            schema["description"] = note
        elif isinstance(note, Mapping):
            schema.update(note)
    return Form(schema, form.read)


def _with_default(schema: Mapping[str, Any], default: Any) -> Mapping[str, Any]:
    """The schema that tells the default, if it is one that JSON has."""
    value = default.value if isinstance(default, Enum) else default
    return {**schema, "default": value} if type(value) in (str, int, float, bool) else schema


def _plain_form(kind: Any, arguments: tuple[Any, ...], place: Place) -> Form | None:
    """The form of what Python and JSON both have."""
    if kind in _SCALARS:
        name, read = _SCALARS[kind]
        return Form({"type": name}, read)
    if kind in _ARRAYS:
        return _array(form_of(arguments[0] if arguments else Any, place), _ARRAYS[kind])
    if kind is tuple:
        return _tuple(arguments, place)
    if kind in _OBJECTS:
        keys, values = arguments or (str, Any)
        return _mapping(keys, values, place)
    return None


def _array(items: Form, make: Callable[[Iterable[Any]], Any]) -> Form:
    schema: dict[str, Any] = {"type": "array", "items": items.schema}
    if make in (set, frozenset):
        schema["uniqueItems"] = True
    return Form(schema, lambda value: make(map(items.read, value)))


def _tuple(arguments: tuple[Any, ...], place: Place) -> Form:
    if not arguments or arguments[1:] == (...,):
        return _array(form_of(arguments[0] if arguments else Any, place), tuple)
    forms = [form_of(each, place) for each in arguments]
    schema = {
        "type": "array",
        "prefixItems": [form.schema for form in forms],
        "minItems": len(forms),
        "maxItems": len(forms),
    }
    return Form(schema, lambda value: tuple(form.read(item) for form, item in zip(forms, value, strict=True)))


def _mapping(keys: Any, values: Any, place: Place) -> Form:
    if keys is not str:
        raise place.refusal("the keys of a JSON object are text: use dict[str, …]")
    form = form_of(values, place)
    schema = {"type": "object", "additionalProperties": form.schema}
    return Form(schema, lambda value: {key: form.read(item) for key, item in value.items()})


def _union(forms: Sequence[Form]) -> Form:
    def read(value: Any) -> Any:
        from jsonschema import Draft202012Validator  # takes 60 ms, and the loop has done it by now

        for form in forms:
            if Draft202012Validator(form.schema).is_valid(value):
                return form.read(value)
        raise ValueError(f"{value!r} is none of what is expected")

    return Form(_union_schema([form.schema for form in forms]), read)


def _union_schema(schemas: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """A list of types where that says it all: providers, and the repair of arguments, know it best."""
    if all(schema.keys() == {"type"} for schema in schemas):
        return {"type": list(dict.fromkeys(schema["type"] for schema in schemas))}
    others = [schema for schema in schemas if schema != {"type": "null"}]
    if len(others) == 1 and others[0].get("type") in ("array", "object"):
        return {**others[0], "type": [others[0]["type"], "null"]}
    return {"anyOf": schemas}


def _choice(members: Iterable[Any], place: Place) -> Form:
    """One of some values: those of a `Literal`, or the members of an `Enum`."""
    choices = [(each.value if isinstance(each, Enum) else each, each) for each in members]
    odd = [value for value, _ in choices if type(value) not in _SCALARS]
    if odd:
        raise place.refusal(f"{odd[0]!r} is no value that JSON has")
    kinds = list(dict.fromkeys(_SCALARS[type(value)][0] for value, _ in choices))
    schema = {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": [value for value, _ in choices]}

    def read(given: Any) -> Any:
        for value, member in choices:
            if value == given and isinstance(value, bool) == isinstance(given, bool):
                return member
        raise ValueError(f"{given!r} is none of {schema['enum']}")

    return Form(schema, read)


def _class_form(annotation: Any, place: Place) -> Form:
    """The form of a class that says what its values are made of."""
    if not isinstance(annotation, type):
        raise place.refusal(f"{annotation!r} cannot be said in JSON. What can: {KNOWN}")
    if issubclass(annotation, Enum):
        return _choice(annotation, place)
    if annotation in place.inside:
        raise place.refusal(f"{annotation.__name__} is a part of itself, which cannot be written out")
    inner = Place(place.text, (*place.inside, annotation))
    if typing.is_typeddict(annotation):
        return object_form(_typed_dict_members(annotation, inner), inner, dict)
    if dataclasses.is_dataclass(annotation) or attrs.has(annotation):
        return object_form(_class_members(annotation, inner), inner, annotation)
    raise place.refusal(f"{annotation.__name__} cannot be said in JSON. What can: {KNOWN}")


def _typed_dict_members(cls: Any, place: Place) -> Iterable[Member]:
    for name, hint in hints_of(cls, place).items():
        yield Member(name, hint, required=_is_required(hint, name in cls.__required_keys__))


def _is_required(hint: Any, otherwise: bool) -> bool:
    """The hint's own word counts: of annotations kept as text `__required_keys__` knows nothing."""
    kind = get_origin(hint)
    if kind in (Required, NotRequired):
        return kind is Required
    return _is_required(get_args(hint)[0], otherwise) if kind in (Annotated, *_WRAPPERS) else otherwise


def _class_members(cls: type, place: Place) -> Iterable[Member]:
    """What the constructor takes; attrs has it without the underscore of a private field."""
    hints = hints_of(cls, place)
    names = {field.alias: field.name for field in attrs.fields(cls)} if attrs.has(cls) else {}
    for parameter in inspect.signature(cls).parameters.values():
        hint = hints[names.get(parameter.name, parameter.name)]
        hint = hint.type if isinstance(hint, dataclasses.InitVar) else hint
        required = parameter.default is parameter.empty
        yield Member(parameter.name, hint, parameter.default, required)
