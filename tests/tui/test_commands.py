"""Slash commands, commands of the user, and what else is done with a session."""

from __future__ import annotations

import pytest
from fake_runtime import conversation

from pi_tui.widgets.hints import Hints

pytestmark = pytest.mark.asyncio


def hints(screen) -> list[str]:
    return screen.main.query_one(Hints).lines


async def test_a_command_is_completed_while_it_is_written(open_screen):
    async with open_screen() as screen:
        await screen.write("/thi")
        await screen.until(lambda: hints(screen) == ["/thinking"])
        assert "show or choose how much it thinks" in screen.text()
        assert "esc close list" in screen.status
        await screen.press("tab")
        await screen.until(lambda: screen.prompt.text == "/thinking ")
        await screen.until(lambda: "/thinking high" in hints(screen))
        await screen.write("hi")
        await screen.until(lambda: hints(screen)[-1:] == ["/thinking xhigh"])
        await screen.press("down", "up", "enter")
        await screen.until(lambda: screen.prompt.text == "/thinking high")
        await screen.press("enter")
        await screen.until(screen.sees("The thinking level is now high."))
        assert screen.log == []


async def test_escape_closes_the_list_and_no_more(open_screen):
    async with open_screen() as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.write("/mod")
        await screen.until(lambda: hints(screen))
        await screen.press("escape")
        await screen.until(lambda: not hints(screen))
        assert screen.prompt.text == "/mod"
        assert "abort" not in screen.log


async def test_earlier_commands_open_no_list_when_they_are_browsed(open_screen):
    async with open_screen() as screen:
        await screen.send("first")
        await screen.idle()
        await screen.send("/help")
        await screen.press("up")
        await screen.until(lambda: screen.prompt.text == "/help")
        await screen.press("up")
        await screen.until(lambda: screen.prompt.text == "first")
        assert not hints(screen)


async def test_an_unknown_command_is_said_and_kept(open_screen):
    async with open_screen() as screen:
        await screen.send_kept("/nonsense at all")
        await screen.until(screen.sees("there is no command /nonsense: /help lists them"))
        await screen.until(lambda: screen.prompt.text == "/nonsense at all")
        assert screen.log == []


@pytest.mark.parametrize("text", ["/etc/hosts is odd", "/review this", "/ alone"])
async def test_paths_and_templates_go_to_the_model(open_screen, text):
    async with open_screen() as screen:
        await screen.send(text)
        await screen.until(lambda: screen.log == [f"prompt {text}"])


async def test_a_command_that_fails_keeps_its_text(open_screen):
    async with open_screen() as screen:
        await screen.send_kept("/resume nowhere")
        await screen.until(screen.sees("there is no session 'nowhere'"))
        await screen.until(lambda: screen.prompt.text == "/resume nowhere")


@pytest.mark.command("new", "quit")
async def test_new_shows_another_session_and_quit_ends_the_program(open_screen):
    async with open_screen(entries=conversation(1)) as screen:
        await screen.send("/new")
        await screen.until(lambda: screen.main.live.id == "session-2")
        await screen.send("/quit")
        await screen.until(lambda: not screen.app.is_running)


async def test_the_start_screen_says_the_mode_and_the_model_that_are(open_screen):
    async with open_screen() as screen:
        await screen.until(screen.sees("edits and commands run without asking"))
        await screen.send("/mode ask")
        await screen.until(screen.sees("edits and commands are asked about first"))
        assert "no sandbox · /mode ask" not in screen.text()
        await screen.send("/model fake/fake-2")
        await screen.until(screen.sees("fake/fake-2 · no key needed"))
        await screen.press("ctrl+n")
        await screen.until(lambda: screen.main.live.id == "session-2")
        await screen.until(screen.sees("fake/fake-1 · no key needed"))
        assert "no sandbox · /mode ask" in screen.text()


async def test_tree_puts_the_prompt_back(open_screen):
    async with open_screen(entries=conversation(2)) as screen:
        await screen.send_kept("/tree 2")
        await screen.until(lambda: screen.prompt.text == "question 1")
        await screen.until(screen.sees("goes on before prompt 2"))


@pytest.mark.command("compact")
async def test_escape_stops_a_compaction(open_screen):
    async with open_screen(entries=conversation(2)) as screen:
        await screen.send("/compact")
        await screen.until(screen.sees("compacting 0:0"))
        assert "esc stop summary" in screen.status
        await screen.press("escape")
        await screen.until(screen.sees("Stopped. Nothing has changed."))
        assert "compacting" not in screen.text()


@pytest.mark.parametrize(("text", "mark"), [("!make", "! make"), ("!! make", "!! make")])
async def test_a_command_of_the_user_is_run_and_shown(open_screen, text, mark):
    async with open_screen() as screen:
        await screen.send(text)
        await screen.until(screen.sees("exit 3"))
        assert mark in screen.transcript_text()
        assert "output of make" in screen.transcript_text()
        assert screen.transcript_text().count("output of make") == 1
        assert screen.log == ["shell make"]


@pytest.mark.parametrize("text", ["!", "!! "])
async def test_a_mark_without_a_command_stays_in_the_prompt(open_screen, text):
    async with open_screen() as screen:
        await screen.write(text)
        await screen.press("enter")
        await screen.until(screen.sees("Write a command behind the !"))
        assert screen.prompt.text == text.strip()
        assert not screen.log


async def test_escape_stops_a_command_and_not_the_turn(open_screen):
    async with open_screen() as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.send("!wait here")
        await screen.until(screen.sees("output of wait here"))
        assert "esc stop command" in screen.status
        await screen.press("escape")
        await screen.until(screen.sees("stopped"))
        assert screen.log[1:] == ["shell wait here", "abort_shell"]
        await screen.until(lambda: "esc stop turn" in screen.status)


async def test_an_empty_enter_goes_on_where_it_was_stopped(open_screen):
    async with open_screen() as screen:
        await screen.press("enter")
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.press("escape")
        await screen.until(screen.sees("■ You stopped turn 1."))
        await screen.until(lambda: "empty enter goes on" in screen.status)
        await screen.press("enter")
        await screen.until(lambda: "continue" in screen.log)
        assert screen.log == ["prompt wait", "abort", "continue", "prompt go on"]


@pytest.mark.key("app.message.dequeue")
async def test_alt_up_takes_waiting_texts_back(open_screen):
    async with open_screen() as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.send("one")
        await screen.write("two")
        await screen.press("tab")
        await screen.until(screen.sees("queue  two"))
        await screen.press("alt+up")
        await screen.until(lambda: screen.prompt.text == "one\n\ntwo")
        await screen.until(lambda: "queue  two" not in screen.text())
        assert "abort" not in screen.log


@pytest.mark.key("app.tools.stop")
async def test_x_stops_one_call_only(open_screen):
    async with open_screen() as screen:
        await screen.send("use a tool and hold")
        await screen.until(lambda: screen.main.live.store.running_calls)
        await screen.press("f3")
        await screen.until(screen.sees("make test"))
        await screen.press("x")
        await screen.until(lambda: "abort_call call-1" in screen.log)
        assert "abort" not in screen.log


async def test_a_turn_that_a_move_stopped_is_told_where_one_arrives(open_screen):
    async with open_screen(entries=conversation(2)) as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.press("ctrl+t", "home", "enter", "enter")
        await screen.until(lambda: "navigate a0" in screen.log)
        await screen.until(screen.sees("■ Turn 3 was running there and was stopped"))


@pytest.mark.key("app.tree.summarise")
async def test_a_summary_of_a_branch_can_be_stopped(open_screen):
    async with open_screen(entries=conversation(2)) as screen:
        await screen.press("ctrl+t", "home", "s")
        await screen.until(screen.sees("summarising the branch"))
        await screen.press("escape")
        await screen.until(lambda: "esc stop summary" in screen.status)
        await screen.press("escape")
        await screen.until(lambda: "summarising" not in screen.text())


async def test_an_extensions_entry_is_shown_by_its_template(open_screen):
    """Also one whose extension came with `/reload`."""
    async with open_screen() as screen:
        screen.runtime.templates["mark"] = "a mark: {text}"
        await screen.send("/reload")
        await screen.until(lambda: "mark" in screen.main.live.store.templates)
        entry = {"type": "custom", "customType": "mark", "data": {"text": "here"}}
        await screen.runtime_call(lambda runtime: runtime._sessions["session-1"].append(entry))
        await screen.until(screen.sees("a mark: here"))
