"""The tool pane: which call it shows, how it goes on with it, and changes side by side."""

from __future__ import annotations

from typing import Any

import pytest
from fake_runtime import conversation

from pi_trio.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from pi_trio.tool import ToolResult
from pi_tui.items.diff import diff_strips
from pi_tui.items.paint import Look
from pi_tui.theme import bundled_folder, load_theme

pytestmark = pytest.mark.asyncio

LINES = "\n".join(f"line {number}." for number in range(60))


def begin(screen: Any, call_id: str, command: str, output: str = "") -> None:
    """A call runs, and has printed something."""
    calls = screen.main.live.store.calls
    calls.start(ToolExecutionStart(call_id, "bash", {"command": command}))
    calls.progress(ToolExecutionUpdate(call_id, "bash", {"command": command}, ToolResult(output)))
    screen.body.tool_pane.sync()


def end(screen: Any, call_id: str, output: str, *, is_error: bool = False) -> None:
    """A call is over."""
    result = ToolResult(output, is_error=is_error)
    calls = screen.main.live.store.calls
    calls.end(ToolExecutionEnd(call_id, "bash", result, is_error=is_error, duration_ms=5))
    screen.body.tool_pane.sync()


async def test_only_a_call_that_runs_can_be_stopped(open_screen):
    async with open_screen(entries=conversation(1)) as screen:
        begin(screen, "a", "make")
        begin(screen, "b", "sleep")
        end(screen, "a", "done")
        await screen.press("f3")
        assert "x stop" in screen.status
        await screen.press("down")
        screen.main.refresh_chrome()
        assert "x stop" not in screen.status
        await screen.press("up")
        screen.main.refresh_chrome()
        assert "x stop" in screen.status


@pytest.mark.key("app.tools.first", "app.tools.last", "app.tools.pageUp")
async def test_the_output_of_what_runs_is_followed_until_one_scrolls_up(open_screen):
    async with open_screen(entries=conversation(1)) as screen:
        begin(screen, "a", "make", LINES)
        await screen.press("f3")
        await screen.until(screen.sees("line 59."))
        await screen.until(screen.sees("following · "))
        await screen.press("pageup")
        await screen.until(lambda: "line 59." not in screen.text())
        begin(screen, "a", "make", LINES + "\nline 60.")
        await screen.pilot.pause()
        assert "line 60." not in screen.text()
        await screen.press("end")
        begin(screen, "a", "make", LINES + "\nline 61.")
        await screen.until(screen.sees("line 61."))
        await screen.press("home")
        await screen.until(screen.sees("line 0."))


@pytest.mark.key("app.tools.previous", "app.tools.next")
async def test_a_failed_call_is_opened_by_itself_unless_another_was_chosen(open_screen):
    async with open_screen(entries=conversation(1)) as screen:
        await screen.press("f3")
        begin(screen, "a", "first", "from first")
        begin(screen, "b", "second", "from second")
        end(screen, "b", "what went wrong", is_error=True)
        await screen.until(screen.sees("what went wrong"))
        await screen.press("left_square_bracket")
        await screen.until(screen.sees("from first"))
        begin(screen, "c", "third")
        end(screen, "c", "wrong again", is_error=True)
        await screen.pilot.pause()
        assert "wrong again" not in screen.text()
        await screen.press("right", "left", "right_square_bracket")
        await screen.until(screen.sees("wrong again"))


@pytest.mark.key("app.tools.pin")
async def test_a_pinned_call_stays_in_sight(open_screen):
    async with open_screen(entries=conversation(1)) as screen:
        await screen.press("f3")
        begin(screen, "a", "watch", LINES)
        begin(screen, "b", "other", "from other")
        await screen.press("right_square_bracket")
        await screen.until(screen.sees("line 59."))
        await screen.press("p", "left_square_bracket")
        await screen.until(screen.sees("from other"))
        assert "line 59." in screen.text()
        assert "line 50." not in screen.text()
        await screen.press("right_square_bracket", "p", "left_square_bracket")
        await screen.until(lambda: "line 59." not in screen.text())


@pytest.mark.key("app.tools.copy")
async def test_long_commands_are_whole_and_the_output_can_be_copied(open_screen):
    copied: list[str] = []

    async def copy(text: str) -> None:
        copied.append(text)

    async with open_screen(entries=conversation(1)) as screen:
        screen.main.clipping.copy = copy
        begin(screen, "a", "for i in 1 2 3; do echo $i; done && " * 4 + "echo the-end", "printed\x1b[31m")
        await screen.press("f3")
        await screen.until(screen.sees("the-end"))
        await screen.press("y")
        await screen.until(lambda: copied)
        assert copied == ["printed"]


@pytest.mark.key("app.tools.whole")
async def test_the_tools_can_have_the_whole_screen(open_screen):
    async with open_screen(entries=conversation(1)) as screen:
        await screen.press("f3", "w")
        assert not screen.body.transcript.display
        await screen.press("w")
        assert screen.body.transcript.display
        await screen.press("w", "escape")
        assert screen.body.transcript.display


DIFF = " 1 same\n-2 old one\n-3 old two\n+2 new one\n 4 same too\n-5 gone\n 6 end\n+7 come"


async def test_a_change_is_side_by_side_where_there_is_room():
    theme = load_theme("dark", [bundled_folder()])
    narrow = [strip.text.rstrip() for strip in diff_strips(DIFF, Look(60, theme))]
    assert narrow == DIFF.split("\n")
    wide = [[side.strip() for side in strip.text.split("│")] for strip in diff_strips(DIFF, Look(120, theme))]
    assert wide == [
        ["1 same", "1 same"],
        ["-2 old one", "+2 new one"],
        ["-3 old two", ""],
        ["4 same too", "4 same too"],
        ["-5 gone", ""],
        ["6 end", "6 end"],
        ["", "+7 come"],
    ]
    assert {strip.cell_length for strip in diff_strips(DIFF + "\n+8 " + "한" * 90, Look(120, theme))} == {120}
