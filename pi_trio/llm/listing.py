"""The models that a provider itself says it has, as entries of models.json."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from pi_trio.errors import ProviderError
from pi_trio.llm.auth import Credential
from pi_trio.llm.failures import redact
from pi_trio.llm.http import request_json
from pi_trio.llm.loose import count, get, objects, text

__all__ = ["can_list", "check_key", "list_models"]

Entry: TypeAlias = dict[str, Any]


@frozen
class _Listing:
    """Where a dialect's hosts list their models, and how they want the key."""

    path: str
    headers: Callable[[str], Mapping[str, str]]


def _bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


_LISTINGS: Mapping[str, _Listing] = {
    "openai-completions": _Listing("/models", _bearer),
    "openai-responses": _Listing("/models", _bearer),
    "anthropic-messages": _Listing(
        "/v1/models?limit=1000", lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"}
    ),
    "google-generative-ai": _Listing("/models?pageSize=1000", lambda key: {"x-goog-api-key": key}),
}
_KEY_TESTS: Mapping[str, str] = {"openrouter": "/key"}
"""Where a provider's list needs no key, and so says nothing of one."""


def can_list(api: str) -> bool:
    """Whether it is known how hosts of this `api` list their models."""
    return api in _LISTINGS


async def list_models(
    api: str, base_url: str, credential: Credential, proxy: str | None = None
) -> list[Entry]:
    """What the host lists, without models that do not talk. Raises `ProviderError`."""
    answer = await _get(api, base_url, _LISTINGS[api].path, credential, proxy)
    listed = answer if isinstance(answer, list) else get(answer, "data") or get(answer, "models")
    entries = (_entry(raw) for raw in objects(listed))
    return [entry for entry in entries if entry is not None]


async def check_key(
    provider: str, api: str, base_url: str, credential: Credential, proxy: str | None = None
) -> None:
    """Have the provider look at the key. Raises `ProviderError` if it does not take it."""
    await _get(api, base_url, _KEY_TESTS.get(provider, _LISTINGS[api].path), credential, proxy)


async def _get(api: str, base_url: str, path: str, credential: Credential, proxy: str | None) -> Any:
    headers = {**_LISTINGS[api].headers(credential.key), **credential.headers}
    try:
        return await request_json(base_url.rstrip("/") + path, headers, proxy=proxy)
    except ProviderError as error:
        raise ProviderError(redact(error.failure, credential.key)) from None


# ------------------------------------------------------------------ reading a list


_SILENT = re.compile(
    r"embed|whisper|tts|dall-e|moderation|realtime|transcri|speech|rerank|sora|imagen|veo|image|ocr|audio|guard",
    re.IGNORECASE,
)
_WINDOWS = ("context_length", "context_window", "max_context_length", "max_model_len", "inputTokenLimit")
_LIMITS = ("max_completion_tokens", "max_output_tokens", "outputTokenLimit")
_PRICES = {
    "input": "prompt",
    "output": "completion",
    "cacheRead": "input_cache_read",
    "cacheWrite": "input_cache_write",
}


def _entry(raw: Mapping[str, Any]) -> Entry | None:
    """What a host tells of a model; hosts tell very different things."""
    model_id = (text(raw, "id") or text(raw, "name")).removeprefix("models/")
    if not model_id or not _talks(raw, model_id):
        return None
    entry: Entry = {"id": model_id}
    name = text(raw, "display_name") or text(raw, "displayName") or text(raw, "name")
    if name and not name.startswith("models/"):
        entry["name"] = name
    if window := next(filter(None, (count(raw, key) for key in _WINDOWS)), 0):
        entry["contextWindow"] = window
    limits = (*(count(raw, key) for key in _LIMITS), count(raw.get("top_provider"), "max_completion_tokens"))
    if limit := next(filter(None, limits), 0):
        entry["maxTokens"] = min(limit, window or limit)
    return entry | _abilities(raw) | _prices(raw.get("pricing"))


def _talks(raw: Mapping[str, Any], model_id: str) -> bool:
    """Whether it answers text with text."""
    methods = raw.get("supportedGenerationMethods")
    if isinstance(methods, list):
        return "generateContent" in methods and not _SILENT.search(model_id)
    writes = get(raw.get("architecture"), "output_modalities")
    if isinstance(writes, list):
        return "text" in writes
    chats = get(raw.get("capabilities"), "completion_chat")
    return chats if isinstance(chats, bool) else not _SILENT.search(model_id)


def _abilities(raw: Mapping[str, Any]) -> Entry:
    abilities: Entry = {}
    reads = get(raw.get("architecture"), "input_modalities")
    if (isinstance(reads, list) and "image" in reads) or get(raw.get("capabilities"), "vision") is True:
        abilities["input"] = ["text", "image"]
    parameters = raw.get("supported_parameters")
    if (isinstance(parameters, list) and "reasoning" in parameters) or raw.get("thinking") is True:
        abilities["reasoning"] = True
    return abilities


def _prices(pricing: Any) -> Entry:
    """Dollars for a million tokens, where a host tells dollars for one."""
    if not isinstance(pricing, dict):
        return {}
    try:
        cost = {ours: float(pricing.get(theirs) or 0) * 1e6 for ours, theirs in _PRICES.items()}
    except (TypeError, ValueError):
        return {}
    told = "prompt" in pricing and all(rate >= 0 for rate in cost.values())
    return {"cost": {key: round(rate, 6) for key, rate in cost.items()}} if told else {}
