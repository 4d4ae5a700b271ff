"""The session tree: every key of it, what its rows show, and a hundred thousand entries."""

from __future__ import annotations

import os
import stat
from typing import Any

import pytest
from fake_runtime import FakeRuntime, conversation
from textual import events

from pi_trio.remote.interface import Destination
from pi_tui.keymap import keys_of
from pi_tui.screens.text import TextScreen
from pi_tui.tree_shown import SHOWS

pytestmark = pytest.mark.asyncio

EVIL = "evil \x1b]52;c;eA==\x07\x1b[2J\x9b31m\u202e[bold red]x[/] end"


def message(name: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "id": name,
        "parentId": parent,
        "timestamp": "2026-11-30T10:00:00.000Z",
        "message": {"role": role, "content": content, "timestamp": 1, **more},
    }


def branched(text: str = "said") -> list[dict[str, Any]]:
    """Two prompts with answers, the second said again on a branch of its own; the first used a tool."""
    usage = {"input": 1, "output": 1, "totalTokens": 18_000, "cost": {"total": 0.08}}
    call = {"type": "toolCall", "id": "c1", "name": "edit", "arguments": {"path": f"{text}.py", "edits": []}}
    answer = {"model": "m", "provider": "p", "usage": usage, "stopReason": "stop"}
    words = [{"type": "text", "text": f"{text} answer"}]
    return [
        message("u1", None, "user", f"{text} one"),
        message("a1", "u1", "assistant", [*words, call], **answer),
        message("t1", "a1", "toolResult", words, toolName="edit", toolCallId="c1"),
        message("u2", "t1", "user", f"{text} two"),
        message("a2", "u2", "assistant", words, **{**answer, "stopReason": "aborted"}),
        message("u3", "t1", "user", f"{text} three"),
        message("a3", "u3", "assistant", words, **answer),
    ]


def row_of(screen, text: str) -> str:
    return next(row for row in screen.text().split("\n") if text in row)


def tree_of(screen):
    return screen.body.tree_pane


async def maximise(screen) -> None:
    await screen.press("ctrl+t", "ctrl+t")
    await screen.until(screen.sees("Session tree"))


# ---------------------------------------------------------------- what is shown


async def test_rows_have_their_figures_labels_and_state(open_screen):
    async with open_screen(entries=branched()) as screen:
        await maximise(screen)
        await screen.until(screen.sees("$0.08"))
        await screen.until(screen.sees("■ stopped"))
        first, left, here = (row_of(screen, f"said {name} ") for name in ("one", "two", "three"))
        assert first.split()[-5:-1] == ["1", "1", "18k", "$0.08"]
        assert left.startswith("  ├─A 2 said two")
        assert here.startswith("›•└─B 2 said three")
        assert "2 branches · 7 entries" in screen.text()


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (120, "tools files ctx cost age"),
        (100, "tools files ctx cost age"),
        (88, "ctx cost age"),
        (80, "cost age"),
    ],
)
async def test_the_first_figures_go_first_where_it_is_narrow(open_screen, width, columns):
    async with open_screen(size=(width, 30), entries=branched()) as screen:
        await maximise(screen)
        assert screen.text().split("\n")[1].split() == columns.split()


async def test_branches_that_begin_alike_show_where_they_differ(open_screen):
    """The outline has 34 columns; both prompts begin with the same 40 letters."""
    alike = "in src/water.py replace the limit of two by"
    entries = [
        message("u1", None, "user", f"{alike} three"),
        message("u2", None, "user", f"{alike} a setting"),
        message("u3", None, "user", "something else that is too long for its row as well"),
    ]
    async with open_screen(entries=entries) as screen:
        await screen.until(screen.sees("A 1 …"))
        rows = [row_of(screen, mark)[:33].rstrip() for mark in ("A 1", "B 1", "C 1")]
        assert rows[0].endswith("by three")
        assert "by a setti" in rows[1]
        assert "1 something else" in rows[2]


async def test_the_setting_says_what_is_shown_at_first(open_screen):
    async with open_screen(entries=branched(), tree_shows="user-only") as screen:
        await maximise(screen)
        await screen.until(screen.sees("show: prompts"))
        await screen.until(screen.sees("said three"))
        assert "↳" not in screen.text()


async def test_a_turn_shows_the_label_of_an_entry_in_it(open_screen):
    entries = [
        *branched(),
        {"type": "label", "id": "l", "parentId": "a3", "targetId": "a3", "label": "green"},
    ]
    async with open_screen(entries=[{"timestamp": "", **entry} for entry in entries]) as screen:
        await screen.until(screen.sees("said three [green]"))


async def test_beside_the_stream_a_turn_has_two_lines(open_screen):
    async with open_screen(entries=branched()) as screen:
        await screen.until(screen.sees("1 tool  1 file  $0.08"))
        assert "branch B of 2" in screen.text()


async def test_the_turn_that_runs_says_so_and_the_cursor_stays(open_screen):
    """The tree is live while the agent works."""
    async with open_screen(entries=branched()) as screen:
        await screen.send("wait for it")
        await screen.until(lambda: screen.prompt.running)
        await screen.press("ctrl+t", "ctrl+t", "home")
        await screen.until(lambda: "0:0" in row_of(screen, "wait for it"))
        screen.main.chrome.turn_spinner()
        assert tree_of(screen).row.id == "u1"
        await screen.press("escape", "escape")
        await screen.until(screen.sees("■ You stopped"))
        await maximise(screen)
        await screen.until(lambda: "■ stopped" in row_of(screen, "wait for it"))


async def test_what_streams_draws_no_tree(open_screen):
    """Only entries change it, so an answer of any length costs it nothing."""
    async with open_screen(entries=branched(), answers={"talk": "words " * 2000}) as screen:
        tree, laid_out = tree_of(screen), []
        lay_out = tree._lay_out
        tree._lay_out = lambda: (laid_out.append(1), lay_out())
        await screen.send("talk")
        await screen.until(lambda: screen.main.live.store.turn_number == 3)
        await screen.idle()
        assert len(laid_out) <= 6


# ---------------------------------------------------------------- filters


@pytest.mark.key("app.tree.filter.cycleForward", "app.tree.filter.cycleBackward", "app.tree.filter.all")
async def test_o_goes_around_what_is_shown_and_letters_choose_it(open_screen):
    async with open_screen(entries=branched()) as screen:
        await maximise(screen)
        seen = []
        for _ in SHOWS:
            seen.append(tree_of(screen).rows.show)
            await screen.press("o")
        assert tuple(seen) == SHOWS
        await screen.press("O")
        assert tree_of(screen).rows.show == "all"
        for letter, show in {
            "d": "default",
            "t": "no-tools",
            "u": "user-only",
            "L": "labeled-only",
            "a": "all",
        }.items():
            await screen.press(letter)
            assert tree_of(screen).rows.show == show
        await screen.press("a")
        assert tree_of(screen).rows.show == "turns"


@pytest.mark.key("app.tree.filter.default", "app.tree.filter.noTools")
async def test_entries_are_shown_with_what_they_say(open_screen):
    async with open_screen(entries=branched()) as screen:
        await maximise(screen)
        await screen.press("d")
        await screen.until(screen.sees("↳ edit: said answer"))
        await screen.press("t")
        await screen.until(lambda: "↳ edit" not in screen.text())
        assert "show: no tools" in screen.text()


@pytest.mark.key("app.tree.filter.userOnly")
async def test_the_cursor_stays_on_its_entry_or_the_nearest_above(open_screen):
    async with open_screen(entries=branched()) as screen:
        await maximise(screen)
        await screen.press("d", "home", "j", "j")
        assert tree_of(screen).row.id == "t1"
        await screen.press("u")
        assert tree_of(screen).row.id == "u1"


# ---------------------------------------------------------------- folds and branch points


@pytest.mark.key("app.tree.foldOrUp", "app.tree.unfoldOrDown")
async def test_a_branch_folds_and_unfolds(open_screen):
    async with open_screen(entries=branched()) as screen:
        await maximise(screen)
        await screen.press("d", "end", "left")
        assert tree_of(screen).row.id == "u3"
        await screen.press("left")
        await screen.until(lambda: "⊞ 1" in row_of(screen, "said three"))
        await screen.press("right")
        await screen.until(lambda: "⊞" not in screen.text())
        await screen.press("home", "right")
        assert tree_of(screen).row.id == "u2"


@pytest.mark.key("app.tree.next", "app.tree.previous")
async def test_n_goes_to_branch_points_both_ways(open_screen):
    async with open_screen(entries=branched()) as screen:
        await maximise(screen)
        await screen.press("d", "home", "n")
        assert tree_of(screen).row.id == "t1"
        await screen.press("end", "N")
        assert tree_of(screen).row.id == "t1"


# ---------------------------------------------------------------- search


async def test_while_searching_letters_only_search(open_screen):
    async with open_screen(entries=branched()) as screen:
        await maximise(screen)
        await screen.press("home", "slash", *"bfcose?nq", "backspace")
        await screen.until(screen.sees("/bfcose?n▏  not found"))
        assert [each for each in screen.log if not each.startswith("find")] == []
        assert screen.app.screen is screen.main
        assert tree_of(screen).row.id == "u1"
        assert "esc end search" in screen.status
        await screen.press("escape")
        assert tree_of(screen).has_focus
        assert "esc back to prompt" in screen.status


@pytest.mark.key("app.tree.search")
async def test_a_search_goes_to_what_it_finds_and_n_to_the_next(open_screen):
    async with open_screen(entries=branched()) as screen:
        await maximise(screen)
        await screen.press("home", "slash", *"answer")
        await screen.until(screen.sees("/answer▏  1 of 3"))
        await screen.press("enter", "n")
        await screen.until(screen.sees("/answer  2 of 3"))
        assert tree_of(screen).row.id == "u2"
        await screen.press("N", "N")
        assert tree_of(screen).row.id == "u3"
        await screen.press("d")
        await screen.until(screen.sees("of 4"))
        await screen.press("escape", "home", "n")
        assert tree_of(screen).row.id == "t1"  # no search: the next branch point


async def test_a_search_that_changed_while_it_ran_is_made_again(open_screen):
    async with open_screen(entries=branched()) as screen:
        await maximise(screen)
        await screen.press("slash")
        for letter in "three":
            screen.app.post_message(events.Key(letter, letter))
        await screen.until(screen.sees("/three▏  1 of 1"))
        assert screen.log[-1] == "find three"


# ---------------------------------------------------------------- keys that do something


async def write_line(screen, text: str, *, instead: bool = False) -> None:
    await screen.until(lambda: isinstance(screen.app.screen, TextScreen))
    await screen.press(*(("ctrl+a", "ctrl+k") if instead else ()), *text, "enter")
    await screen.until(lambda: screen.app.screen is screen.main)


@pytest.mark.key("app.tree.editLabel", "app.tree.filter.labeledOnly")
async def test_l_puts_a_label_on_an_entry_and_takes_it_away(open_screen):
    async with open_screen(entries=branched()) as screen:
        await maximise(screen)
        await screen.press("home", "l")
        await write_line(screen, "begin")
        await screen.until(lambda: "[begin]" in row_of(screen, "said one"))
        await screen.press("L")
        assert len(tree_of(screen).rows) == 1
        await screen.press("l")
        await write_line(screen, "", instead=True)
        await screen.until(lambda: "[begin]" not in screen.text())
        assert screen.log == ["label u1 begin", "label u1 None"]
        await screen.press("l", "escape")
        await screen.until(lambda: screen.app.screen is screen.main)
        assert len(screen.log) == 2


@pytest.mark.key("app.tree.copy")
async def test_y_copies_what_was_said(open_screen, tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    tool = tmp_path / "xclip"
    tool.write_text(f'#!/bin/sh\ncat > "{kept}"\n')
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":7")
    for name in ("WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    async with open_screen(entries=branched()) as screen:
        await screen.press("ctrl+t", "home", "y")
        await screen.until(lambda: "8 characters copied with xclip" in screen.status)
        assert kept.read_text() == "said one"


@pytest.mark.key("app.tree.export")
@pytest.mark.parametrize("size", [(120, 40), (60, 20)])
async def test_e_exports_the_branch_and_says_where(open_screen, size):
    """The tree may hide the stream."""
    async with open_screen(entries=branched(), size=size) as screen:
        await screen.press("ctrl+t", "home", "down", "e")
        await screen.until(screen.sees("session-session-1-a2.md"))
        await write_line(screen, "x.html", instead=True)
        await screen.until(screen.sees("Written to /project/x.html."))
        assert screen.log == ["export a2 x.html"]


@pytest.mark.key("app.tree.clone")
async def test_c_clones_up_to_the_row(open_screen):
    async with open_screen(entries=branched()) as screen:
        await screen.press("ctrl+t", "home", "c")
        await screen.until(lambda: screen.main.live.id == "session-2")
        assert screen.log == ["fork at t1"]
        await screen.until(screen.sees("Cloned into a new session"))
        await screen.press("ctrl+t", "minus")
        await screen.until(lambda: screen.main.live.id == "session-1")


@pytest.mark.key("app.tree.summariseWith")
async def test_capital_s_asks_what_the_summary_should_look_at(open_screen):
    async with open_screen(entries=branched()) as screen:
        await screen.press("ctrl+t", "home", "S")
        await write_line(screen, "the keys")
        await screen.until(lambda: "summarise the keys" in screen.log)
        await screen.press("escape")
        await screen.until(lambda: "esc stop summary" in screen.status)
        await screen.press("escape")
        await screen.until(lambda: "summarising" not in screen.text())


@pytest.mark.parametrize("key", ["s", "S", "b", "enter"])
async def test_no_key_stops_a_turn_without_asking_once(open_screen, key):
    async with open_screen(entries=branched()) as screen:
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.press("ctrl+t", "home", key)
        await screen.until(lambda: "press again, esc keeps on" in screen.status)
        assert screen.log == ["prompt wait"]
        await screen.press("escape", "j", key)  # another row is another question
        await screen.until(lambda: "press again, esc keeps on" in screen.status)
        assert screen.log == ["prompt wait"]


async def test_going_where_one_is_moves_nothing(open_screen):
    async with open_screen(entries=branched()) as screen:
        await screen.press("ctrl+t", "enter")
        await screen.until(lambda: "this is where you are" in screen.status)
        assert screen.log == []


async def test_what_waits_makes_no_other_place_of_the_end_of_a_turn(open_screen):
    """A text that waits is recorded behind the turn; the turn's row is where one is all the same."""
    async with open_screen(entries=branched()) as screen:
        record = {"type": "custom", "customType": "inbox/spliced", "data": {}}
        leaf = screen.main.live.store.leaf_id
        await screen.runtime_call(lambda runtime: runtime.record("session-1", record))
        await screen.until(lambda: screen.main.live.store.leaf_id != leaf)
        await screen.press("ctrl+t", "enter")
        await screen.until(lambda: "this is where you are" in screen.status)
        assert screen.log == []


async def test_back_leads_before_the_first_prompt_too(open_screen):
    async with open_screen(entries=branched()) as screen:
        await screen.press("ctrl+t", "home", "b")
        await screen.until(lambda: screen.main.live.store.leaf_id is None)
        await screen.press("ctrl+c", "ctrl+t", "end", "enter")
        await screen.until(lambda: screen.main.live.store.leaf_id == "a3")
        await screen.press("ctrl+t", "minus")
        await screen.until(lambda: screen.main.live.store.leaf_id is None)
        assert screen.prompt.text == ""


async def test_a_draft_written_during_a_summary_is_kept(open_screen):
    """TR-09"""
    async with open_screen(entries=branched()) as screen:
        await screen.press("ctrl+t", "home", "s")
        await screen.until(screen.sees("summarising the branch"))
        await screen.press("escape")
        await screen.write("draft text")
        session_id = screen.main.live.id
        await screen.app._bridge.call(lambda runtime: runtime.end_summary(session_id))
        await screen.until(lambda: "navigate t1" in screen.log)
        await screen.until(lambda: screen.main.live.store.leaf_id == "t1")
        assert screen.prompt.text == "draft text"


async def test_a_summary_stays_with_its_session(open_screen):
    """Another one may be shown before it is made: Esc is not for it there, and nothing of it comes there."""
    async with open_screen(entries=branched()) as screen:
        before = screen.main.live
        await screen.press("ctrl+t", "home", "s")
        await screen.until(screen.sees("summarising the branch"))
        await screen.press("escape", "ctrl+n")
        await screen.until(lambda: screen.main.live.id == "session-2")
        assert "stop summary" not in screen.status
        await screen.until(lambda: "1 other runs" in screen.status)
        await screen.runtime_call(lambda runtime: runtime.end_summary(before.id))
        await screen.until(lambda: not before.summarising and before.store.leaf_id == "t1")
        assert screen.main.live.id == "session-2"
        assert not screen.prompt.text


async def test_a_click_chooses_a_row(open_screen):
    async with open_screen(entries=branched()) as screen:
        await maximise(screen)
        await screen.pilot.click(tree_of(screen), offset=(10, 3))
        assert tree_of(screen).row.id == "u2"
        assert tree_of(screen).has_focus


# ---------------------------------------------------------------- preview


@pytest.mark.key("app.tree.preview")
async def test_the_preview_says_what_going_there_would_find(open_screen):
    async with open_screen(entries=branched()) as screen:
        changed = Destination(
            leaf_id="a2",
            context=27_000,
            model="m",
            thinking_level="high",
            differ=("/project/a.py",),
            compared=4,
        )

        async def know(runtime: FakeRuntime) -> None:
            runtime.destinations["a2"] = changed

        await screen.app._bridge.call(know)
        await maximise(screen)
        await screen.press("home", "down")
        await screen.until(screen.sees("A2 preview"))
        await screen.until(screen.sees("Going here:  context 27k · model was m high, fake-1 goes on"))
        assert "1 of 4 files on record now differs from then:  a.py" in screen.text()
        assert "Files are not moved." in screen.text()
        await screen.press("p")
        await screen.until(lambda: "Going here" not in screen.text())
        await screen.press("p")
        await screen.until(screen.sees("Going here"))


async def test_on_a_small_screen_the_preview_comes_when_it_is_wanted(open_screen):
    async with open_screen(size=(80, 24), entries=branched()) as screen:
        await maximise(screen)
        assert "preview" not in screen.text()
        await screen.press("p")
        await screen.until(screen.sees("Going here"))


# ---------------------------------------------------------------- anybody's words


async def test_nothing_in_the_tree_acts_on_the_terminal(open_screen):
    """SE-13: prompts, labels, calls, paths, and what is searched for are letters and nothing else."""
    label = {"type": "label", "id": "l", "parentId": "a3", "timestamp": "", "targetId": "u1", "label": EVIL}
    async with open_screen(entries=[*branched(EVIL), label]) as screen:
        screen.main.live.store.labels["u1"] = EVIL
        there = Destination(leaf_id="t1", model=EVIL, differ=(f"/project/{EVIL}",), compared=1)

        async def know(runtime: FakeRuntime) -> None:
            runtime.destinations["t1"] = there

        await screen.app._bridge.call(know)
        await maximise(screen)
        await screen.press("home")
        await screen.until(screen.sees("Going here"))
        for show in ("d", "a"):
            await screen.press(show)
            await screen.pilot.pause()
            text = screen.text()
            assert "[bold red]x[/]" in text
            assert not {letter for letter in text if letter != "\n" and not letter.isprintable()}
        await screen.press("slash", *"x")
        screen.app.post_message(events.Key("?", "\u202e"))
        await screen.until(screen.sees("/x"))
        assert "\u202e" not in screen.text()


# ---------------------------------------------------------------- size


async def test_a_hundred_thousand_entries_are_a_few_widgets_and_lines(open_screen):
    """PF-01: the screen has as much as there is to see, and a key reads no more."""
    entries = [
        message(f"e{at}", f"e{at - 1}" if at else None, "assistant" if at % 2 else "user", f"x{at}")
        for at in range(100_000)
    ]
    async with open_screen(entries=entries) as screen:
        await maximise(screen)
        await screen.press("d", "home", "end", "pageup", "up")
        await screen.until(lambda: "…" not in row_of(screen, "›"))
        assert len(tree_of(screen).rows) == 100_000
        assert len(screen.main.query("*")) < 60
        assert len(tree_of(screen).rows._made) < 500
        assert len(screen.main.live.store.bodies) < 500


@pytest.mark.parametrize("size", [(20, 10), (7, 5), (2, 2), (1, 1)])
async def test_no_size_is_too_small(open_screen, size):
    """TI-05: with the tree and its preview open."""
    async with open_screen(entries=branched()) as screen:
        await maximise(screen)
        await screen.press("home", "p", "p")
        await screen.until(screen.sees("Going here"))
        before = screen.text()
        await screen.pilot.resize_terminal(*size)
        await screen.pilot.pause()
        await screen.press("j", "d", "slash", "x", "escape", "d", "k")
        await screen.pilot.resize_terminal(120, 40)
        await screen.until(lambda: screen.text() == before)


async def test_every_key_of_the_tree_is_in_the_help(open_screen):
    async with open_screen(size=(90, 130)) as screen:
        await screen.press("question_mark")
        await screen.until(screen.sees("In the session tree"))
        for key in keys_of("tree"):
            assert key.help in screen.text()


async def test_a_long_conversation_is_walked_without_reading_it(open_screen):
    async with open_screen(entries=conversation(300)) as screen:
        await maximise(screen)
        await screen.until(screen.sees("question 299"))
        await screen.press("home")
        await screen.until(screen.sees("question 0 "))
        assert "u150" not in screen.main.live.store.bodies
