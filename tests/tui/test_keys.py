"""Every key does what the help says, on a runtime in its own trio thread."""

from __future__ import annotations

import pytest
from fake_runtime import conversation

from pi_tui.keymap import KEYS
from pi_tui.screens.help import KeyList

pytestmark = pytest.mark.asyncio


async def test_enter_sends_and_the_answer_is_drawn(open_screen):
    async with open_screen() as screen:
        await screen.send("hello")
        await screen.until(screen.sees("You said hello."))
        assert screen.log == ["prompt hello"]


@pytest.mark.key("tui.input.newLine", "app.message.followUp")
async def test_a_new_line_does_not_send(open_screen):
    async with open_screen() as screen:
        await screen.write("one")
        await screen.press("ctrl+j", "t", "shift+enter", "alt+enter")
        await screen.until(lambda: screen.prompt.text == "one\nt\n\n")
        assert screen.log == []


@pytest.mark.key("tui.input.tab")
async def test_enter_steers_and_tab_queues_while_running(open_screen):
    async with open_screen() as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.send("left")
        await screen.write("later")
        await screen.press("tab")
        await screen.until(screen.sees("queue  later"))
        assert screen.log == ["prompt wait", "steer left", "follow_up later"]
        assert "steer  left" in screen.text()


@pytest.mark.key("tui.input.submit")
async def test_letters_and_enter_keep_their_order_when_typed_fast(open_screen):
    """TI-03: what is typed without pauses arrives in order, Enter included."""
    async with open_screen() as screen:
        app, texts = screen.app, ["first", "second"]
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        from textual import events

        for text in texts:
            for letter in [*text, "backspace", text[-1], "enter"]:
                app.post_message(events.Key(letter, letter if len(letter) == 1 else None))
        await screen.until(lambda: len(screen.log) == 3)
        assert screen.log[1:] == ["steer first", "steer second"]


async def test_keys_typed_right_after_a_change_of_panes_are_for_the_new_one(open_screen):
    async with open_screen(entries=conversation(3)) as screen:
        from textual import events

        def type_fast(*keys: str) -> None:
            for key in keys:
                screen.app.post_message(events.Key(key, key if len(key) == 1 else None))

        type_fast("ctrl+t", "home", "j", "escape", "j")
        await screen.until(lambda: screen.prompt.text == "j")
        assert screen.body.tree_pane.row.id == "u1"


@pytest.mark.key("app.interrupt")
async def test_escape_stops_the_turn_and_hands_waiting_texts_back(open_screen):
    async with open_screen() as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        assert "esc stop turn" in screen.status
        await screen.send("left")
        await screen.write("draft")
        await screen.press("escape")
        await screen.until(screen.sees("■ You stopped turn 1."))
        assert screen.prompt.text == "left\n\ndraft"
        assert "steer  left" not in screen.text()
        assert "abort" in screen.log
        assert "esc" not in screen.status


async def test_a_prompt_that_nothing_came_of_comes_back_too(open_screen):
    """It is withdrawn: said anew it is turn 1 again, and the tree has no branch of it."""
    async with open_screen() as screen:
        await screen.send("mute one")
        await screen.until(lambda: screen.prompt.running)
        await screen.send("left")
        await screen.write("draft")
        await screen.press("escape")
        await screen.until(screen.sees("■ You stopped turn 1."))
        await screen.until(screen.sees("the prompt is back"))
        assert screen.prompt.text == "mute one\n\nleft\n\ndraft"
        assert not screen.sees("▌ mute one")()
        assert "empty enter" not in screen.status
        await screen.press("enter")
        await screen.until(lambda: screen.prompt.running)
        await screen.press("escape")
        await screen.until(lambda: screen.prompt.text.startswith("mute one"))
        assert screen.text().count("■ You stopped turn 1.") == 1
        await screen.press("ctrl+c")
        await screen.send("two")
        await screen.until(screen.sees("You said two"))
        store = screen.main.live.store
        assert (store.outline.branches, store.turn_number) == (1, 1)


async def test_a_prompt_that_was_not_admitted_yet_was_no_turn(open_screen):
    """Room was being made for it: the turn before it was not stopped."""
    async with open_screen() as screen:
        await screen.send("one")
        await screen.idle()
        await screen.send("full")
        await screen.until(screen.sees("compacting"))
        await screen.press("escape")
        await screen.until(screen.sees("■ You stopped before turn 2 began: the prompt is back."))
        await screen.until(lambda: screen.prompt.text == "full")
        assert not screen.sees("You stopped turn")()


async def test_a_prompt_that_something_came_of_stays(open_screen):
    async with open_screen() as screen:
        await screen.send("tool hold")
        await screen.until(lambda: screen.prompt.running)
        await screen.until(screen.sees("bash"))
        await screen.press("escape")
        await screen.until(screen.sees("■ You stopped turn 1."))
        assert screen.prompt.text == ""
        assert screen.sees("▌ tool hold")()


async def test_escape_leaves_the_pane_before_it_stops_the_turn(open_screen):
    async with open_screen() as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.press("ctrl+t")
        assert screen.body.tree_pane.has_focus
        assert "esc back to prompt" in screen.status
        await screen.press("escape")
        assert screen.prompt.has_focus
        assert "abort" not in screen.log


@pytest.mark.key("app.clear")
async def test_ctrl_c_clears_then_stops_then_asks_then_quits(open_screen):
    async with open_screen() as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.write("draft")
        await screen.press("ctrl+c")
        await screen.until(lambda: not screen.prompt.text)
        await screen.press("ctrl+c")
        await screen.until(screen.sees("■ You stopped"))
        await screen.press("ctrl+c")
        await screen.until(lambda: "press again" in screen.status)
        assert screen.app.is_running
        await screen.press("ctrl+c")
        await screen.until(lambda: not screen.app.is_running)


async def test_a_question_is_taken_back_by_any_other_key(open_screen):
    """What is sent after it is stopped by Esc at once, and ctrl+c asks anew."""
    async with open_screen() as screen:
        await screen.press("ctrl+c")
        await screen.until(lambda: "press again" in screen.status)
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        assert "press again" not in screen.status
        await screen.press("escape")
        await screen.until(screen.sees("■ You stopped"))
        await screen.press("ctrl+c")
        await screen.until(lambda: "press again" in screen.status)
        assert screen.app.is_running


@pytest.mark.key("app.exit")
async def test_ctrl_d_deletes_in_a_draft_and_quits_on_an_empty_prompt(open_screen):
    async with open_screen() as screen:
        await screen.write("ab")
        await screen.press("home", "ctrl+d")
        await screen.until(lambda: screen.prompt.text == "b")
        await screen.press("backspace", "delete", "ctrl+d")
        await screen.until(lambda: not screen.app.is_running)
        assert screen.app.return_code == 0


async def test_ctrl_d_asks_while_a_turn_runs(open_screen):
    async with open_screen() as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.press("ctrl+d")
        await screen.until(lambda: "press again" in screen.status)
        assert "esc keeps on" in screen.status
        await screen.press("escape")
        await screen.until(lambda: "esc stop turn" in screen.status)
        assert "abort" not in screen.log


@pytest.mark.key("tui.select.confirm")
async def test_enter_in_the_tree_moves_to_the_end_of_that_turn(open_screen):
    async with open_screen(entries=conversation(3)) as screen:
        await screen.press("ctrl+t", "up", "k", "j", "enter")
        await screen.until(lambda: screen.log)
        assert screen.log == ["navigate a1"]
        await screen.until(lambda: "question 2" not in screen.transcript_text())
        assert screen.prompt.has_focus


async def test_enter_in_the_tree_asks_before_it_stops_a_turn(open_screen):
    async with open_screen(entries=conversation(2)) as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.press("ctrl+t", "home", "enter")
        await screen.until(lambda: "this stops the turn" in screen.status)
        assert "abort" not in screen.log
        await screen.press("enter")
        await screen.until(lambda: "navigate a0" in screen.log)
        assert screen.log == ["prompt wait", "abort", "navigate a0"]


@pytest.mark.key("app.session.tree", "app.tree.first")
async def test_the_tree_is_entered_where_the_session_is(open_screen):
    async with open_screen(entries=conversation(3)) as screen:
        await screen.press("ctrl+t", "home", "down", "escape", "ctrl+t")
        assert screen.body.tree_pane.row.id == "u2"
        await screen.press("home", "ctrl+t")  # the same, on the whole screen
        assert screen.body.tree_pane.row.id == "u0"
        await screen.press("enter")
        await screen.until(lambda: screen.main.live.store.leaf_id == "a0")
        await screen.press("ctrl+t")
        assert screen.body.tree_pane.row.id == "u0"


@pytest.mark.key("app.tree.branch", "app.tree.back")
async def test_b_branches_before_the_prompt_and_minus_goes_back(open_screen):
    """TR-08: the end that was left is one key away."""
    async with open_screen(entries=conversation(3)) as screen:
        await screen.press("ctrl+t", "up", "b")
        await screen.until(lambda: screen.prompt.text == "question 1")
        assert screen.main.live.store.leaf_id == "a0"
        await screen.press("ctrl+c", "ctrl+t", "minus")
        await screen.until(lambda: screen.main.live.store.leaf_id == "a2")


@pytest.mark.key("app.tree.fork")
async def test_f_forks_and_the_run_before_goes_on(open_screen):
    async with open_screen(entries=conversation(2)) as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.press("ctrl+t", "home", "down", "f")
        await screen.until(lambda: screen.main.live.id == "session-2")
        await screen.until(lambda: screen.prompt.text == "question 1")
        assert "abort" not in screen.log
        await screen.press("ctrl+c", "ctrl+t", "minus")
        await screen.until(lambda: screen.main.live.id == "session-1")
        await screen.until(lambda: screen.prompt.running)


async def test_a_draft_stays_with_its_session(open_screen):
    async with open_screen(entries=conversation(2)) as screen:
        await screen.write("mine")
        await screen.press("ctrl+t", "home", "down", "f")
        await screen.until(lambda: screen.prompt.text == "question 1")
        await screen.press("ctrl+t", "minus")
        await screen.until(lambda: screen.main.live.id == "session-1" and screen.prompt.text == "mine")
        await screen.press("ctrl+n", "o", "k")
        await screen.until(lambda: screen.main.live.id == "session-3" and screen.prompt.text == "ok")


async def test_o_shows_every_message_in_the_tree(open_screen):
    async with open_screen(entries=conversation(2)) as screen:
        await screen.press("ctrl+t", "ctrl+t")
        await screen.until(screen.sees("question 1"))
        assert "answer 1" not in screen.text()
        await screen.press("o")
        await screen.until(screen.sees("answer 1"))


@pytest.mark.key("app.tools.pane")
async def test_the_tool_pane_shows_all_of_the_selected_call(open_screen):
    output = "\n".join(f"line {number}" for number in range(30))
    async with open_screen(answers={"tool output": output}) as screen:
        await screen.send("use a tool")
        await screen.until(screen.sees("exit 2"))
        await screen.idle()
        assert "line 3\n" not in screen.text()
        await screen.press("f3")
        await screen.until(screen.sees("line 3 "))
        await screen.press("right_square_bracket", "f3")
        assert screen.prompt.has_focus


@pytest.mark.key("app.tools.expand")
async def test_a_failed_call_shows_its_end_and_ctrl_o_all_of_it(open_screen):
    output = "\n".join(f"line {number}." for number in range(9))
    async with open_screen(answers={"tool output": output}) as screen:
        await screen.send("use a tool")
        await screen.until(screen.sees("line 8."))
        assert "line 1." not in screen.text()
        await screen.press("ctrl+o")
        await screen.until(screen.sees("line 1."))


@pytest.mark.key("app.pane.next")
async def test_tab_on_an_empty_prompt_goes_around_the_panes(open_screen):
    async with open_screen() as screen:
        await screen.press("tab")
        await screen.until(lambda: screen.body.tree_pane.has_focus)
        await screen.press("tab")
        await screen.until(lambda: screen.body.tool_pane.has_focus)
        await screen.press("tab")
        await screen.until(lambda: screen.prompt.has_focus)


@pytest.mark.key("app.help")
async def test_question_mark_is_help_only_on_an_empty_prompt(open_screen):
    async with open_screen() as screen:
        await screen.write("why")
        await screen.press("question_mark")
        await screen.until(lambda: screen.prompt.text == "why?")
        await screen.press("ctrl+c", "question_mark")
        await screen.until(screen.sees("In the prompt"))
        await screen.press("escape")
        await screen.until(lambda: screen.app.screen is screen.main)


async def test_the_help_is_whole_however_narrow(open_screen):
    async with open_screen(size=(60, 180)) as screen:
        await screen.press("question_mark")
        await screen.until(screen.sees("esc closes this"))
        words = " ".join(screen.text().split())
        assert "ctrl+j shift+enter new line" in words
        assert "…" not in words
        for key in KEYS:
            assert key.help.split()[-1] in words
        screen.app.screen.query_one(KeyList).styles.width = 40
        await screen.until(lambda: "earlier prompts" not in screen.text())
        assert "…" not in screen.text()


@pytest.mark.parametrize(
    ("keys", "first"),
    [((), "In the prompt"), (("ctrl+t",), "In the session tree"), (("f3",), "In the tool pane")],
)
async def test_the_help_begins_with_the_keys_of_where_one_is(open_screen, keys, first):
    async with open_screen(size=(120, 40), entries=conversation(1)) as screen:
        await screen.press(*keys, "f1")
        await screen.until(screen.sees("esc closes this"))
        titles = [line for line in screen.text().split("\n") if "   In the " in line]
        assert first in titles[0]
        assert sum(first in line for line in titles) == 1


@pytest.mark.key("tui.editor.cursorUp", "tui.editor.cursorDown")
async def test_up_on_an_empty_prompt_brings_earlier_prompts_back(open_screen):
    async with open_screen(entries=conversation(2)) as screen:
        await screen.press("up")
        await screen.until(lambda: screen.prompt.text == "question 1")
        await screen.press("up")
        await screen.until(lambda: screen.prompt.text == "question 0")
        await screen.press("down", "down")
        await screen.until(lambda: screen.prompt.text == "")


async def test_a_digit_fills_the_prompt_of_a_new_session(open_screen):
    async with open_screen() as screen:
        await screen.until(screen.sees("1  explain this repository"))
        await screen.press("1")
        await screen.until(lambda: screen.prompt.text == "explain this repository")
        await screen.press("1")
        await screen.until(lambda: screen.prompt.text.endswith("repository1"))


@pytest.mark.key("app.session.new")
async def test_ctrl_n_starts_a_new_session(open_screen):
    async with open_screen(entries=conversation(1)) as screen:
        await screen.press("ctrl+n")
        await screen.until(lambda: screen.main.live.id == "session-2")
        await screen.until(screen.sees("explain this repository"))


async def test_ctrl_n_leaves_a_turn_that_runs_running(open_screen):
    async with open_screen(size=(160, 40)) as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.press("ctrl+n")
        await screen.until(lambda: screen.main.live.id == "session-2")
        await screen.until(lambda: "⠼ 1 other runs" in screen.status)
        assert "abort" not in screen.log


async def test_the_columns_of_the_help_are_straight_and_no_word_is_cut(open_screen):
    async with open_screen(size=(60, 20)) as screen:
        await screen.press("f1")
        await screen.until(screen.sees("complete; or queue; or next"))
        rows = screen.text().split("\n")
        starts = {
            row.index(words)
            for row in rows
            for words in ("send, or steer", "undo  ", "redo  ")
            if words in row
        }
        assert len(starts) == 1
        assert any(row.split() == ["pane"] for row in rows)
