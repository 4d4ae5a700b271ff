"""Values to JSON and back: camelCase on disk and on the wire, snake_case here.

`to_json` and `from_json` work on any attrs class of this package, driven by its annotations,
so a new value needs no code here. Fields that are None by default are left out when None
(unless their metadata says `always`); fields that the class does not know, and explicit nulls,
survive in `extra`. A null where the class knows a default means the default.

`dumps` and `loads` are orjson, with the standard library where orjson refuses or would lose
something: lone surrogates, integers of more than 64 bits, deep nesting.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias, TypeVar, Union, cast

import attrs
import orjson

from pi_trio import messages as _messages
from pi_trio.messages import EMPTY, AgentMessage, Content, OpaqueContent, OpaqueMessage

__all__ = ["dumps", "from_json", "json_name", "loads", "message_from_json", "register_message", "to_json"]

T = TypeVar("T")
Convert: TypeAlias = Callable[[Any], Any]


# ------------------------------------------------------------------ bytes


_LONG_INTEGER = re.compile(rb"(?<![0-9.])[0-9]{19}")


def dumps(value: Any) -> bytes:
    """Compact UTF-8 JSON of plain data (dicts, lists, numbers, text), without a line end.

    Raises `TypeError` or `ValueError` for what JSON cannot say.
    """
    try:
        return orjson.dumps(value)
    except TypeError:  # orjson.JSONEncodeError: surrogates, 64 bits, more than 254 levels
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()


def loads(data: bytes | str) -> Any:
    """The data of a JSON text. Raises `ValueError` with the place of the fault."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if not _LONG_INTEGER.search(raw):  # orjson would turn large integers into floats
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass  # the standard library reads more, and tells faults as everybody knows them
    try:
        return json.loads(raw, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("The JSON is nested too deeply.") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON.")


# ------------------------------------------------------------------ values


@cache
def json_name(name: str) -> str:
    """`tool_call_id` -> `toolCallId`."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def to_json(value: Any) -> Any:
    """Plain data of an attrs value (or of containers of them); what is not attrs passes through."""
    if attrs.has(type(value)):
        return _encoder(type(value))(value)
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def from_json(cls: type[T], data: Mapping[str, Any]) -> T:
    """A value of `cls` from plain data. Raises `ValueError` when a required field is missing."""
    return cast("T", _decoder(cls)(data))


def message_from_json(data: Mapping[str, Any]) -> AgentMessage:
    """A message of any role; an unknown role gives an `OpaqueMessage`."""
    return cast("AgentMessage", _decode_message(data))


def register_message(cls: type[Any]) -> type[Any]:
    """Make an application's message class (attrs, with a `role` class variable) readable."""
    _roles()[cls.role] = cls
    return cls


def _tag(cls: type[Any]) -> str | None:
    """The key that says which class it is: `type` or `role`, when it is a class variable."""
    for key in ("type", "role"):
        if isinstance(getattr(cls, key, None), str):
            return key
    return None


def _encoder(cls: type[Any]) -> Convert:
    made = _ENCODERS.get(cls)
    if made is None:
        made = _ENCODERS[cls] = _make_encoder(cls)
    return made


def _decoder(cls: type[Any]) -> Convert:
    made = _DECODERS.get(cls)
    if made is None:
        made = _DECODERS[cls] = _make_decoder(cls)
    return made


_ENCODERS: dict[type[Any], Convert] = {}
_DECODERS: dict[type[Any], Convert] = {}
_PLAIN = frozenset({str, int, float, bool, type(None)})


def _make_encoder(cls: type[Any]) -> Convert:
    tag = _tag(cls)
    fields = attrs.fields_dict(cls)
    plan = [
        (name, json_name(name), spec.default is None and not spec.metadata.get("always"))
        for name, spec in fields.items()
        if name != "extra"
    ]
    keeps_extra = "extra" in fields

    def encode(value: Any) -> dict[str, Any]:
        out: dict[str, Any] = {tag: getattr(value, tag)} if tag else {}
        for name, key, optional in plan:
            item = getattr(value, name)
            if item is None and optional:
                continue
            out[key] = item if type(item) in _PLAIN else to_json(item)
        if keeps_extra:
            for key, item in value.extra.items():
                out.setdefault(key, item)  # a null kept there must not undo a field set since
        return out

    return encode


def _make_decoder(cls: type[Any]) -> Convert:
    if not attrs.has(cls):
        raise TypeError(f"{cls.__name__} is not an attrs class")
    hints = typing.get_type_hints(cls)
    fields = attrs.fields_dict(cls)
    plan = {
        json_name(name): (
            name,
            _converter(hints[name]),
            _null_means_absent(spec, hints[name]),
        )
        for name, spec in fields.items()
        if name != "extra"
    }
    known_tag = _tag(cls)
    required = [json_name(name) for name, spec in fields.items() if spec.default is attrs.NOTHING]
    keeps_extra = "extra" in fields

    def decode(data: Mapping[str, Any]) -> Any:
        values: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, item in data.items():
            if key == known_tag:
                continue
            known = plan.get(key)
            if known is None or (item is None and known[2]):
                extra[key] = item
            else:
                values[known[0]] = known[1](item)
        for key in required:
            if plan[key][0] not in values:
                raise ValueError(f"{cls.__name__}: `{key}` is missing")
        if keeps_extra and extra:
            values["extra"] = extra
        return cls(**values)

    return decode


def _null_means_absent(spec: attrs.Attribute[Any], hint: Any) -> bool:
    """Whether null is no value of a field, so that it counts as left out."""
    if spec.metadata.get("always"):
        return False
    takes_null = spec.converter is not None or hint is Any or type(None) in typing.get_args(hint)
    return spec.default is not attrs.NOTHING or not takes_null


def _same(item: Any) -> Any:
    return item


def _converter(hint: Any) -> Convert:
    """How to read a field of this annotation. Data of an unexpected shape passes as it is."""
    if hint is _messages.AgentMessage:
        return _decode_message
    if hint is Content or _is_content_union(hint):
        return _decode_content
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        item = _converter(args[0])
        return lambda value: tuple(item(each) for each in value) if isinstance(value, list) else value
    if origin in (Union, types.UnionType):
        options = [option for option in args if option is not type(None)]
        structured = [_converter(option) for option in options]
        useful = [convert for convert in structured if convert is not _same]
        return useful[0] if len(useful) == 1 else _same
    if isinstance(hint, type) and attrs.has(hint):
        return lambda value: _decoder(hint)(value) if isinstance(value, dict) else value
    return _same


def _is_content_union(hint: Any) -> bool:
    return OpaqueContent in typing.get_args(hint)


@cache
def _blocks() -> dict[str, type[Any]]:
    return {cls.type: cls for cls in typing.get_args(Content) if cls is not OpaqueContent}


@cache
def _roles() -> dict[str, type[Any]]:
    return {cls.role: cls for cls in typing.get_args(AgentMessage) if cls is not OpaqueMessage}


def _decode_content(data: Any) -> Any:
    return _decode_tagged(data, "type", _blocks(), OpaqueContent)


def _decode_message(data: Any) -> Any:
    return _decode_tagged(data, "role", _roles(), OpaqueMessage)


def _decode_tagged(data: Any, tag: str, classes: Mapping[str, type[Any]], opaque: type[Any]) -> Any:
    """The class that `tag` names; the opaque one for an unknown or incomplete value."""
    if not isinstance(data, dict):
        return data
    name = data.get(tag)
    cls = classes.get(name) if isinstance(name, str) else None
    if cls is not None:
        try:
            return _decoder(cls)(data)
        except ValueError:
            pass  # a required field is missing: keep the value whole rather than guess
    rest = {key: item for key, item in data.items() if key != tag}
    return opaque(name if isinstance(name, str) else "", extra=rest or EMPTY)
