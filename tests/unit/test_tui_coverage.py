"""Each key of the table and each slash command has a test that presses or runs it.

A test says what it is of with `@pytest.mark.key(id)` and `@pytest.mark.command(name)`; what it
says is held against its text, in which the key or the command must occur.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_trio.builtin_commands import builtin_commands
from pi_tui.key_clashes import clashes
from pi_tui.keymap import KEYS, Key, load_keymap

TESTS = Path(__file__).parents[1]


def marked(kind: str) -> Iterator[tuple[str, str, str]]:
    """The words of all marks of a kind, with the name and the text of their tests."""
    for path in sorted((*TESTS.glob("tui/test_*.py"), *TESTS.glob("unit/test_*.py"))):
        text = path.read_text("utf-8")
        if f"mark.{kind}(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = "\n".join(ast.unparse(part) for part in (*node.decorator_list, node))
                for word in _words(node, kind):
                    yield word, node.name, body


def _words(node: ast.FunctionDef | ast.AsyncFunctionDef, kind: str) -> Iterator[str]:
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.func.attr == kind:
            yield from (word.value for word in mark.args if isinstance(word, ast.Constant))


TESTS_OF_KEYS = list(marked("key"))
TESTS_OF_COMMANDS = list(marked("command"))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{key.area} {key.id}")
def test_every_key_has_a_test_that_presses_it(key: Key):
    bodies = [body for word, _, body in TESTS_OF_KEYS if word == key.id]
    assert bodies, f"no test is marked with {key.id}"
    names = [name.replace("\\", "\\\\") for name in key.keys.split(",")]
    assert any(name in body for body in bodies for name in names), f"{key.id} is not pressed"


@pytest.mark.parametrize("name", list(builtin_commands().names))
def test_every_command_has_a_test_that_runs_it(name: str):
    bodies = [body for word, _, body in TESTS_OF_COMMANDS if word == name]
    assert bodies, f"no test is marked with /{name}"
    assert any(f"/{name}" in body for body in bodies), f"/{name} is not run"


def test_marks_name_what_there_is():
    ids = {key.id for key in KEYS}
    assert {word for word, _, _ in TESTS_OF_KEYS} <= ids
    assert {word for word, _, _ in TESTS_OF_COMMANDS} <= set(builtin_commands().names)


def test_the_page_of_keys_has_them_all():
    """`python docs/make_keys.py` writes its table anew."""
    page = TESTS.parent / "docs" / "keys.md"
    spec = importlib.util.spec_from_file_location("make_keys", page.with_name("make_keys.py"))
    assert spec is not None
    assert spec.loader is not None
    make_keys = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_keys)
    assert page.read_text("utf-8").endswith(make_keys.table())


def test_the_example_of_the_page_gives_no_key_twice(tmp_path: Path):
    page = (TESTS.parent / "docs" / "keys.md").read_text("utf-8")
    file = tmp_path / "keybindings.json"
    file.write_text(page.partition("```json\n")[2].partition("```")[0])
    keymap = load_keymap(file)
    assert len(keymap) == 3
    assert clashes(keymap) == []
