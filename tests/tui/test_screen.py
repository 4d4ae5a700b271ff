"""What is seen: panes by width, untrusted text, scrolling, size of the widget tree."""

from __future__ import annotations

import pytest
from fake_runtime import conversation

from pi_tui.widgets.chrome import StatusLine

pytestmark = pytest.mark.asyncio

ATTACKS = (
    "\x1b]52;c;ZXZpbA==\x1b\\",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil\x1b\\",
    "\x1b[2J",
    "\x1b[10A",
    "\x1b[6n",
    "\x1bPq\x1b\\",
    "\x1b_x\x1b\\",
    "\x1bc",
    "\x9b2J",
    "\x9d0;x\x9c",
    "\u202eabc",
    "&#27;[2J",
)
MARKUP = "[/ [/bold] list[int] [red]x [on red]SYSTEM[/] [link=x] [@click=app.quit]ok[/]"


async def test_wide_shows_tree_and_stream(open_screen):
    async with open_screen(size=(120, 40), entries=conversation(2)) as screen:
        assert screen.body.tree_pane.display
        assert screen.body.transcript.display
        assert not screen.body.tool_pane.display
        await screen.press("f3")
        assert not screen.body.tree_pane.display
        assert screen.body.tool_pane.display


async def test_very_wide_has_room_for_three(open_screen):
    async with open_screen(size=(160, 50), entries=conversation(2)) as screen:
        await screen.press("f3")
        body = screen.body
        assert all(pane.display for pane in (body.tree_pane, body.transcript, body.tool_pane))


async def test_narrow_shows_one_pane_and_names_all(open_screen):
    async with open_screen(size=(80, 24), entries=conversation(2)) as screen:
        await screen.until(screen.sees("‹Stream›"))
        await screen.press("ctrl+t")
        await screen.until(screen.sees("‹Tree›"))
        assert not screen.body.transcript.display


async def test_tiny_windows_and_back(open_screen):
    """TI-05: no size breaks the program, and the picture returns."""
    entries = conversation(3, answer="한글 e\u0301 👨‍👩‍👧 {}")
    async with open_screen(size=(80, 24), entries=entries) as screen:
        await screen.pilot.pause()
        before = screen.text()
        for size in ((20, 24), (7, 10), (3, 3), (2, 1), (1, 1), (80, 24)):
            await screen.pilot.resize_terminal(*size)
            await screen.pilot.pause()
        await screen.until(lambda: screen.text() == before)


@pytest.mark.parametrize("turns", [1, 2000])
async def test_few_widgets_whatever_the_length(open_screen, turns):
    async with open_screen(size=(160, 50), entries=conversation(turns)) as screen:
        await screen.until(screen.sees(f"answer {turns - 1}"))
        assert len(screen.main.query("*")) < 60


async def test_what_is_not_loaded_comes_when_it_is_seen(open_screen):
    async with open_screen(entries=conversation(500)) as screen:
        assert "a5" not in screen.main.live.store.bodies
        await screen.press("ctrl+home")
        await screen.until(screen.sees("answer 0"))
        await screen.press("ctrl+end")
        await screen.until(screen.sees("answer 499"))


async def test_reading_further_up_is_never_disturbed(open_screen):
    """TV-02: while text streams below, the first visible line stays; one key follows again."""
    long_answer = "\n\n".join(f"paragraph {number}" for number in range(100))
    async with open_screen(entries=conversation(60), answers={"go on": long_answer}) as screen:
        await screen.press("pageup", "pageup")
        await screen.pilot.pause()
        top = screen.transcript.render_line(0).text
        screen.transcript.following = False
        await screen.main.live.say("go on")
        await screen.idle()
        await screen.until(lambda: screen.transcript.unseen)
        assert screen.transcript.render_line(0).text == top
        assert "new · ctrl+end" in screen.transcript_text()
        await screen.press("ctrl+end")
        await screen.until(lambda: "paragraph 99" in screen.transcript_text())


async def test_what_left_the_session_is_not_drawn_again(open_screen):
    """Between a move and the next look at the store, keys draw too."""
    async with open_screen(entries=conversation(1)) as screen:
        await screen.send("hi")
        await screen.idle()
        store = screen.main.live.store
        assert store.items[-1].kind == "turn"
        store.leaf_id = "a0"
        store._rebuild()
        screen.transcript.set_expanded(True)
        assert "answer 0" in screen.transcript_text()
        assert "You said" not in screen.transcript_text()


async def test_a_huge_prompt_shows_its_beginning_and_ctrl_o_all_of_it(open_screen):
    """QS-03: of 60,000 lines as many are laid out as are seen."""
    huge = "\n".join(f"line {number}." for number in range(60_000))
    async with open_screen(entries=conversation(1, prompt=huge)) as screen:
        await screen.until(screen.sees("… 59980 more lines, ctrl+o"))
        shown = screen.transcript_text()
        assert "line 19." in shown
        assert "line 20." not in shown
        await screen.press("ctrl+t")
        assert "1 line 0." in screen.text()
        await screen.press("escape", "up")
        await screen.until(lambda: screen.prompt.text == "[paste #1 +60000 lines]")
        await screen.press("ctrl+c", "ctrl+o", "ctrl+home")
        await screen.until(lambda: "line 30." in screen.transcript_text())


async def test_the_live_picture_equals_the_final_one(open_screen):
    """TV-07: streamed and reopened answers are drawn alike."""
    said = "\n\n".join(
        ["# Title", "- a\n- b", "  more", "1. x", "```py\nx = 1\n\n\ny = 2\n```", "> quote", "last *words*"]
    )
    async with open_screen(answers={"draw": said}) as streamed:
        await streamed.send("draw")
        await streamed.until(streamed.sees("last words"))
        await streamed.idle()
        live = [line.strip() for line in streamed.transcript_text().splitlines()]
    entries = conversation(1, prompt="draw", answer="{0}")
    entries[1]["message"]["content"][0]["text"] = said
    async with open_screen(entries=entries) as reopened:
        await reopened.until(reopened.sees("last words"))
        stored = [line.strip() for line in reopened.transcript_text().splitlines()]
    start, end = stored.index("Title"), stored.index("last words") + 1
    assert live[live.index("Title") : live.index("last words") + 1] == stored[start:end]


async def test_untrusted_text_is_shown_and_never_acts(open_screen):
    """SE-01, SE-03: escape sequences and markup in prompts, answers and outputs are only letters."""
    bad = " ".join(ATTACKS) + " " + MARKUP
    answers = {"use a tool": bad, "tool output": bad}
    async with open_screen(size=(160, 50), answers=answers, entries=conversation(1, prompt=bad)) as screen:
        await screen.send("use a tool")
        await screen.until(screen.sees("exit 2"))
        await screen.idle()
        for keys in ((), ("f3",), ("ctrl+o",), ("ctrl+t", "ctrl+t"), ("o",)):
            await screen.press(*keys)
            await screen.pilot.pause()
            shown = screen.text()
            assert not any(character in shown for character in "\x1b\x9b\x9d\x07\u202e")
        await screen.press("escape", "up", "up")
        await screen.until(lambda: "list[int]" in screen.prompt.text)
        assert "\x1b" not in screen.prompt.text
        assert "[@click=app.quit]ok[/]" in screen.text()
        assert screen.app.is_running


async def test_a_paste_sends_nothing_and_keeps_no_control(open_screen):
    """TI-07, TI-01: pasted bytes do not act; a large paste is folded and sent whole."""
    async with open_screen() as screen:
        from textual import events

        screen.prompt.post_message(events.Paste("rm -rf x\r\n\x1b]52;c;eA==\x07\n"))
        await screen.until(lambda: "rm -rf x\n" in screen.prompt.text)
        assert "\x1b" not in screen.prompt.text
        assert screen.log == []
        await screen.press("ctrl+c")
        await screen.until(lambda: not screen.prompt.text)
        screen.prompt.post_message(events.Paste("word " * 1000))
        await screen.until(lambda: screen.prompt.text.startswith("[paste #1 "))
        await screen.press("x", "backspace", "backspace")
        await screen.until(lambda: not screen.prompt.text)
        screen.prompt.post_message(events.Paste("word " * 1000))
        await screen.until(lambda: screen.prompt.text.startswith("[paste #2 "))
        await screen.press("enter")
        await screen.until(lambda: screen.log)
        assert screen.log == ["prompt " + ("word " * 1000).strip()]


async def test_what_is_sent_before_the_runtime_is_there_waits_for_it(open_screen):
    async with open_screen() as screen:
        work = screen.main.work
        live, work.sessions.shown = work.live, None
        await screen.send("early")
        await screen.until(
            lambda: [(each.text, each.delivery) for each in work._early] == [("early", "send")]
        )
        work.sessions.shown = live


async def test_a_refused_command_is_said_and_the_text_is_kept(open_screen):
    """Nothing typed is lost when the runtime refuses it."""
    async with open_screen(entries=conversation(1)) as screen:
        await screen.press("ctrl+t", "minus")
        await screen.until(lambda: "no earlier place" in screen.status)


async def test_a_runtime_that_breaks_ends_the_program(open_screen):
    async with open_screen() as screen:
        await screen.write("crash")
        await screen.press("enter")
        await screen.until(lambda: not screen.app.is_running)
    assert screen.app.return_code == 1
    assert "the runtime broke" in repr(screen.app.failure)


@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_every_shipped_theme_draws(open_screen, theme):
    async with open_screen(theme=theme, entries=conversation(2)) as screen:
        await screen.until(screen.sees("answer 1"))


async def test_model_and_price_are_seen_first_however_small_the_window(open_screen):
    async with open_screen(size=(40, 10)) as screen:
        await screen.until(screen.sees("no key needed"))


async def test_the_prompt_has_the_keys_from_the_first_frame_on(open_screen):
    """The list of what waits stands before it, and is for nobody who has not asked for it."""
    async with open_screen(ready=False) as screen:
        assert screen.main.focused is screen.prompt
        assert "enter edit" not in screen.status


async def test_a_limit_on_cost_stands_beside_what_was_spent(open_screen):
    """From 80 % on it is coloured. An answer of the fake costs a cent."""
    async with open_screen() as screen:
        warning = screen.main._theme["warning"]

        def colour(text: str) -> object:
            parts = screen.main.query_one(StatusLine).parts
            return next((part.spans[0][1] for part in parts if part.spans and part.spans[0][0] == text), None)

        session_id = screen.main.live.id
        await screen.runtime_call(lambda runtime: runtime.limit_cost(session_id, 0.022))
        await screen.main.live.adopt()
        await screen.send("one")
        await screen.until(lambda: colour("$0.01 / $0.02") not in (None, warning))
        await screen.idle()
        await screen.send("two")
        await screen.until(lambda: colour("$0.02 / $0.02") == warning)
