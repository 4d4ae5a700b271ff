"""The prompt: letters, chips, killing and undoing, completion, history, images, and keys that go nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_runtime import MODELS, conversation
from rich.cells import cell_len
from textual import events

from pi_trio.messages import ImageContent
from pi_tui.history import PromptHistory
from pi_tui.screens.pick import PickScreen
from pi_tui.widgets.hints import Hints

pytestmark = pytest.mark.asyncio

LETTERS = ["a", "👨‍👩‍👧", "〽️", "🇨🇳", "é", "e\u0301", "한"]
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f64540"
    "0000000049454e44ae426082"
)
KEY = "sk-ant-api03-" + "a1B2" * 10


async def _paste(screen, text: str) -> None:
    before = screen.prompt.text
    screen.prompt.post_message(events.Paste(text))
    await screen.until(lambda: screen.prompt.text != before)


async def test_one_key_is_one_visible_letter(open_screen):
    """TI-04: moving and deleting never leave a broken piece, and the caret stands where its cell is."""
    async with open_screen() as screen:
        await _paste(screen, "".join(LETTERS))
        prompt, left = screen.prompt, screen.prompt.content_region.x
        for count in range(len(LETTERS), -1, -1):
            before = "".join(LETTERS[:count])
            assert prompt.cursor_location == (0, len(before))
            assert prompt.cursor_screen_offset.x == left + cell_len(before)
            await screen.press("left")
        await screen.press("end")
        for count in range(len(LETTERS) - 1, 2, -1):
            await screen.press("backspace")
            assert prompt.text == "".join(LETTERS[:count])
        await screen.press("home", "delete")
        assert prompt.text == "".join(LETTERS[1:3])


async def test_the_hardware_cursor_is_told_where_the_caret_is(open_screen):
    """TI-02: an input method opens its window there, also while text streams above."""
    async with open_screen(answers={"go": "word " * 200}) as screen:
        await screen.send("go")
        await screen.write("한글 ab")
        await screen.idle()
        assert screen.app.cursor_position == screen.prompt.cursor_screen_offset
        assert screen.prompt.cursor_screen_offset.x == screen.prompt.content_region.x + 7


@pytest.mark.key("tui.editor.cursorWordLeft", "tui.editor.deleteWordBackward", "tui.editor.undo")
async def test_chips_are_moved_over_and_deleted_as_units(open_screen):
    """TI-09: word moves, Ctrl+W and Backspace at and around two folded pastes; what is sent is right."""
    async with open_screen() as screen:
        one, two = "first\n" * 20, "second\n" * 30
        prompt = screen.prompt
        await _paste(screen, one)
        await screen.write(" x ")
        await _paste(screen, two)
        marks = "[paste #1 +21 lines] x [paste #2 +31 lines]"
        assert prompt.text == marks
        await screen.press("left")
        assert prompt.cursor_location == (0, len("[paste #1 +21 lines] x "))
        await screen.press("alt+left", "alt+left")
        assert prompt.cursor_location == (0, 0)
        await screen.press("right")
        assert prompt.cursor_location == (0, len("[paste #1 +21 lines]"))
        await screen.press("end", "ctrl+w")
        assert prompt.text == "[paste #1 +21 lines] x "
        await screen.press("ctrl+y")
        assert prompt.text == marks
        await screen.press("home", "delete")
        assert prompt.text == " x [paste #2 +31 lines]"
        await screen.press("ctrl+underscore")
        await screen.until(lambda: prompt.text == marks)
        await screen.press("enter")
        await screen.until(lambda: screen.log)
        assert screen.log == [f"prompt {one} x {two}".rstrip()]


async def test_an_old_draft_never_means_a_new_paste(open_screen):
    """TI-09: a mark in a text from an earlier run is text."""
    history = PromptHistory()
    history.add("see [paste #1 +21 lines]")
    async with open_screen(history=history) as screen:
        await _paste(screen, "new\n" * 20)
        assert screen.prompt.text == "[paste #1 +21 lines]"
        await screen.press("ctrl+c", "up", "up")
        await screen.until(lambda: screen.prompt.text.startswith("see"))
        await screen.press("enter")
        await screen.until(lambda: screen.log)
        assert screen.log == ["prompt see (paste #1 +21 lines)"]


@pytest.mark.parametrize("text", ["x" * 1_000_000, "line of text\n" * 80_000], ids=["one line", "lines"])
async def test_a_megabyte_is_folded_sent_whole_and_undone(open_screen, text):
    """TI-01: a paste costs what its mark costs, whatever its size."""
    async with open_screen(answers={text.strip(): "read"}) as screen:
        await _paste(screen, text)
        assert len(screen.prompt.text) < 40
        await screen.press("ctrl+underscore")
        await screen.until(lambda: not screen.prompt.text)
        await screen.press("alt+underscore")
        await screen.until(lambda: screen.prompt.text)
        await screen.press("enter")
        await screen.until(lambda: screen.log)
        assert screen.log == [f"prompt {text.strip()}"]


@pytest.mark.key(
    "tui.editor.cursorWordRight",
    "tui.editor.deleteWordForward",
    "tui.editor.deleteToLineStart",
    "tui.editor.deleteToLineEnd",
    "tui.editor.yank",
    "tui.editor.yankPop",
)
async def test_what_is_killed_is_yanked(open_screen):
    async with open_screen() as screen:
        prompt = screen.prompt
        await screen.write("one two three")
        await screen.press("ctrl+w", "ctrl+w")
        assert prompt.text == "one "
        await screen.press("ctrl+u")
        assert prompt.text == ""
        await screen.press("ctrl+y")  # kills in a row are one
        assert prompt.text == "one two three"
        await screen.press("home", "alt+right", "left", "alt+left")
        assert prompt.cursor_location == (0, 0)
        await screen.press("alt+d", "x", "ctrl+k", "ctrl+y")
        assert prompt.text == "x two three"
        await screen.press("alt+y")
        assert prompt.text == "xone"
        await screen.press("alt+y")
        assert prompt.text == "xone two three"
        await screen.press("z", "alt+y")  # only right after a yank
        assert prompt.text == "xone two threez"


@pytest.mark.key("app.editor.redo")
async def test_undo_brings_a_cleared_draft_back(open_screen):
    async with open_screen() as screen:
        await screen.write("a long draft")
        await screen.press("ctrl+c")
        await screen.until(lambda: not screen.prompt.text)
        await screen.press("ctrl+underscore")
        await screen.until(lambda: screen.prompt.text == "a long draft")
        await screen.press("ctrl+shift+z")
        await screen.until(lambda: not screen.prompt.text)


@pytest.mark.parametrize(
    ("typed", "outcome"),
    [
        ("/quit", lambda screen: not screen.app.is_running),
        ("/model fake-2", lambda screen: screen.main.live.store.model.id == "fake-2"),
        ("/mod", lambda screen: screen.prompt.text == "/model "),
        ("/zzz", lambda screen: "there is no command /zzz" in screen.text()),
    ],
)
async def test_enter_runs_what_was_typed_and_nothing_else(open_screen, typed, outcome):
    """TI-10: however fast; a part of a name is completed, never taken for another command."""
    async with open_screen() as screen:
        for character in typed:
            key = {"/": "slash", " ": "space", "-": "minus"}.get(character, character)
            screen.prompt.post_message(events.Key(key, character))
        screen.prompt.post_message(events.Key("enter", "\r"))
        await screen.until(lambda: outcome(screen))
        assert screen.log == []


async def test_a_list_for_less_than_is_written_chooses_nothing(open_screen):
    """TI-10: completions that come late are for a text that is not there any more."""
    async with open_screen() as screen:
        await screen.write("/m")
        await screen.until(lambda: screen.main.query_one(Hints).chosen)
        screen.prompt.insert("x", maintain_selection_offset=False)
        screen.prompt.action_tab()
        assert screen.prompt.text == "/mx"


async def test_files_are_completed_behind_an_at(open_screen):
    async with open_screen() as screen:
        await screen.write("look at @main")
        await screen.until(lambda: screen.main.query_one(Hints).lines == ["@src/main.py"])
        await screen.press("enter")
        assert screen.prompt.text == "look at @src/main.py "
        await screen.write("@b.t")
        await screen.until(lambda: screen.main.query_one(Hints).chosen)
        await screen.press("tab")
        assert screen.prompt.text == 'look at @src/main.py @"a b.txt" '
        await screen.press("enter")
        await screen.until(lambda: screen.log)
        assert screen.log == ['prompt look at @src/main.py @"a b.txt"']


async def test_templates_are_listed_with_their_arguments(open_screen):
    async with open_screen() as screen:
        await screen.write("/login")
        await screen.until(screen.sees("[PROVIDER]"))
        await screen.press("ctrl+c")
        await screen.write("/login ")
        await screen.until(lambda: "/login openai" in screen.main.query_one(Hints).lines)


async def test_history_goes_across_sessions_and_keeps_the_draft(open_screen, tmp_path: Path):
    path = tmp_path / "history.jsonl"
    PromptHistory(path).add("from yesterday")
    async with open_screen(entries=conversation(1), history=PromptHistory(path)) as screen:
        await screen.until(lambda: "from yesterday" in screen.prompt.earlier())
        await screen.write("draft")
        await screen.press("home", "up")
        await screen.until(lambda: screen.prompt.text == "question 0")
        await screen.press("up")
        await screen.until(lambda: screen.prompt.text == "from yesterday")
        await screen.press("down", "down")
        await screen.until(lambda: screen.prompt.text == "draft")
        await screen.press("ctrl+c")
        await screen.send("said now")
    kept = PromptHistory(path)
    kept.load()
    assert kept.texts == ["from yesterday", "draft", "said now"]


async def test_a_history_that_cannot_be_written_is_told(open_screen, tmp_path: Path):
    (tmp_path / "history").mkdir()
    async with open_screen(history=PromptHistory(tmp_path / "history")) as screen:
        await screen.until(screen.sees("cannot be read"))
        await screen.send("hello")
        await screen.until(lambda: screen.text().count("Is a directory") == 2)
        assert screen.log == ["prompt hello"]


@pytest.mark.key("app.history.search")
async def test_ctrl_r_searches_earlier_prompts(open_screen):
    async with open_screen(entries=conversation(12)) as screen:
        await screen.press("ctrl+r")
        await screen.until(lambda: isinstance(screen.app.screen, PickScreen))
        await screen.press("1", "0", "enter")
        await screen.until(lambda: screen.prompt.text == "question 10")


async def test_an_image_becomes_a_chip_where_the_model_takes_images(open_screen, tmp_path: Path):
    path = tmp_path / "shot.png"
    path.write_bytes(PNG)
    async with open_screen() as screen:
        await _paste(screen, str(path))
        assert screen.prompt.text == str(path)  # this model cannot see it; its tools can open it
        await screen.press("ctrl+c")
        await screen.write("/model fake-2")
        await screen.press("enter")
        await screen.until(lambda: screen.prompt.takes_images)
        await _paste(screen, f"'{path}'")
        assert screen.prompt.text == "[image #1 shot.png]"
        await screen.write(" what is it")
        await screen.press("enter")
        await screen.until(lambda: screen.log)
        assert screen.log == ["prompt [image #1 shot.png] what is it"]
        assert screen.runtime.images == ["image/png"]
        await screen.idle()
        path.unlink()
        await screen.press("up", "enter")
        await screen.until(screen.sees("No such file"))
        assert screen.prompt.text == "[image #1 shot.png] what is it"


async def test_what_nothing_came_of_comes_back_as_it_was_written(open_screen):
    """A paste is one mark again, and a template is not what it stands for."""
    async with open_screen() as screen:
        screen.prompt.paste("word\n" * 30)
        await screen.write(" mute")
        for _ in range(2):
            await screen.press("enter")
            await screen.until(lambda: screen.prompt.running)
            await screen.press("escape")
            await screen.until(lambda: screen.prompt.text == "[paste #1 +31 lines] mute")
        assert screen.log.count("prompt " + "word\n" * 30 + " mute") == 2
        await screen.press("ctrl+c")
        await screen.until(lambda: not screen.prompt.text)
        await screen.write("/review it")
        await screen.press("enter")
        await screen.until(screen.sees("Please review mute it"))
        await screen.press("escape")
        await screen.until(lambda: screen.prompt.text == "/review it")


async def test_a_template_that_was_not_admitted_yet_comes_back_as_it_was_written(open_screen):
    async with open_screen() as screen:
        await screen.write("/review full")
        await screen.press("enter")
        await screen.until(screen.sees("compacting"))
        await screen.press("escape")
        await screen.until(lambda: screen.prompt.text == "/review full")


async def test_a_draft_with_a_paste_comes_back_to_its_session_as_it_was(open_screen):
    async with open_screen() as screen:
        screen.prompt.paste("word\n" * 30)
        await screen.press("ctrl+n")
        await screen.until(lambda: screen.main.live.id == "session-2" and not screen.prompt.text)
        await screen.press("f6")
        await screen.until(lambda: screen.prompt.text == "[paste #1 +31 lines]")


async def test_a_prompt_with_an_image_comes_back_with_it(open_screen, tmp_path: Path):
    path = tmp_path / "shot.png"
    path.write_bytes(PNG)
    async with open_screen() as screen:
        await screen.send("/model fake-2")
        await screen.until(lambda: screen.prompt.takes_images)
        await _paste(screen, f"'{path}'")
        await screen.write(" mute")
        for times in (1, 2):
            await screen.press("enter")
            await screen.until(lambda: screen.prompt.running)
            assert screen.runtime.images == ["image/png"] * times
            await screen.press("escape")
            await screen.until(lambda: screen.prompt.text == "[image #1 shot.png] mute")
        await screen.until(screen.sees("the prompt is back"))


async def test_a_prompt_with_an_image_from_elsewhere_stays(open_screen):
    """It would come back without the image."""
    async with open_screen() as screen:
        live = screen.main.live
        await live.say("mute", [ImageContent("", "image/png")])
        await screen.until(lambda: screen.prompt.running)
        await screen.until(screen.sees("[1 image]"))
        await screen.press("escape")
        await screen.until(screen.sees("■ You stopped turn 1."))
        assert not screen.prompt.text
        assert screen.sees("▌ mute")()


@pytest.mark.key("app.clipboard.pasteImage")
async def test_without_an_image_in_the_clipboard_it_is_said(open_screen, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    async with open_screen() as screen:
        await screen.press("ctrl+v")
        await screen.until(lambda: "takes no images" in screen.status)
        await screen.main.work.set_model(MODELS[1])
        await screen.press("ctrl+v")
        await screen.until(lambda: "no image in the clipboard" in screen.status)


async def test_a_pasted_key_is_stored_or_forgotten_and_seen_nowhere(open_screen):
    """A key in the prompt goes to `/login`, and neither to the screen nor to the model or the history."""
    history = PromptHistory()
    async with open_screen(history=history) as screen:
        screen.prompt.post_message(events.Paste(KEY + "\n"))
        await screen.until(screen.sees("API key of Anthropic"))
        assert KEY not in screen.text()
        await screen.press("escape")
        await screen.until(lambda: len(screen.app.screen_stack) == 1)
        assert (screen.prompt.text, screen.runtime.keys) == ("", {})
        screen.prompt.post_message(events.Paste(KEY))
        await screen.until(screen.sees("API key of Anthropic"))
        await screen.press("enter")
        await screen.until(lambda: screen.runtime.keys == {"anthropic": KEY})
        await screen.until(screen.sees("is stored in /agent/auth.json"))
        assert KEY not in screen.text()
        assert (screen.log, history.texts) == ([], [])


@pytest.mark.parametrize("before", ["", "x" * 2000 + " "], ids=["typed", "folded"])
async def test_a_key_within_a_text_is_not_sent(open_screen, before):
    history = PromptHistory()
    async with open_screen(history=history) as screen:
        await _paste(screen, f"{before}my key is {KEY} ok")
        await screen.press("enter")
        await screen.until(screen.sees("not sent: there is an API key in it"))
        assert screen.prompt.text
        await screen.press("ctrl+c")
        assert (screen.log, history.texts) == ([], [])


@pytest.mark.command("login")
async def test_login_asks_for_provider_and_key(open_screen):
    async with open_screen() as screen:
        await screen.write("/login")
        await screen.press("enter")
        await screen.until(screen.sees("openai  key from OPENAI_API_KEY"))
        await screen.press(*"openai", "enter")
        await screen.until(screen.sees("API key of OpenAI"))
        await screen.press(*"secret", "enter")
        await screen.until(lambda: screen.runtime.keys == {"openai": "secret"})
        assert "secret" not in screen.text()


@pytest.mark.parametrize(
    ("line", "said"),
    [("/login nobody", "no provider 'nobody'"), (f"/login {KEY}", "not sent"), ("/doctor", "ok versions")],
)
@pytest.mark.command("doctor")
async def test_commands_of_the_first_screen(open_screen, line, said):
    async with open_screen() as screen:
        await screen.write(line)
        await screen.press("enter")
        await screen.until(screen.sees(said))
        assert screen.log == []
