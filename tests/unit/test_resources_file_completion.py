"""Files for the `@` of a prompt."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.errors import UsageError
from pi_trio.resources import file_completion
from pi_trio.resources.file_completion import FileCompletion, best_files

PATHS = ["README.md", "src/", "src/main.py", "src/parser/main_loop.py", "docs/main.md", "tests/test_main.py"]


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("", "src/"),
        ("main.py", "src/main.py"),
        ("main", "src/main.py"),
        ("MAIN_L", "src/parser/main_loop.py"),
        ("parser/", "src/parser/main_loop.py"),
        ("src", "src/"),
        ("spml", "src/parser/main_loop.py"),
    ],
)
def test_the_likeliest_comes_first(word, first):
    assert best_files(word, PATHS)[0] == first


def test_what_does_not_fit_is_left_out():
    assert best_files("zzz", PATHS) == []
    assert len(best_files("", PATHS, 2)) == 2


@given(st.text("abc/.", max_size=6), st.lists(st.text("abc/.", min_size=1, max_size=12)))
def test_all_that_is_found_has_the_letters_in_order(word, paths):
    for path in best_files(word, paths):
        rest = iter(path)
        assert all(letter in rest for letter in word)


async def test_ignored_files_and_gits_own_are_left_out(tmp_path: Path):
    for name in ("kept.txt", ".hidden", "build/out.o", ".git/HEAD", "deep/er/x.py", "with\nline.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("build\n")
    found = await FileCompletion(tmp_path).complete("")
    assert sorted(found) == sorted(
        ["kept.txt", ".hidden", ".gitignore", "deep/", "deep/er/", "deep/er/x.py", "with\nline.txt"]
    )


async def test_a_huge_folder_is_read_no_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_completion, "MOST_FILES", 10)
    for number in range(400):
        (tmp_path / f"{number:0200d}").write_text("")
    completion = FileCompletion(tmp_path)
    assert len(await completion.complete("")) == file_completion.SHOWN
    assert len(completion._paths) <= 400


async def test_a_new_file_is_found_when_the_list_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    completion = FileCompletion(tmp_path)
    (tmp_path / "one").write_text("")
    assert await completion.complete("") == ["one"]
    (tmp_path / "two").write_text("")
    assert await completion.complete("") == ["one"]
    monkeypatch.setattr(file_completion, "FRESH", -1.0)
    assert sorted(await completion.complete("")) == ["one", "two"]


async def test_a_folder_that_is_gone_is_said(tmp_path: Path):
    with pytest.raises(UsageError, match="search cannot be started"):
        await FileCompletion(tmp_path / "gone").complete("x")
