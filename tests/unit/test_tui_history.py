"""The history of prompts: kept across sessions, bounded, private, and never with a key."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from pi_trio.errors import StorageError
from pi_tui import history
from pi_tui.history import PromptHistory


def _loaded(path: Path) -> list[str]:
    kept = PromptHistory(path)
    kept.load()
    return kept.texts


def test_prompts_are_there_again_each_once(tmp_path: Path):
    path = tmp_path / "agent" / "history.jsonl"
    first, second = PromptHistory(path), PromptHistory(path)
    for kept, text in (
        (first, "one"),
        (second, "two\nlines"),
        (first, "three"),
        (second, "one"),
        (first, "  "),
    ):
        kept.add(text)
    assert _loaded(path) == ["two\nlines", "three", "one"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_was_sent_before_the_file_was_read_stays_last(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    PromptHistory(path).add("old")
    kept = PromptHistory(path)
    kept.add("new")
    kept.load()
    assert kept.texts == ["old", "new"]


def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(history, "MOST", 3)
    path = tmp_path / "history.jsonl"
    kept = PromptHistory(path)
    for number in range(8):
        kept.add(str(number))
    assert kept.texts == ["5", "6", "7"]
    assert _loaded(path) == ["5", "6", "7"]
    assert len(path.read_text().splitlines()) == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept.add("x" * (history.LONGEST + 1))
    assert _loaded(path) == ["5", "6", "7"]


def test_a_key_is_never_kept(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    kept = PromptHistory(path)
    kept.add("use sk-ant-api03-abcdefghijklmnopqrst please")
    assert kept.texts == []
    assert not path.exists()


def test_damaged_lines_are_one_prompt_less(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    path.write_bytes(json.dumps({"text": "good"}).encode() + b'\n{"text": "cu\n[]\n{"text": 3}\n\xff\n')
    assert _loaded(path) == ["good"]


def test_a_file_that_cannot_be_written_is_told_and_the_run_goes_on(tmp_path: Path):
    (tmp_path / "history.jsonl").mkdir()
    kept = PromptHistory(tmp_path / "history.jsonl")
    with pytest.raises(StorageError, match=r"history\.jsonl"):
        kept.add("text")
    assert kept.texts == ["text"]
    with pytest.raises(StorageError, match=r"history\.jsonl"):
        kept.load()


def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "history.jsonl")
    with pytest.raises(StorageError, match="it is not a regular file"):
        PromptHistory(tmp_path / "history.jsonl").load()


def test_without_a_path_nothing_is_written():
    kept = PromptHistory()
    kept.add("text")
    kept.load()
    assert kept.texts == ["text"]
