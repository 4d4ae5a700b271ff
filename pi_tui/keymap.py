"""Every key of the program, in one table, and the user's own choices over it.

Ids are pi's where pi has the action, so that its `keybindings.json` means the same here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from attrs import frozen

from pi_trio.errors import ConfigError
from pi_trio.plain_file import read_plain_file

__all__ = [
    "KEYS",
    "NO_CHANGES",
    "UNBOUND",
    "Area",
    "Key",
    "hint",
    "key_label",
    "keys_now",
    "keys_of",
    "load_keymap",
    "unknown_actions",
]

Area: TypeAlias = Literal[
    "everywhere", "prompt", "queue", "stream", "find", "tree", "tools", "question", "sessions"
]

NO_CHANGES: Mapping[str, str] = {}
"""The keymap of somebody who has no file of it."""

UNBOUND = "unbound"
"""The name of no key: what an action is bound to that the user switched off."""


@frozen
class Key:
    """An action and the keys that run it, comma-separated, in Textual's names.

    With `priority` it runs before anything that was typed earlier and still waits for the
    prompt; so only keys have it that must never wait, or whose order does not matter.
    """

    id: str
    keys: str
    action: str
    help: str
    area: Area
    priority: bool = False


KEYS = (
    Key("app.interrupt", "escape", "interrupt", "close, leave the pane, stop the turn", "everywhere", True),
    Key("app.clear", "ctrl+c", "clear", "clear the prompt, stop the turn, quit", "everywhere"),
    Key("app.exit", "ctrl+d", "exit", "quit (on an empty prompt)", "everywhere"),
    Key("app.suspend", "ctrl+z", "app.suspend_process", "to the shell; fg comes back", "everywhere", True),
    Key("app.session.tree", "ctrl+t", "tree", "session tree; again: the whole screen", "everywhere", True),
    Key("app.tools.pane", "f3", "tools", "tool pane", "everywhere", True),
    Key("app.tools.expand", "ctrl+o", "expand", "tool details in the stream", "everywhere", True),
    Key("app.session.resume", "ctrl+s", "sessions", "search, open, delete sessions", "everywhere", True),
    Key("app.session.next", "f6", "next_session", "next open session", "everywhere", True),
    Key("app.session.new", "ctrl+n", "new_session", "new session", "everywhere", True),
    Key("app.palette", "ctrl+p", "palette", "everything that there is, by name", "everywhere", True),
    Key("app.settings", "f2", "settings", "the settings", "everywhere", True),
    Key("app.model.select", "ctrl+l", "model", "choose the model", "everywhere", True),
    Key("app.thinking.cycle", "shift+tab", "thinking", "next thinking level", "everywhere", True),
    Key("app.pane.next", "tab", "next_pane", "next pane", "everywhere"),
    Key("tui.altScreen.pageUp", "pageup", "page(-1)", "back one page", "everywhere"),
    Key("tui.altScreen.pageDown", "pagedown", "page(1)", "on one page", "everywhere"),
    Key("tui.altScreen.top", "ctrl+home", "top", "to the beginning", "everywhere"),
    Key("tui.altScreen.bottom", "ctrl+end", "bottom", "to the end, and follow", "everywhere"),
    Key("tui.altScreen.search", "ctrl+f,ctrl+shift+f", "find", "find in the stream", "everywhere", True),
    Key("app.help", "question_mark,f1", "help", "this help (? on an empty prompt)", "everywhere"),
    Key("tui.input.submit", "enter", "send", "send, or steer; empty: go on", "prompt"),
    Key("app.message.followUp", "alt+enter", "follow_up", "queue; when idle: new line", "prompt"),
    Key("tui.input.tab", "tab", "tab", "complete; or queue; or next pane", "prompt"),
    Key(
        "app.message.dequeue", "alt+up", "screen.dequeue", "waiting texts back, or into the stream", "prompt"
    ),
    Key("tui.input.newLine", "ctrl+j,shift+enter,shift+\\r", "newline", "new line", "prompt"),
    Key("tui.editor.cursorUp", "up", "up", "cursor up; what waits; earlier prompts", "prompt"),
    Key("tui.editor.cursorDown", "down", "down", "cursor down; later prompts", "prompt"),
    Key("app.history.search", "ctrl+r", "screen.search_history", "search earlier prompts", "prompt"),
    Key("app.editor.external", "ctrl+g", "screen.edit_outside", "write in $EDITOR", "prompt"),
    Key("app.clipboard.pasteImage", "ctrl+v", "screen.paste_image", "image from the clipboard", "prompt"),
    Key("tui.editor.undo", "ctrl+underscore,ctrl+minus", "undo", "undo", "prompt"),
    Key("app.editor.redo", "alt+underscore,ctrl+shift+z", "redo", "redo", "prompt"),
    Key("tui.editor.cursorWordLeft", "alt+left,ctrl+left,alt+b", "cursor_word_left", "word left", "prompt"),
    Key(
        "tui.editor.cursorWordRight",
        "alt+right,ctrl+right,alt+f",
        "cursor_word_right",
        "word right",
        "prompt",
    ),
    Key(
        "tui.editor.deleteWordBackward",
        "ctrl+w,alt+backspace",
        "kill_word_left",
        "cut the word before",
        "prompt",
    ),
    Key(
        "tui.editor.deleteWordForward", "alt+d,alt+delete", "kill_word_right", "cut the word after", "prompt"
    ),
    Key("tui.editor.deleteToLineStart", "ctrl+u", "kill_to_start", "cut to the line's start", "prompt"),
    Key("tui.editor.deleteToLineEnd", "ctrl+k", "kill_to_end", "cut to the line's end", "prompt"),
    Key("tui.editor.yank", "ctrl+y", "yank", "put in what was cut", "prompt"),
    Key("tui.editor.yankPop", "alt+y", "yank_pop", "put in what was cut before that instead", "prompt"),
    Key("app.queue.up", "up,k", "move(-1)", "the message before", "queue"),
    Key("app.queue.down", "down,j", "move(1)", "the message after; past the last: the prompt", "queue"),
    Key("app.queue.edit", "enter,e", "edit", "edit it in the prompt", "queue"),
    Key("app.queue.earlier", "alt+up", "reorder(-1)", "have it go in earlier", "queue"),
    Key("app.queue.later", "alt+down", "reorder(1)", "have it go in later", "queue"),
    Key("app.queue.drop", "delete,backspace,d", "drop", "drop it", "queue"),
    Key("app.stream.previous", "alt+up,up,k", "move(-1)", "previous block", "stream"),
    Key("app.stream.next", "alt+down,down,j", "move(1)", "next block", "stream"),
    Key("app.stream.expand", "space,enter", "expand", "all of this block, or its short form", "stream"),
    Key("app.stream.copy", "y", "copy", "copy what is selected, or this block", "stream"),
    Key("app.stream.selectUp", "shift+up,K", "extend(-1)", "select one line more, upwards", "stream"),
    Key("app.stream.selectDown", "shift+down,J", "extend(1)", "select one line more, downwards", "stream"),
    Key("app.stream.find", "slash", "find", "find", "stream"),
    Key("app.stream.findNext", "n", "find_next(1)", "next place that was found", "stream"),
    Key("app.stream.findPrevious", "N", "find_next(-1)", "previous place that was found", "stream"),
    Key("tui.altScreen.searchNext", "enter,down,ctrl+g", "find_next(1)", "next place", "find"),
    Key("tui.altScreen.searchPrevious", "shift+enter,up", "find_next(-1)", "previous place", "find"),
    Key("app.find.read", "tab", "read", "into the stream, where n and N go on", "find"),
    Key("tui.select.up", "up,k", "move(-1)", "row up", "tree"),
    Key("tui.select.down", "down,j", "move(1)", "row down", "tree"),
    Key("tui.select.pageUp", "pageup", "move_page(-1)", "page up", "tree"),
    Key("tui.select.pageDown", "pagedown", "move_page(1)", "page down", "tree"),
    Key("app.tree.first", "home,g", "move_to(0)", "first row", "tree"),
    Key("app.tree.last", "end,G", "move_to(-1)", "last row", "tree"),
    Key("tui.select.confirm", "enter", "choose('go')", "go there; a running turn is stopped first", "tree"),
    Key("app.tree.summarise", "s", "choose('summarise')", "go there, and sum up what is left", "tree"),
    Key("app.tree.summariseWith", "S", "choose('instruct')", "the same, saying what matters", "tree"),
    Key("app.tree.branch", "b", "choose('branch')", "edit this prompt as a new branch", "tree"),
    Key("app.tree.fork", "f", "choose('fork')", "fork into a new session", "tree"),
    Key("app.tree.clone", "c", "choose('clone')", "a new session with all up to here", "tree"),
    Key("app.tree.back", "minus", "choose('back')", "back to where you were", "tree"),
    Key("app.tree.editLabel", "l", "choose('label')", "label; an empty one takes it away", "tree"),
    Key("app.tree.copy", "y", "choose('copy')", "copy what was said", "tree"),
    Key("app.tree.export", "e", "choose('export')", "export this branch to a file", "tree"),
    Key("app.tree.search", "slash", "search", "search; esc ends it", "tree"),
    Key("app.tree.next", "n", "next(1)", "next found, or next branch point", "tree"),
    Key("app.tree.previous", "N", "next(-1)", "the one before", "tree"),
    Key("app.tree.foldOrUp", "left,ctrl+left,alt+left", "fold", "fold; to where a branch begins", "tree"),
    Key("app.tree.unfoldOrDown", "right,ctrl+right,alt+right", "unfold", "unfold; next branch", "tree"),
    Key("app.tree.filter.cycleForward", "o", "cycle(1)", "show turns, or entries, and which", "tree"),
    Key("app.tree.filter.cycleBackward", "O", "cycle(-1)", "the same, the other way round", "tree"),
    Key("app.tree.filter.default", "d", "show('default')", "entries, without records", "tree"),
    Key("app.tree.filter.noTools", "t", "show('no-tools')", "entries, without results", "tree"),
    Key("app.tree.filter.userOnly", "u,ctrl+u", "show('user-only')", "prompts only", "tree"),
    Key("app.tree.filter.labeledOnly", "L", "show('labeled-only')", "labelled entries only", "tree"),
    Key("app.tree.filter.all", "a", "show('all')", "all entries; again: turns", "tree"),
    Key("app.tree.preview", "p", "preview", "preview of this row, or not", "tree"),
    Key("app.tools.previous", "left_square_bracket,left,up,k", "move(-1)", "the newer call, above", "tools"),
    Key("app.tools.next", "right_square_bracket,right,down,j", "move(1)", "the older call, below", "tools"),
    Key("app.tools.stop", "x", "stop", "stop this call only", "tools"),
    Key("app.tools.pin", "p", "pin", "keep this call in sight above the others", "tools"),
    Key("app.tools.copy", "y", "copy", "copy all of its output", "tools"),
    Key("app.tools.whole", "w", "screen.whole_tools", "on the whole screen; diffs side by side", "tools"),
    Key("app.tools.first", "home,g", "to_edge(-1)", "output: to its beginning", "tools"),
    Key("app.tools.last", "end,G", "to_edge(1)", "output: to its end, and follow", "tools"),
    Key("app.tools.pageUp", "pageup", "move_page(-1)", "output: page up", "tools"),
    Key("app.tools.pageDown", "pagedown", "move_page(1)", "output: page down", "tools"),
    Key("tui.select.up", "up", "move(-1)", "session up", "sessions"),
    Key("tui.select.down", "down", "move(1)", "session down", "sessions"),
    Key("tui.select.pageUp", "pageup", "move(-10)", "ten up", "sessions"),
    Key("tui.select.pageDown", "pagedown", "move(10)", "ten down", "sessions"),
    Key("app.sessions.open", "enter", "open", "show it", "sessions"),
    Key("app.session.rename", "ctrl+r", "rename", "rename it", "sessions"),
    Key("app.session.delete", "ctrl+d", "delete", "delete it, after a question", "sessions"),
    Key("app.session.copyTo", "ctrl+o", "copy", "open a copy that works in another folder", "sessions"),
    Key("app.session.close", "ctrl+x", "close", "close an open one; its file stays", "sessions"),
    Key("app.session.toggleSort", "ctrl+s", "sort", "by threads of forks, or the latest first", "sessions"),
    Key("app.session.toggleScope", "tab", "scope", "of this folder, or of all", "sessions"),
    Key("app.sessions.leave", "escape,ctrl+c", "leave", "end the search, leave the list", "sessions"),
    Key("app.question.once", "y", "answer('once')", "let it run, this once", "question"),
    Key("app.question.session", "s", "answer('always')", "let such calls run in this session", "question"),
    Key("app.question.no", "n,escape", "answer('no')", "do not run it", "question"),
    Key("app.question.reason", "r", "reason", "do not run it, and say why", "question"),
    Key("app.question.stop", "ctrl+c", "stop", "stop the whole turn", "question", True),
)

_PUNCTUATION = {
    "-": "minus",
    "?": "question_mark",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "/": "slash",
    ".": "full_stop",
    ",": "comma",
    ";": "semicolon",
    "=": "equals_sign",
    "\\": "backslash",
    "`": "grave_accent",
    "'": "apostrophe",
}
_LABELS = (
    {name: sign for sign, name in _PUNCTUATION.items()}
    | {
        "escape": "esc",
        "pageup": "PgUp",
        "pagedown": "PgDn",
        "up": "↑",
        "down": "↓",
        "left": "←",
        "right": "→",
        "underscore": "_",
    }
    | {letter: f"shift+{letter.lower()}" for letter in "GJKLNOS"}
)


def keys_of(area: Area) -> tuple[Key, ...]:
    """The rows of the table for one place."""
    return tuple(key for key in KEYS if key.area == area)


def key_label(keys: str) -> str:
    """The first of some keys as a person reads it."""
    *modifiers, name = keys.split(",")[0].split("+")
    return "+".join([*modifiers, _LABELS.get(name, name)])


def keys_now(id_: str, keymap: Mapping[str, str]) -> str:
    """The keys that an action has now, comma-separated; empty if it has none."""
    keys = keymap.get(id_) or next(key.keys for key in KEYS if key.id == id_)
    return "" if keys == UNBOUND else keys


def hint(words: Mapping[str, str], keymap: Mapping[str, str]) -> str:
    """`y once · n no`: actions by their ids, with the keys that they have now.

    Several ids with blanks between them show a key each. An action without a key is left out.
    """
    hints = []
    for ids, word in words.items():
        labels = [key_label(keys) for id_ in ids.split() if (keys := keys_now(id_, keymap))]
        hints += [f"{' '.join(labels)} {word}"] if labels else []
    return " · ".join(hints)


def load_keymap(path: Path) -> dict[str, str]:
    """The user's keys by action id, in Textual's names. No file: none.

    Ids that belong to other parts of pi are passed over. Raises `ConfigError`.
    """
    return _overrides(_read(path), path)


def unknown_actions(path: Path) -> list[str]:
    """A sentence for each id in the file that is no action here. Raises `ConfigError`."""
    known = {key.id for key in KEYS}
    return [f"{path}: `{action}` is no action of pi-tui" for action in _read(path) if action not in known]


def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(read_plain_file(path))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read as key bindings: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read as key bindings: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: key bindings are a JSON object")
    return data


def _overrides(data: Mapping[str, Any], path: Path) -> dict[str, str]:
    known = {key.id for key in KEYS}
    chosen: dict[str, str] = {}
    for action, value in data.items():
        keys = [value] if isinstance(value, str) else value
        if not isinstance(keys, list) or not all(isinstance(key, str) and key for key in keys):
            raise ConfigError(f"{path}: `{action}` must be a key or a list of keys")
        if action in known:
            chosen[action] = ",".join(map(_textual_name, keys)) or UNBOUND
    return chosen


def _textual_name(key: str) -> str:
    """`ctrl+pageUp` -> `ctrl+pageup`, `-` -> `minus`, `shift+l` -> `L`."""
    modifiers, _, name = key.rpartition("+") if not key.endswith("+") else (key[:-2], "", "plus")
    ordered = "+".join(sorted(modifiers.lower().split("+"))) if modifiers else ""
    plain = _PUNCTUATION.get(name, name if len(name) == 1 else name.lower())
    if ordered == "shift" and len(plain) == 1:
        return plain.upper()
    return f"{ordered}+{plain}" if ordered else plain
