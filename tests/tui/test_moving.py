"""The keys that move about in the stream, the tree and the tools; and everything by name."""

from __future__ import annotations

import pytest
from fake_runtime import conversation

from pi_tui.app import PiApp
from pi_tui.screens.pick import PickScreen

pytestmark = pytest.mark.asyncio


@pytest.mark.key(
    "tui.altScreen.pageUp", "tui.altScreen.pageDown", "tui.altScreen.top", "tui.altScreen.bottom"
)
async def test_the_stream_is_paged_from_the_prompt(open_screen):
    async with open_screen(entries=conversation(40)) as screen:
        await screen.until(screen.sees("answer 39"))
        await screen.press("pageup")
        await screen.until(lambda: "answer 39" not in screen.transcript_text())
        await screen.press("pagedown")
        await screen.until(lambda: "answer 39" in screen.transcript_text())
        await screen.press("ctrl+home")
        await screen.until(lambda: "question 0" in screen.transcript_text())
        await screen.press("ctrl+end")
        await screen.until(lambda: "answer 39" in screen.transcript_text())


@pytest.mark.key(
    "tui.select.up",
    "tui.select.down",
    "tui.select.pageUp",
    "tui.select.pageDown",
    "app.tree.first",
    "app.tree.last",
)
async def test_the_tree_is_walked(open_screen):
    async with open_screen(entries=conversation(60)) as screen:
        tree = screen.body.tree_pane
        await screen.press("ctrl+t")
        assert tree.row.id == "u59"
        await screen.press("up", "k")
        assert tree.row.id == "u57"
        await screen.press("down")
        assert tree.row.id == "u58"
        await screen.press("home", "j")
        assert tree.row.id == "u1"
        await screen.press("pagedown")
        assert 2 < int(tree.row.id[1:]) < 58
        await screen.press("pageup", "pageup")
        assert tree.row.id == "u0"
        await screen.press("end")
        assert tree.row.id == "u59"


def two_calls() -> list[dict]:
    """A prompt, an answer with two calls, and their results of 200 lines each."""
    entries = conversation(1)
    calls = [
        {"type": "toolCall", "id": name, "name": "bash", "arguments": {"command": f"make {name}"}}
        for name in ("one", "two")
    ]
    entries[1]["message"]["content"] = calls
    for call in calls:
        text = "\n".join(f"{call['id']} {number}." for number in range(200))
        message = {
            "role": "toolResult", "toolCallId": call["id"], "toolName": "bash", "isError": False,
            "content": [{"type": "text", "text": text}], "timestamp": 1,
        }  # fmt: skip
        parent = entries[-1]["id"]
        entries.append({**entries[0], "id": f"r-{call['id']}", "parentId": parent, "message": message})
    return entries


@pytest.mark.key("app.tools.previous", "app.tools.next", "app.tools.pageUp", "app.tools.pageDown")
async def test_the_tools_are_walked_and_their_output_paged(open_screen):
    async with open_screen(entries=two_calls()) as screen:
        await screen.press("f3")
        await screen.until(screen.sees("two 0."))
        await screen.press("pagedown")
        await screen.until(lambda: "two 0." not in screen.text())
        await screen.press("pageup")
        await screen.until(screen.sees("two 0."))
        await screen.press("right_square_bracket")
        await screen.until(screen.sees("one 0."))
        await screen.press("left_square_bracket")
        await screen.until(screen.sees("two 0."))


@pytest.mark.key("app.palette")
async def test_everything_is_found_by_name(open_screen):
    async with open_screen(entries=conversation(1)) as screen:
        await screen.press("ctrl+p")
        await screen.until(lambda: isinstance(screen.app.screen, PickScreen))
        await screen.until(screen.sees("shift+tab"))
        await screen.press(*"session tree")
        await screen.until(screen.sees("› session tree"))
        await screen.press("enter")
        await screen.until(lambda: screen.body.tree_pane.has_focus)
        await screen.press("escape", "ctrl+p")
        await screen.until(lambda: isinstance(screen.app.screen, PickScreen))
        await screen.press(*"/review")
        await screen.until(screen.sees("› /review  look at a change"))
        await screen.press("enter")
        await screen.until(lambda: screen.log == ["prompt /review"])


async def test_a_command_with_an_argument_waits_for_it(open_screen):
    async with open_screen() as screen:
        await screen.press("ctrl+p")
        await screen.until(lambda: isinstance(screen.app.screen, PickScreen))
        await screen.press(*"/compact", "enter")
        await screen.until(lambda: screen.prompt.text == "/compact ")
        assert screen.log == []


async def test_nothing_is_done_when_the_palette_is_left(open_screen):
    async with open_screen() as screen:
        await screen.press("ctrl+p")
        await screen.until(lambda: isinstance(screen.app.screen, PickScreen))
        await screen.press("down", "escape")
        await screen.until(lambda: screen.app.screen is screen.main)
        assert screen.main.live.id == "session-1"


async def test_hints_in_the_stream_name_the_users_keys(open_screen, monkeypatch):
    made = PiApp.__init__

    def init(self, *args, **options):
        keymap = {"app.tools.expand": "ctrl+e", "tui.altScreen.bottom": "f8", "app.palette": "f9"}
        made(self, *args, keymap=keymap, **options)

    monkeypatch.setattr(PiApp, "__init__", init)
    async with open_screen(entries=conversation(30, prompt="line\n" * 40)) as screen:
        await screen.until(screen.sees("more lines, ctrl+e"))
        assert "f9 everything" in screen.status
        await screen.press("pageup")
        screen.transcript.unseen = 3
        assert " 3 new · f8 " in screen.transcript._pill().text
        await screen.press("ctrl+e")
        await screen.until(lambda: "more lines" not in screen.transcript_text())
        await screen.press("f9")
        await screen.until(lambda: isinstance(screen.app.screen, PickScreen))
