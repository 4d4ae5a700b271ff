"""The providers that are known: built in, listed by the providers themselves, and of models.json.

The built-in catalogue has a date, as its limits and prices do. What a provider was seen to
list is kept in a file of its own and stands over the catalogue; models.json stands over both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from attrs import field, frozen

from pi_trio.codec import dumps, from_json, loads
from pi_trio.llm.auth import ProviderKeys
from pi_trio.llm.loose import get, objects, text
from pi_trio.llm.protocol import Model
from pi_trio.plain_file import read_plain_file
from pi_trio.private_files import write_private

__all__ = ["Listed", "Provider", "build_providers", "built_in_date", "merged", "read_listed", "write_listed"]

DEFAULT_API = "openai-completions"
"""What a provider speaks that does not say: nearly every server has it."""


@frozen
class Provider:
    """A vendor: where its models are and how it is paid."""

    id: str
    name: str
    models: tuple[Model, ...] = ()
    base_url: str = ""
    api: str = DEFAULT_API
    keys: ProviderKeys = field(repr=False, kw_only=True)

    def model(self, model_id: str) -> Model | None:
        """The model with exactly this id."""
        return next((model for model in self.models if model.id == model_id), None)


@frozen
class Listed:
    """What a provider listed on `date` (ISO 8601), as entries of models.json."""

    date: str
    models: Sequence[Mapping[str, Any]]


def built_in_date() -> str:
    """The day of the built-in catalogue."""
    return str(_built_in()["date"])


def build_providers(
    configured: Mapping[str, Mapping[str, Any]], listed: Mapping[str, Listed]
) -> list[Provider]:
    """All providers: those of models.json first."""
    built_in: Mapping[str, Mapping[str, Any]] = _built_in()["providers"]
    names = [*configured, *(name for name in built_in if name not in configured)]
    return [
        _provider(name, _updated(built_in.get(name, {}), listed.get(name)), configured.get(name, {}))
        for name in names
    ]


@cache
def _built_in() -> Any:
    return loads(files("pi_trio.llm").joinpath("catalogue.json").read_bytes())


_SHARED = ("api", "baseUrl", "headers", "compat")
"""What a model takes from its provider unless it says otherwise."""


def _provider(name: str, built_in: Mapping[str, Any], configured: Mapping[str, Any]) -> Provider:
    """A provider of the catalogue with what models.json says over it; either may be empty."""
    shared = {"api": DEFAULT_API, **merged(built_in, configured)}
    defaults = {"provider": name, **{key: shared[key] for key in _SHARED if key in shared}}
    models = {
        entry["id"]: from_json(Model, merged({"name": entry["id"], **defaults}, entry))
        for entry in _entries(built_in, configured)
    }
    return Provider(
        name,
        shared.get("name", name),
        tuple(models.values()),
        shared.get("baseUrl", ""),
        shared["api"],
        keys=ProviderKeys(name, configured.get("apiKey"), tuple(built_in.get("keyVariables", ()))),
    )


def _entries(built_in: Mapping[str, Any], configured: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The model entries of both files; one that comes later replaces one of the same id."""
    overrides = configured.get("modelOverrides", {})
    for entry in built_in.get("models", ()):
        yield merged(entry, overrides.get(entry["id"], {}))
    yield from configured.get("models", ())


def _updated(built_in: Mapping[str, Any], listed: Listed | None) -> Mapping[str, Any]:
    """The provider of the catalogue with what it listed itself: new models, new limits and prices."""
    if listed is None:
        return built_in
    models = {entry["id"]: entry for entry in built_in.get("models", ())}
    for entry in listed.models:
        models[entry["id"]] = merged(models.get(entry["id"], {}), entry)
    return {**built_in, "models": list(models.values())}


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Objects field by field, anything else replaced."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return result


# ------------------------------------------------------------------ what providers listed


def read_listed(path: Path) -> dict[str, Listed]:
    """What providers listed, by provider. The file can be made again, so a broken one counts as none."""
    try:
        providers = get(loads(read_plain_file(path)), "providers")
    except (OSError, ValueError):
        return {}
    if not isinstance(providers, dict):
        return {}
    return {
        name: Listed(
            text(entry, "date"), [each for each in objects(get(entry, "models")) if text(each, "id")]
        )
        for name, entry in providers.items()
    }


def write_listed(path: Path, listed: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Note what these providers list now; what others listed stays. Raises `StorageError`."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    all_listed = read_listed(path) | {name: Listed(now, models) for name, models in listed.items()}
    data = {name: {"date": each.date, "models": list(each.models)} for name, each in all_listed.items()}
    write_private(path, dumps({"providers": data}))
