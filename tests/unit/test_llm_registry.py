"""Which models there are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pi_trio.errors import ConfigError
from pi_trio.llm import openai_completions, registry
from pi_trio.llm.protocol import Model, ModelCost
from pi_trio.llm.registry import Models, register_api
from pi_trio.testing import ScriptedModel


def models_with(folder: Path, data: Any = None, environ: dict[str, str] | None = None) -> Models:
    if data is not None:
        text = data if isinstance(data, str) else json.dumps({"providers": data})
        (folder / "models.json").write_text(text, encoding="utf-8")
    return Models(folder, environ or {})


LOCAL = {
    "baseUrl": "http://127.0.0.1:8080/v1",
    "apiKey": "none",
    "models": [
        {"id": "gemma3:4b", "reasoning": True, "contextWindow": 8192, "cost": {"input": 1}, "future": 7},
        {"id": "plain"},
    ],
}


def test_nothing_configured_leaves_the_demo(tmp_path: Path) -> None:
    models = models_with(tmp_path)
    assert models.default_model().reference == "demo/demo"
    assert [model.reference for model in models.available()] == ["demo/demo"]
    assert models.findings == []


def test_environment_makes_a_provider_available(tmp_path: Path) -> None:
    models = models_with(tmp_path, environ={"GROQ_API_KEY": "gsk-1"})
    assert models.default_model().provider == "groq"
    assert models.key_source("groq") == "key from GROQ_API_KEY"
    assert models.key_source("openai") is None


def test_own_models_come_first_with_pi_defaults(tmp_path: Path) -> None:
    models = models_with(tmp_path, {"local": LOCAL}, {"OPENAI_API_KEY": "sk-1"})
    model = models.default_model()
    assert model.reference == "local/gemma3:4b"
    assert (model.name, model.api, model.base_url) == ("gemma3:4b", "openai-completions", LOCAL["baseUrl"])
    assert (model.context_window, model.max_tokens, model.input) == (8192, 16_384, ("text",))
    assert model.cost == ModelCost(input=1)
    assert model.extra == {"future": 7}
    assert models.get_model("local/plain").model.cost is None


def test_file_as_people_write_it(tmp_path: Path) -> None:
    """Comments, trailing commas and a byte order mark are welcome."""
    text = '\ufeff{"providers": { // mine\n "a": {"baseUrl": "http://h//v1", "models": [{"id": "m",},],},},}'
    models = models_with(tmp_path, text)
    assert models.findings == []
    assert models.get_model("a/m").model.base_url == "http://h//v1"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"providers": {\n"a": {]}}', "models.json:2"),
        ("[]", "models.json:1: the file must be a JSON object"),
        ('{"providers": []}', "models.json:1: providers must be an object"),
        ('{"providers": {\n"a": 3}}', "models.json:2: providers.a must be an object"),
        ('{"providers": {"a": {\n"baseUrl": 7}}}', "models.json:2: providers.a.baseUrl must be text"),
        ('{"providers": {"a": {"models": {}}}}', "providers.a.models must be a list"),
        ('{"providers": {"a": {"models": [3]}}}', "providers.a.models must hold objects"),
        ('{"providers": {"a": {"models": [{}]}}}', "providers.a.models holds a model without an id"),
        ('{"providers": {"a": {"models": [{"id": ""}]}}}', "providers.a.models.id must be text"),
        (
            '{"providers": {"a": {"models": [\n{"id": "m",\n"contextWindow": "big"}]}}}',
            "models.json:3: providers.a.models.contextWindow must be a whole number above 0",
        ),
        (
            '{"providers": {"a": {"models": [{"id": "m", "cost": {"input": "1"}}]}}}',
            "models.cost must be an object of",
        ),
        ('{"providers": {"a": {"modelOverrides": {"m": 1}}}}', "modelOverrides.m must be an object"),
    ],
)
def test_broken_file_is_told_once_and_built_in_models_stay(tmp_path: Path, text: str, place: str) -> None:
    models = models_with(tmp_path, text)
    [finding] = models.findings
    assert place in str(finding)
    assert models.get_model("openai/gpt-4.1").model.base_url == "https://api.openai.com/v1"
    with pytest.raises(ConfigError, match=re.escape(str(finding))):
        models.get_model("a/whose-models-were-not-read")


def test_reload_forgets_what_was_wrong(tmp_path: Path) -> None:
    models = models_with(tmp_path, "{")
    assert models.findings
    (tmp_path / "models.json").write_text(json.dumps({"providers": {"local": LOCAL}}))
    models.reload()
    assert models.findings == []
    assert models.get_model("plain").model.provider == "local"


def test_built_in_provider_can_be_pointed_elsewhere(tmp_path: Path) -> None:
    models = models_with(tmp_path, {"openai": {"baseUrl": "http://proxy/v1", "headers": {"X-Team": "a"}}})
    model = models.get_model("openai/gpt-4.1").model
    assert (model.base_url, model.headers) == ("http://proxy/v1", {"X-Team": "a"})


def test_overrides_change_fields_and_own_models_replace(tmp_path: Path) -> None:
    overrides = {"gpt-4.1": {"maxTokens": 5, "cost": {"output": 1}}, "nobody": {"maxTokens": 1}}
    own = [{"id": "gpt-5-mini", "name": "Mine"}]
    models = models_with(tmp_path, {"openai": {"modelOverrides": overrides, "models": own}})
    model = models.get_model("openai/gpt-4.1").model
    assert (model.max_tokens, model.cost.input, model.cost.output) == (5, 2, 1)
    mine = models.get_model("openai/gpt-5-mini").model
    assert (mine.name, mine.cost) == ("Mine", None)


@pytest.mark.parametrize(
    ("pattern", "reference", "level"),
    [
        ("openai/gpt-4.1", "openai/gpt-4.1", None),
        ("OPENAI/GPT-4.1:high", "openai/gpt-4.1", "high"),
        ("deepseek-chat", "deepseek/deepseek-chat", None),
        ("kimi:low", "groq/moonshotai/kimi-k2-instruct-0905", "low"),
        ("Devstral", "mistral/devstral-medium-latest", None),
        ("gemma3:4b", "local/gemma3:4b", None),
        ("local/gemma3:4b:max", "local/gemma3:4b", "max"),
        ("demo", "demo/demo", None),
        ("openai/gpt-5", "openai/gpt-5", None),
        ("openrouter/some/new:free", "openrouter/some/new:free", None),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, reference: str, level: str | None) -> None:
    choice = models_with(tmp_path, {"local": LOCAL}).get_model(pattern)
    assert (choice.model.reference, choice.thinking_level) == (reference, level)


def test_unknown_id_has_guessed_limits_and_no_price(tmp_path: Path) -> None:
    model = models_with(tmp_path).get_model("deepseek/new").model
    assert model.base_url == "https://api.deepseek.com"
    assert (model.cost, model.context_window) == (None, 128_000)
    assert model.compat == {
        "supportsReasoningEffort": False,
        "requiresReasoningContentOnAssistantMessages": True,
    }


def test_pattern_that_names_several_or_none(tmp_path: Path) -> None:
    models = models_with(tmp_path)
    with pytest.raises(ConfigError, match=r"could be any of openai/gpt-5\.2, "):
        models.get_model("gpt")
    for nothing in ("nope", "nobody/x", "demo/other", "openai/", ""):
        with pytest.raises(ConfigError):
            models.get_model(nothing)


def test_credential_decides_between_equals(tmp_path: Path) -> None:
    models = models_with(tmp_path, environ={"CEREBRAS_API_KEY": "k"})
    assert models.get_model("oss-120b").model.provider == "cerebras"


async def test_credential_of_a_model(tmp_path: Path) -> None:
    """HL-01: a missing key is one clear sentence, and the headers' variables are filled in."""
    provider = {**LOCAL, "headers": {"X-Team": "$TEAM"}}
    models = models_with(tmp_path, {"local": provider}, {"TEAM": "blue"})
    credential = await models.credential(models.get_model("plain").model)
    assert (credential.key, credential.headers) == ("none", {"X-Team": "blue"})
    assert (await models.credential(models.get_model("demo").model)).source == "no key needed"
    with pytest.raises(ConfigError, match="no API key for openai: set OPENAI_API_KEY,"):
        await models.credential(models.get_model("openai/gpt-4.1").model)
    passed = await models.credential(models.get_model("openai/gpt-4.1").model, "sk-passed")
    assert passed.key == "sk-passed"


def test_api_gives_the_stream_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_APIS", dict(registry._APIS))
    models = models_with(tmp_path, {"mine": {"api": "scripted", "apiKey": "x", "models": [{"id": "m"}]}})
    model = models.get_model("mine/m").model
    assert model not in models.available()
    with pytest.raises(ConfigError, match="speaks 'scripted'"):
        models.stream_function(model)
    scripted = ScriptedModel()
    register_api("scripted", scripted)
    assert models.stream_function(model) is scripted
    assert model in models.available()
    assert models.stream_function(models.get_model("deepseek-chat").model) is openai_completions.stream


def test_catalogue_is_sound(tmp_path: Path) -> None:
    for model in models_with(tmp_path).all():
        assert isinstance(model, Model)
        assert model.extra == {}
        assert model.max_tokens <= model.context_window
        assert model.base_url.startswith("https://") or model.api == "demo"


def test_shared_example_of_models_json_loads(shared: Path, tmp_path: Path) -> None:
    models = models_with(tmp_path, (shared / "bench" / "models.example.json").read_text())
    assert models.findings == []
    assert models.get_model("mock-anthropic/mock").model.api == "anthropic-messages"
    assert models.get_model("mock-chat/mock").model.context_window == 128_000
    assert models.default_model().input == ("text", "image")
