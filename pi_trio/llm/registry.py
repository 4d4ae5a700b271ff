"""The models there are: the built-in catalogue, models.json over it, and the demo model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from pi_trio.codec import from_json, loads
from pi_trio.errors import ConfigError
from pi_trio.llm import demo, openai_completions
from pi_trio.llm.auth import Auth, Credential, ProviderKeys
from pi_trio.llm.models_file import check_models, read_models_file
from pi_trio.llm.protocol import Model, StreamFunction, ThinkingLevel
from pi_trio.llm.thinking import LEVELS

__all__ = ["ModelChoice", "Models", "Provider", "register_api"]

_APIS: dict[str, StreamFunction] = {
    openai_completions.API: openai_completions.stream,
    demo.API: demo.stream,
}


def register_api(api: str, stream: StreamFunction) -> None:
    """Make models of this `api` usable; an earlier function of the name is replaced."""
    _APIS[api] = stream


@frozen
class Provider:
    """A vendor: where its models are and how it is paid."""

    id: str
    name: str
    models: tuple[Model, ...] = ()
    base_url: str = ""
    api: str = openai_completions.API
    keys: ProviderKeys = field(repr=False, kw_only=True)

    def model(self, model_id: str) -> Model | None:
        """The model with exactly this id."""
        return next((model for model in self.models if model.id == model_id), None)


@frozen
class ModelChoice:
    """What a pattern such as `openai/gpt-5.2:high` names; the level is None if it names none."""

    model: Model
    thinking_level: ThinkingLevel | None = None


class Models:
    """The registry. What is wrong with models.json is in `findings`; the built-in models stay usable."""

    def __init__(self, agent_dir: Path, environ: Mapping[str, str] = os.environ) -> None:
        self.path = agent_dir / "models.json"
        self.auth = Auth(agent_dir, environ)
        self.findings: list[ConfigError] = []
        self._providers: dict[str, Provider] = {}
        self._overlays: list[tuple[str, Mapping[str, Any]]] = []
        self.reload()

    def reload(self) -> None:
        """Read models.json again, as a model selector does when it opens."""
        catalogue = loads(files("pi_trio.llm").joinpath("catalogue.json").read_bytes())["providers"]
        try:
            configured = read_models_file(self.path)
            self.findings = []
        except ConfigError as error:
            configured, self.findings = {}, [error]
        for name, entry in self._overlays:
            configured = {**configured, name: _merged(configured.get(name, {}), entry)}
        merged = [_provider(name, catalogue.get(name, {}), entry) for name, entry in configured.items()]
        built_in = [_provider(name, entry, {}) for name, entry in catalogue.items() if name not in configured]
        self._providers = {provider.id: provider for provider in [*merged, *built_in, _demo_provider()]}

    def overlay(self, provider: str, entry: Mapping[str, Any]) -> Callable[[], None]:
        """Lay an entry, as models.json has it, over what is known of a provider.

        Gives what takes it away again. Raises `ConfigError` if it could not stand in models.json.
        """
        check_models({"providers": {provider: entry}}, f"the models of {provider}")
        layer = (provider, entry)
        self._overlays.append(layer)
        self.reload()

        def undo() -> None:
            self._overlays = [each for each in self._overlays if each is not layer]
            self.reload()

        return undo

    # ---- finding models

    @property
    def providers(self) -> tuple[Provider, ...]:
        """All providers: those of models.json first, the demo last."""
        return tuple(self._providers.values())

    def all(self) -> tuple[Model, ...]:
        """Every model that is known by name."""
        return tuple(model for provider in self.providers for model in provider.models)

    def available(self) -> tuple[Model, ...]:
        """The models that can be asked: a credential was found, good or not, and the api is known."""
        return tuple(
            model
            for provider in self.providers
            if self.key_source(provider.id)
            for model in provider.models
            if model.api in _APIS
        )

    def default_model(self) -> Model:
        """The first model with a credential; without any, the demo model."""
        return self.available()[0]

    def get_model(self, pattern: str) -> ModelChoice:
        """The model that a person names: `provider/id`, `id`, or a part that only one model has.

        A suffix `:level` chooses the thinking level. An unknown id of a known provider is
        taken as it is, with guessed limits. Raises `ConfigError` for what names no model, or
        several.
        """
        model = self._find(pattern)
        head, _, tail = pattern.rpartition(":")
        level = next((level for level in LEVELS if level == tail), None)
        if model is None and head and level is not None:
            model = self._find(head) or self._guess(head)
            return ModelChoice(model, level)
        return ModelChoice(model or self._guess(pattern))

    def _find(self, pattern: str) -> Model | None:
        """The model named exactly, else the only one whose reference or name has this part.

        After a known provider only an exact id counts: `openai/gpt-5` is not `gpt-5-mini`.
        """
        wanted = pattern.strip().lower()
        if not wanted:
            return None
        found = [model for model in self.all() if wanted in (model.reference.lower(), model.id.lower())]
        if not found and wanted.partition("/")[0] not in self._providers:
            found = [model for model in self.all() if wanted in f"{model.reference} {model.name}".lower()]
        if len(found) > 1:
            found = self._preferred(found, wanted)
        if len(found) > 1:
            names = ", ".join(model.reference for model in found[:6])
            raise ConfigError(f"The model {pattern!r} could be any of {names}; say which.")
        return found[0] if found else None

    def _preferred(self, models: Sequence[Model], wanted: str) -> list[Model]:
        """Those named in full, else those with a credential, where that narrows the choice."""
        full = [model for model in models if model.reference.lower() == wanted]
        if full:
            return full
        usable = [model for model in self.available() if model in models]
        return usable or list(models)

    def _guess(self, pattern: str) -> Model:
        """A model that the catalogue does not know, of a provider that it does."""
        name, _, model_id = pattern.strip().partition("/")
        provider = self._providers.get(name)
        if provider is None or not model_id or provider.api == demo.API:
            known = ", ".join(provider.id for provider in self.providers)
            raise ConfigError(
                f"There is no model {pattern!r}. Use provider/id with one of the providers {known}."
            )
        like = provider.models[0] if provider.models else None
        return Model(
            model_id,
            name=model_id,
            api=like.api if like else provider.api,
            provider=provider.id,
            base_url=provider.base_url,
            headers=like.headers if like else None,
            compat=like.compat if like else None,
        )

    # ---- using them

    def stream_function(self, model: Model) -> StreamFunction:
        """What opens a stream for `model`. Raises `ConfigError` for an `api` nobody registered."""
        try:
            return _APIS[model.api]
        except KeyError:
            known = ", ".join(sorted(_APIS))
            raise ConfigError(f"{model.reference} speaks {model.api!r}; known are {known}.") from None

    async def credential(self, model: Model, explicit: str | None = None) -> Credential:
        """The key for `model` and its headers. Raises `ConfigError`; see `Auth.resolve`."""
        keys = self._keys(model.provider)
        return await self.auth.resolve(evolve(keys, headers=model.headers or {}), explicit)

    def key_source(self, provider: str) -> str | None:
        """Where the key of a provider would come from, in words; None without one."""
        try:
            return self.auth.source(self._keys(provider))
        except ConfigError:
            return None  # whoever uses the provider is told by `credential`

    def _keys(self, provider: str) -> ProviderKeys:
        known = self._providers.get(provider)
        return known.keys if known else ProviderKeys(provider)


def _demo_provider() -> Provider:
    keys = ProviderKeys(demo.PROVIDER, keyless=True)
    return Provider(demo.PROVIDER, "Demo", (demo.MODEL,), api=demo.API, keys=keys)


# ------------------------------------------------------------------ from the two files


_SHARED = ("api", "baseUrl", "headers", "compat")
"""What a model takes from its provider unless it says otherwise."""


def _provider(name: str, built_in: Mapping[str, Any], configured: Mapping[str, Any]) -> Provider:
    """A provider of the catalogue with what models.json says over it; either may be empty."""
    shared = {"api": openai_completions.API, **_merged(built_in, configured)}
    defaults = {"provider": name, **{key: shared[key] for key in _SHARED if key in shared}}
    models = {
        entry["id"]: from_json(Model, _merged({"name": entry["id"], **defaults}, entry))
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
        yield _merged(entry, overrides.get(entry["id"], {}))
    yield from configured.get("models", ())


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Objects field by field, anything else replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
