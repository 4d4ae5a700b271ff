"""From messages, files and piped text to prompts."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from pi_trio.cli.prompts import Prompt, gather_prompts
from pi_trio.errors import UsageError
from pi_trio.messages import ImageContent


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_message_is_a_prompt() -> None:
    assert gather_prompts(["one", "two", "three"], "") == [Prompt("one"), Prompt("two"), Prompt("three")]


def test_piped_text_and_files_go_before_the_first_message(folder: Path) -> None:
    (folder / "a.txt").write_text("inside\n")
    block = f'<file name="{folder}/a.txt">\ninside\n\n</file>\n'
    assert gather_prompts(["one", "@a.txt", "two"], "piped") == [Prompt(f"piped\n{block}one"), Prompt("two")]


def test_piped_text_alone_is_a_prompt() -> None:
    assert gather_prompts([], "piped\n") == [Prompt("piped\n")]


def test_an_image_is_told_by_its_content(folder: Path) -> None:
    data = _png(2, 2)
    (folder / "picture.txt").write_bytes(data)
    (folder / "gif.txt").write_text("GIF is a format")
    first, *_ = gather_prompts(["@picture.txt", "@gif.txt", "what is it?"], "")
    assert first.images == (ImageContent(base64.b64encode(data).decode(), "image/png"),)
    assert first.text.startswith(f'<file name="{folder}/picture.txt"></file>\n<file name="{folder}/gif.txt">')


def test_an_image_that_a_provider_would_refuse_is_mended_or_refused(folder: Path) -> None:
    """RD-01"""
    (folder / "wide").write_bytes(_png(4000, 10))
    (folder / "cut").write_bytes(_png(40, 10)[:-4])
    (first,) = gather_prompts(["@wide", "what is it?"], "")
    assert "[Original 4000x10, shown as 2000x5." in first.text
    assert first.images[0].mime_type == "image/png"
    with pytest.raises(UsageError, match="cut: The image of 40×10 is damaged"):
        gather_prompts(["@cut", "what is it?"], "")


def _png(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, "PNG")
    return file.getvalue()


def test_an_empty_file_is_skipped(folder: Path) -> None:
    (folder / "empty").touch()
    assert gather_prompts(["@empty", "hi"], "") == [Prompt("hi")]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["@missing", "hi"], "missing cannot be read: No such file"),
        (["@.", "hi"], "cannot be read: Is a directory"),
        (["@binary", "hi"], "neither text nor an image"),
        ([], "there is no prompt"),
        ([" "], "there is no prompt"),
    ],
)
def test_what_cannot_be_sent_is_one_sentence(folder: Path, arguments: list[str], sentence: str) -> None:
    (folder / "binary").write_bytes(b"\xff\0\xff")
    with pytest.raises(UsageError, match=sentence):
        gather_prompts(arguments, "")
