"""Faults of other programs, tried on this screen: width, resizing, size, rest, and coming back."""

from __future__ import annotations

import random

import pytest
from fake_runtime import conversation
from rich.cells import cell_len
from textual import events
from textual.geometry import Size
from textual.widget import Widget

pytestmark = pytest.mark.asyncio

SELDOM = 0.5
"""Seconds: what comes no oftener, such as a look at the theme's file, costs nothing worth counting."""

WIDE = "한글과 漢字 👨‍👩‍👧〽️🇨🇳 e\u0301\u200b a\u0300\u0301 " * 12


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (121, 40), (160, 50)])
async def test_no_line_is_wider_than_the_window(open_screen, size):
    """TV-01: wide, joined and empty letters in the prompt, the answer, a tool, the queue and the tree."""
    answers = {f"use a tool {WIDE.strip()}": WIDE, "tool output": WIDE}
    async with open_screen(
        size=size, entries=conversation(2, prompt=WIDE, answer=WIDE), answers=answers
    ) as screen:
        live = screen.main.live
        await live.say(f"use a tool {WIDE.strip()}")
        await screen.idle()
        await live.say("wait")
        await screen.until(lambda: screen.prompt.running)
        await live.say(WIDE)
        await screen.until(lambda: live.store.queue.steering)
        for keys in ((), ("f3",), ("w",), ("ctrl+t",), ("ctrl+t",), ("escape", "ctrl+l"), ("escape", "f1")):
            await screen.press(*keys)
            await screen.pilot.pause()
            assert {cell_len(line) for line in screen.text().split("\n")} == {size[0]}


async def test_after_many_sizes_the_picture_is_that_of_a_fresh_window(open_screen):
    """TV-03: 50 sizes in the middle of an answer leave nothing behind."""
    said = "\n\n".join(
        f"## Part {number}\n\n- *item*\n- `code`\n\n```py\nx = {number}\n```" for number in range(20)
    )
    chance = random.Random(3)
    async with open_screen(size=(80, 24), answers={"draw": said}) as screen:
        await screen.main.live.say("draw")
        for number in range(50):
            size = Size(chance.randrange(1, 170), chance.randrange(1, 60))
            screen.app._driver._size = size
            screen.app.post_message(events.Resize(size, size))
            if number % 10 == 9:
                await screen.pilot.pause()
        await screen.idle()
        await screen.pilot.resize_terminal(100, 30)
        await screen.until(lambda: "x = 19" in screen.transcript_text())
        stormed = screen.transcript_text().split("\n")
        entries = list(screen._runtimes[0]._sessions["session-1"].entries.values())
    async with open_screen(size=(100, 30), entries=entries) as fresh:
        await fresh.until(lambda: "x = 19" in fresh.transcript_text())
        assert fresh.transcript_text().split("\n") == stormed


def running_timers(root: Widget) -> list[str]:
    """The timers that wake the program again and again."""
    return [
        f"{widget} {timer.name}"
        for widget in (root.app, root, *root.query("*"))
        for timer in widget._timers
        if timer._active.is_set() and timer._repeat is None and timer._interval < SELDOM
    ]


@pytest.mark.parametrize("size", [(120, 40), (145, 1)])
async def test_at_rest_nothing_is_drawn_and_nothing_ticks(open_screen, size):
    """PF-06, TV-03: an idle screen has no timer that runs; at work it is one, and none afterwards."""
    async with open_screen(size=size, entries=conversation(30)) as screen:
        await screen.main.live.say("wait")
        await screen.until(lambda: screen.prompt.running)
        assert sum("turn_spinner" in str(timer._callback) for timer in screen.main._timers) == 1
        await screen.main.work.stop()
        await screen.idle()
        await screen.until(lambda: not running_timers(screen.main))
        frames: list[int] = []
        screen.app.post_display_hook = lambda: frames.append(1)
        quiet = 0
        while quiet < 20:  # for ever, if it is never at rest
            frames.clear()
            await screen.pilot.pause()
            quiet = 0 if frames else quiet + 1


async def test_a_long_session_is_opened_and_walked_through_without_reading_it(open_screen):
    """PF-01: of 10,000 entries only those in sight are asked for, whatever is done."""
    async with open_screen(size=(120, 40), entries=conversation(5000)) as screen:
        await screen.until(screen.sees("answer 4999"))
        await screen.press("x", "backspace", *["pageup"] * 3, "ctrl+t", "ctrl+t", *["pageup"] * 3, "escape")
        await screen.press("ctrl+home")
        await screen.until(screen.sees("answer 0"))
        await screen.press("ctrl+end")
        await screen.until(screen.sees("answer 4999"))
        assert len(screen.main.live.store.bodies) < 800
        assert len(screen.main.query("*")) < 60


async def test_coming_back_shows_the_branch_that_is_and_how_full_its_context_is(open_screen):
    """RS-06: what was left is not shown, and the share of the context is that of its last answer."""
    entries = conversation(3)
    entries.append({"type": "leaf", "id": "m1", "parentId": "a0", "targetId": "a0", "timestamp": ""})
    async with open_screen(entries=entries) as screen:
        await screen.until(screen.sees("answer 0"))
        shown = screen.transcript_text()
        assert "answer 1" not in shown
        assert "question 2" not in shown
        assert "ctx 1k/100k 1%" in screen.status


async def test_tool_arguments_that_arrive_letter_by_letter_draw_nothing(open_screen):
    """PF-02: they are shown when the call starts, so that their number costs the screen nothing."""
    from pi_trio.events import MessageStart, MessageUpdate
    from pi_trio.llm.protocol import ToolCallDelta
    from pi_trio.messages import AssistantMessage

    async with open_screen(entries=conversation(2)) as screen:
        store = screen.main.live.store
        store._reduce(MessageStart(AssistantMessage((), stop_reason="pending")))
        version = store.items[-1].version
        for _ in range(2000):
            store._reduce(MessageUpdate(ToolCallDelta(0, "x"), lambda: AssistantMessage(())))
        assert store.items[-1].version == version
        assert store.live == {}


async def test_dialogs_that_close_under_the_pointer_break_nothing(open_screen):
    """TV-04: the place of a click may be gone when it arrives."""
    async with open_screen(entries=conversation(3)) as screen:
        for key in ("f1", "ctrl+l", "f1"):
            await screen.press(key)
            await screen.pilot.mouse_down(offset=(40, 10))
            await screen.press("escape")
            await screen.pilot.mouse_up(offset=(40, 10))
            await screen.pilot.hover(offset=(41, 12))
        assert screen.app.is_running
        assert screen.prompt.has_focus
