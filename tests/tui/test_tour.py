"""docs/tour.md holds: the walk that its pictures are drawn on is taken, and looked at."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "tour.md").read_text()

pytestmark = pytest.mark.asyncio


@pytest.fixture
def picture(monkeypatch):
    """The script that draws the pictures."""
    spec = spec_from_file_location("picture", DOCS / "picture.py")
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "picture", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.usefixtures("demo_in_a_hurry")
async def test_what_the_tour_says_is_seen(picture, tmp_path, monkeypatch):
    seen = {}

    def see(name, app):
        app.screen.refresh()
        strips = app.screen._compositor.render_strips(app.size)
        seen[name] = "\n".join(strip.text.rstrip() for strip in strips)

    monkeypatch.chdir(tmp_path)  # the walk goes elsewhere; this brings us back
    await picture.walk(tmp_path, see)
    assert "├─A 2 …replace > 2 by > 3" in seen["screen"]
    assert "•└─B 2 …replace > 3 by >= 3" in seen["screen"]
    assert "⎇ B/2" in seen["screen"]
    assert "You stopped turn 4." in seen["stopped"]
    assert "empty enter goes on" in seen["stopped"]
    assert re.search(r"1 steer +list src", seen["queue"])
    assert re.search(r"2 queue +read README.md", seen["queue"])
    assert "› list src\n\n  read README.md" in seen["returned"]
    assert "+2     return days_dry >= 3" in seen["tools"]
    assert "preview" in seen["tree"]
    assert "Files are not moved." in seen["tree"]
    assert "catppuccin-mocha" in seen["themes"]
    assert "── sessions" in seen["sessions"]
    assert (tmp_path / "garden" / "src" / "water.py").read_text().endswith("return days_dry >= 3\n")


async def test_each_picture_of_the_page_is_drawn(picture):
    shown = set(re.findall(r"\]\((\w+)\.svg\)", PAGE))
    assert shown == set(picture.PICTURES)
    assert all((DOCS / f"{name}.svg").is_file() for name in shown)


async def test_what_is_typed_in_the_walk_stands_on_the_page(picture):
    """The page and the walk are two texts of the same tour."""
    source = Path(picture.__file__).read_text()
    for text in re.findall(r'_say\(\s*"([^"/]+)"', source):
        if "for i in" not in text:
            assert text in PAGE
