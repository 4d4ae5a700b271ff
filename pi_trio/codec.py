"""Values to JSON and back: camelCase on disk and on the wire, snake_case here.

`to_json` and `from_json` work on any attrs class of this package, driven by its annotations,
so a new value needs no code here. Fields that are None by default are left out when None
(unless their metadata says `always`); fields that the class does not know, and explicit nulls,
survive in `extra`.

`dumps` and `loads` are orjson, with the standard library where orjson refuses or would lose
something: lone surrogates, integers of more than 64 bits, deep nesting.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NoReturn, TypeAlias, TypeVar, Union, cast

import attrs
import orjson

from pi_trio import messages as _messages
from pi_trio.messages import EMPTY, AgentMessage, Content, OpaqueContent, OpaqueMessage

__all__ = ["dumps", "from_json", "json_name", "loads", "message_from_json", "register_message", "to_json"]

T = TypeVar("T")
Convert: TypeAlias = Callable[[Any], Any]


# ------------------------------------------------------------------ bytes


_LONG = b"0" * 19
_SHAPE = bytes(48 if 48 <= byte <= 57 else 46 if byte == 46 else 32 for byte in range(256))
"""Makes every digit a zero and all but the decimal point blank."""


def dumps(value: Any) -> bytes:
    """Compact UTF-8 JSON of plain data (dicts, lists, numbers, text), without a line end.

    Raises `TypeError` or `ValueError` for what JSON cannot say.
    """
    try:
        # A copy of just the size: orjson's own result holds on to its whole buffer, kilobytes of it.
        return bytes(memoryview(orjson.dumps(value)))
    except TypeError:  # orjson.JSONEncodeError: surrogates, 64 bits, more than 254 levels
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()


def loads(data: bytes | str) -> Any:
    """The data of a JSON text. Raises `ValueError` with the place of the fault."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if not _has_long_integer(raw):  # orjson would turn large integers into floats
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


def _has_long_integer(raw: bytes) -> bool:
    """Whether there may be an integer of 19 digits or more; decimal places are none."""
    shape = raw.translate(_SHAPE)
    place = shape.find(_LONG)
    while place > 0 and shape[place - 1] == ord("."):
        end = shape.find(b" ", place)
        place = shape.find(_LONG, end) if end >= 0 else -1
    return place >= 0


# ------------------------------------------------------------------ values


@cache
def json_name(name: str) -> str:
    """`tool_call_id` -> `toolCallId`."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def to_json(value: Any) -> Any:
    """Plain data of an attrs value (or of containers of them); what is not attrs passes through."""
    kind = value.__class__
    if kind in _PLAIN:
        return value
    encode = _ENCODERS.get(kind)
    if encode is not None:
        return encode(value)
    if kind is dict or isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return _encoder(kind)(value) if attrs.has(kind) else value


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
    """A function written for the class, as attrs writes `__init__`: every event goes through it."""
    tag = _tag(cls)
    fields = attrs.fields_dict(cls)
    lines = [f"_out = {{{tag!r}: _value.{tag}}}" if tag else "_out = {}"]
    for name, spec in fields.items():
        if name == "extra":
            continue
        optional = spec.default is None and not spec.metadata.get("always")
        put = f"_out[{json_name(name)!r}] = _item if _item.__class__ in _PLAIN else to_json(_item)"
        lines += [f"_item = _value.{name}", f"if _item is not None: {put}" if optional else put]
    if "extra" in fields:
        # A null kept there must not undo a field set since.
        lines.append("for _key, _item in _value.extra.items(): _out.setdefault(_key, _item)")
    lines.append("return _out")
    scope = {"_PLAIN": _PLAIN, "to_json": to_json}
    exec("\n    ".join(["def _encode(_value):", *lines]), scope)  # noqa: S102 - only names of our own fields
    return cast("Convert", scope["_encode"])


def _make_decoder(cls: type[Any]) -> Convert:
    """A function written for the class, as attrs writes `__init__`: whole sessions are read with it.

    It reads each field into a variable of its name, and counts what it found to see whether
    there is anything else.
    """
    if not attrs.has(cls):
        raise TypeError(f"{cls.__name__} is not an attrs class")
    hints = typing.get_type_hints(cls)
    fields = attrs.fields_dict(cls)
    known = sorted((spec for name, spec in fields.items() if name != "extra"), key=lambda spec: spec.kw_only)
    scope: dict[str, Any] = {"_cls": cls, "_tag": _tag(cls), "_rest": _rest, "_missing": _missing}
    reading = [line for spec in known for line in _reading(spec, hints[spec.name], scope)] or ["pass"]
    arguments = ", ".join(f"{spec.name}={spec.name}" if spec.kw_only else spec.name for spec in known)
    lines = ["_count = _tag in _data", "try:", *(f"    {line}" for line in reading)]
    lines += ["except KeyError as _error:", "    _missing(_cls, _error)"]
    if "extra" in fields:
        scope["_known"] = {json_name(spec.name): _null_means_absent(spec, hints[spec.name]) for spec in known}
        lines += ["if _count != len(_data):"]
        lines += [f"    return _cls({arguments}, extra=_rest(_data, _tag, _known))"]
    lines.append(f"return _cls({arguments})")
    exec("\n    ".join(["def _decode(_data):", *lines]), scope)  # noqa: S102 - only names of our own fields
    return cast("Convert", scope["_decode"])


def _reading(spec: attrs.Attribute[Any], hint: Any, scope: dict[str, Any]) -> list[str]:
    """The statements that read one field."""
    name, key, convert = spec.name, repr(json_name(spec.name)), _converter(hint)
    scope[f"_convert_{name}"], scope[f"_shapes_{name}"] = convert, _shapes(spec, hint)
    read = f"_data[{key}]" if convert is _same else f"_convert_{name}(_data[{key}])"
    found = [f"{name} = {read}", "_count += 1"]
    fits = f"_data.get({key}).__class__ in _shapes_{name}" if scope[f"_shapes_{name}"] else None
    skips_null = _null_means_absent(spec, hint)
    if spec.default is attrs.NOTHING:
        absent = f"not ({fits})" if fits else f"_data[{key}] is None"
        return [*([f"if {absent}: raise KeyError({key})"] if skips_null else []), *found]
    scope[f"_default_{name}"] = getattr(spec.default, "factory", lambda: spec.default)
    there = f"if {fits or f'_data.get({key}) is not None'}:" if skips_null else f"if {key} in _data:"
    default = "None" if spec.default is None else f"_default_{name}()"
    return [there, *(f"    {line}" for line in found), "else:", f"    {name} = {default}"]


_SCALARS: Mapping[Any, tuple[type, ...]] = {
    str: (str,),
    int: (int, float),
    float: (int, float),
    bool: (bool,),
}


def _shapes(spec: attrs.Attribute[Any], hint: Any) -> tuple[type, ...]:
    """What a field may be in plain data; anything else counts as left out. Empty: whatever it is.

    A required number is taken as it is, since a file is told apart by what it says there.
    """
    if spec.converter is not None or (spec.default is attrs.NOTHING and hint in (int, float)):
        return ()
    if isinstance(hint, type) and attrs.has(hint):
        return (dict,)
    if typing.get_origin(hint) is tuple:
        return (list,)
    return _SCALARS.get(hint, ())


def _null_means_absent(spec: attrs.Attribute[Any], hint: Any) -> bool:
    """Whether null is no value of a field, so that it counts as left out."""
    if spec.metadata.get("always"):
        return False
    takes_null = spec.converter is not None or hint is Any or type(None) in typing.get_args(hint)
    return spec.default is not attrs.NOTHING or not takes_null


def _missing(cls: type[Any], error: KeyError) -> NoReturn:
    raise ValueError(f"{cls.__name__}: `{error.args[0]}` is missing") from None


def _rest(data: Mapping[str, Any], tag: str | None, known: Mapping[str, bool]) -> Mapping[str, Any]:
    """What the class has no field for: other keys, and nulls that count as left out."""
    return {
        key: item
        for key, item in data.items()
        if key != tag and (key not in known or (item is None and known[key]))
    } or EMPTY


def _same(item: Any) -> Any:
    return item


def _converter(hint: Any) -> Convert:
    """How to read a field of this annotation."""
    if hint is _messages.AgentMessage:
        return _decode_message
    if hint is Content or _is_content_union(hint):
        return _decode_content
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        item = _converter(args[0])
        return lambda value: tuple(map(item, value)) if isinstance(value, list) else value
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
    try:
        return _decoder(_blocks()[data["type"]])(data)
    except (KeyError, TypeError, ValueError):
        return _decode_odd(data, "type", _blocks(), OpaqueContent)


def _decode_message(data: Any) -> Any:
    try:
        return _decoder(_roles()[data["role"]])(data)
    except (KeyError, TypeError, ValueError):
        return _decode_odd(data, "role", _roles(), OpaqueMessage)


_OLDER_NAMES = {"mediaType": "mimeType"}
"""How older writers spelled a field that is required."""


def _decode_odd(data: Any, tag: str, classes: Mapping[str, type[Any]], opaque: type[Any]) -> Any:
    """What is not what its tag says: the class if it is in an older spelling, else the opaque one."""
    if not isinstance(data, dict):
        return data
    name = data.get(tag)
    cls = classes.get(name) if isinstance(name, str) else None
    if cls is not None:
        try:
            return _decoder(cls)({_OLDER_NAMES.get(key, key): item for key, item in data.items()})
        except (TypeError, ValueError):
            pass  # a required field is missing: keep the value whole rather than guess
    rest = {key: item for key, item in data.items() if key != tag}
    return opaque(str(name), extra=rest or EMPTY)
