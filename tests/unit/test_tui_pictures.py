"""Images for the prompt, and the editor of the user."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pi_trio.errors import UsageError
from pi_tui.hints import Hint, file_hints, file_word
from pi_tui.outside import editor_command
from pi_tui.pictures import clipboard_image, load_image, pasted_image

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f64540"
    "0000000049454e44ae426082"
)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "a shot (1).png"
    path.write_bytes(PNG)
    return path


def test_a_dropped_image_is_found_however_it_is_written(image: Path):
    text = str(image)
    escaped = text.replace(" ", "\\ ").replace("(", "\\(").replace(")", "\\)")
    for written in (
        text,
        f" {text}\n",
        f"'{text}'",
        f'"{text}"',
        escaped,
        "file://" + text.replace(" ", "%20"),
    ):
        assert pasted_image(written) == image


@pytest.mark.parametrize(
    "text",
    [
        "",
        "shot.png",
        "/nowhere/shot.png",
        "/tmp",
        "it's /tmp/x.png",
        "a\x00.png",
        "/" + "x" * 5000,
        "/a\n/b",
        "~nobody-there/x.png",
        "~5 minutes",
        "file://[x.png",
    ],
)
def test_other_texts_are_no_image(text):
    assert pasted_image(text) is None


def test_an_image_is_loaded_by_what_it_is(image: Path, tmp_path: Path):
    assert load_image(image).mime_type == "image/png"
    (tmp_path / "text.png").write_text("no image")
    for bad in (tmp_path / "text.png", tmp_path / "gone.png", tmp_path):
        with pytest.raises(UsageError, match=str(bad)):
            load_image(bad)


def test_the_clipboard_is_asked_through_the_native_program(tmp_path: Path, monkeypatch, image: Path):
    monkeypatch.setenv("PATH", str(tmp_path / "bin") + os.pathsep + "/usr/bin:/bin")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "wl-paste"

    def answer(script: str) -> Path | None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return clipboard_image()

    found = answer(f"cat '{image}'")
    assert found is not None
    assert found.read_bytes() == PNG
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    found.unlink()
    assert answer("echo text") is None
    assert answer("exit 1") is None


def test_which_editor():
    assert editor_command("code --wait", {"EDITOR": "vi"}) == ["code", "--wait"]
    assert editor_command(None, {"VISUAL": "emacs -nw", "EDITOR": "vi"}) == ["emacs", "-nw"]
    assert editor_command(None, {"EDITOR": "vi"}) == ["vi"]
    with pytest.raises(UsageError, match="is no command"):
        editor_command("vi '", {})


def test_without_any_editor_it_is_said(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="externalEditor"):
        editor_command(None, {})


@pytest.mark.parametrize(
    ("before", "word"),
    [
        ("@", "@"),
        ("see @src/ma", "@src/ma"),
        ('see @"a b', '@"a b'),
        ("me@example.com", None),
        ("@done ", None),
        ('@"a b" ', None),
    ],
)
def test_the_word_behind_an_at(before, word):
    assert file_word(before) == word


def test_file_hints_are_written_as_they_are_sent():
    assert file_hints("@", ["a b.txt", "c"]) == [Hint('@"a b.txt"'), Hint("@c")]
    assert file_hints("@c", ["c"]) == []
