"""Several sessions: those that are open, the list of all, and the first screen."""

from __future__ import annotations

import re

import pytest
from fake_runtime import FakeRuntime, conversation

from pi_trio.approval import Question
from pi_trio.remote.offers import KeptSession
from pi_tui.screens.sessions import SessionsScreen
from pi_tui.widgets.hints import Hints

pytestmark = pytest.mark.asyncio


def _keep(screen, *names: str, cwd: str = "/project", parent: str | None = None) -> None:
    for name in names:
        screen.runtime.kept[f"/s/{name}"] = KeptSession(
            path=f"/s/{name}",
            id=name,
            cwd=cwd,
            name=name,
            modified=1000.0 + len(screen.runtime.kept),
            first_message=f"about {name}",
            parent_session=parent,
        )


async def _list(screen) -> SessionsScreen:
    await screen.press("ctrl+s")
    await screen.until(lambda: isinstance(screen.app.screen, SessionsScreen))
    await screen.until(lambda: "…" not in screen.app.screen.query_one("#title").label)
    return screen.app.screen


async def test_what_was_typed_first_counts_first_in_the_list(open_screen):
    async with open_screen() as screen:
        _keep(screen, "one", "two", "three")
        await _list(screen)
        screen.burst(*"two", "backspace", *"ox", "backspace", "down", "enter", *"and then")
        await screen.until(lambda: screen.prompt.text == "and then")
        assert screen.main.live.id == "session-2"


async def test_a_search_that_finds_nothing_says_so(open_screen):
    async with open_screen() as screen:
        await _list(screen)
        screen.burst(*"zebra")
        await screen.until(screen.sees("nothing has these words, in this folder"))
        await screen.press("tab")
        await screen.until(lambda: "nothing has these words, in" not in screen.text())
        assert screen.sees("nothing has these words")()
        await screen.press("escape")
        await screen.until(lambda: "nothing has these words" not in screen.text())


async def test_a_session_in_the_background_goes_on_and_its_state_is_seen(open_screen):
    async with open_screen(size=(160, 40)) as screen:
        await screen.send("wait for it")
        await screen.until(lambda: screen.prompt.running)
        await screen.write("a draft")
        await screen.press("ctrl+n")
        await screen.until(lambda: "⠼ 1 other runs" in screen.status)
        await screen.send("second")
        await screen.idle()
        question = Question(id="q", tool_name="bash", args={"command": "ls"}, reason="why")
        await screen.runtime_call(lambda runtime: runtime.ask("session-1", question))
        await screen.until(lambda: "? 1 other asks" in screen.status)
        await screen.press("f6")
        await screen.until(lambda: screen.main.live.id == "session-1")
        await screen.until(screen.sees("may bash run?"))


async def test_a_command_stays_with_its_session(open_screen):
    """What it tells in the end does not bring its session back."""
    async with open_screen(entries=conversation(1)) as screen:
        before = screen.main.live
        await screen.send("/compact")
        await screen.until(screen.sees("compacting 0:0"))
        await screen.press("ctrl+n")
        await screen.until(lambda: screen.main.live.id == "session-2")
        await screen.runtime_call(lambda runtime: runtime.abort(before.id))
        await screen.until(lambda: before.store.items[-1].text == "Stopped. Nothing has changed.")
        assert screen.main.live.id == "session-2"
        assert "Nothing has changed" not in screen.text()


async def test_a_draft_is_kept_however_fast_the_session_is_left(open_screen):
    async with open_screen(entries=conversation(1)) as screen:
        await screen.write("a draft")
        await screen.press("ctrl+n", "ctrl+n")
        await screen.until(lambda: screen.main.live.id == "session-3")
        assert not screen.prompt.text
        await screen.press("f6")
        await screen.until(lambda: screen.main.live.id == "session-1")
        await screen.until(lambda: screen.prompt.text == "a draft")


async def test_the_list_shows_how_a_session_without_a_file_stands(open_screen):
    async with open_screen(answers={"water": "When it is dry."}) as screen:
        await screen.send("water")
        await screen.idle()
        await screen.press("ctrl+n")
        await screen.until(lambda: screen.main.live.id == "session-2")
        shown = await _list(screen)
        assert shown._list.chosen.id == "session-1"
        await screen.until(screen.sees("When it is dry."))
        await screen.until(screen.sees("· threads · 2 ──"))


async def test_an_open_session_is_found_by_what_was_said_in_it(open_screen):
    """It is in the list once, with the excerpt, although its title has nothing of the words."""
    async with open_screen(entries=conversation(1)) as screen:
        live = screen.main.live
        screen.runtime.kept["/s/this"] = KeptSession(
            path="/s/this",
            id=live.id,
            cwd="/project",
            name=None,
            modified=1.0,
            first_message="water",
            excerpt="dry",
        )
        shown = await _list(screen)
        await screen.press(*"water")
        await screen.until(lambda: [(row.id, row.excerpt) for row in shown._rows] == [(live.id, "dry")])
        await screen.press("ctrl+u")
        await screen.until(lambda: "water" not in shown.query_one("#title").label)


@pytest.mark.key("app.session.next")
async def test_one_that_finished_unseen_comes_first_and_is_seen_then(open_screen):
    async with open_screen(size=(160, 40)) as screen:
        for text in ("first wait", "second", "third"):
            await screen.send(text)
            await screen.until(lambda text=text: text in screen.transcript_text())
            if text != "third":
                await screen.press("ctrl+n")
                await screen.until(lambda: not screen.main.live.store.outline)
        assert "⠼ 1 other runs" in screen.status
        await screen.runtime_call(lambda runtime: runtime.abort("session-1"))
        await screen.until(lambda: "✓ 1 other finished" in screen.status)
        await screen.press("f6")
        await screen.until(lambda: screen.main.live.id == "session-1")
        await screen.until(lambda: "2 others open" in screen.status)
        await screen.press("f6")
        await screen.until(lambda: screen.main.live.id == "session-2")


async def test_an_empty_session_is_not_kept_open(open_screen):
    async with open_screen() as screen:
        await screen.press("ctrl+n")
        await screen.until(lambda: "close session-1" in screen.log)
        await screen.press("f6")
        await screen.until(lambda: "no other session is open" in screen.status)


@pytest.mark.key(
    "tui.select.up",
    "tui.select.down",
    "tui.select.pageUp",
    "tui.select.pageDown",
    "app.sessions.open",
    "app.session.toggleScope",
)
async def test_the_list_searches_and_opens(open_screen):
    async with open_screen(entries=conversation(1)) as screen:
        _keep(screen, "apples", "pears", "plums")
        _keep(screen, "peaches", cwd="/elsewhere")
        await _list(screen)
        text = screen.text()
        assert re.search(r"question 0 .* this one \n", text)
        assert text.index("plums") < text.index("pears") < text.index("apples")
        assert "peaches" not in text
        await screen.press("down", "down")
        await screen.until(screen.sees("last answer of /s/pears"))
        await screen.press("pagedown")
        await screen.until(screen.sees("last answer of /s/apples"))
        await screen.press("pageup", "down", "down")
        await screen.until(screen.sees("last answer of /s/pears"))
        await screen.press(*"pe")
        await screen.until(lambda: "plums" not in screen.text() and "pears" in screen.text())
        await screen.press("tab")
        await screen.until(screen.sees("peaches"))
        await screen.press("down", "enter")
        await screen.until(lambda: "in /s/peaches" in screen.transcript_text())


@pytest.mark.key("app.session.toggleSort")
async def test_forks_are_below_their_origin(open_screen):
    async with open_screen() as screen:
        _keep(screen, "origin", "other")
        _keep(screen, "fork", parent="/s/origin")
        await _list(screen)
        text = screen.text()
        assert text.index(" origin") < text.index("└ fork") < text.index(" other")
        await screen.press("ctrl+s")
        await screen.until(screen.sees("latest first"))
        assert "└" not in screen.text()


@pytest.mark.key("app.session.rename", "app.session.delete", "app.sessions.leave")
async def test_a_session_is_renamed_and_deleted_after_a_question(open_screen):
    async with open_screen() as screen:
        _keep(screen, "old", "older")
        await _list(screen)
        await screen.press("down", "ctrl+r", *"new name", "enter")
        await screen.until(screen.sees("new name"))
        await screen.press("ctrl+d")
        await screen.until(screen.sees("press again to delete it"))
        await screen.press("escape", "ctrl+d")
        await screen.until(screen.sees("press again to delete it"))
        assert "delete /s/older" not in screen.log
        await screen.press("ctrl+d")
        await screen.until(screen.sees("put into the trash"))
        await screen.until(lambda: "new name" not in screen.text().partition("put into")[0])
        assert screen.log[-1] == "delete /s/older"
        await screen.press("escape")
        await screen.until(lambda: len(screen.app.screen_stack) == 1)


@pytest.mark.key("app.session.copyTo")
async def test_a_copy_works_in_another_folder(open_screen):
    async with open_screen(entries=conversation(1)) as screen:
        _keep(screen, "one")
        await _list(screen)
        await screen.press("down", "ctrl+o", "escape", "ctrl+o", *"/tmp", "enter")
        await screen.until(lambda: screen.main.live.id == "session-2")
        assert "copy /s/one /tmp" in screen.log
        await _list(screen)
        await screen.press("end", "down", "down", "ctrl+o", *"/nowhere", "enter")
        await screen.until(screen.sees("/nowhere is not a folder"))


@pytest.mark.key("app.session.close")
async def test_an_open_session_is_closed_after_a_question_if_it_works(open_screen):
    async with open_screen() as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.press("ctrl+n")
        await screen.until(lambda: screen.main.live.id == "session-2")
        await _list(screen)
        await screen.press("down", "ctrl+x")
        await screen.until(screen.sees("not the one behind this list"))
        await screen.press("up", "ctrl+x")
        await screen.until(screen.sees("press again"))
        assert "close session-1" not in screen.log
        await screen.press("ctrl+x")
        await screen.until(lambda: "close session-1" in screen.log)
        assert "abort" in screen.log
        await screen.until(lambda: "wait" not in screen.text())


async def test_names_of_sessions_cannot_act_on_the_screen(open_screen):
    """SE-01: names, texts and folders in the list are anybody's."""
    async with open_screen() as screen:
        _keep(screen, "\x1b]52;c;eA==\x07[red]evil[/]\u202e", cwd="/project")
        await _list(screen)
        await screen.until(screen.sees("[red]evil[/]"))
        assert "\x1b" not in screen.text()
        assert "\u202e" not in screen.text()


async def test_the_first_screen_tells_the_place(open_screen):
    async with open_screen(size=(80, 24)) as screen:
        for fact in (
            "pi_trio 9.9 in /project · 3 sessions here · nothing here needs trust",
            "fake/fake-1 · no key needed",
            "nothing sent, nothing spent",
            "Ollama: tiny (4,096 tokens, too few for much work)",
            "pi in /home/.pi/agent: 2 sessions",
            "without asking, no sandbox · /mode ask",
            "3  /tour: two minutes, demo model, offline, free",
            "/login      paste a key",
            "/doctor  check this machine",
        ):
            await screen.until(screen.sees(fact))


async def test_the_first_screen_offers_only_what_is_possible(open_screen, monkeypatch):
    """Of a server's sessions, whose keys are the server's own: completion does not offer it either."""

    class OfServer(FakeRuntime):
        key_places = None
        doctor = None

    monkeypatch.setattr("fake_runtime.FakeRuntime", OfServer)
    async with open_screen(size=(80, 24)) as screen:
        await screen.until(lambda: "/login" not in screen.text())
        assert "/doctor" not in screen.text()
        lines = [line.strip() for line in screen.text().splitlines()]
        assert "/model      other models, local ones" in lines
        assert "/import pi  bring over sessions and keys" in lines
        assert "/resume     an earlier session            /trust   this folder's resources" in lines
        await screen.write("/lo")
        assert "/login" not in screen.main.query_one(Hints).lines


@pytest.mark.command("resume")
async def test_resume_alone_opens_the_list(open_screen):
    async with open_screen() as screen:
        await screen.write("/resume")
        await screen.press("enter")
        await screen.until(lambda: isinstance(screen.app.screen, SessionsScreen))


async def test_any_size_shows_the_list_and_the_picture_returns(open_screen):
    """TI-05: wide letters, with the list and with a dialog open, down to one cell and back."""
    async with open_screen(size=(80, 24)) as screen:
        _keep(screen, "한글 이름", "plain")
        await _list(screen)
        await screen.press("down")
        await screen.until(screen.sees("last prompt of"))
        before = screen.text()
        for width, height in ((20, 24), (7, 10), (3, 5), (2, 2), (1, 1), (80, 24)):
            await screen.pilot.resize_terminal(width, height)
            await screen.pilot.pause()
        await screen.until(lambda: screen.text() == before)
        await screen.press("escape")
        await screen.write("/login openai")
        await screen.press("enter")
        await screen.until(screen.sees("API key of OpenAI"))
        await screen.press(*"abc")
        secret = screen.text()
        for width, height in ((7, 3), (1, 1), (80, 24)):
            await screen.pilot.resize_terminal(width, height)
            await screen.pilot.pause()
        await screen.until(lambda: screen.text() == secret)


@pytest.mark.key("app.session.resume")
async def test_ctrl_s_lists_the_sessions_and_escape_leaves_them(open_screen):
    async with open_screen() as screen:
        await screen.press("ctrl+s")
        await screen.until(lambda: isinstance(screen.app.screen, SessionsScreen))
        await screen.press("escape")
        await screen.until(lambda: len(screen.app.screen_stack) == 1)
