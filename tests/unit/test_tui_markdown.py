"""Markdown that streams: the same picture however it comes, at a cost that follows what is new."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from pi_tui.items.blocks import LONGEST, MOST_ROWS, Splitter, split_blocks
from pi_tui.items.markdown import Growing, markdown
from pi_tui.items.paint import Budget, Look
from pi_tui.theme import bundled_folder, load_theme
from pi_tui.widgets.selecting import AT_ONCE

LOOK = Look(60, load_theme("dark", [bundled_folder()]))

PIECES = (
    "- a\n",
    "  x\n",
    "```\n",
    "  ```py\n",
    "\n",
    "w " * 3000,
    "| a | b |\n|--|--|\n",
    "| 1 | 2 |\n",
    "text\n",
)

LONG = {
    "paragraphs": "\n\n".join(f"paragraph {number} with *some* words" for number in range(400)),
    "one paragraph": " ".join(f"**word** {number}" for number in range(10_000)),
    "a table": "| a | b |\n|---|---|\n" + "".join(f"| {number} | cell |\n" for number in range(5000)),
    "a list": "".join(f"- item {number}\n" for number in range(5000)),
    "a nested list": "- top\n" + "".join(f"  - item {number}\n" for number in range(3000)),
    "a fence": "```python\n" + "".join(f"x = {number}\n" for number in range(3000)) + "```\n",
    "a fence in a list": "- so:\n  ```\n"
    + "".join(f"  x = {number}\n" for number in range(3000))
    + "  ```\n",
}


def lines(text: str) -> list[str]:
    return [strip.text.rstrip() for strip in markdown(text, LOOK, Style())]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.data())
def test_blocks_do_not_depend_on_how_a_text_arrives(text, data):
    """TV-07: cutting happens at the same places, and nothing is lost."""
    splitter, found = Splitter(), []
    for end in [*sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8))), len(text)]:
        while block := splitter.next_complete(text[:end]):
            found.append(block)
    last = splitter.rest(text)
    found += [last] if last else []
    assert found == list(split_blocks(text))
    assert "".join(text[block.begin : block.end] for block in found) == text


@pytest.mark.parametrize("kind", LONG)
def test_the_growing_end_is_never_long(kind, monkeypatch):
    """PF-03: what is drawn again with each piece has a bound, whatever it is that grows."""
    drawn: list[int] = []
    original = Growing._draw

    def counting(self, block, text, budget, *, growing):
        if not (block.fence and block.open):  # which is drawn line by line
            drawn.append(block.end - block.begin)
        return original(self, block, text, budget, growing=growing)

    monkeypatch.setattr(Growing, "_draw", counting)
    text, growing = LONG[kind], Growing(LOOK, Style())
    for end in range(0, len(text), len(text) // 40):
        growing.strips(text[:end])
    longest = len(text) if "fence" in kind else 2 * LONGEST  # a whole fence is coloured once
    assert max(drawn, default=0) <= longest
    assert sum(drawn) <= len(text) + 42 * 2 * LONGEST
    assert [strip.text for strip in growing.strips(text, final=True)] == [
        strip.text for strip in markdown(text, LOOK, Style())
    ]


def test_a_long_fence_is_coloured_a_stretch_at_a_time():
    """PF-03: no frame waits for 3,000 lines of colours; what has none yet stands there plain."""

    class Once(Budget):
        """A budget for one stretch."""

        asked = 0

        def used_up(self) -> bool:
            self.asked += 1
            self.exceeded = self.asked > 2
            return self.exceeded

    text = LONG["a fence"].replace("x", "y") + "\nafter\n"  # another: what was coloured once is kept
    growing = Growing(LOOK, Style())
    first = growing.strips(text, budget=Once(AT_ONCE))
    assert len(first) == 3000
    plain = [list(strip) for strip in first]
    whole = markdown(text, LOOK, Style())
    assert [strip.text for strip in first] == [strip.text for strip in whole[:3000]]
    assert list(first[0]) == list(whole[0])
    assert plain[2999] != list(whole[2999])
    for _ in range(3000 // 16 + 3):
        strips = growing.strips(text, final=True, budget=Once(AT_ONCE))
    assert [list(strip) for strip in strips] == [list(strip) for strip in whole]


def test_colours_that_are_not_ready_are_left_out_and_come_later(monkeypatch):
    """The rules of a language are put together elsewhere: no key waits for them."""
    ready: Future[object] = Future()
    monkeypatch.setattr("pi_tui.items.code._loading", lambda language: ready)
    text = "```python\nunready = 'x'\n```\nafter\n"
    growing, budget = Growing(LOOK, Style()), Budget(0.001)
    for _ in range(2):
        first = growing.strips(text, final=True, budget=budget)
        assert budget.exceeded
        assert [strip.text.strip() for strip in first] == ["unready = 'x'"]
    ready.set_result(None)
    strips = growing.strips(text, final=True, budget=Budget(AT_ONCE))
    assert [list(strip) for strip in strips] == [list(strip) for strip in markdown(text, LOOK, Style())]
    assert list(strips[0]) != list(first[0])


def test_a_long_table_keeps_its_columns_and_names_them_once():
    shown = lines(
        "| number | what |\n|---|---|\n" + "".join(f"| {at} | cell {at} |\n" for at in range(3 * MOST_ROWS))
    )
    assert shown[0].split() == ["number", "what"]
    assert len(shown) == 3 * MOST_ROWS + 2
    assert {line.index("cell") for line in shown[2:]} == {shown[0].index("what")}


def test_a_wide_table_fits_and_its_cells_wrap():
    shown = markdown("| a | b |\n|---|--:|\n| " + "many words " * 12 + "| 7 |\n", LOOK, Style())
    assert {strip.cell_length for strip in shown} == {60}
    assert len(shown) > 4


def test_code_is_what_it_is_without_the_indent_of_its_fence():
    shown = lines("1. so\n\n   ```python\n   if x:\n       y()\n   ```\n2. on\n\n~~~\n```\n~~~")
    assert [line.strip() for line in shown if line.strip()] == ["1 so", "if x:", "y()", "2 on", "```"]
    nested = [line for line in shown if "y()" in line or "if x" in line]
    assert nested[1].index("y") - nested[0].index("i") == 4


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "https://example.com@evil.test/",
        "http://a&#27;]8;;b",
    ],
)
def test_links_show_where_they_lead_and_never_open(target):
    """SE-16: no link can be clicked: neither the terminal nor the program is given one."""
    strips = markdown(f"[good](<{target}>) and <{target}>", LOOK, Style())
    shown = "".join(strip.text for strip in strips)
    assert target.split("&")[0].split(":", 1)[1][:12] in shown.replace("\n", "")
    for strip in strips:
        assert "\x1b" not in strip.text
        assert not any(style and (style.link or style.meta) for _, style, _ in strip)
