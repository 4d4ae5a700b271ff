"""Paths as they are written, the impossible ones too."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_trio.errors import UsageError
from pi_trio.written_path import checked_path, home_expanded, written_path


def test_a_home_is_put_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    assert home_expanded("~/a") == Path("/home/u/a")
    assert written_path("a/~/b") == Path("a/~/b")


def test_the_home_of_nobody_is_a_name_as_any_other() -> None:
    assert home_expanded("~nobody-of-that-name/a") == Path("~nobody-of-that-name/a")


@pytest.mark.parametrize("text", ["a\0b", "\ud800.html"])
def test_what_no_file_can_be_called_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a file"):
        written_path(text)


def test_bytes_that_are_no_text_can_be_a_name() -> None:
    assert checked_path("\udcff") == "\udcff"
