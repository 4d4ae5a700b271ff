"""What is taken for an API key, and what is not."""

from __future__ import annotations

import pytest

from pi_trio.llm.key_shapes import find_key


@pytest.mark.parametrize(
    ("key", "provider"),
    [
        ("sk-ant-api03-" + "a1" * 20, "anthropic"),
        ("sk-or-v1-" + "0f" * 32, "openrouter"),
        ("sk-proj-" + "aB3_" * 10, "openai"),
        ("AIza" + "Sy0-_" * 7, "google"),
        ("gsk_" + "aB3" * 10, "groq"),
        ("xai-" + "aB3" * 10, "xai"),
        ("hf_" + "aB3" * 10, "huggingface"),
        ("sk-" + "0123456789abcdef" * 2, ""),
    ],
)
def test_keys_are_found_with_their_provider(key, provider):
    for text in (key, f"use {key}, please", f'"{key}"', f"export KEY={key}\n"):
        assert find_key(text) == (key, provider)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sk-learn and sk-ant-",
        "the sk-learn-compatible-estimator-interface-of-this-library",
        "task-" + "a1b2" * 10,
        "a hash: 0123456789abcdef0123456789abcdef",
        "sk-abcdefghijklmnopqrstuvwxyzabcdef",
    ],
)
def test_other_texts_are_none(text):
    assert find_key(text) is None
