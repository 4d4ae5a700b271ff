"""The tolerant JSON reader: what it accepts, and that its errors name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_trio.errors import ConfigError
from pi_trio.jsonc import load_jsonc, read_jsonc


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.json"


def test_comments_trailing_commas_and_a_bom_are_welcome(path: Path) -> None:
    path.write_text('\ufeff// first\n{"a": [1, 2, /* no */ ],}'.replace("/* no */ ", "// two\n"), "utf-8")
    assert load_jsonc(path) == {"a": [1, 2]}


def test_strings_keep_what_looks_like_a_comment_or_a_comma(path: Path) -> None:
    path.write_text(r'{"url": "http://x,}", "quoted": "\"//,]", }', "utf-8")
    assert load_jsonc(path) == {"url": "http://x,}", "quoted": '"//,]'}


@pytest.mark.parametrize("content", ["", " \n", "// nothing\n"])
def test_an_empty_file_is_an_empty_object(path: Path, content: str) -> None:
    path.write_text(content, "utf-8")
    assert load_jsonc(path) == {}


def test_an_error_names_file_line_and_column(path: Path) -> None:
    path.write_text('{\n  // why\n  "a": 1\n  "b": 2\n}', "utf-8")
    with pytest.raises(ConfigError, match=r"some\.json:4:3: not valid JSON"):
        load_jsonc(path)


def test_bytes_that_are_not_text_are_an_error_with_a_line(path: Path) -> None:
    path.write_bytes(b'{\n"a": "\xff"}')
    with pytest.raises(ConfigError, match=r"some\.json:2: not UTF-8"):
        load_jsonc(path)


def test_a_missing_file_is_told_apart(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_jsonc(path)


def test_a_folder_in_its_place_is_one_clear_sentence(path: Path) -> None:
    path.mkdir()
    with pytest.raises(ConfigError, match=r"some\.json: cannot be read: "):
        load_jsonc(path)


def test_deep_nesting_is_an_error_and_not_a_crash(path: Path) -> None:
    path.write_text("[" * 100_000, "utf-8")
    with pytest.raises(ConfigError):
        load_jsonc(path)


def test_the_line_of_a_key_is_that_of_its_own_object(path: Path) -> None:
    path.write_text('{\n"list": [{"a": 1}, "a"],\n"b": {\n"a": "a"\n},\n"a": 2}', "utf-8")
    document = read_jsonc(path)
    assert document.line("a") == 6
    assert document.line("b", "a") == 4
    assert document.line("list") == 2
    assert document.line("nowhere") == 1
