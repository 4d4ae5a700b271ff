"""models.json: pi's format, checked before it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pi_trio.errors import ConfigError
from pi_trio.jsonc import JsonDocument, read_jsonc

__all__ = ["check_models", "read_models_file"]

Check: TypeAlias = Callable[[Any], bool]


def read_models_file(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """The providers by id; none if there is no file.

    Raises `ConfigError` naming the file, the line and the key of the first thing that is
    wrong. Keys that are not known here are left alone.
    """
    try:
        document = read_jsonc(path)
    except FileNotFoundError:
        return {}
    for keys, problem in _problems(document.value):
        raise _error(document, keys, problem)
    providers: Mapping[str, Mapping[str, Any]] = document.value.get("providers", {})
    return providers


def check_models(value: Any, source: str) -> None:
    """Check what would stand in the file. Raises `ConfigError` naming `source` and the key."""
    for keys, problem in _problems(value):
        raise ConfigError(f"{source}: {'.'.join(keys) or 'the value'} {problem}")


def _error(document: JsonDocument, keys: tuple[str, ...], problem: str) -> ConfigError:
    name = ".".join(keys) or "the file"
    return ConfigError(f"{document.path}:{document.line(*keys)}: {name} {problem}")


# ------------------------------------------------------------------ shapes


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_header_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_level_map(value: Any) -> bool:
    return isinstance(value, dict) and all(item is None or isinstance(item, str) for item in value.values())


def _is_cost(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    rates = [value.get(key, 0) for key in ("input", "output", "cacheRead", "cacheWrite")]
    return all(isinstance(rate, (int, float)) and not isinstance(rate, bool) for rate in rates)


_COMMON: Mapping[str, tuple[Check, str]] = {
    "name": (_is_text, "text"),
    "api": (_is_text, "text"),
    "baseUrl": (_is_text, "text"),
    "headers": (_is_header_map, "an object of texts"),
    "compat": (_is_object, "an object"),
}
_PROVIDER: Mapping[str, tuple[Check, str]] = {
    **_COMMON,
    "apiKey": (_is_text, "text"),
    "modelOverrides": (_is_object, "an object"),
    "models": (lambda value: isinstance(value, list), "a list"),
}
_MODEL: Mapping[str, tuple[Check, str]] = {
    **_COMMON,
    "id": (_is_text, "text"),
    "reasoning": (_is_flag, "true or false"),
    "thinkingLevelMap": (_is_level_map, "an object of texts and nulls"),
    "input": (_is_texts, "a list of texts"),
    "cost": (_is_cost, "an object of numbers"),
    "contextWindow": (_is_count, "a whole number above 0"),
    "maxTokens": (_is_count, "a whole number above 0"),
}


def _problems(value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    if not isinstance(value, dict):
        yield (), "must be a JSON object"
        return
    providers = value.get("providers", {})
    if not isinstance(providers, dict):
        yield ("providers",), "must be an object"
        return
    for name, provider in providers.items():
        place = ("providers", name)
        yield from _misfits(provider, _PROVIDER, place)
        for model in provider.get("models", ()):
            yield from _misfits(model, _MODEL, (*place, "models"))
            if "id" not in model:
                yield (*place, "models"), "holds a model without an id"
        for model_id, override in provider.get("modelOverrides", {}).items():
            yield from _misfits(override, _MODEL, (*place, "modelOverrides", model_id))


def _misfits(
    value: Any, shape: Mapping[str, tuple[Check, str]], place: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    if not isinstance(value, dict):
        yield place, "must hold objects" if place[-1] == "models" else "must be an object"
        return
    for key, (fits, expected) in shape.items():
        if key in value and not fits(value[key]):
            yield (*place, key), f"must be {expected}"
