"""The settings file: one wrong key costs that key and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_trio.errors import ConfigError
from pi_trio.resources.settings import Compaction, GateSettings, Retry, Settings, load_settings


def _load(tmp_path: Path, content: str) -> tuple[Settings, tuple[str, ...]]:
    path = tmp_path / "settings.json"
    path.write_text(content, "utf-8")
    try:
        return load_settings(path)
    finally:
        assert path.read_text("utf-8") == content


def test_without_a_file_all_are_defaults(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "settings.json") == (Settings(), ())


def test_values_of_every_depth_are_read(tmp_path: Path) -> None:
    settings, findings = _load(
        tmp_path,
        """{"defaultProvider": "openai", "defaultThinkingLevel": "high", "followUpMode": "all",
        "theme": "light", "retry": {"maxRetries": 7}, // more than usual
        "compaction": {"modelOverrides": {"openai/gpt": {"keepRecentTokens": 5000}}}
        }""",
    )
    assert findings == ()
    assert settings == Settings(
        default_provider="openai",
        default_thinking_level="high",
        follow_up_mode="all",
        theme="light",
        retry=Retry(max_retries=7),
        compaction=Compaction(model_overrides={"openai/gpt": {"keepRecentTokens": 5_000}}),
    )


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        ('{"theme": 3}', "settings.json:1: theme must be a text"),
        ('{\n"theme": 5}', "settings.json:2: theme must be a text that is not empty"),
        ('{"maxParallelToolCalls": 0}', "settings.json:1: maxParallelToolCalls must be a whole number, 1"),
        ('{"maxParallelToolCalls": true}', "settings.json:1: maxParallelToolCalls must be a whole number"),
        ('{"steeringMode": []}', "settings.json:1: steeringMode must be one of all, one-at-a-time"),
        ('{"retry": 3}', "settings.json:1: retry must be an object"),
        ('{"retry":\n{"enabled": 1}}', "settings.json:2: retry.enabled must be true or false"),
    ],
)
def test_a_wrong_value_costs_only_its_key(tmp_path: Path, content: str, finding: str) -> None:
    """CF-01: the message has file, line and key; the default stands in; the file is left alone."""
    settings, findings = _load(tmp_path, content)
    assert settings == Settings()
    assert len(findings) == 1
    assert finding in findings[0]


def test_the_other_keys_are_used(tmp_path: Path) -> None:
    """CF-01"""
    settings, findings = _load(
        tmp_path, '{"theme": 3, "defaultModel": "m", "retry": {"enabled": 1, "maxRetries": 0}}'
    )
    assert (settings.default_model, settings.retry.max_retries) == ("m", 0)
    assert len(findings) == 2


@pytest.mark.parametrize("content", ["", "\ufeff", "{}", '{"theme": null}'])
def test_nothing_said_is_no_mistake(tmp_path: Path, content: str) -> None:
    """CF-01: an empty file, a byte order mark."""
    assert _load(tmp_path, content) == (Settings(), ())


@pytest.mark.parametrize("content", ['{"theme": "dark"', "[]", "3", "{theme: 1}"])
def test_a_file_that_is_no_object_refuses_the_start(tmp_path: Path, content: str) -> None:
    """CF-01: never go on with none of what the file says."""
    with pytest.raises(ConfigError, match=r"settings\.json"):
        _load(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ('{"maxRetrys": 1}', "maxRetrys is not a setting; did you mean retry.maxRetries?"),
        ('{"retry": {"maxRetrys": 1}}', "retry.maxRetrys is not a setting; did you mean retry.maxRetries?"),
        ('{"Theme": "dark"}', "did you mean theme?"),
        ('{"zzzzzz": 1}', "settings.json:1: zzzzzz is not a setting"),
    ],
)
def test_a_misspelt_key_is_told(tmp_path: Path, content: str, hint: str) -> None:
    """CF-02"""
    _, findings = _load(tmp_path, content)
    assert len(findings) == 1
    assert findings[0].endswith(hint)


def test_settings_that_only_pi_knows_are_no_mistakes(tmp_path: Path) -> None:
    content = '{"$schema": "x", "compaction": {"enabled": true}, "retry": {"provider": {"maxRetries": 1}}}'
    assert _load(tmp_path, content) == (Settings(), ())


def test_lists_are_lists_of_texts(tmp_path: Path) -> None:
    settings, findings = _load(
        tmp_path, '{"defaultTools": ["+grep"], "gate": {"mode": "ask", "allow": ["write"]}}'
    )
    assert (settings.default_tools, findings) == (("+grep",), ())
    assert settings.gate == GateSettings(mode="ask", allow=("write",))
    _, (finding,) = _load(tmp_path, '{"defaultTools": "read"}')
    assert finding.endswith("defaultTools must be a list of texts; the default is used")


@pytest.mark.parametrize(
    ("gate", "error"),
    [
        ('"ask"', "gate must be an object$"),
        ('{"mode": "readonly"}', "gate.mode must be one of auto, ask, read-only$"),
        ('{"deny": "bash(rm *)"}', "gate.deny must be a list of texts$"),
        ('{"denied": []}', "gate.denied is not a setting"),
    ],
)
def test_a_mistake_about_what_is_forbidden_stops_the_start(tmp_path: Path, gate: str, error: str) -> None:
    with pytest.raises(ConfigError, match=rf"settings\.json:1: {error}"):
        _load(tmp_path, f'{{"gate": {gate}}}')
