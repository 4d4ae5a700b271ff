"""RPC mode as a program drives it: the real thing at the other end of two pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rpc_process import RpcProcess

from pi_trio.remote.rpc.commands import COMMANDS

Start = Callable[..., RpcProcess]

SLEEP = "sleep 4747.25"


@pytest.fixture
def start(program) -> Iterator[Start]:
    """Starts the program in RPC mode with these options."""
    started: list[RpcProcess] = []

    def start(*options: str, **keywords: Any) -> RpcProcess:
        process = program.start("--mode", "rpc", *options, **{"stdin": subprocess.PIPE, **keywords})
        started.append(RpcProcess(process))
        return started[-1]

    yield start
    for each in started:
        with each.process as process:
            process.kill()


@pytest.fixture
def rpc(start: Start) -> RpcProcess:
    return start()


def _messages(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    messages = [entry["message"] for entry in entries if entry["type"] == "message"]
    return [message for message in messages if message["role"] != "system"]


def _running_commands() -> list[str]:
    lines = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(place.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip())
        except OSError:
            continue
    return [line for line in lines if line == SLEEP]


def _sleep(rpc: RpcProcess, stub) -> None:
    """Begin a run that is in the middle of a tool call."""
    stub.calls(("bash", {"command": SLEEP}))
    assert rpc.data("prompt", message="sleep") == {"disposition": "started"}
    rpc.event("tool_execution_start")


# ------------------------------------------------------------------ conversation


def test_a_prompt_is_answered_by_events(rpc: RpcProcess, stub) -> None:
    stub.says("Hello", " there.")
    rpc.say("hi")
    kinds = [said["type"] for said in rpc.seen if said["type"] not in ("entry_appended", "response")]
    assert kinds[0] == "agent_start"
    assert kinds[-2:] == ["agent_end", "agent_settled"]
    updates = [said["assistantMessageEvent"] for said in rpc.seen if said["type"] == "message_update"]
    assert "".join(each.get("delta", "") for each in updates) == "Hello there."
    assert rpc.data("get_last_assistant_text") == {"text": "Hello there."}


def test_only_events_of_pi_are_told(rpc: RpcProcess, stub) -> None:
    stub.says("Hello.")
    rpc.say("hi")
    own = {"inbox_inserted", "inbox_claimed", "inbox_discarded", "input_returned", "approval_requested"}
    assert own.isdisjoint(said["type"] for said in rpc.seen)


def test_a_prompt_while_streaming_says_how_it_is_meant(rpc: RpcProcess, program, stub) -> None:
    stub.calls(("bash", {"command": "echo done; while [ ! -e go ]; do sleep 0.01; done"}))
    stub.says("Both seen.")
    stub.says("And the last.")
    rpc.data("prompt", message="begin")
    rpc.event("tool_execution_start")
    assert "streamingBehavior" in rpc.error("prompt", message="more")
    assert rpc.data("prompt", message="one", streamingBehavior="steer") == {"disposition": "queued"}
    assert rpc.data("follow_up", message="two") == {"disposition": "queued"}
    state = rpc.data("get_state")
    assert (state["isStreaming"], state["pendingMessageCount"]) == (True, 2)
    (program.project / "go").touch()
    rpc.event("agent_settled")
    assert [message["role"] for message in stub.requests[1]["messages"]][-1] == "user"
    assert "two" in str(stub.requests[2]["messages"][-1])


def test_of_two_prompts_at_once_the_first_is_taken(rpc: RpcProcess, stub) -> None:
    """HL-06"""
    stub.calls(("bash", {"command": SLEEP}))
    ids = [rpc.send("prompt", message=text) for text in ("one", "two")]
    assert [rpc.response(each)["success"] for each in ids] == [True, False]
    rpc.data("abort")


def test_what_waits_is_handed_back(rpc: RpcProcess, stub) -> None:
    _sleep(rpc, stub)
    rpc.data("steer", message="left")
    rpc.data("follow_up", message="right")
    assert rpc.data("clear_queue") == {"steering": ["left"], "followUp": ["right"]}
    rpc.data("abort")


def test_abort_is_answered_when_the_agent_is_idle(rpc: RpcProcess, stub) -> None:
    _sleep(rpc, stub)
    assert rpc.data("abort") is None
    settled = [said for said in rpc.seen if said["type"] == "agent_settled"]
    assert [said["aborted"] for said in settled] == [True]
    assert not rpc.data("get_state")["isStreaming"]
    assert _running_commands() == []


def test_images_go_to_the_model(start: Start, program, stub) -> None:
    models = json.loads((program.agent_dir / "models.json").read_text())
    models["providers"]["stub"]["models"][0]["input"] = ["text", "image"]
    program.write("models.json", models)
    stub.says("A picture.")
    rpc = start()
    image = {"type": "image", "data": "R0lGODlhAQABAAAAADs=", "mimeType": "image/gif"}
    rpc.data("prompt", message="what is it?", images=[image])
    rpc.event("agent_settled")
    assert "data:image/gif;base64,R0lGODlhAQABAAAAADs=" in str(stub.requests[0]["messages"][-1])


# ------------------------------------------------------------------ the protocol


def test_every_command_is_answered_with_its_id(rpc: RpcProcess, stub) -> None:
    """Also those that fail, since all but their type and id is missing."""
    ids = {rpc.send(name): name for name in COMMANDS}
    left = dict(ids)
    while left:
        response = rpc.until(lambda said: said["type"] == "response")
        assert response["command"] == left.pop(response["id"])


def test_commands_are_answered_in_their_order(rpc: RpcProcess) -> None:
    ids = [rpc.send(name) for name in ("get_state", "get_tree", "get_state", "get_messages") * 5]
    assert [rpc.until(lambda said: "id" in said)["id"] for _ in ids] == ids


@pytest.mark.parametrize(
    ("line", "command", "request_id"),
    [
        (b"nonsense", "parse", None),
        (b"[]", "parse", None),
        (b"5", "parse", None),
        (b'{"type":"prompt","message":"\xff"}', "parse", None),
        (b"[" * 100_000, "parse", None),
        (b'{"type":5,"id":"a"}', "unknown", "a"),
        (b"{}", "unknown", None),
        (b'{"type":"fly","id":7}', "fly", 7),
        (b'{"type":"prompt","id":"b"}', "prompt", "b"),
        (b'{"type":"prompt","message":5,"id":"c"}', "prompt", "c"),
        (b'{"type":"prompt","message":" ","id":"d"}', "prompt", "d"),
        (b'{"type":"prompt","message":"x","images":[5],"id":"e"}', "prompt", "e"),
        (b'{"type":"set_steering_mode","mode":["all"],"id":"f"}', "set_steering_mode", "f"),
        (b'{"type":"set_auto_retry","enabled":1,"id":"g"}', "set_auto_retry", "g"),
        (b'{"type":"fork","entryId":"nowhere","id":{"odd":1}}', "fork", {"odd": 1}),
        (b'{"type":"switch_session","sessionPath":"/nowhere","id":"h"}', "switch_session", "h"),
        (b'{"type":"switch_session","sessionPath":"/a\\u0000b","id":"o"}', "switch_session", "o"),
        (b'{"type":"switch_session","sessionPath":"~nobody-there/b","id":"p"}', "switch_session", "p"),
        (b'{"type":"export_html","outputPath":"a\\u0000b","id":"q"}', "export_html", "q"),
        (b'{"type":"export_html","outputPath":"\\ud800","id":"r"}', "export_html", "r"),
        (b'{"type":"export_html","outputPath":"/","id":"s"}', "export_html", "s"),
        (b'{"type":"set_model","provider":"a","modelId":"b","id":"i"}', "set_model", "i"),
        (b'{"type":"set_thinking_level","level":"deep","id":"j"}', "set_thinking_level", "j"),
        (b'{"type":"set_session_name","name":" ","id":"k"}', "set_session_name", "k"),
        (b'{"type":"get_entries","since":"nowhere","id":"l"}', "get_entries", "l"),
        (b'{"type":"clone","id":"m"}', "clone", "m"),
        (b'{"type":"compact","id":"n"}', "compact", "n"),
    ],
)
def test_a_line_that_cannot_be_done_gets_an_error(rpc: RpcProcess, line, command, request_id) -> None:
    """HL-06"""
    rpc.write(line)
    response = rpc.until(lambda said: said["type"] == "response")
    assert (response["command"], response.get("id"), response["success"]) == (command, request_id, False)
    assert response["error"]
    assert rpc.ask("get_state")["success"]


def test_blank_lines_carriage_returns_and_doubled_ids_are_no_trouble(rpc: RpcProcess) -> None:
    """HL-06"""
    for line in (b"", b"  ", b"\r"):
        rpc.write(line)
    for _ in range(2):
        rpc.write(b' {"type":"get_state","id":"same"} \r')
    assert [rpc.read()["id"] for _ in range(2)] == ["same", "same"]


def test_nulls_are_as_if_left_out(rpc: RpcProcess, stub) -> None:
    stub.says("Hello.")
    rpc.data("prompt", message="hi", images=None, streamingBehavior=None)
    rpc.event("agent_settled")


def test_rare_letters_and_long_lines_go_both_ways(rpc: RpcProcess, stub) -> None:
    """HL-05"""
    odd = "a\u2028b\u2029c\u0085d\x0be\x1cf\U0001f40d"
    stub.says(odd)
    rpc.say(odd + "x" * 3_000_000)
    assert rpc.data("get_last_assistant_text") == {"text": odd}
    assert odd in str(stub.requests[0]["messages"][-1]["content"])


def test_a_line_may_come_byte_by_byte(rpc: RpcProcess) -> None:
    """HL-05"""
    for byte in '{"type":"set_session_name","name":"ä\u2028","id":"x"}\n'.encode():
        os.write(rpc.process.stdin.fileno(), bytes([byte]))
    assert rpc.response("x")["success"]
    assert rpc.data("get_state")["sessionName"]


def test_a_slow_reader_gets_everything(rpc: RpcProcess, stub) -> None:
    """HL-07: nothing is read until the whole answer was sent, and the pipe is full."""
    stub.says(*(["x" * 1_000] * 3_000))
    rpc.send("prompt", message="hi")
    assert stub.served.acquire(timeout=20)
    rpc.event("agent_settled")
    assert len(rpc.data("get_last_assistant_text")["text"]) == 3_000_000


# ------------------------------------------------------------------ models and modes


def test_models_and_levels_go_round(rpc: RpcProcess) -> None:
    models = rpc.data("get_available_models")["models"]
    assert models[0]["provider"] == "stub"
    assert models[0].keys() >= {"id", "name", "api", "baseUrl", "reasoning", "input", "cost", "contextWindow"}
    first, following = (rpc.data("cycle_model")["model"] for _ in range(2))
    assert first != following
    assert rpc.data("set_model", provider="stub", modelId="m")["id"] == "m"
    assert rpc.data("get_available_thinking_levels") == {"levels": ["off"]}
    assert rpc.ask("cycle_thinking_level")["data"] is None


def test_switches_show_in_the_state(rpc: RpcProcess) -> None:
    rpc.data("set_steering_mode", mode="one-at-a-time")
    rpc.data("set_follow_up_mode", mode="all")
    rpc.data("set_auto_compaction", enabled=False)
    state = rpc.data("get_state")
    assert (state["steeringMode"], state["followUpMode"]) == ("one-at-a-time", "all")
    assert state["autoCompactionEnabled"] is False
    rpc.data("set_auto_compaction", enabled=True)
    assert rpc.data("get_state")["autoCompactionEnabled"] is True


def test_retries_can_be_switched_on_and_stopped(rpc: RpcProcess, stub) -> None:
    """The settings of these tests have them off."""
    stub.refuses(503, "down")
    rpc.say("a")
    assert not any(said["type"] == "auto_retry_start" for said in rpc.seen)
    rpc.data("set_auto_retry", enabled=True)
    stub.refuses(503, "down")
    rpc.data("prompt", message="b")
    assert rpc.event("auto_retry_start")["attempt"] == 1
    rpc.data("abort_retry")
    assert not rpc.data("get_state")["isStreaming"]
    assert len(stub.requests) == 2


# ------------------------------------------------------------------ the user's shell


def test_a_command_of_the_user_is_kept_for_the_next_request(rpc: RpcProcess, stub) -> None:
    result = rpc.data("bash", command="echo printed; exit 3")
    assert result == {"output": "printed\n", "exitCode": 3, "cancelled": False, "truncated": False}
    (update,) = [said for said in rpc.seen if said["type"] == "bash_execution_update"]
    assert (update["delta"], update["id"]) == ("printed\n", "r1")
    rpc.data("bash", command="echo hidden", excludeFromContext=True)
    stub.says("Seen.")
    rpc.say("what was printed?")
    sent = str(stub.requests[0]["messages"])
    assert ("printed" in sent, "hidden" in sent) == (True, False)


def test_a_command_of_the_user_can_be_stopped(rpc: RpcProcess) -> None:
    running = rpc.send("bash", command=SLEEP)
    assert "already" in rpc.error("bash", command="echo second")
    rpc.send("abort_bash")
    assert rpc.response(running)["data"]["cancelled"] is True
    assert _running_commands() == []


# ------------------------------------------------------------------ sessions


def test_forks_and_clones_are_sessions_of_their_own(rpc: RpcProcess, stub) -> None:
    for text in ("one", "two"):
        stub.says(f"Answer to {text}.")
        rpc.say(text)
    first = rpc.data("get_state")
    prompts = rpc.data("get_fork_messages")["messages"]
    assert [each["text"] for each in prompts] == ["one", "two"]
    assert rpc.data("fork", entryId=prompts[1]["entryId"]) == {"text": "two", "cancelled": False}
    forked = rpc.data("get_state")
    assert forked["sessionId"] != first["sessionId"]
    assert rpc.data("get_last_assistant_text") == {"text": "Answer to one."}
    stub.says("Another answer.")
    rpc.say("three")
    assert rpc.data("clone") == {"cancelled": False}
    assert rpc.data("get_last_assistant_text") == {"text": "Another answer."}
    assert rpc.data("switch_session", sessionPath=first["sessionFile"]) == {"cancelled": False}
    assert rpc.data("get_last_assistant_text") == {"text": "Answer to two."}


def test_only_prompts_can_be_forked(rpc: RpcProcess, stub) -> None:
    stub.says("Hello.")
    rpc.say("hi")
    leaf = rpc.data("get_entries")["leafId"]
    assert "no prompt" in rpc.error("fork", entryId=leaf)


def test_a_new_session_stops_the_run_of_the_one_before(rpc: RpcProcess, program, stub) -> None:
    _sleep(rpc, stub)
    before = rpc.data("get_state")
    assert rpc.data("new_session", parentSession=before["sessionFile"]) == {"cancelled": False}
    assert _running_commands() == []
    assert [said["aborted"] for said in rpc.seen if said["type"] == "agent_settled"] == [True]
    stub.says("Fresh.")
    rpc.say("hi")
    first, second = program.sessions()
    assert second[0]["parentSession"] == before["sessionFile"]
    assert [message["role"] for message in _messages(first)] == ["user", "assistant", "toolResult"]


def test_entries_and_tree_are_those_of_the_file(rpc: RpcProcess, program, stub) -> None:
    stub.says("Hello.")
    rpc.say("hi")
    rpc.data("set_session_name", name="Named")
    (lines,) = program.sessions()
    found = rpc.data("get_entries")
    assert found == {"entries": lines[1:], "leafId": lines[-1]["id"]}
    assert rpc.data("get_entries", since=lines[-2]["id"])["entries"] == [lines[-1]]
    tree = rpc.data("get_tree")
    walked = []
    nodes = tree["tree"]
    while nodes:
        (node,) = nodes
        walked.append(node["entry"])
        nodes = node["children"]
    assert (walked, tree["leafId"]) == (lines[1:], lines[-1]["id"])


def test_statistics_count_what_was_spent(rpc: RpcProcess, stub) -> None:
    stub.calls(("bash", {"command": "echo one"}))
    stub.says("Done.")
    rpc.say("run it")
    stats = rpc.data("get_session_stats")
    counts = ("userMessages", "assistantMessages", "toolCalls", "toolResults")
    assert [stats[each] for each in counts] == [1, 2, 1, 1]
    assert stats["tokens"] == {"input": 14, "output": 6, "cacheRead": 0, "cacheWrite": 0, "total": 20}
    assert stats["contextUsage"]["contextWindow"] == 100_000_000
    assert stats["totalMessages"] == len(rpc.data("get_messages")["messages"])


def test_compaction_gives_its_result(start: Start, program, stub) -> None:
    settings = json.loads((program.agent_dir / "settings.json").read_text())
    program.write("settings.json", {**settings, "compaction": {"keepRecentTokens": 50}})
    rpc = start()
    for text in ("one", "two"):
        stub.says("word " * 200)
        rpc.say(f"{text} " + "and so on " * 100)
    stub.says("## Goal\nTo count.\n## Progress\nOne and two.\n## Next Steps\nThree.")
    result = rpc.data("compact", customInstructions="numbers")
    assert "To count." in result["summary"]
    assert result["firstKeptEntryId"]
    assert [said["reason"] for said in rpc.seen if said["type"] == "compaction_start"] == ["manual"]
    assert [said["aborted"] for said in rpc.seen if said["type"] == "compaction_end"] == [False]
    assert rpc.data("get_session_stats")["tokens"]["input"] > 14


@pytest.mark.parametrize("chosen", [True, False])
def test_a_session_is_exported_as_a_page(rpc: RpcProcess, program, stub, tmp_path, chosen) -> None:
    stub.says("Hello <b>there</b>.")
    rpc.say("hi")
    fields = {"outputPath": str(tmp_path / "page.html")} if chosen else {}
    for _ in range(2):
        path = Path(rpc.data("export_html", **fields)["path"])
    assert path.parent == (tmp_path if chosen else program.project)
    assert "Hello &lt;b&gt;there" in path.read_text()


def test_commands_tell_where_they_come_from(start: Start, program) -> None:
    folder = program.agent_dir / "prompts"
    folder.mkdir()
    (folder / "review.md").write_text("---\ndescription: Look at it\n---\nReview $1")
    (command,) = start().data("get_commands")["commands"]
    source = {"path": str(folder / "review.md"), "source": "local", "scope": "user", "origin": "top-level"}
    assert command == {
        "name": "review",
        "description": "Look at it",
        "source": "prompt",
        "sourceInfo": source,
    }


def test_commands_of_extensions_run_at_once(start: Start, tmp_path, stub) -> None:
    extension = tmp_path / "greets.py"
    extension.write_text(
        "def extend(api):\n"
        "    async def greet(arguments):\n"
        "        return f'Hello {arguments}.'\n"
        "    api.register_command('greet', greet)\n"
    )
    rpc = start("-e", str(extension))
    assert rpc.data("prompt", message="/greet you all") == {"disposition": "handled"}
    (told,) = [said for said in rpc.seen if said["type"] == "extension_ui_request"]
    assert (told["method"], told["message"]) == ("notify", "Hello you all.")
    assert "as a prompt" in rpc.error("steer", message="/greet you")
    assert stub.requests == []


# ------------------------------------------------------------------ questions


def _asked(rpc: RpcProcess, program, stub) -> dict[str, Any]:
    """Begin a call that a person is asked about. Gives the request."""
    stub.calls(("bash", {"command": "touch made"}))
    stub.says("Done.")
    rpc.data("prompt", message="make it")
    request = rpc.event("extension_ui_request")
    assert request["method"] == "select"
    assert '{"command":"touch made"}' in request["title"]
    return request


@pytest.mark.parametrize(
    ("option", "is_made"), [("Allow once", True), ("Deny", False), ("anything", False), (None, False)]
)
def test_the_client_answers_the_questions_of_the_gate(
    start: Start, program, stub, option: str | None, is_made: bool
) -> None:
    settings = json.loads((program.agent_dir / "settings.json").read_text())
    program.write("settings.json", {**settings, "gate": {"mode": "ask"}})
    rpc = start()
    request = _asked(rpc, program, stub)
    said = {"cancelled": True} if option is None else {"value": option}
    for request_id in ("unknown", request["id"], request["id"]):  # only the first answer counts
        rpc.write(json.dumps({"type": "extension_ui_response", "id": request_id, **said}).encode())
    rpc.event("agent_settled")
    assert (program.project / "made").exists() is is_made


def test_abort_takes_a_question_back(start: Start, program, stub) -> None:
    settings = json.loads((program.agent_dir / "settings.json").read_text())
    program.write("settings.json", {**settings, "gate": {"mode": "ask"}})
    rpc = start()
    request = _asked(rpc, program, stub)
    rpc.data("abort")
    rpc.write(
        json.dumps({"type": "extension_ui_response", "id": request["id"], "value": "Allow once"}).encode()
    )
    assert rpc.ask("get_state")["success"]
    assert not (program.project / "made").exists()


# ------------------------------------------------------------------ the end


def test_the_end_of_the_input_ends_the_program(rpc: RpcProcess, stub) -> None:
    assert rpc.end() == (0, [], "")


def test_a_last_line_without_an_end_counts(rpc: RpcProcess) -> None:
    rpc.process.stdin.write(b'{"type":"get_state","id":"x"}')
    status, (response,), _ = rpc.end()
    assert (status, response["id"]) == (0, "x")


def test_a_command_is_answered_also_after_the_end_of_the_input(rpc: RpcProcess, tmp_path: Path) -> None:
    """It has begun when the input ends, and ends by itself after that."""
    os.mkfifo(tmp_path / "fifo")
    running = rpc.send("bash", command=f"read word < '{tmp_path}/fifo'; echo $word")
    rpc.process.stdin.close()
    (tmp_path / "fifo").write_text("late\n")  # waits until the command reads
    response = rpc.response(running)
    assert response["data"] == {"output": "late\n", "exitCode": 0, "cancelled": False, "truncated": False}
    assert rpc.process.wait(timeout=20) == 0


def test_a_command_that_does_not_end_is_stopped_and_answered_after_the_input(rpc: RpcProcess) -> None:
    running = rpc.send("bash", command=SLEEP)
    status, rest, err = rpc.end()
    assert (status, err) == (0, "")
    (response,) = [said for said in rest if said["type"] == "response"]
    assert (response["id"], response["data"]["cancelled"]) == (running, True)
    assert _running_commands() == []


def test_the_end_of_the_input_stops_the_run(rpc: RpcProcess, program, stub) -> None:
    _sleep(rpc, stub)
    status, rest, err = rpc.end()
    assert (status, err) == (0, "")
    assert rest[-1] == {"type": "agent_settled", "aborted": True}
    assert _running_commands() == []
    (lines,) = program.sessions()
    assert [message["role"] for message in _messages(lines)] == ["user", "assistant", "toolResult"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_program(rpc: RpcProcess, program, stub, number: int, status: int) -> None:
    """HL-08"""
    _sleep(rpc, stub)
    rpc.process.send_signal(number)
    assert rpc.process.wait(timeout=3) == status
    assert _running_commands() == []
    (lines,) = program.sessions()
    assert _messages(lines)[-1]["role"] == "toolResult"


def test_a_client_that_is_gone_ends_the_program_quietly(rpc: RpcProcess, program, stub) -> None:
    """HL-04"""
    _sleep(rpc, stub)
    rpc.process.stdout.close()
    rpc.send("get_state")
    assert rpc.process.wait(timeout=5) == 141
    assert rpc.process.stderr.read() == b""
    assert _running_commands() == []
    assert len(program.sessions()) == 1


def test_a_client_that_does_not_read_cannot_keep_the_program(rpc: RpcProcess, stub) -> None:
    stub.says("x" * 1_000_000)
    rpc.send("prompt", message="hi")
    assert stub.served.acquire(timeout=20)
    rpc.process.stdin.close()
    assert rpc.process.wait(timeout=10) == 0


@pytest.mark.parametrize("arguments", [["hello"], ["@file"], ["-p", "hello"]])
def test_prompts_are_no_arguments(program, arguments: list[str]) -> None:
    done = program.run("--mode", "rpc", *arguments, piped=b"")
    assert (done.returncode, done.stdout) == (2, "")
    assert "RPC mode" in done.stderr


def test_what_keeps_it_from_starting_is_told(program) -> None:
    done = program.run("--mode", "rpc", "--model", "no/such", piped=b"")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
