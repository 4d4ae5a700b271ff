"""What providers list, and asking a model through the registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_trio.errors import ConfigError, ProviderError
from pi_trio.llm import registry
from pi_trio.llm.auth import Credential
from pi_trio.llm.catalogue import Listed, read_listed, write_listed
from pi_trio.llm.listing import check_key, list_models
from pi_trio.llm.protocol import Context, Done, Failure, ModelCost, StreamOptions
from pi_trio.llm.registry import Models
from pi_trio.messages import UserMessage
from pi_trio.testing import ScriptedModel

KEY = Credential("sk-12345678", "a test", {"x-team": "blue"})
LISTS: dict[str, tuple[str, Any, list[dict[str, Any]]]] = {
    "openai": (
        "openai-responses",
        {"data": [{"id": "gpt-x", "object": "model"}, {"id": "text-embedding-3"}, {"id": "whisper-1"}, {}]},
        [{"id": "gpt-x"}],
    ),
    "openrouter": (
        "openai-completions",
        {
            "data": [
                {
                    "id": "a/b",
                    "name": "A: B",
                    "context_length": 200000,
                    "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
                    "pricing": {
                        "prompt": "0.000003",
                        "completion": "0.000015",
                        "input_cache_read": "0.0000003",
                    },
                    "top_provider": {"max_completion_tokens": 64000},
                    "supported_parameters": ["tools", "reasoning"],
                },
                {"id": "auto", "pricing": {"prompt": "-1", "completion": "-1"}},
                {"id": "painter", "architecture": {"output_modalities": ["image"]}},
            ]
        },
        [
            {
                "id": "a/b",
                "name": "A: B",
                "contextWindow": 200000,
                "maxTokens": 64000,
                "input": ["text", "image"],
                "reasoning": True,
                "cost": {"input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 0.0},
            },
            {"id": "auto"},
        ],
    ),
    "mistral": (
        "openai-completions",
        {
            "data": [
                {
                    "id": "m",
                    "max_context_length": 32768,
                    "capabilities": {"completion_chat": True, "vision": True},
                },
                {"id": "n", "capabilities": {"completion_chat": False}},
            ]
        },
        [{"id": "m", "contextWindow": 32768, "input": ["text", "image"]}],
    ),
    "google": (
        "google-generative-ai",
        {
            "models": [
                {
                    "name": "models/gemini-x",
                    "displayName": "Gemini X",
                    "inputTokenLimit": 1048576,
                    "outputTokenLimit": 65536,
                    "supportedGenerationMethods": ["generateContent"],
                    "thinking": True,
                },
                {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
            ]
        },
        [
            {
                "id": "gemini-x",
                "name": "Gemini X",
                "contextWindow": 1048576,
                "maxTokens": 65536,
                "reasoning": True,
            }
        ],
    ),
    "anthropic": (
        "anthropic-messages",
        {"data": [{"type": "model", "id": "claude-x", "display_name": "Claude X"}]},
        [{"id": "claude-x", "name": "Claude X"}],
    ),
    "together": ("openai-completions", [{"id": "t", "context_length": 8}], [{"id": "t", "contextWindow": 8}]),
    "nonsense": ("openai-completions", {"data": {"x": 1}}, []),
}


def json_server(serve, status: int, data: Any):
    async def answer(request, reply):
        await reply.whole(json.dumps(data), status, kind="application/json")

    return serve(answer)


@pytest.mark.parametrize("provider", LISTS)
async def test_lists_of_all_shapes(serve, provider: str) -> None:
    api, page, entries = LISTS[provider]
    server = await json_server(serve, 200, page)
    assert await list_models(api, server.base_url, KEY) == entries
    [request] = server.requests
    assert "sk-12345678" in str(request.headers)
    assert request.headers["x-team"] == "blue"


async def test_key_that_is_refused(serve) -> None:
    """PQ-08: the error does not repeat the key."""
    server = await json_server(serve, 401, {"error": {"message": "Incorrect API key: sk-12345678"}})
    with pytest.raises(ProviderError, match=r"401 Incorrect API key: \[key\]") as caught:
        await check_key("openrouter", "openai-completions", server.base_url, KEY)
    assert caught.value.failure.code == "auth"
    assert server.requests[0].path == "/v1/key"


async def test_refreshed_list_stands_over_the_catalogue(serve, tmp_path: Path) -> None:
    page = {"data": [{"id": "deepseek-chat", "context_length": 999999}, {"id": "deepseek-new"}]}
    server = await json_server(serve, 200, page)
    configured = {"deepseek": {"baseUrl": server.base_url, "apiKey": "k"}}
    (tmp_path / "models.json").write_text(json.dumps({"providers": configured}))
    models = Models(tmp_path, {})
    assert await models.refresh("deepseek") == 2
    for known in (models, Models(tmp_path, {})):
        chat, new = known.get_model("deepseek/deepseek-chat").model, known.get_model("deepseek-new").model
        assert (chat.context_window, chat.max_tokens, chat.cost.input) == (999999, 8192, 0.28)
        assert (new.base_url, new.cost, new.compat) == (server.base_url, None, chat.compat)
    with pytest.raises(ConfigError, match="no API key for groq"):
        await models.refresh("groq")
    with pytest.raises(ConfigError, match="has no known list"):
        await models.refresh("demo")
    with pytest.raises(ConfigError, match="no provider 'nobody'"):
        await models.refresh("nobody")


def test_kept_lists_are_dated_and_a_broken_file_counts_as_none(tmp_path: Path) -> None:
    path = tmp_path / "new" / "models-listed.json"
    write_listed(path, {"a": [{"id": "m"}]})
    write_listed(path, {"b": [{"id": "n"}]})
    assert {name: each.models for name, each in read_listed(path).items()} == {
        "a": [{"id": "m"}],
        "b": [{"id": "n"}],
    }
    assert read_listed(path)["a"].date.startswith("20")
    for broken in ("", "[]", '{"providers": 3}', '{"providers": {"a": {"models": [3, {}]}}}'):
        path.write_text(broken)
        assert list(read_listed(path).values()) in ([], [Listed("", [])])


# ------------------------------------------------------------------ asking


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "_APIS", dict(registry._APIS))
    provider = {
        "api": "scripted",
        "apiKey": "$K",
        "headers": {"x-team": "$TEAM"},
        "models": [{"id": "m", "reasoning": True, "thinkingLevelMap": {"high": None}}],
    }
    (tmp_path / "models.json").write_text(json.dumps({"providers": {"mine": provider}}))

    def start(*answers: Any) -> tuple[Models, ScriptedModel]:
        model = ScriptedModel(answers)
        registry.register_api("scripted", model)
        return Models(tmp_path, {"K": "key", "TEAM": "blue"}), model

    return start


HELLO = Context("", (UserMessage.of("hello"),))


async def test_stream_simple_brings_key_headers_and_a_level_that_there_is(scripted) -> None:
    models, script = scripted("Hi.")
    model = models.get_model("mine/m").model
    options = StreamOptions(thinking_level="high", headers={"x-own": "1"})
    async with models.stream_simple(model, HELLO, options) as events:
        last = [event async for event in events][-1]
    assert isinstance(last, Done)
    sent = script.requests[0].options
    assert (sent.api_key, sent.headers) == ("key", {"x-own": "1", "x-team": "blue"})
    assert sent.thinking_level == "medium"


async def test_complete_simple_gives_the_answer_or_raises(scripted) -> None:
    models, _ = scripted("Hi.", Failure("busy", "overloaded"))
    model = models.get_model("mine/m").model
    assert (await models.complete_simple(model, HELLO)).text == "Hi."
    with pytest.raises(ProviderError, match="busy"):
        await models.complete_simple(model, HELLO)


def test_price_of_a_listed_model(tmp_path: Path) -> None:
    write_listed(tmp_path / "models-listed.json", {"openrouter": LISTS["openrouter"][2]})
    model = Models(tmp_path, {}).get_model("openrouter/a/b").model
    assert model.cost == ModelCost(3, 15, 0.3, 0)
