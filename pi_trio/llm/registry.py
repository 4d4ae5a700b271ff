"""The models there are: the catalogue, local servers, what a program adds, and the demo model."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import attrs
from attrs import evolve, frozen

from pi_trio.errors import ConfigError, ProviderError
from pi_trio.llm import demo
from pi_trio.llm.auth import Auth, Credential, ProviderKeys
from pi_trio.llm.catalogue import Provider, build_providers, merged, read_listed, write_listed
from pi_trio.llm.discovery import WITHIN, discover, local_servers
from pi_trio.llm.listing import can_list, list_models
from pi_trio.llm.models_file import check_models, read_models_file
from pi_trio.llm.protocol import (
    Context,
    Done,
    Failed,
    Failure,
    Model,
    StreamEvents,
    StreamFunction,
    StreamOptions,
    ThinkingLevel,
)
from pi_trio.llm.thinking import LEVELS, clamp_level
from pi_trio.messages import AssistantMessage

__all__ = ["ModelChoice", "Models", "Provider", "register_api"]

_DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")

_APIS: dict[str, StreamFunction | str] = {
    "anthropic-messages": "pi_trio.llm.anthropic_messages",
    "google-generative-ai": "pi_trio.llm.google_generative_ai",
    "openai-completions": "pi_trio.llm.openai_completions",
    "openai-responses": "pi_trio.llm.openai_responses",
    demo.API: demo.stream,
}
"""What opens a stream for each api, or the module with that `stream`: loaded when first asked for."""


def register_api(api: str, stream: StreamFunction) -> None:
    """Make models of this `api` usable; an earlier function of the name is replaced."""
    _APIS[api] = stream


@frozen
class ModelChoice:
    """What a pattern such as `openai/gpt-5.2:high` names; the level is None if it names none."""

    model: Model
    thinking_level: ThinkingLevel | None = None


class Models:
    """The registry. What is wrong with models.json is in `findings`; the built-in models stay usable."""

    def __init__(self, agent_dir: Path, environ: Mapping[str, str] = os.environ) -> None:
        self.path: Path = agent_dir / "models.json"
        self.listed_path: Path = agent_dir / "models-listed.json"
        self.auth: Auth = Auth(agent_dir, environ)
        self.findings: list[ConfigError] = []
        self._environ = environ
        self._added: dict[str, Provider] = {}
        self._local: set[str] = set()
        self._providers: dict[str, Provider] = {}
        self._overlays: list[tuple[str, Mapping[str, Any]]] = []
        self.reload()

    def reload(self) -> None:
        """Read models.json again, as a model selector does when it opens."""
        try:
            configured = read_models_file(self.path)
            self.findings = []
        except ConfigError as error:
            configured, self.findings = {}, [error]
        for name, entry in self._overlays:
            configured = {**configured, name: merged(configured.get(name, {}), entry)}
        known = build_providers(configured, read_listed(self.listed_path))
        lent = {name for name, entry in self._overlays if "apiKey" in entry}
        known = [_with_key_of_an_extension(each) if each.id in lent else each for each in known]
        self._providers = {provider.id: provider for provider in known} | self._added
        self._providers[demo.PROVIDER] = _demo_provider()

    # ---- changing what there is

    def set_provider(self, provider: Provider) -> None:
        """Add a provider of the program's own, or put it in the place of the one with its id."""
        self._added[provider.id] = provider
        self.reload()

    async def discover(self, within: float = WITHIN) -> tuple[Provider, ...]:
        """Look for model servers on this machine for so many seconds, and add those that answer.

        What was found before is replaced; a provider that models.json or the program has under
        the same id stays. With the variable `PI_OFFLINE` nothing is asked.
        """
        if self._environ.get("PI_OFFLINE"):
            return ()
        found = await discover(local_servers(self._environ), within)
        new = [each for each in found if each.id in self._local or each.id not in self._providers]
        for provider in new:
            self._local.add(provider.id)
            self.set_provider(provider)
        return tuple(new)

    async def refresh(self, provider: str, proxy: str | None = None) -> int:
        """Ask a provider which models it has, and keep the answer. Returns how many it lists.

        Raises `ConfigError` without a key or a known way to ask, `ProviderError` if it refuses,
        and `StorageError` if the answer cannot be kept.
        """
        known = self.provider(provider)
        if not can_list(known.api):
            raise ConfigError(f"{provider} speaks {known.api!r}, which has no known list of models.")
        listed = await list_models(known.api, known.base_url, await self.auth.resolve(known.keys), proxy)
        write_listed(self.listed_path, {provider: listed})
        self.reload()
        return len(listed)

    def overlay(self, provider: str, entry: Mapping[str, Any]) -> Callable[[], None]:
        """Lay an extension's entry, as models.json has it, over what is known of a provider.

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

    def provider(self, provider: str) -> Provider:
        """The provider of this id. Raises `ConfigError` if there is none."""
        try:
            return self._providers[provider]
        except KeyError:
            known = ", ".join(self._providers)
            raise ConfigError(f"There is no provider {provider!r}; known are {known}.") from None

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
        """Those named in full, with a credential, and without a date, where that narrows the choice."""
        full = [model for model in models if model.reference.lower() == wanted]
        usable = [model for model in self.available() if model in models]
        left = full or usable or list(models)
        return [model for model in left if not _DATED.search(model.id)] or left

    def _guess(self, pattern: str) -> Model:
        """A model that the catalogue does not know, of a provider that it does."""
        name, _, model_id = pattern.strip().partition("/")
        provider = self._providers.get(name)
        if provider is None or not model_id or provider.api == demo.API:
            known = ", ".join(provider.id for provider in self.providers)
            unread = "".join(f" (Not read: {finding}.)" for finding in self.findings)
            raise ConfigError(
                f"There is no model {pattern!r}. Use provider/id with one of the providers {known}.{unread}"
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
        stream = _APIS.get(model.api)
        if stream is None:
            known = ", ".join(sorted(_APIS))
            raise ConfigError(f"{model.reference} speaks {model.api!r}; known are {known}.")
        if isinstance(stream, str):
            stream = _APIS[model.api] = cast("StreamFunction", import_module(stream).stream)
        return stream

    @asynccontextmanager
    async def stream_simple(
        self, model: Model, context: Context, options: StreamOptions | None = None
    ) -> AsyncIterator[StreamEvents]:
        """Ask `model`, with its key and headers and a thinking level that it has.

        A key in `options` wins over the one that would be found. Raises `ConfigError` as
        `credential` and `stream_function` do; failures of the provider are events.
        """
        options = options or StreamOptions()
        credential = await self.credential(model, options.api_key)
        options = attrs.evolve(
            options,
            api_key=credential.key,
            headers={**(options.headers or {}), **credential.headers},
            thinking_level=clamp_level(model, options.thinking_level),
        )
        async with self.stream_function(model)(model, context, options) as events:
            yield events

    async def complete_simple(
        self, model: Model, context: Context, options: StreamOptions | None = None
    ) -> AssistantMessage:
        """The whole answer of `model`. Raises what `stream_simple` does, and `ProviderError`."""
        async with self.stream_simple(model, context, options) as events:
            async for event in events:
                if isinstance(event, Done):
                    return event.message
                if isinstance(event, Failed):
                    raise ProviderError(event.failure)
        raise ProviderError(Failure("The stream ended before the answer was complete.", "transport"))

    async def credential(self, model: Model, explicit: str | None = None) -> Credential:
        """The key for `model` and its headers. Raises `ConfigError`; see `Auth.resolve`."""
        keys = self._keys(model.provider)
        return await self.auth.resolve(evolve(keys, headers=model.headers or {}), explicit)

    def check_credential(self, model: Model, explicit: str | None = None) -> None:
        """See whether there is a key for `model`, at once. Raises `ConfigError`; see `Auth.check`."""
        self.auth.check(self._keys(model.provider), explicit)

    def key_source(self, provider: str) -> str | None:
        """Where the key of a provider would come from, in words; None without one."""
        try:
            return self.auth.source(self._keys(provider))
        except ConfigError:
            return None  # whoever uses the provider is told by `credential`

    def _keys(self, provider: str) -> ProviderKeys:
        known = self._providers.get(provider)
        return known.keys if known else ProviderKeys(provider)


def _with_key_of_an_extension(provider: Provider) -> Provider:
    return evolve(provider, keys=evolve(provider.keys, place="from an extension"))


def _demo_provider() -> Provider:
    keys = ProviderKeys(demo.PROVIDER, keyless=True)
    return Provider(demo.PROVIDER, "Demo", (demo.MODEL,), api=demo.API, keys=keys)
