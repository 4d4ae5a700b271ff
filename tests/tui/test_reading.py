"""Reading in the stream: the cursor on its blocks, finding, selecting and copying."""

from __future__ import annotations

import pytest
from fake_runtime import conversation

pytestmark = pytest.mark.asyncio


def copied(screen) -> list[str]:
    """What has been copied is kept here instead of in a clipboard."""
    texts: list[str] = []

    async def copy(text: str) -> None:
        texts.append(text)

    screen.main.clipping.copy = copy
    return texts


@pytest.mark.key("app.stream.previous", "app.stream.next", "app.stream.copy")
async def test_alt_up_goes_through_the_blocks_and_escape_back(open_screen):
    async with open_screen(entries=conversation(3)) as screen:
        texts = copied(screen)
        await screen.press("alt+up")
        await screen.until(lambda: screen.transcript.has_focus)
        assert screen.transcript.cursor.key == "a2"
        assert "▎" in screen.transcript_text()
        await screen.press("k", "up", "j", "y")
        await screen.until(lambda: texts)
        assert texts == ["question 2"]
        assert "esc back to prompt" in screen.status
        await screen.press("escape", "x")
        await screen.until(lambda: screen.prompt.text == "x")
        assert "▎" not in screen.transcript_text()


@pytest.mark.key("app.stream.expand")
async def test_space_unfolds_one_block_only(open_screen):
    """Thinking and tool output stay folded until they are asked for."""
    entries = conversation(2)
    for entry in entries:
        if entry["message"]["role"] == "assistant":
            thoughts = "\n".join(f"thought {number} of {entry['id']}" for number in range(8))
            entry["message"]["content"].insert(0, {"type": "thinking", "thinking": thoughts})
    async with open_screen(size=(120, 60), entries=entries) as screen:
        await screen.until(screen.sees("answer 1"))
        assert "thought 7" not in screen.transcript_text()
        await screen.press("alt+up", "space")
        await screen.until(lambda: "thought 7 of a1" in screen.transcript_text())
        assert "thought 7 of a0" not in screen.transcript_text()
        await screen.press("space")
        await screen.until(lambda: "thought 7" not in screen.transcript_text())


@pytest.mark.key("tui.altScreen.search", "tui.altScreen.searchNext", "tui.altScreen.searchPrevious")
async def test_find_looks_through_what_was_never_loaded(open_screen):
    """In 3,000 entries, of which the screen holds the last: counted, shown, forwards and backwards."""
    entries = conversation(1500)
    for at in (3, 700, 1499):
        entries[2 * at + 1]["message"]["content"][0]["text"] += " needle"
    async with open_screen(entries=entries) as screen:
        await screen.press("ctrl+f", *"needle")
        await screen.until(screen.sees("3 of 3"))
        assert "answer 1499 needle" in screen.transcript_text()
        assert "a3" not in screen.main.live.store.bodies
        await screen.press("shift+enter")
        await screen.until(lambda: "answer 700 needle" in screen.transcript_text())
        await screen.until(screen.sees("2 of 3"))
        await screen.press("up")
        await screen.until(lambda: "answer 3 needle" in screen.transcript_text())
        await screen.press("enter", "enter", "enter")  # around the end
        await screen.until(screen.sees("1 of 3"))
        assert len(screen.main.live.store.bodies) < 1000
        await screen.press("escape")
        await screen.until(lambda: screen.prompt.has_focus)
        assert "of 3" not in screen.text()


@pytest.mark.key("app.stream.find", "app.stream.findNext", "app.stream.findPrevious", "app.find.read")
async def test_n_goes_on_in_the_stream(open_screen):
    async with open_screen(entries=conversation(200)) as screen:
        await screen.press("alt+up", "slash", *"question 7")
        await screen.until(screen.sees("11 of 11"))
        await screen.press("tab", "N")
        await screen.until(lambda: screen.transcript.cursor.key == "u78")
        await screen.press("N", "n")
        await screen.until(lambda: screen.transcript.cursor.key == "u78")


async def test_what_is_found_in_a_folded_text_is_unfolded(open_screen):
    long = "\n".join(f"line {number}" for number in range(100))
    async with open_screen(entries=conversation(2, prompt=long)) as screen:
        await screen.press("ctrl+f", *"line 99")
        await screen.until(lambda: "line 99" in screen.transcript_text())


async def test_find_says_when_there_is_nothing_and_finds_what_comes_later(open_screen):
    async with open_screen(entries=conversation(2)) as screen:
        await screen.press("ctrl+f", *"You said unheard")
        await screen.until(screen.sees("nothing · enter next"))
        await screen.main.live.say("unheard of")
        await screen.until(screen.sees("1 place"))


async def test_what_is_being_written_is_found_while_it_is(open_screen):
    async with open_screen(answers={"wait here": "a needle that is streamed"}) as screen:
        await screen.send("wait here")
        await screen.until(screen.sees("a needle that is"))
        await screen.press("ctrl+f", *"needle")
        await screen.until(screen.sees("1 of 1"))
        await screen.runtime_call(lambda runtime: runtime.abort("session-1"))  # "so far" takes its place
        await screen.until(screen.sees("nothing · enter next"))


async def test_what_a_command_prints_is_found_while_it_runs(open_screen):
    async with open_screen() as screen:
        await screen.send("!wait for needle")
        await screen.until(screen.sees("output of wait for needle"))
        await screen.press("ctrl+f", *"needle")
        await screen.until(screen.sees("1 of 1"))
        await screen.runtime_call(lambda runtime: runtime.abort_shell("session-1"))
        await screen.until(screen.sees("1 place"))


async def test_a_capital_finds_only_itself(open_screen):
    async with open_screen(entries=conversation(2, answer="Case {}")) as screen:
        await screen.press("ctrl+f", *"case")
        await screen.until(screen.sees("of 2"))
        await screen.press("home", "delete", "C", "end")
        await screen.until(screen.sees("of 2"))
        await screen.press("home", "delete", "c", "end", "backspace", "E")
        await screen.until(screen.sees("nothing"))


async def test_the_mouse_selects_and_ctrl_c_copies(open_screen):
    async with open_screen(size=(80, 24), entries=conversation(2)) as screen:
        texts = copied(screen)
        lines = screen.transcript_text().splitlines()
        first, last = (
            next(y for y, line in enumerate(lines) if said in line) for said in ("question 1", "answer 1")
        )
        left = lines[first].index("question 1")
        top = screen.transcript.region.y
        await screen.pilot.mouse_down(offset=(left, top + first))
        await screen.pilot.hover(offset=(left + 4, top + last))
        await screen.pilot.mouse_up(offset=(left + 4, top + last))
        assert screen.prompt.has_focus
        assert "ctrl+c copies" in screen.status
        await screen.press("ctrl+c")
        await screen.until(lambda: texts)
        assert texts == ["question 1\n\nan"] or texts[0].startswith("question 1\n\n")
        assert screen.transcript.selection is None
        assert screen.app.is_running


@pytest.mark.key("app.stream.selectUp")
async def test_a_selection_stays_on_its_text_while_more_is_written(open_screen):
    """The selected cells belong to the text, not to the screen."""
    async with open_screen(size=(80, 24), entries=conversation(30)) as screen:
        await screen.press("pageup", "alt+up")
        await screen.until(lambda: screen.transcript.cursor is not None)
        await screen.press("shift+up", "shift+up")
        before = screen.transcript.selected_text()
        assert before
        await screen.main.live.say("more")
        await screen.idle()
        assert screen.transcript.selected_text() == before
        await screen.press("escape")
        await screen.until(lambda: screen.transcript.selection is None)
        assert screen.transcript.has_focus


async def test_two_clicks_select_a_word_and_three_a_line(open_screen):
    async with open_screen(size=(80, 24), entries=conversation(2, answer="see src/a-b.py:12, {}")) as screen:
        lines = screen.transcript_text().splitlines()
        y = next(y for y, line in enumerate(lines) if "see src" in line)
        at = (lines[y].index("a-b") + 1, screen.transcript.region.y + y)
        await screen.pilot.click(offset=at, times=2)
        assert screen.transcript.selected_text() == "src/a-b.py:12"
        await screen.pilot.click(offset=at, times=3)
        assert screen.transcript.selected_text().startswith("see src/a-b.py:12, ")


async def test_clicks_and_drags_in_a_stream_break_nothing(open_screen):
    """TV-04: 500 presses, moves and releases at seeded places while an answer grows."""
    import random

    from textual import events

    answer = "\n\n".join(f"- item **{number}**\n- `b`" for number in range(300))
    chance = random.Random(4)
    async with open_screen(size=(80, 24), entries=conversation(20), answers={"long": answer}) as screen:
        await screen.write("long")
        await screen.press("enter")
        for kind in (
            events.MouseDown,
            events.MouseMove,
            events.MouseUp,
            events.MouseMove,
            events.MouseDown,
        ) * 100:
            x, y = chance.randrange(80), chance.randrange(24)
            screen.app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
            if chance.random() < 0.1:
                await screen.pilot.pause()
        await screen.idle()
        assert screen.app.is_running
        await screen.until(lambda: screen.transcript.selected_text() is not None)


async def test_what_is_below_is_told_while_one_reads_above(open_screen):
    async with open_screen(size=(80, 24), entries=conversation(40)) as screen:
        await screen.press("pageup", "pageup")
        assert "to the end" not in screen.text()
        await screen.main.live.say("wait")
        await screen.until(screen.sees("1 new"))
        assert "ctrl+end to the end" in screen.transcript_text()
        await screen.press("ctrl+end")
        await screen.until(lambda: "to the end" not in screen.text())


@pytest.mark.key("app.stream.selectDown")
async def test_shift_and_down_select_lines_downwards(open_screen):
    async with open_screen(size=(80, 24), entries=conversation(3)) as screen:
        await screen.press("alt+up", "up", "up", "shift+down")
        first = screen.transcript.selected_text()
        assert first.endswith("answer 1")
        await screen.press("shift+down", "J")
        assert screen.transcript.selected_text().startswith(first)
        assert screen.transcript.selected_text().count("\n") == first.count("\n") + 2
