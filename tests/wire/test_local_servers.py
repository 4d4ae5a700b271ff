"""Model servers on this machine, found with the window that they really serve."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partialmethod
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from pi_trio.harness.runtime import open_runtime
from pi_trio.llm.auth import ProviderKeys
from pi_trio.llm.catalogue import Provider
from pi_trio.llm.discovery import LocalServer, discover, local_servers
from pi_trio.llm.protocol import ModelCost
from pi_trio.llm.registry import Models
from pi_trio.resources.config import RuntimeConfig

Pages = Mapping[str, Any] | Callable[[Any], Any]


@pytest.fixture
async def server_of(serve):
    """A server of a kind (`ollama`, `llama.cpp`, `lmstudio`) that answers with these pages."""

    async def start(kind: str, pages: Mapping[str, Any]) -> LocalServer:
        async def answer(request, reply):
            page = pages.get(request.path)
            page = page(request) if callable(page) else page
            status = 404 if page is None else 200
            await reply.whole(json.dumps(page), status, kind="application/json")

        server = await serve(answer)
        [usual] = [each for each in local_servers({}) if each.id == kind]
        return LocalServer(usual.id, usual.name, f"http://127.0.0.1:{server.port}", usual.list_models)

    return start


def shown(**models: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda request: models[request.json["model"].partition(":")[0]]


OLLAMA = {
    "/api/tags": {
        "models": [{"name": "loaded:1b"}, {"name": "chosen:1b"}, {"name": "plain:1b"}, {"name": "words:1b"}]
    },
    "/api/ps": {"models": [{"name": "loaded:1b", "context_length": 32768}]},
    "/api/show": shown(
        loaded={"capabilities": ["completion", "tools", "thinking"], "parameters": "num_ctx  8192"},
        chosen={"capabilities": ["completion", "vision"], "parameters": 'stop "x"\nnum_ctx    65536'},
        plain={},
        words={"capabilities": ["embedding"]},
    ),
}


async def test_ollama(server_of) -> None:
    server = await server_of("ollama", OLLAMA)
    [provider] = await discover([server], within=5)
    assert [(model.id, model.context_window, model.max_tokens) for model in provider.models] == [
        ("loaded:1b", 32768, 16384),
        ("chosen:1b", 65536, 16384),
        ("plain:1b", 4096, 4096),
    ]
    loaded, chosen, _ = provider.models
    assert (loaded.reasoning, loaded.input, chosen.input) == (True, ("text",), ("text", "image"))
    assert (loaded.base_url, loaded.cost, loaded.reference) == (
        f"{server.root}/v1",
        ModelCost(),
        "ollama/loaded:1b",
    )


async def test_llama_cpp(server_of) -> None:
    pages = {
        "/v1/models": {"data": [{"id": "gemma.gguf", "meta": {"n_ctx_train": 131072}}]},
        "/props": {"default_generation_settings": {"n_ctx": 8192}, "modalities": {"vision": True}},
    }
    [provider] = await discover([await server_of("llama.cpp", pages)], within=5)
    [model] = provider.models
    assert (model.id, model.context_window, model.input) == ("gemma.gguf", 8192, ("text", "image"))


async def test_lm_studio(server_of) -> None:
    pages = {
        "/api/v0/models": {
            "data": [
                {"id": "a", "type": "llm", "loaded_context_length": 20000, "max_context_length": 131072},
                {"id": "b", "type": "vlm", "max_context_length": 131072},
                {"id": "c", "type": "embeddings"},
            ]
        }
    }
    [provider] = await discover([await server_of("lmstudio", pages)], within=5)
    assert [(model.id, model.context_window) for model in provider.models] == [("a", 20000), ("b", 4096)]


async def test_what_is_no_such_server_is_not_one(server_of, serve) -> None:
    async def hang(request, reply):
        await trio.sleep_forever()

    slow = await serve(hang)
    servers = [
        await server_of("ollama", {}),
        await server_of("lmstudio", {"/api/v0/models": ["?"]}),
        LocalServer("nobody", "", "http://127.0.0.1:9", local_servers({})[0].list_models),
        LocalServer("hangs", "", f"http://127.0.0.1:{slow.port}", local_servers({})[0].list_models),
    ]
    assert await discover(servers) == ()
    await slow.none_open()


def test_where_nobody_is_the_http_library_is_not_loaded() -> None:
    """The screen asks at its start, beside the first key."""
    script = """if True:
        import sys
        import trio
        from attrs import evolve
        from pi_trio.llm.discovery import discover, local_servers
        roots = ("http://127.0.0.1:1", "http://127.0.0.1:none", "ftp://", "http://[")
        servers = [evolve(each, root=root) for root in roots for each in local_servers({})]
        assert trio.run(discover, servers) == ()
        sys.exit("httpx" in sys.modules)
    """
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


@pytest.mark.parametrize(
    ("host", "root"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("gpu:1", "http://gpu:1"),
        ("https://gpu/", "https://gpu:11434"),
        (":7", "http://127.0.0.1:7"),
    ],
)
def test_address_of_ollama(host: str, root: str) -> None:
    assert local_servers({"OLLAMA_HOST": host})[0].root == root


async def test_found_servers_join_the_models(server_of, tmp_path: Path) -> None:
    server = await server_of("ollama", OLLAMA)
    environ = {"OLLAMA_HOST": server.root}
    models = Models(tmp_path, environ)
    assert models.default_model().provider == "demo"
    assert "ollama" in [provider.id for provider in await models.discover(within=5)]
    assert models.default_model().reference == "ollama/loaded:1b"
    assert models.key_source("ollama") == "no key needed"
    models.reload()
    assert models.get_model("chosen:high").thinking_level == "high"
    assert "ollama" in [provider.id for provider in await models.discover(within=5)]  # and anew
    own = Provider("ollama", "Mine", keys=ProviderKeys("ollama"))
    theirs = Models(tmp_path, environ)
    theirs.set_provider(own)
    assert "ollama" not in [provider.id for provider in await theirs.discover(within=5)]
    assert theirs.provider("ollama") is own
    assert await Models(tmp_path, {**environ, "PI_OFFLINE": "1"}).discover() == ()


async def test_runtime_without_a_key_asks_once(
    server_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await server_of("ollama", OLLAMA)
    monkeypatch.delenv("PI_OFFLINE")
    monkeypatch.setenv("OLLAMA_HOST", server.root)
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(
        Models, "discover", partialmethod(Models.discover, 5.0)
    )  # however slow this machine is
    config = RuntimeConfig(cwd=tmp_path, agent_dir=tmp_path, no_session=True)
    async with open_runtime(config) as runtime:
        session = await runtime.new_session()
        assert session.model.reference == "ollama/loaded:1b"
        assert session.model in await runtime.models()
        assert session.notice == "ollama/loaded:1b · no key needed · free"
    async with open_runtime(attrs.evolve(config, demo=True)) as runtime:
        assert (await runtime.new_session()).model.provider == "demo"
