"""The samples of docs/embedding.md run, each as the body of a coroutine."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

PAGE = (Path(__file__).parents[2] / "docs" / "embedding.md").read_text("utf-8")
SAMPLES = re.findall(r"^## (.*?)$.*?^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_sample_is_run() -> None:
    assert len(SAMPLES) == PAGE.count("```python")


@pytest.mark.parametrize(("title", "sample"), SAMPLES, ids=[title for title, _ in SAMPLES])
async def test_sample(title: str, sample: str, autojump_clock: trio.testing.MockClock) -> None:
    names: dict[str, Any] = {}
    source = f"async def main():\n{textwrap.indent(sample, '    ')}"
    exec(compile(source, title, "exec", dont_inherit=True), names)
    await names["main"]()
