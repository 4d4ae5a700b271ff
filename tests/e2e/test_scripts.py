"""What scripts do to a program: odd flags, closed streams, floods, no terminal. Nothing may hang."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tui"))  # tests are no package; the terminal is shared
from test_terminal import Terminal


def _one_line(done) -> str:
    """The reason on standard error, where nothing was sent and nothing answered."""
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("pi-trio")
    assert done.stderr.count("\n") == 1
    line: str = done.stderr
    return line


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["--list-models"], "unrecognized arguments: --list-models"),
        (["-p", "hi", "-Z"], "unrecognized arguments: -Z"),
        (["--mode", "xml", "hi"], "invalid choice: 'xml'"),
        (["--max-cost", "much", "hi"], "'much' is not a number above 0"),
        (["--max-steps", "0", "hi"], "'0' is not a whole number above 0"),
        (["--timeout", "-1", "hi"], "'-1' is not a number above 0"),
        (["-c", "--session", "x", "hi"], "not allowed with argument"),
        (["--tools", "reed", "hi"], "there is no tool 'reed'"),
        (["--mode", "rpc", "--timeout", "3"], "RPC mode takes no --output-schema and no --timeout"),
        (["sesions"], "there is no command 'sesions'; did you mean sessions?"),
        (["--session-id", "../up", "hi"], "cannot be the id of a session"),
        (["--log", "/nowhere/log", "hi"], "the log /nowhere/log cannot be opened"),
        (["--output-schema", "/nowhere", "hi"], "/nowhere cannot be read: No such file"),
        (["@missing", "hi"], "missing cannot be read: No such file"),
    ],
)
def test_a_bad_flag_is_one_clear_line(program, stub, arguments: list[str], told: str) -> None:
    """HL-02: nothing was sent, nothing is left behind."""
    assert told in _one_line(program.run(*arguments))
    assert (stub.requests, program.sessions()) == ([], [])


@pytest.mark.parametrize("name", ["settings.json", "models.json"])
def test_json_that_is_none_is_named(program, stub, name: str) -> None:
    """CF-01"""
    (program.agent_dir / name).write_text('{\n  "a": ,\n}')
    done = program.run("--model", "stub/m", "-p", "hi")
    assert f"{program.agent_dir / name}:3:1: not valid JSON" in _one_line(done)


def test_a_log_that_nobody_reads_is_not_waited_for(program, stub) -> None:
    os.mkfifo(program.project / "log")
    assert "log cannot be opened: No such device" in _one_line(program.run("--log", "log", "hi"))
    assert stub.requests == []


def test_no_prompt_at_all_is_a_mistake(program) -> None:
    assert "there is no prompt" in _one_line(program.run(piped=b"\n"))


def test_without_a_terminal_it_answers_and_ends(program, stub) -> None:
    """HL-01: no flag is needed."""
    stub.says("Hello.")
    assert program.run("hi").stdout == "Hello.\n"


@pytest.mark.parametrize(("closed", "told"), [("<&-", "Hello.\n"), ("2>&-", "Hello.\n"), (">&-", "")])
def test_closed_streams_do_no_harm(program, stub, closed: str, told: str) -> None:
    """HL-01"""
    stub.says("Hello.")
    done = program.run("-p", "hi", through=("sh", "-c", f'exec "$@" {closed}', "sh"))
    assert done.stdout == told
    assert done.returncode == (0 if told else 1)
    assert done.stderr == ("" if told else "pi-trio: standard output is closed\n")


@pytest.mark.parametrize(
    "command",
    ["--help", "--version", "sessions --help", "sessions list --help", "batch --version", "doctor"],
)
@pytest.mark.parametrize(
    ("where", "problem"),
    [(">/dev/full", "cannot be written: No space left on device"), (">&-", "is closed")],
)
def test_what_could_not_be_said_is_told(program, command: str, where: str, problem: str) -> None:
    """HL-02: help, too."""
    done = program.run(*command.split(), through=("sh", "-c", f'exec "$@" {where}', "sh"))
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"pi-trio[a-z ]*: standard output {problem}\n", done.stderr)


@pytest.mark.parametrize("command", ["--help", "models --version", "doctor"])
def test_a_reader_that_left_before_is_a_quiet_end(program, command: str) -> None:
    read, write = os.pipe()
    os.close(read)
    done = program.run(*command.split(), stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_prompt_and_its_file_are_utf_8_in_every_locale(program, stub) -> None:
    stub.says("Grüße.")
    (program.project / "ä.txt").write_text("ö", "utf-8")
    program.environ |= {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}
    del program.environ["LANG"]
    assert program.run("-p", "@ä.txt", "ü").stdout == "Grüße.\n"
    text = str(stub.requests[0]["messages"][-1]["content"])
    assert all(letter in text for letter in "äöü")


@pytest.mark.parametrize("mode", [["--mode", "rpc"], ["chat"]])
def test_closed_standard_input_is_at_its_end(program, mode: list[str]) -> None:
    """HL-01: nothing is asked, and no file of ours takes its place."""
    done = program.run(*mode, through=("sh", "-c", 'exec "$@" <&-', "sh"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_flood_on_standard_input_is_taken_whole(program, stub) -> None:
    """HL-01: 10 MB, with rare letters in them."""
    stub.says("Long.")
    flood = "0123456789 äö\u2028\n" * 500_000
    done = program.run("-p", "sum it up", piped=flood.encode())
    assert (done.returncode, done.stdout) == (0, "Long.\n")
    content = stub.requests[0]["messages"][-1]["content"]
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    assert text == f"{flood}sum it up"


def test_bytes_that_are_no_text_are_shown_as_such(program, stub) -> None:
    stub.says("Odd.")
    assert program.run("-p", "what?", piped=b"\xff\xfe ok \x00\n").stdout == "Odd.\n"
    assert "ok" in str(stub.requests[0]["messages"][-1]["content"])


def test_a_missing_key_is_told_to_a_client_and_its_text_is_not_taken(program) -> None:
    """HL-01: the prompt is refused before anything is kept, and the client still has it."""
    command = b'{"id": "1", "type": "prompt", "message": "hi"}\n'
    done = program.run("--mode", "rpc", "--model", "anthropic/claude-sonnet-4-5", piped=command)
    responses = [line for line in map(json.loads, done.stdout.splitlines()) if line["type"] == "response"]
    assert [(each["id"], each["success"]) for each in responses] == [("1", False)]
    assert "There is no API key for anthropic" in responses[0]["error"]
    assert program.sessions() == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--print", "hello", "--session", "nowhere"],
        ["--mode", "rpc", "--session", "nowhere"],
        ["attach", "http://localhost"],
        ["auth", "login", "nobody"],
        ["batch", "nowhere.jsonl"],
        ["chat", "--session", "nowhere"],
        ["import-pi", "nowhere"],
        ["models", "refresh", "--nonsense"],
        ["serve", "--host", "0.0.0.0"],
        ["sessions", "show", "nowhere"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_command_ends_the_same_way_over_a_mistake(program, arguments: list[str]) -> None:
    """HL-02: one in what was asked for, one in the command line, and one in the configuration."""
    _one_line(program.run(*arguments))
    _one_line(program.run(arguments[0], "--no-such-option"))


@pytest.mark.parametrize(
    "arguments",
    [["auth", "list"], ["chat"], ["import-pi"], ["--print", "hello"], ["serve"], ["sessions", "list"]],
    ids=lambda arguments: arguments[0],
)
def test_every_command_ends_the_same_way_over_settings_that_cannot_be_read(
    program, arguments: list[str]
) -> None:
    (program.agent_dir / "settings.json").write_text("{nonsense")
    assert "settings.json" in _one_line(program.run(*arguments))


@pytest.mark.parametrize("attached", [[], ["--attach", "http://localhost"], ["--attach", "ws://127.0.0.1:9"]])
def test_the_screen_ends_over_a_mistake_as_all_do(program, attached: list[str]) -> None:
    terminal = Terminal(*attached, "--session", "nowhere", cwd=program.project, **program.environ)
    try:
        assert terminal.status() == 2
        assert b"pi-tui: " in terminal.bytes
    finally:
        terminal.close()
