"""The small pure parts of the screen: ladder, layout, heights, keymap, colours, Markdown blocks, words."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style
from textual import screen
from textual.drivers import linux_driver

from pi_trio.errors import ConfigError
from pi_tui import terminal
from pi_tui.app import PiApp
from pi_tui.heights import Heights
from pi_tui.items.blocks import split_blocks
from pi_tui.items.markdown import Growing, markdown
from pi_tui.items.paint import Look
from pi_tui.items.words import age, clock, duration, money, tokens
from pi_tui.key_clashes import clashes
from pi_tui.keymap import KEYS, UNBOUND, Key, key_label, load_keymap
from pi_tui.ladder import Situation, Step, clear_step, escape_step, exit_step
from pi_tui.layout import arrange
from pi_tui.screens.main import MainScreen
from pi_tui.screens.question import QuestionScreen
from pi_tui.screens.sessions import SessionsScreen
from pi_tui.status import Part, fitting, key_hints
from pi_tui.terminal import EnduringWriter, KeyParser
from pi_tui.theme import bundled_folder, load_theme
from pi_tui.widgets.find_bar import FindInput
from pi_tui.widgets.prompt import Prompt
from pi_tui.widgets.queue import QueueList
from pi_tui.widgets.reading import Stream
from pi_tui.widgets.session_tree import SessionTree
from pi_tui.widgets.tool_pane import ToolPane

# ------------------------------------------------------------------ ladder, layout


@pytest.mark.parametrize(
    ("situation", "step"),
    [
        (Situation(), Step.NOTHING),
        (Situation(draft=True), Step.NOTHING),
        (Situation(running=True), Step.ABORT),
        (Situation(running=True, draft=True), Step.ABORT),
        (Situation(running=True, stopping=True), Step.STOPPING),
        (Situation(running=True, pane="tree"), Step.LEAVE_PANE),
        (Situation(running=True, pane="tree", searching=True), Step.END_SEARCH),
        (Situation(running=True, listing=True), Step.CLOSE_LIST),
        (Situation(running=True, shell=True), Step.STOP_SHELL),
        (Situation(running=True, unsent=True), Step.TAKE_BACK),
        (Situation(running=True, summarising=True), Step.ABORT),
        (Situation(summarising=True), Step.STOP_SUMMARY),
        (Situation(running=True, finding=True), Step.CLOSE_FIND),
        (Situation(running=True, finding=True, selected=True), Step.UNSELECT),
        (Situation(running=True, pane="reading"), Step.LEAVE_PANE),
        (Situation(shell=True, draft=True), Step.STOP_SHELL),
        (Situation(running=True, pane="tree", armed="go"), Step.DISARM),
        (Situation(running=True, in_queue=True), Step.ABORT),
        (Situation(in_queue=True), Step.LEAVE_PANE),
        (Situation(running=True, editing=True), Step.STOP_EDITING),
    ],
)
def test_escape(situation, step):
    assert escape_step(situation) is step


def test_ctrl_c_never_quits_at_once():
    assert clear_step(Situation(draft=True, running=True)) is Step.CLEAR
    assert clear_step(Situation(running=True)) is Step.ABORT
    assert clear_step(Situation(shell=True)) is Step.STOP_SHELL
    assert clear_step(Situation(summarising=True)) is Step.STOP_SUMMARY
    assert clear_step(Situation(selected=True, draft=True)) is Step.COPY
    assert clear_step(Situation()) is Step.ASK_QUIT
    assert clear_step(Situation(armed="quit")) is Step.QUIT


def test_ctrl_d_asks_only_while_running():
    assert exit_step(Situation()) is Step.QUIT
    assert exit_step(Situation(running=True)) is Step.ASK_QUIT
    assert exit_step(Situation(running=True, armed="quit")) is Step.QUIT
    assert exit_step(Situation(shell=True)) is Step.ASK_QUIT
    assert exit_step(Situation(draft=True)) is Step.NOTHING


SITUATIONS = st.builds(
    Situation,
    pane=st.sampled_from(["stream", "tree", "tools"]),
    running=st.booleans(),
    summarising=st.booleans(),
    shell=st.booleans(),
    listing=st.booleans(),
    owed=st.booleans(),
    stopping=st.booleans(),
    draft=st.booleans(),
    armed=st.sampled_from(["", "quit"]),
    in_queue=st.booleans(),
    editing=st.booleans(),
)


@given(SITUATIONS)
def test_the_status_line_names_what_escape_does(situation):
    word = escape_step(situation).value
    assert key_hints(situation).startswith(f"esc {word}" if word else ("enter", "ctrl+t", "empty enter"))


def test_what_does_not_fit_into_the_status_line_goes_as_a_whole():
    hints, model, context = (
        Part(((text, Style()),), rank)
        for rank, text in enumerate(("esc stops · ? help", "a model", "ctx 1%"))
    )
    for width, shown in [
        (37, ["esc stops · ? help", "a model", "ctx 1%"]),
        (36, ["esc stops · ? help", "a model"]),
        (27, ["esc stops · ? help", "ctx 1%"]),
        (18, ["esc stops · ? help"]),
        (17, ["esc stops"]),
    ]:
        assert [part.spans[0][0] for part in fitting([hints, model, context], width)] == shown


def test_one_pane_at_a_time_when_narrow():
    for pane in ("stream", "tree", "tools"):
        seen = arrange(80, pane, tools=True, whole=False)
        assert [seen.tree, seen.stream, seen.tools].count(True) == 1
        assert seen.strip


def test_columns_by_width():
    assert arrange(120, "stream", tools=False, whole=False).tree
    assert not arrange(120, "stream", tools=True, whole=False).tree
    three = arrange(150, "stream", tools=True, whole=False)
    assert three.tree and three.stream and three.tools  # noqa: PT018
    assert not arrange(150, "tree", tools=True, whole=True).stream


# ------------------------------------------------------------------ heights


@given(st.lists(st.integers(0, 9)), st.data())
def test_heights_are_sums(start, data):
    heights, model = Heights(start), list(start)
    for _ in range(data.draw(st.integers(0, 12))):
        if model and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(model) - 1))
            model[at] = data.draw(st.integers(0, 9))
            heights.set(at, model[at])
        elif model and data.draw(st.booleans()):
            model.pop()
            heights.pop()
        else:
            model.append(data.draw(st.integers(0, 9)))
            heights.append(model[-1])
    assert heights.total == sum(model)
    assert [heights.before(at) for at in range(len(model))] == [sum(model[:at]) for at in range(len(model))]
    lines = [(at, line) for at, height in enumerate(model) for line in range(height)]
    assert [heights.find(y) for y in range(len(lines))] == lines
    assert heights.find(len(lines) + 2) == (len(model), 2)


# ------------------------------------------------------------------ keymap, terminal


def test_ids_are_unique_and_actions_described():
    ids = [(key.id, key.area) for key in KEYS]
    assert len(set(ids)) == len(ids)
    assert all(key.help for key in KEYS)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{key.area} {key.id}")
def test_every_key_has_its_action(key: Key):
    """Textual passes over an action that nobody has, and the key would do nothing."""
    places = {
        "everywhere": MainScreen,
        "prompt": Prompt,
        "queue": QueueList,
        "sessions": SessionsScreen,
        "stream": Stream,
        "find": FindInput,
        "tree": SessionTree,
        "tools": ToolPane,
        "question": QuestionScreen,
    }
    whose, _, action = key.action.rpartition(".")
    place = {"app": PiApp, "screen": MainScreen, "": places[key.area]}[whose]
    assert hasattr(place, f"action_{action.partition('(')[0]}")


def test_the_users_keys_in_pis_names(tmp_path: Path):
    path = tmp_path / "keybindings.json"
    chosen = {
        "app.session.tree": "ctrl+pageUp",
        "app.tools.expand": [],
        "app.tree.back": ["-", "shift+u"],
        "x": "a",
    }
    path.write_text(json.dumps(chosen))
    assert load_keymap(path) == {
        "app.session.tree": "ctrl+pageup",
        "app.tools.expand": UNBOUND,
        "app.tree.back": "minus,U",
    }
    assert load_keymap(tmp_path / "none.json") == {}


def test_a_pipe_is_no_keymap_and_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "keybindings.json")
    with pytest.raises(ConfigError, match=r"keybindings\.json: .*: it is not a regular file$"):
        load_keymap(tmp_path / "keybindings.json")


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "{", '{"app.clear": 1}', '{"app.clear": [""]}'])
def test_a_bad_keymap_is_named(tmp_path: Path, text):
    path = tmp_path / "keybindings.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"keybindings\.json"):
        load_keymap(path)


def test_a_key_for_two_actions_is_told():
    assert clashes({}) == []
    assert clashes({"app.tree.back": "x", "app.tools.stop": "x"}) == []  # never both in one place
    (told,) = clashes({"app.tree.back": "minus,s"})
    assert told.startswith("keybindings.json: s is given to both app.tree.summarise (")
    (told,) = clashes({"app.palette": "ctrl+t"})
    assert "ctrl+t is given to both app.session.tree" in told
    assert clashes({"app.palette": "ctrl+t", "app.session.tree": UNBOUND}) == []


def test_hints_are_those_of_the_keymap():
    keymap = {"app.interrupt": "ctrl+g", "app.session.tree": UNBOUND, "app.help": "f5"}
    assert key_hints(Situation(running=True), keymap).startswith("ctrl+g stop turn")
    hints = key_hints(Situation(), keymap)
    assert "f5 help" in hints
    assert "tree" not in hints
    tools = key_hints(Situation(pane="tools", stoppable=True), {"app.tools.stop": "k"})
    assert tools == "esc back to prompt · [ ] select · p pin · k stop"


def test_labels_are_for_people():
    assert key_label("ctrl+pageup,x") == "ctrl+PgUp"
    assert key_label("left_square_bracket") == "["


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        ("\x1b\r", ["alt+enter"]),
        ("\x1b\x1b[A", ["alt+up"]),
        ("\x1b\x1bOB", ["alt+down"]),
        ("\x1b\x1b[5~", ["alt+pageup"]),
        ("\x1b\x1b", ["escape"]),
        ("\x1b[A", ["up"]),
    ],
)
def test_alt_keys_are_one_key(data, keys):
    """An Alt+Up is never an Escape, and an Alt+Enter never an Enter."""
    assert [event.key for event in KeyParser().feed(data)] == keys


@pytest.mark.parametrize(
    ("typed", "last"), [("fix it\n", "enter"), ("one\ntwo\n", "ctrl+j"), ("one\ntwo", "o"), ("x", "x")]
)
def test_a_line_typed_before_the_start_is_sent(typed, last):
    """A terminal in its usual state makes line feeds of Enter; several lines may be a paste."""
    parser = KeyParser(input_comes=lambda _seconds: False)
    parser.typed_before = True
    assert [event.key for event in parser.feed(typed)][-1] == last
    assert [event.key for event in parser.feed("\n")] == ["ctrl+j"]


@pytest.mark.parametrize(
    "data", ["\x1b[<35;10;5M", "\x1b[<64;100;20M", "\x1b[1;3A", "\x1b[200~pasted\x1b[201~"]
)
def test_a_sequence_in_pieces_is_what_it_is_in_one(data):
    """A slow line that cuts a mouse report or a paste anywhere types nothing and aborts nothing."""
    whole = list(map(repr, KeyParser().feed(data)))
    for cut in range(1, len(data)):
        parser = KeyParser(input_comes=lambda _seconds: True)
        pieces = [
            event for part in (data[:cut], data[cut:]) for event in [*parser.feed(part), *parser.tick()]
        ]
        assert list(map(repr, pieces)) == whole


def _told(*pieces: str) -> list[str]:
    """What was pasted and typed, by the pieces in which it arrived."""
    parser = KeyParser(input_comes=lambda _seconds: True)
    events = [event for piece in pieces for event in [*parser.feed(piece), *parser.tick()]]
    return [event.text if hasattr(event, "text") else event.character for event in events]


def test_a_paste_is_one_piece_wherever_it_is_cut():
    """TI-01, TI-07: with something typed around it, and half an end and a NUL in it."""
    data = "a\x1b[200~one\x1b[201 two\x00\r\n\x1b[201~b\x1b[200~\x1b[201~c"
    told = ["a", "one\x1b[201 two\r\n", "b", "", "c"]
    assert _told(data) == told
    for cut in range(1, len(data)):
        if not data[:cut].endswith(("\x1b", "\x1b[")) or cut > 5:  # there Textual reads it, without half ends
            assert _told(data[:cut], data[cut:]) == told
    assert _told("a\x1b", "[200~one\x1b[201~b") == ["a", "one", "b"]
    assert _told(data[:8], *data[8:45], data[45:]) == told


def test_a_function_key_that_begins_like_a_paste_is_one():
    parser = KeyParser(input_comes=lambda _seconds: True)
    assert [event.key for piece in ("\x1b[20", "~\x1b[2", "~") for event in parser.feed(piece)] == [
        "f9",
        "insert",
    ]


def test_a_lone_escape_is_told_as_soon_as_nothing_follows():
    parser = KeyParser(input_comes=lambda _seconds: False)
    assert list(parser.feed("\x1b")) == []
    assert [event.key for event in parser.tick()] == ["escape"]
    assert [event.key for event in parser.feed("a")] == ["a"]


def test_a_key_does_not_wait_for_textuals_looks(monkeypatch):
    """Its screens look for what has changed as often as `install` says, while there is something."""
    for module, name in (
        (screen, "UPDATE_PERIOD"),
        (linux_driver, "XTermParser"),
        (linux_driver, "WriterThread"),
        (linux_driver, "getincrementaldecoder"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))
    terminal.install()
    asked = []
    monkeypatch.setattr(screen.Screen, "set_interval", lambda self, seconds, *_, **__: asked.append(seconds))
    screen.Screen()._update_timer  # noqa: B018
    assert asked == [terminal.LOOK_EVERY]


class _GoneTerminal:
    def write(self, text: str) -> None:
        raise OSError(5, "Input/output error")

    def flush(self) -> None: ...


def test_writing_to_a_terminal_that_is_gone_never_waits():
    """TV-05: the program ends although nobody reads what it writes."""
    writer = EnduringWriter(_GoneTerminal())  # type: ignore[arg-type]
    writer.start()
    for _ in range(200):
        writer.write("x")
    writer.stop()
    assert not writer.is_alive()


# ------------------------------------------------------------------ Markdown


def test_blocks_end_at_blank_lines_outside_fences():
    text = "one\n\n- a\n\n  b\n\n```\nx\n\ny\n```\n\nlast"
    parts = [text[block.begin : block.end] for block in split_blocks(text)]
    assert parts == ["one\n\n", "- a\n\n  b\n\n", "```\nx\n\ny\n```\n\n", "last"]


@given(st.text(alphabet="ab `~#-*\n1.>|", max_size=120), st.data())
def test_how_a_text_arrives_changes_nothing(text, data):
    """TV-07: any way of cutting a stream gives the picture of the whole text."""
    look = Look(40, load_theme("dark", [bundled_folder()]))
    growing = Growing(look, Style())
    for cut in sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8))):
        growing.strips(text[:cut])
    assert [strip.text for strip in growing.strips(text, final=True)] == [
        strip.text for strip in markdown(text, look, Style())
    ]


def test_entities_cannot_smuggle_controls():
    """SE-01: what Markdown decodes is looked at again."""
    look = Look(60, load_theme("dark", [bundled_folder()]))
    for text in (
        "&#27;[2J",
        "&#x9b;2J",
        "a&#8238;b",
        "`&#27;`",
        "[x](http://a/&#27;)",
        "```&#27;\n&#27;\n```",
    ):
        shown = "".join(strip.text for strip in markdown(text, look, Style()))
        assert shown.isprintable()


# ------------------------------------------------------------------ words


def test_figures_in_words():
    assert [duration(s) for s in (0.014, 2.14, 42, 190, 3900)] == ["14 ms", "2.1s", "42s", "3m10s", "1h05m"]
    assert [tokens(n) for n in (840, 21_000, 1_200_000)] == ["840", "21k", "1.2M"]
    assert [money(m) for m in (0, 0.004, 0.61)] == ["$0.00", "$0.004", "$0.61"]
    assert clock(42.9) == "0:42"
    assert age("not a time") == ""
