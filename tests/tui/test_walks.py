"""The walks of a user through the real program, in a real pseudo terminal."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from terminal_program import PATIENCE, RESET, Terminal

KEY = "sk-ant-api03-" + "a1B2" * 10


def _until(terminal: Terminal, holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "\n".join(terminal.screen.display)
        terminal.read(0.05)


def _files(folder: Path) -> bytes:
    """Everything that was written below a folder, except where keys belong."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != "auth.json")
    return b"".join(path.read_bytes() for path in paths)


def _entries(folder: Path) -> list[dict]:
    [path] = folder.rglob("*.jsonl")
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    running: list[Terminal] = []

    def starting(*arguments: str, **environ: str) -> Terminal:
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        options = {"HOME": str(home), "PI_OFFLINE": "1", **environ}
        running.append(Terminal(*arguments, cwd=tmp_path, **options))
        return running[-1]

    yield starting
    for terminal in running:
        terminal.close()


def test_walk_1_three_and_enter_begin_the_tour(start):
    """Walk 1: without a key, `3` and Enter; Esc stops what runs, and an empty Enter goes on to the end."""
    terminal = start()
    terminal.wait_for("3  /tour: two minutes, demo model, offline, free")
    terminal.write("3")
    terminal.wait_for("› /tour")
    terminal.write("\r")
    terminal.wait_for("⠋")
    _until(terminal, lambda: any("sleep 20" in line for line in terminal.screen.display))
    terminal.wait_for("0:0")
    terminal.write("\x1b")
    terminal.wait_for("You stopped turn 1.")
    terminal.write("\r")
    terminal.wait_for("That was the tour.")


def test_walk_2_price_and_source_are_seen_and_nothing_is_sent(start, tmp_path: Path):
    """Walk 2: a key in the environment; the screen names both, and ctrl+d leaves nothing behind."""
    terminal = start(ANTHROPIC_API_KEY="x")
    terminal.wait_for("ANTHROPIC_API_KEY")
    terminal.wait_for("per million tokens")
    terminal.wait_for("nothing sent, nothing spent")
    terminal.write("\x04")
    assert terminal.status() == 0
    assert not list(tmp_path.rglob("*.jsonl"))
    assert b"pi-tui --session" not in terminal.bytes


def test_walk_3_a_key_is_seen_nowhere(start, tmp_path: Path):
    """Walk 3: `/login`, paste, Esc; again, paste, Enter. The key is in auth.json and nowhere else."""
    terminal = start("--demo")
    terminal.wait_until_ready()
    for ending, outcome in (("\x1b", "? help"), ("\r", "is stored in")):
        terminal.write("/login anthropic\r")
        terminal.wait_for("API key of Anthropic")
        terminal.write(f"\x1b[200~{KEY}\x1b[201~")
        terminal.wait_for("••••")
        terminal.write(ending)
        terminal.wait_for(outcome)
        _until(terminal, lambda: not any("API key of Anthropic" in line for line in terminal.screen.display))
    terminal.write("run `echo done-$((40+2))`\r")
    terminal.wait_for("done-42")
    terminal.wait_for("1 tool")
    terminal.write("\x04")
    assert terminal.status() == 0
    stored = tmp_path / "agent" / "auth.json"
    assert json.loads(stored.read_text())["anthropic"]["key"] == KEY
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert KEY.encode() not in terminal.bytes
    assert KEY.encode() not in _files(tmp_path)


def test_a_key_pasted_into_the_prompt_goes_no_further(start, tmp_path: Path):
    terminal = start("--demo")
    terminal.wait_until_ready()
    terminal.write(f"\x1b[200~{KEY}\n\x1b[201~")
    terminal.wait_for("it was not sent")
    terminal.write("\x1b")
    terminal.wait_until_ready()
    terminal.write("\x1b[200~use " + KEY + "\x1b[201~")
    terminal.write("\r")
    terminal.wait_for("not sent: there is an API key in it")
    terminal.write("\x03\x04")
    assert terminal.status() == 0
    assert KEY.encode() not in _files(tmp_path)


def test_walk_4_nothing_of_a_stopped_command_is_left(start):
    """Walk 4: also a child in a session of its own ends, and an empty Enter continues."""
    terminal = start("--demo")
    terminal.wait_until_ready()
    terminal.write("run `setsid sleep 601 & echo pid=$!= own=$$=; exec sleep 602`\r")
    child, command = terminal.wait_for_number("pid="), terminal.wait_for_number("own=")
    terminal.write("\x1b")
    terminal.wait_for("You stopped turn 1.")
    _until(terminal, lambda: not _runs(child) and not _runs(command))
    terminal.wait_for("empty enter goes on")
    terminal.write("\r")
    terminal.wait_for("The tools have answered.")


def test_a_prompt_that_was_stopped_before_the_answer_is_back_in_the_editor(start, tmp_path: Path):
    """The server takes the request and says nothing; Esc, Enter says it anew, and the tree has it once."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        provider = {"baseUrl": address, "apiKey": "x", "api": "openai-completions"}
        models = {"providers": {"mine": {**provider, "models": [{"id": "mute"}]}}}
        (tmp_path / "agent").mkdir()
        (tmp_path / "agent" / "models.json").write_text(json.dumps(models))
        terminal = start("--model", "mine/mute")
        terminal.wait_until_ready()
        terminal.write("say it\r")
        for _ in range(2):
            terminal.wait_for("esc stop turn")
            terminal.write("\x1b")
            terminal.wait_for("the prompt is back")
            terminal.wait_for("› say it")
            terminal.write("\r")
        terminal.wait_for("esc stop turn")
        terminal.write("\x14")
        terminal.wait_for("Session tree")
        assert sum("say it" in line for line in terminal.screen.display) == 1


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_walk_5_the_queue(start, tmp_path: Path):
    """Walk 5: three queued, ↑ edits the second, Del drops the third, Esc gives two back; none is sent."""
    terminal = start("--demo")
    terminal.wait_until_ready()
    terminal.write("run `sleep 300`\r")
    terminal.wait_for("⠋")
    for text in ("one", "two", "three"):
        terminal.write(f"{text}\t")
        terminal.wait_for(f"queue  {text}")
    terminal.write("\x1b[A\x1b[A\r")
    terminal.wait_for("› two")
    terminal.write(" changed\r")
    terminal.wait_for("queue  two changed")
    terminal.write("\x1b[A\x1b[3~")
    _until(terminal, lambda: not any("three" in line for line in terminal.screen.display))
    terminal.write("\x1b")
    terminal.wait_for("You stopped turn 1.")
    terminal.wait_for("› one")
    terminal.wait_for("two changed")
    said = [entry for entry in _entries(tmp_path / "agent" / "sessions") if entry["type"] == "message"]
    assert [entry["message"]["role"] for entry in said].count("user") == 1


def test_walk_6_three_branches_and_back(start, tmp_path: Path):
    """Walk 6: twice ctrl+t ↑ `b`, edit, Enter: three branches; `-` `-` returns, and the next request is that
    branch's.
    """
    terminal = start("--demo")
    terminal.wait_until_ready()
    terminal.write("run `echo first-$((1+1))`\r")
    terminal.wait_for("first-2")
    terminal.wait_for("1 tool")
    for number in (1, 2):
        terminal.write("\x14")
        terminal.wait_for("enter go")
        terminal.write("\x1b[Ab")
        terminal.wait_for("› run `echo")
        terminal.write(f"\x15run `echo other{number}-$((1+1))`\r")
        terminal.wait_for(f"other{number}-2")
        terminal.wait_for("1 tool")
    terminal.wait_for("Tree 3")
    terminal.write("\x14-")
    terminal.wait_for("other1-2")
    terminal.write("\x15\x14-")
    terminal.wait_for("first-2")
    terminal.write("\x03run `echo last`\r")
    terminal.wait_for("echo last")
    _until(terminal, lambda: "echo last" in (_branch_prompts(tmp_path) or [""])[-1])
    assert _branch_prompts(tmp_path) == ["run `echo first-$((1+1))`", "run `echo last`"]


def _branch_prompts(folder: Path) -> list[str]:
    """The prompts on the branch of the last prompt."""
    entries = {entry["id"]: entry for entry in _entries(folder / "agent" / "sessions") if "parentId" in entry}
    at = next(id_ for id_ in reversed(entries) if entries[id_].get("message", {}).get("role") == "user")
    texts: list[str] = []
    while at is not None:
        message = entries[at].get("message", {})
        if message.get("role") == "user":
            content = message["content"]
            texts.insert(0, content if isinstance(content, str) else content[0]["text"])
        at = entries[at]["parentId"]
    return texts


# ------------------------------------------------------------------ manners


def test_on_exit_the_last_answer_and_the_way_back_are_printed(start):
    terminal = start("--demo")
    terminal.wait_until_ready()
    terminal.write("what can you do\r")
    terminal.wait_for("I am the demo model")
    terminal.wait_for("tokens")
    terminal.write("\x04")
    assert terminal.status() == 0
    after = terminal.bytes.rpartition(RESET[0])[2].decode()
    assert "I am the **demo model**" in after
    assert re.search(r"^pi-tui --session \S+\r?$", after, re.MULTILINE)


def test_the_title_and_the_bell_only_while_the_user_is_away(start, tmp_path: Path):
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "settings.json").write_text('{"gate": {"mode": "ask"}}')
    terminal = start("--demo")
    terminal.wait_for("asked about first")
    assert b"\x1b]2;" not in terminal.bytes
    terminal.write("run `true`\r\x1b[O")
    terminal.wait_for("may bash run?")
    _until(terminal, lambda: b"asks\x1b\\\x07" in terminal.bytes)
    terminal.write("\x1b[I")
    _until(terminal, lambda: b"\x1b[23;2t" in terminal.bytes)


def test_what_is_typed_before_the_first_frame_is_not_lost(start):
    terminal = start("--demo")
    terminal.write("typed early")
    terminal.wait_for("› typed early")


@pytest.mark.key("app.editor.external")
def test_the_editor_has_the_terminal_and_gives_it_back(start, tmp_path: Path):
    """ctrl+g opens it; ctrl+c in there is the editor's, and the screen is whole afterwards."""
    editor = tmp_path / "editor"
    editor.write_text(
        "#!/bin/sh\ntrap 'echo caught' INT\ncat \"$1\"\necho editor-is-here\n"
        'read -r line || read -r line\necho "from outside: $line" > "$1"\n'
    )
    editor.chmod(0o755)
    terminal = start("--demo", EDITOR=str(editor), VISUAL="")
    terminal.wait_until_ready()
    terminal.write("draft\x07")
    terminal.wait_for("editor-is-here")
    assert any("draft" in line for line in terminal.screen.display)
    terminal.write("\x03")
    terminal.wait_for("caught")
    terminal.write("written\r")
    terminal.wait_for("› from outside: written")
    terminal.wait_for("3  /tour")
    terminal.write("\r")
    terminal.wait_for("▌ from outside: written")


def test_an_editor_that_fails_changes_nothing(start):
    terminal = start("--demo", EDITOR="false", VISUAL="")
    terminal.wait_until_ready()
    terminal.write("draft\x07")
    terminal.wait_for("false ended with status 1")
    terminal.wait_for("› draft")
    terminal.write("\x03\x04")
    assert terminal.status() == 0


def test_the_caret_of_the_terminal_is_where_the_user_writes(start):
    """TI-02: in each settled frame, with wide letters, while text streams above, and in a dialog."""
    terminal = start("--demo")
    terminal.wait_until_ready()
    terminal.write("run `for i in 1 2 3; do echo $i; sleep 0.2; done`\r")

    def caret() -> tuple[int, str]:
        """Where it is, and how its line begins: a frame that has come in part is passed over."""
        cursor = terminal.screen.cursor
        return cursor.x, terminal.screen.display[cursor.y][:3]

    for typed, cells in (("한글", 4), ("한글a", 5), ("한글aé", 6)):
        terminal.write(typed[-1] if cells > 4 else typed)
        terminal.wait_for(f"› {typed[0]}")
        _until(terminal, lambda cells=cells: caret() == (2 + cells, "› 한"))
    terminal.wait_for("1 tool")
    _until(terminal, lambda: caret() == (8, "› 한"))
    terminal.write("\x03/login openai\r")
    terminal.wait_for("API key of OpenAI")
    terminal.write("abc")
    _until(terminal, lambda: any("•••" in line for line in terminal.screen.display))
    _until(terminal, lambda: "•••" in terminal.screen.display[terminal.screen.cursor.y])


def test_files_of_the_folder_are_completed(start, tmp_path: Path):
    (tmp_path / "an_unlikely_name.txt").write_text("x")
    terminal = start("--demo")
    terminal.wait_until_ready()
    terminal.write("see @unlik")
    terminal.wait_for("@an_unlikely_name.txt")
    terminal.write("\t")
    terminal.wait_for("› see @an_unlikely_name.txt")
