"""Checking a call's arguments against the tool's schema, with the coercions that models need.

Valid arguments pass as they are. Others are tried once more in the form that pi accepts:
numbers and booleans written as text, a single value for a list, JSON text for a list or an
object, null for an absent optional field, all of it under one more key. "false" never becomes true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import trio

from pi_trio import codec
from pi_trio.errors import UsageError
from pi_trio.tool import Tool

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

__all__ = ["ArgumentsError", "preload", "validated"]


class ArgumentsError(UsageError):
    """The arguments do not fit. The text names each path and what is wrong there."""


_VALIDATORS: WeakKeyDictionary[Tool, Validator] = WeakKeyDictionary()


def validated(tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments that the body gets. Raises `ArgumentsError` if they do not fit."""
    prepared = tool.prepare_arguments(arguments) if tool.prepare_arguments else arguments
    validator = _validator(tool)
    if validator.is_valid(prepared):
        return prepared
    readings = [_coerce(reading, tool.parameters) for reading in (prepared, *_wrapped(prepared))]
    for reading in readings:
        if isinstance(reading, Mapping) and validator.is_valid(reading):
            return reading
    faults = validator.iter_errors(readings[0])
    raise ArgumentsError(_explain(tool.name, faults, arguments))


def _wrapped(arguments: Mapping[str, Any]) -> Iterable[Any]:
    """What a model may have meant that put its arguments under one more key."""
    return arguments.values() if len(arguments) == 1 else ()


def _validator(tool: Tool) -> Validator:
    validator = _VALIDATORS.get(tool)
    if validator is None:
        from jsonschema import Draft202012Validator  # see `preload`

        validator = _VALIDATORS[tool] = Draft202012Validator(dict(tool.parameters))
    return validator


async def preload() -> None:
    """Import the validator in a thread, which takes 60 ms, while a call's arguments still stream."""
    await trio.to_thread.run_sync(import_module, "jsonschema", abandon_on_cancel=True)


def _explain(name: str, faults: Iterable[Any], arguments: Mapping[str, Any]) -> str:
    lines = [f'Validation failed for tool "{name}":']
    for fault in sorted(faults, key=lambda fault: list(map(str, fault.absolute_path))):
        path = ".".join(map(str, fault.absolute_path)) or "root"
        lines.append(f"  - {path}: {fault.message}")
    received = codec.dumps(codec.to_json(arguments)).decode()
    return "\n".join([*lines, "", "Received arguments:", received])


def _coerce(value: Any, schema: Any) -> Any:
    """`value` nearer to `schema`, where that is safe; a copy wherever something changes."""
    if not isinstance(schema, Mapping):
        return value
    kinds = schema.get("type")
    wanted = {kinds} if isinstance(kinds, str) else set(kinds or ())
    if isinstance(value, str) and "string" not in wanted:
        value = _from_text(value, wanted)
    if isinstance(value, Mapping):
        return _coerce_object(value, schema)
    if isinstance(value, list):
        return [_coerce(item, schema.get("items")) for item in value]
    if wanted == {"array"} and value is not None:
        return [_coerce(value, schema.get("items"))]
    if wanted == {"string"} and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return value


def _from_text(text: str, wanted: set[str]) -> Any:
    if "boolean" in wanted and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not wanted & {"integer", "number", "array", "object"}:
        return text
    try:
        value = codec.loads(text)
    except ValueError:
        return text
    if isinstance(value, bool):
        return text
    if isinstance(value, (int, float)):
        return value if wanted & {"integer", "number"} else text
    kind = "array" if isinstance(value, list) else "object"
    return value if kind in wanted else text


def _coerce_object(value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    return {
        key: _coerce(item, properties.get(key))
        for key, item in value.items()
        if not (item is None and key in properties and key not in required and not _nullable(properties[key]))
    }


def _nullable(schema: Any) -> bool:
    kinds = schema.get("type") if isinstance(schema, Mapping) else None
    return kinds is None or "null" in ([kinds] if isinstance(kinds, str) else kinds)
