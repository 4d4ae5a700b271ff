"""What every kind of test shares."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest

TRIO_FOLDERS = ("unit", "props", "faults", "wire", "e2e")
"""Coroutine tests of these folders run on trio; those of `tui` are marked for asyncio there."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        if item.path.relative_to(root).parts[0] in TRIO_FOLDERS and _is_coroutine(item):
            item.add_marker(pytest.mark.trio)


def _is_coroutine(item: pytest.Item) -> bool:
    function = getattr(item, "obj", None)
    hypothesis = getattr(function, "hypothesis", None)  # @given hides the test that it wraps
    return inspect.iscoroutinefunction(hypothesis.inner_test if hypothesis else function)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded data beside the checkout; tests over it are skipped where it is missing."""
    folder = Path(os.environ.get("PI_SHARED", Path(__file__).parents[2] / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no recorded data at {folder}")
    return folder
