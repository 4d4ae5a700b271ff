"""Model servers on this machine: Ollama, llama.cpp and LM Studio, found by asking their usual ports.

A model's window is the one it is served with, which is often far smaller than the one it was
made for: what does not fit into it is silently forgotten by some of these servers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import trio
from attrs import frozen

from pi_trio.errors import ProviderError
from pi_trio.llm.auth import ProviderKeys
from pi_trio.llm.catalogue import Provider
from pi_trio.llm.http import request_json
from pi_trio.llm.loose import count, get, objects, text
from pi_trio.llm.protocol import Model, ModelCost
from pi_trio.nursery import plain_nursery

__all__ = ["LocalServer", "discover", "local_servers"]

WITHIN = 0.1
"""Seconds that servers have for telling what they serve."""

_API = "openai-completions"
_UNTOLD_WINDOW = 4096  # what these servers give a model when nobody chose
_ANSWER = 16_384
_PORTS = {"http": 80, "https": 443}


@frozen
class LocalServer:
    """A kind of server: `root` is its address, `list_models` asks what it serves."""

    id: str
    name: str
    root: str
    list_models: Callable[[LocalServer], Awaitable[Sequence[Model]]]

    async def get(self, path: str, body: Any = None) -> Any:
        """The JSON at `path`. Raises `ProviderError`."""
        return await request_json(self.root + path, body=body)

    def model(self, model_id: str, window: int, *, images: bool = False, reasoning: bool = False) -> Model:
        """A model of this server, which costs nothing."""
        return Model(
            model_id,
            name=model_id,
            api=_API,
            provider=self.id,
            base_url=f"{self.root}/v1",
            reasoning=reasoning,
            input=("text", "image") if images else ("text",),
            cost=ModelCost(),
            context_window=window,
            max_tokens=min(_ANSWER, window),
        )


def local_servers(environ: Mapping[str, str] = os.environ) -> tuple[LocalServer, ...]:
    """The servers to look for, Ollama where `OLLAMA_HOST` says, the others at their usual ports."""
    return (
        LocalServer("ollama", "Ollama", _ollama_root(environ.get("OLLAMA_HOST", "")), _ollama_models),
        LocalServer("llama.cpp", "llama.cpp", "http://127.0.0.1:8080", _llama_cpp_models),
        LocalServer("lmstudio", "LM Studio", "http://127.0.0.1:1234", _lm_studio_models),
    )


async def discover(servers: Iterable[LocalServer], within: float = WITHIN) -> tuple[Provider, ...]:
    """The servers that answer within so many seconds, with what they serve."""
    asked = await _there(tuple(servers), within)
    if not asked:
        return ()
    import httpx  # noqa: F401 - loading it is not the servers' time

    found: dict[str, Provider] = {}

    async def ask(server: LocalServer) -> None:
        try:
            models = await server.list_models(server)
        except ProviderError:
            return  # nobody there, or somebody else
        if models:
            keys = ProviderKeys(server.id, keyless=True)
            found[server.id] = Provider(
                server.id, server.name, tuple(models), base_url=f"{server.root}/v1", api=_API, keys=keys
            )

    with trio.move_on_after(within):
        async with trio.open_nursery() as nursery:
            for server in asked:
                nursery.start_soon(ask, server)
    return tuple(found[server.id] for server in asked if server.id in found)


async def _there(servers: Sequence[LocalServer], within: float) -> list[LocalServer]:
    """Those that take a connection: mostly none, and that is told sooner than the HTTP library is loaded."""
    there: set[str] = set()

    async def connect(server: LocalServer) -> None:
        with suppress(OSError, ValueError):  # nobody there, or no address at all
            parts = urlsplit(server.root)
            stream = await trio.open_tcp_stream(
                parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 80)
            )
            await trio.aclose_forcefully(stream)
            there.add(server.id)

    with trio.move_on_after(within):
        async with trio.open_nursery() as nursery:
            for server in servers:
                nursery.start_soon(connect, server)
    return [server for server in servers if server.id in there]


# ------------------------------------------------------------------ Ollama


async def _ollama_models(server: LocalServer) -> Sequence[Model]:
    names = [text(each, "name") for each in objects(get(await server.get("/api/tags"), "models"))]
    loaded = {
        text(each, "name"): count(each, "context_length")
        for each in objects(get(await server.get("/api/ps"), "models"))
    }
    models: dict[str, Model] = {}

    async def look(name: str) -> None:
        told = await server.get("/api/show", {"model": name})
        if (model := _ollama_model(server, name, loaded.get(name, 0), told)) is not None:
            models[name] = model

    async with plain_nursery() as nursery:
        for name in filter(None, names):
            nursery.start_soon(look, name)
    return [models[name] for name in names if name in models]


def _ollama_model(server: LocalServer, name: str, loaded: int, told: Any) -> Model | None:
    """A model that can chat, with the window it is loaded with, was given, or would get."""
    abilities = told.get("capabilities") if isinstance(told, dict) else None
    able = set(map(str, abilities)) if isinstance(abilities, list) else {"completion"}
    if "completion" not in able:
        return None
    chosen = re.search(r"^num_ctx\s+(\d+)", text(told, "parameters"), re.MULTILINE)
    window = loaded or (int(chosen[1]) if chosen else _UNTOLD_WINDOW)
    return server.model(name, window, images="vision" in able, reasoning="thinking" in able)


def _ollama_root(host: str) -> str:
    """The address in Ollama's own variable, which may leave out scheme, host or port."""
    host = host.strip().rstrip("/")
    scheme, _, rest = host.rpartition("://")
    name, colon, port = rest.partition(":")
    if name in ("", "0.0.0.0"):  # noqa: S104 - what a server listens on, asked at the loopback
        name = "127.0.0.1"
    return f"{scheme or 'http'}://{name}:{port if colon else 11434}"


# ------------------------------------------------------------------ llama.cpp, LM Studio


async def _llama_cpp_models(server: LocalServer) -> Sequence[Model]:
    listed = objects(get(await server.get("/v1/models"), "data"))
    properties = await server.get("/props")
    window = count(get(properties, "default_generation_settings"), "n_ctx")
    images = get(get(properties, "modalities"), "vision") is True
    return [
        server.model(
            text(each, "id"), window or count(each.get("meta"), "n_ctx") or _UNTOLD_WINDOW, images=images
        )
        for each in listed
        if text(each, "id")
    ]


async def _lm_studio_models(server: LocalServer) -> Sequence[Model]:
    listed = objects(get(await server.get("/api/v0/models"), "data"))
    return [
        server.model(
            text(each, "id"),
            count(each, "loaded_context_length") or _UNTOLD_WINDOW,
            images=text(each, "type") == "vlm",
        )
        for each in listed
        if text(each, "id") and text(each, "type") in ("llm", "vlm")
    ]
