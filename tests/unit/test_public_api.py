"""`import pi_trio` gives the names that type checkers see there, from the same places."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import pi_trio


def test_what_is_loaded_is_what_type_checkers_see() -> None:
    tree = ast.parse(Path(pi_trio.__file__).read_text("utf-8"))
    (checking,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: (node.module, alias.name)
        for node in checking.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {name: (module, name) for name, module in pi_trio._MODULE_OF.items()}


@pytest.mark.parametrize("name", pi_trio.__all__)
def test_every_name_is_there_and_explained(name: str) -> None:
    value = getattr(pi_trio, name)
    assert name in dir(pi_trio)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value)
        assert not inspect.getdoc(value).startswith(f"{name}("), "written by hand"


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pi_trio.nothing  # noqa: B018
