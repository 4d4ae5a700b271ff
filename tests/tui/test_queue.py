"""Messages that wait: seen, edited in the prompt, moved, dropped, and handed back by Esc."""

from __future__ import annotations

import pytest

from pi_trio.events import QueueUpdate
from pi_tui.widgets.queue import QueueList, queue_rows

pytestmark = pytest.mark.asyncio


async def _busy_with(screen, *texts: str) -> QueueList:
    """A turn that does not end, and these messages queued behind it."""
    await screen.send("wait")
    await screen.until(lambda: screen.prompt.running)
    queue = screen.main.query_one(QueueList)
    for count, text in enumerate(texts, 1):
        await screen.write(text)
        await screen.press("tab")
        await screen.until(lambda count=count: len(queue.rows) == count)
    return queue


def _texts(queue: QueueList) -> list[str]:
    return [row.text for row in queue.rows]


@pytest.mark.key("app.queue.up", "app.queue.edit", "app.queue.drop")
async def test_walk_5_three_queued_one_edited_one_dropped_two_back(open_screen):
    """Walk 5: ↑ edits the second, Del drops the third, Esc gives two texts back, and none is sent."""
    async with open_screen() as screen:
        queue = await _busy_with(screen, "one", "two", "three")
        await screen.press("up", "up", "enter")
        await screen.until(lambda: screen.prompt.text == "two")
        assert "esc leave it as it was · enter keep the change" in screen.status
        await screen.write(" changed")
        await screen.press("enter")
        await screen.until(lambda: _texts(queue) == ["one", "two changed", "three"])
        assert not screen.prompt.text
        await screen.press("up", "delete")
        await screen.until(lambda: _texts(queue) == ["one", "two changed"])
        await screen.press("escape")
        await screen.until(lambda: screen.prompt.text == "one\n\ntwo changed")
        await screen.idle()
        assert screen.prompt.has_focus
        assert [line for line in screen.log if line.startswith("prompt")] == ["prompt wait"]


async def test_the_way_to_what_waits_is_named_where_it_is_one(open_screen):
    """With a draft, ↑ is for its lines and for earlier prompts."""
    async with open_screen() as screen:
        await _busy_with(screen, "one")
        assert screen.sees("↑ edits")()
        await screen.write("draft")
        await screen.until(lambda: not screen.sees("↑ edits")())
        await screen.press("ctrl+u")
        await screen.until(screen.sees("↑ edits"))


@pytest.mark.key("app.queue.earlier", "app.queue.later")
async def test_messages_are_moved_among_their_own(open_screen):
    async with open_screen() as screen:
        queue = await _busy_with(screen, "one", "two")
        await screen.send("steered")
        await screen.until(lambda: _texts(queue) == ["steered", "one", "two"])
        assert [row.how for row in queue.rows] == ["steer", "queue", "queue"]
        await screen.press("up", "alt+up")
        await screen.until(lambda: _texts(queue) == ["steered", "two", "one"])
        await screen.press("alt+up", "alt+down")  # the first goes no further; the cursor went with it
        await screen.until(lambda: _texts(queue) == ["steered", "one", "two"])
        await screen.press("up", "up", "alt+down")
        await screen.pilot.pause()
        assert _texts(queue) == ["steered", "one", "two"]


async def test_an_edit_can_be_left_and_the_draft_is_back(open_screen):
    async with open_screen() as screen:
        queue = await _busy_with(screen, "one")
        await screen.write("draft")
        await screen.press("home")
        screen.main.action_queue()
        await screen.press("e")
        await screen.until(lambda: screen.prompt.text == "one")
        await screen.press("x", "escape")
        await screen.until(lambda: screen.prompt.text == "draft")
        assert _texts(queue) == ["one"]
        assert screen.main.live.store.running


async def test_what_has_gone_in_meanwhile_is_no_longer_edited(open_screen):
    """Nothing typed is lost when the message goes in while it is edited."""
    async with open_screen() as screen:
        await _busy_with(screen, "one")
        await screen.press("up", "enter")
        await screen.until(lambda: screen.prompt.text == "one")
        await screen.write(" more")
        await screen.main.live.take_queue()
        screen.main.sync()
        await screen.until(lambda: "gone in as it was" in screen.status)
        assert screen.prompt.text == "one more"


@pytest.mark.key("app.queue.down")
async def test_down_past_the_last_is_the_prompt_again(open_screen):
    async with open_screen() as screen:
        queue = await _busy_with(screen, "one", "two")
        await screen.press("up")
        await screen.until(lambda: queue.has_focus)
        await screen.press("down")
        await screen.until(lambda: screen.prompt.has_focus)
        await screen.press("up", "d", "d")
        await screen.until(lambda: not queue.rows and screen.prompt.has_focus)


async def test_many_messages_scroll_and_say_how_many_more(open_screen):
    async with open_screen() as screen:
        queue = await _busy_with(screen, *"abcdef")
        assert queue.size.height == 4
        assert "… 2 more" in screen.text()
        await screen.press("up")
        await screen.until(lambda: "›6 queue  f" in screen.text())
        assert "1 queue  a" not in screen.text()


async def test_a_waiting_text_cannot_act_on_the_screen(open_screen):
    """SE-01: what another client queued is shown and no more."""
    async with open_screen() as screen:
        await _busy_with(screen)
        screen.main.live.store.queue = QueueUpdate(("\x1b]52;c;eA==\x07[red]x[/]\nmore",), (), ("1",), ())
        screen.main.sync()
        await screen.pilot.pause()
        assert "[red]x[/] …" in screen.text()
        assert "\x1b" not in screen.text()


async def test_rows_of_a_queue_without_ids_are_not_offered():
    assert queue_rows(QueueUpdate(("x",), ())) == []
