"""Print and JSON mode as a person or a script uses them: the real program against a real server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from blocking_tool import EXTENSION


def _events(text: str) -> list[dict[str, Any]]:
    assert text.endswith("\n")
    return [json.loads(line) for line in text[:-1].split("\n")]


def _messages(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The conversation of a session file, without the system prompt."""
    messages = [entry["message"] for entry in entries if entry["type"] == "message"]
    return [message for message in messages if message["role"] != "system"]


def _last_user_text(request: dict[str, Any]) -> str:
    content = [message for message in request["messages"] if message["role"] == "user"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


# ------------------------------------------------------------------ answers


def test_the_answer_and_nothing_else_is_on_standard_output(program, stub) -> None:
    """HL-03"""
    stub.says("Hello", " there.")
    done = program.run("-p", "hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello there.\n", "")
    (entries,) = program.sessions()
    assert [message["role"] for message in _messages(entries)] == ["user", "assistant"]
    assert _last_user_text(stub.requests[0]) == "hi"


def test_without_a_session_no_file_is_made(program, stub) -> None:
    stub.says("Hello.")
    assert program.run("--no-session", "-p", "hi").returncode == 0
    assert program.sessions() == []


def test_the_demo_model_needs_no_configuration(program) -> None:
    for name in ("models.json", "settings.json"):
        (program.agent_dir / name).unlink()
    done = program.run("--demo", "-p", "hello")
    assert done.returncode == 0
    assert done.stdout.strip()


def test_tools_run_and_their_results_go_back(program, stub) -> None:
    stub.calls(("bash", {"command": "echo one"}), ("bash", {"command": "echo two"}))
    stub.says("Both ran.")
    done = program.run("-p", "run them")
    assert (done.returncode, done.stdout) == (0, "Both ran.\n")
    results = [message["content"] for message in stub.requests[1]["messages"] if message["role"] == "tool"]
    assert ["one" in str(results[0]), "two" in str(results[1])] == [True, True]


def test_every_message_is_a_prompt_of_its_own(program, stub) -> None:
    stub.says("First.")
    stub.says("Second.")
    done = program.run("-p", "a", "b")
    assert done.stdout == "Second.\n"
    assert [_last_user_text(request) for request in stub.requests] == ["a", "b"]


def test_piped_text_and_files_go_before_the_message(program, stub) -> None:
    (program.project / "notes.txt").write_text("in the file\n")
    stub.says("Ok.")
    program.run("@notes.txt", "the message", piped=b"piped text\n")
    sent = _last_user_text(stub.requests[0])
    path = program.project / "notes.txt"
    assert sent == f'piped text\n<file name="{path}">\nin the file\n\n</file>\nthe message'


# ------------------------------------------------------------------ JSON


def test_json_mode_is_the_header_and_then_events(program, stub) -> None:
    """HL-05, HL-09: rare line separators are data, and the id leads back to the session."""
    stub.says("one\u2028two", "\u0085three")
    done = program.run("--mode", "json", "-p", "hi")
    assert (done.returncode, done.stderr) == (0, "")
    header, *events = _events(done.stdout)
    assert header == program.sessions()[0][0]
    types = [event["type"] for event in events]
    assert types[:3] == ["entry_appended", "inbox_inserted", "agent_start"]
    assert types[-1] == "agent_settled"
    deltas = [
        event["assistantMessageEvent"]["delta"]
        for event in events
        if event["type"] == "message_update" and event["assistantMessageEvent"]["type"] == "text_delta"
    ]
    assert "".join(deltas) == "one\u2028two\u0085three"


@pytest.mark.parametrize("by", ["id", "latest"])
def test_a_session_goes_on_in_a_second_process(program, stub, by: str) -> None:
    """HL-09"""
    stub.says("First.")
    header = _events(program.run("--mode", "json", "a").stdout)[0]
    stub.says("Second.")
    choice = ["--session", header["id"]] if by == "id" else ["-c"]
    assert program.run(*choice, "-p", "b").stdout == "Second.\n"
    (entries,) = program.sessions()
    assert [message["role"] for message in _messages(entries)] == ["user", "assistant"] * 2


def test_a_slow_reader_gets_everything(program, stub) -> None:
    """HL-07: nothing is read until the whole answer has been sent."""
    text = "0123456789" * 500_000
    stub.says(*(text[start : start + 50_000] for start in range(0, len(text), 50_000)))
    with program.start("--mode", "json", "-p", "long") as process:
        assert stub.served.acquire(timeout=30)
        out, _ = process.communicate(timeout=30)
    events = _events(out.decode())
    assert events[-1]["type"] == "agent_settled"
    ends = [event["message"] for event in events if event["type"] == "message_end"]
    assert ends[-1]["content"][0]["text"] == text


def test_a_session_of_an_id_of_ones_own(program, stub) -> None:
    """HL-09"""
    stub.says("First.")
    stub.says("Second.")
    for prompt, said in (("a", "First.\n"), ("b", "Second.\n")):
        assert program.run("--session-id", "job-1", "-n", "the job", "-p", prompt).stdout == said
    (entries,) = program.sessions()
    assert entries[0]["id"] == "job-1"
    assert [message["role"] for message in _messages(entries)] == ["user", "assistant"] * 2
    stub.says("Third.")
    assert program.run("--fork", "job-1", "-p", "c").stdout == "Third.\n"
    assert [len(_messages(each)) for each in program.sessions()] == [4, 6]
    listed = program.run("sessions", "list").stdout
    assert listed.count("the job") == 2


# ------------------------------------------------------------------ limits


def test_steps_are_limited(program, stub) -> None:
    """HL-02: the status says so, and the session can go on."""
    for _ in range(3):
        stub.calls(("bash", {"command": "echo on"}))
    done = program.run("--max-steps", "2", "-p", "go on for ever")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "pi-trio: Stopped: the turn has taken 2 steps, which is the limit (maxSteps).\n"
    assert len(stub.requests) == 2
    stub.forget()
    stub.says("Done.")
    assert program.run("-c", "-p", "and now?").stdout == "Done.\n"


def test_cost_is_limited(program, stub) -> None:
    """HL-02"""
    models = json.loads((program.agent_dir / "models.json").read_text())
    done = program.run("--max-cost", "1", "-p", "hi")
    assert (done.returncode, done.stdout, stub.requests) == (2, "", [])
    assert "The price of stub/m is unknown" in done.stderr
    models["providers"]["stub"]["models"][0]["cost"] = {"input": 100_000, "output": 0}
    program.write("models.json", models)
    stub.calls(("bash", {"command": "echo on"}))
    done = program.run("--mode", "json", "--max-cost", "0.5", "-p", "hi", "there")
    assert done.returncode == 3
    assert len(stub.requests) == 1
    last = _events(done.stdout)[-1]
    assert last["type"] == "error"
    assert last["message"].startswith("Stopped: the limit of $0.5 (maxCost) is reached. $0.7000 was spent")


def test_time_is_limited(program, stub) -> None:
    """HL-01, HL-02"""
    stub.stays_silent()
    done = program.run("--timeout", "0.3", "-p", "hi")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "pi-trio: stopped after 0.3 seconds, which is the limit\n"


# ------------------------------------------------------------------ an answer of a form


def test_an_answer_of_a_form(program, stub) -> None:
    """HL-03: standard output holds the JSON and nothing else; the model is told the path of a fault."""
    schema = {"type": "object", "properties": {"files": {"type": "array", "items": {"type": "string"}}}}
    (program.project / "schema.json").write_text(json.dumps(schema))
    stub.calls(("bash", {"command": "ls"}))
    stub.says('Here you are:\n```json\n{"files": [1]}\n```')
    stub.says('{"files": ["schema.json"]}')
    done = program.run("--output-schema", "schema.json", "which files are here?")
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"files":["schema.json"]}\n', "")
    assert "$.files[0]: 1 is not of type 'string'" in _last_user_text(stub.requests[-1])


def test_a_broken_form_is_refused_before_anything_is_sent(program, stub) -> None:
    (program.project / "schema.json").write_text('{"type": "objekt"}')
    done = program.run("--output-schema", "schema.json", "-p", "hi")
    assert (done.returncode, done.stdout, stub.requests) == (2, "", [])
    assert done.stderr.startswith(f"pi-trio: {program.project}/schema.json is not a JSON Schema")
    assert "$.type: 'objekt'" in done.stderr
    assert program.sessions() == []


# ------------------------------------------------------------------ failures


def test_a_failed_request_is_a_failure(program, stub) -> None:
    """HL-02"""
    stub.refuses(401, "that key is not known")
    done = program.run("-p", "hi")
    assert (done.returncode, done.stdout) == (1, "")
    assert "that key is not known" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_key_is_a_sentence_that_says_what_to_do(program) -> None:
    done = program.run("-p", "hi", "--model", "anthropic/claude-sonnet-4-5")
    assert done.stderr.startswith("pi-trio: There is no API key for anthropic: set ANTHROPIC_API_KEY, ")
    assert "`pi-trio auth login anthropic`" in done.stderr
    assert (done.returncode, done.stdout) == (2, "")
    assert program.sessions() == []


def test_a_failed_request_is_the_reason_in_json_mode(program, stub) -> None:
    """HL-02"""
    stub.refuses(401, "that key is not known")
    done = program.run("--mode", "json", "hi")
    assert done.returncode == 1
    ends = [event for event in _events(done.stdout) if event["type"] == "agent_end"]
    assert "that key is not known" in ends[-1]["messages"][-1]["errorMessage"]


def test_a_cut_answer_is_printed_and_is_a_failure(program, stub) -> None:
    stub.says("Only half", finish="length")
    done = program.run("-p", "hi")
    assert (done.returncode, done.stdout) == (1, "Only half\n")
    assert "cut off" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--session", "nowhere", "-p", "hi"),
        ("--model", "no-such-provider/m", "-p", "hi"),
        ("--model", "openai/gpt-4.1", "-p", "hi"),  # no key for it
        ("-e", "/nowhere.py", "-p", "hi"),
        ("@missing.txt", "hi"),
        ("-p",),
    ],
)
def test_a_mistake_is_one_clear_line(program, arguments: tuple[str, ...]) -> None:
    """HL-01, HL-02"""
    done = program.run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pi-trio: ")
    assert done.stderr.count("\n") == 1
    assert program.sessions() == []


def test_a_damaged_line_is_told_with_its_file(program, stub) -> None:
    stub.says("One.")
    program.run("-p", "hi")
    (path,) = (program.agent_dir / "sessions").rglob("*.jsonl")
    with path.open("a") as file:
        file.write("{ no json\n")
    stub.says("Two.")
    done = program.run("-c", "-p", "again")
    assert done.stdout == "Two.\n"
    assert f"{path}: line " in done.stderr
    assert "is damaged and was left out" in done.stderr


def test_an_unknown_session_is_the_last_event_in_json_mode(program) -> None:
    """HL-02"""
    done = program.run("--mode", "json", "--session", "nowhere", "hi")
    assert done.returncode == 2
    assert _events(done.stdout)[-1]["type"] == "error"


def test_a_misspelt_setting_is_told_and_the_json_stays_clean(program, stub) -> None:
    """CF-02, HL-03"""
    settings = {"defaultProvider": "stub", "defaultModel": "m", "maxRetrys": 1}
    program.write("settings.json", settings)
    stub.says("Ok.")
    done = program.run("--mode", "json", "hi")
    assert done.returncode == 0
    assert "maxRetrys" in done.stderr
    assert _events(done.stdout)[0]["type"] == "session"


@pytest.mark.parametrize("oddity", ["no HOME", "HOME is read-only", "LANG=C", "tilde"])
def test_odd_surroundings_do_not_stop_it(program, stub, oddity: str) -> None:
    """CF-03"""
    match oddity:
        case "no HOME":
            del program.environ["HOME"]
        case "HOME is read-only":
            program.environ["HOME"] = "/proc"
        case "LANG=C":
            program.environ["LANG"] = "C"
        case _:
            program.environ["PI_TRIO_DIR"] = "~/agent"
    stub.says("Fine – really.")
    done = program.run("-p", "hi – there")
    assert (done.returncode, done.stdout) == (0, "Fine – really.\n")
    assert _last_user_text(stub.requests[0]) == "hi – there"


def test_a_deleted_working_directory_is_one_clear_line(program) -> None:
    """CF-03"""
    gone = program.project / "gone"
    gone.mkdir()
    done = program.run("-p", "hi", through=("sh", "-c", f'cd {gone} && rmdir {gone} && exec "$@"', "sh"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pi-trio: the working directory cannot be used")


# ------------------------------------------------------------------ pipes and signals


def test_a_silent_pipe_does_not_hang_a_prompt(program, stub) -> None:
    """HL-01: `sleep 100 | pi-trio -p hi`"""
    stub.says("Hello.")
    read, write = os.pipe()
    done = program.run("-p", "hi", stdin=read)
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert "standard input was silent" in done.stderr
    os.close(read)
    os.close(write)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--demo", "-p", "hi"),
        ("--demo", "--mode", "json", "hi"),
        ("--demo", "--mode", "rpc"),
        ("chat", "--demo"),
        ("models", "list", "--all"),
        ("doctor",),
    ],
)
def test_a_full_disk_is_one_clear_line(program, arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = program.start(*arguments, stdin=subprocess.PIPE, stdout=full)
        _, err = done.communicate(b'{"type": "get_state"}\n', timeout=30)
    assert err.decode() == "pi-trio: standard output cannot be written: No space left on device\n"
    assert done.returncode == 1


def test_a_reader_that_leaves_is_a_quiet_end(program, stub) -> None:
    """HL-04"""
    stub.calls(("bash", {"command": "sleep 0.2"}))
    stub.says("x" * 1_000_000)
    with program.start("--mode", "json", "-p", "long") as process:
        assert process.stdout is not None
        while b"tool_execution_start" not in process.stdout.readline():
            pass
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (141, b"")
    assert _messages(program.sessions()[0])[0]["role"] == "user"


@contextmanager
def _running_command(program, stub, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """The program, while a command of it runs, and the ids of the command's processes."""
    fifo = tmp_path / "running"
    os.mkfifo(fifo)
    stub.calls(("bash", {"command": f"sleep 4747 & echo $$ $! > {fifo}; sleep 4747"}))
    with program.start("--mode", "json", "-p", "wait") as process:
        ids = [int(word) for word in fifo.read_text().split()]
        yield process, ids


def _is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process_id}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_the_run_and_its_commands(program, stub, tmp_path, number: int, status: int) -> None:
    """HL-08: nothing is left running, and the session can go on."""
    with _running_command(program, stub, tmp_path) as (process, ids):
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (status, b"pi-trio: stopped\n")
    assert not any(_is_running(each) for each in ids)
    assert _events(out.decode())[-1] == {"type": "agent_settled", "aborted": True}
    (entries,) = program.sessions()
    assert [message["role"] for message in _messages(entries)] == ["user", "assistant", "toolResult"]
    stub.says("Going on.")
    assert program.run("-c", "-p", "and now?").stdout == "Going on.\n"


def test_signals_that_come_together_are_one(program, stub, tmp_path) -> None:
    """HL-08: the first decides the status, and the others do not break into the cleaning up."""
    with _running_command(program, stub, tmp_path) as (process, ids):
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"pi-trio: stopped\n")
    assert not any(_is_running(each) for each in ids)
    (entries,) = program.sessions()
    assert [message["role"] for message in _messages(entries)] == ["user", "assistant", "toolResult"]


def test_a_signal_ends_it_though_a_tool_blocks_in_a_thread(program, stub, tmp_path) -> None:
    """AB-03: nothing can stop such a tool, so it is left behind, with a result that says so."""
    (tmp_path / "blocking.py").write_text(EXTENSION)
    stub.calls(("bash", {"command": "sleep 300"}))
    with program.start("--mode", "json", "-e", str(tmp_path / "blocking.py"), "go") as process:
        lines = []
        for line in process.stdout:
            lines.append(line.decode())
            if b'"tool_execution_update"' in line and b"blocked from now on" in line:
                process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
    assert _events("".join(lines))[-1] == {"type": "agent_settled", "aborted": True}
    assert "left behind" in "".join(lines)


# ------------------------------------------------------------------ what tools may do


def _results(program: Any) -> list[str]:
    (entries,) = program.sessions()
    return [
        message["content"][0]["text"] for message in _messages(entries) if message["role"] == "toolResult"
    ]


def test_read_only_looks_and_changes_nothing(program, stub) -> None:
    (program.project / "a.txt").write_text("needle\n")
    stub.calls(
        ("grep", {"pattern": "needle"}),
        ("find", {"pattern": "*.txt"}),
        ("ls", {}),
        ("bash", {"command": "touch made"}),
        ("write", {"path": "made", "content": ""}),
    )
    stub.says("Done.")
    assert program.run("--read-only", "-p", "look").returncode == 0
    declared = [tool["function"]["name"] for tool in stub.requests[0]["tools"]]
    assert declared == ["read", "grep", "find", "ls"]
    assert _results(program)[:3] == ["a.txt:1: needle", "a.txt", "a.txt"]
    assert not (program.project / "made").exists()


def test_a_planted_secret_does_not_reach_a_request(program, stub) -> None:
    """SE-12: a text in a file talks the model into it, by every tool that it has."""
    secret = "planted-secret-value"
    (program.project / ".env").write_text(f"KEY={secret}\n")
    (program.project / "notes").symlink_to(".env")
    program.write(
        "settings.json",
        {"defaultProvider": "stub", "defaultModel": "m", "defaultTools": ["+grep", "+find", "+ls"]},
    )
    stub.calls(
        ("read", {"path": ".env"}),
        ("read", {"path": "notes"}),
        ("grep", {"pattern": "KEY"}),
        ("grep", {"pattern": "KEY", "path": ".env"}),
        ("bash", {"command": "cat .env"}),
        ("bash", {"command": "python3 -c 'print(1)' < notes; grep -n KEY ./.env"}),
    )
    stub.says("Done.")
    assert program.run("-p", "read the notes").returncode == 0
    assert len(stub.requests) == 2
    assert secret not in json.dumps(stub.requests)
    refused = [
        text for text in _results(program) if text.startswith("Not run, because a person must be asked")
    ]
    assert len(refused) == 5


def test_an_extension_that_fails_is_named_and_the_answer_comes(program, stub) -> None:
    extension = program.agent_dir / "extensions" / "bad.py"
    extension.parent.mkdir()
    extension.write_text("def extend(api):\n    @api.on('context')\n    def bad(messages):\n        1 / 0\n")
    stub.says("Hello.")
    done = program.run("-p", "hi")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert "bad.py:4" in done.stderr
    assert "ZeroDivisionError" in done.stderr
