"""What the runtime tells of entries, for a list of them: digests, searches, labels, destinations, exports."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from pi_trio.compaction.prompts import BRANCH_PREAMBLE
from pi_trio.errors import StorageError, UsageError
from pi_trio.harness.destination import LARGE
from pi_trio.harness.finding import MOST_FOUND, find_entries
from pi_trio.harness.runtime import LocalRuntime, open_runtime
from pi_trio.resources.config import RuntimeConfig
from pi_trio.session.digest import Digest, digest, merged
from pi_trio.session.entries import SessionInfoEntry
from pi_trio.session.session import Session

USAGE = {"totalTokens": 1200, "cost": {"total": 0.25}}


def entry(name: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, "timestamp": 1, **more}
    return fact("message", name, parent, message=message)


def fact(kind: str, name: str, parent: str | None, **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": name, "parentId": parent, "timestamp": "2026-11-30T10:00:00.000Z", **more}


def answer(name: str, parent: str, *content: Any, **more: Any) -> dict[str, Any]:
    return entry(name, parent, "assistant", list(content), model="m-1", provider="p", usage=USAGE, **more)


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": tool, "name": tool, "arguments": arguments}


def result(name: str, parent: str, tool: str, text: str, *files: Mapping[str, Any]) -> dict[str, Any]:
    content, details = [{"type": "text", "text": text}], {"files": list(files)}
    return entry(name, parent, "toolResult", content, toolName=tool, toolCallId=tool, details=details)


def write_session(folder: Path, *entries: Mapping[str, Any]) -> Path:
    header = {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": "2026-11-30T10:00:00.000Z",
        "cwd": str(folder),
    }
    path = folder / "s.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (header, *entries)))
    return path


@asynccontextmanager
async def opened(folder: Path, *entries: Mapping[str, Any]) -> AsyncIterator[tuple[LocalRuntime, str]]:
    path = write_session(folder, *entries)
    async with open_runtime(RuntimeConfig(cwd=folder, agent_dir=folder / "agent", demo=True)) as runtime:
        yield runtime, (await runtime.open_session(str(path))).session.id


# ------------------------------------------------------------------ digests


TURN = (
    entry("u", None, "user", "Fix\nthe test"),
    answer("a", "u", call("edit", path="x.py"), call("write", path="y.py")),
    result("r1", "a", "edit", "done"),
    result("r2", "r1", "write", "done"),
    answer("b", "r2", {"type": "text", "text": "Done."}, call("edit", path="x.py"), stopReason="aborted"),
)


def test_a_digest_sums_a_turn_up():
    told = digest(TURN)
    assert (told.text, told.timestamp) == ("Fix\nthe test", "2026-11-30T10:00:00.000Z")
    assert (told.tools, told.answers, told.files) == (2, 2, ("x.py", "y.py"))
    assert (told.context, told.cost, told.model, told.stop_reason) == (1200, 0.5, "m-1", "aborted")


def test_a_digest_grows_as_its_turn_does():
    assert merged(digest(TURN[:2]), digest(TURN[2:])) == digest(TURN)


def test_a_file_that_a_failed_call_named_was_not_changed():
    failed = result("r1", "a", "edit", "no such text")
    failed["message"] |= {"isError": True}
    turn = (*TURN[:2], failed, TURN[3])
    assert digest(turn).files == ("y.py",)
    assert all(merged(digest(turn[:at]), digest(turn[at:])) == digest(turn) for at in range(1, 4))
    assert digest([*turn, TURN[4]]).files == ("y.py", "x.py")


def test_a_turn_whose_call_was_stopped_is_stopped():
    stopped = result("r1", "a", "bash", "")
    stopped["message"]["details"] = {"code": "aborted"}
    assert digest([*TURN[:2], stopped, TURN[3]]).stop_reason == "aborted"
    assert digest([*TURN[:2], stopped, answer("c", "r1", stopReason="stop")]).stop_reason == "stop"


PIS_PREAMBLE = """\
The user explored a different conversation branch before returning here.
Summary of that exploration:

"""


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (TURN[1], "edit x.py, write y.py"),
        (TURN[2], "edit: done"),
        ({"type": "compaction", "summary": "So far."}, "So far."),
        ({"type": "branch_summary", "summary": "Tried: it."}, "Tried: it."),
        ({"type": "branch_summary", "summary": f"{BRANCH_PREAMBLE}Tried it."}, "Tried it."),
        ({"type": "branch_summary", "summary": f"{PIS_PREAMBLE}## Goal"}, "## Goal"),
        ({"type": "label", "label": "here"}, "label here"),
        ({"type": "label"}, "label taken away"),
        ({"type": "model_change", "provider": "p", "modelId": "m"}, "model p/m"),
        ({"type": "custom", "customType": "turn/start"}, "custom turn/start"),
        (entry("i", None, "user", [{"type": "image", "data": ""}]), "(an image)"),
        (entry("p", None, "system", "", sections={}), "system prompt"),
        (entry("s", None, "bashExecution", "", command="ls"), "! ls"),
    ],
)
def test_what_an_entry_says(of, text):
    assert digest([of]).text == text


ODD_ANSWER = {"type": "message", "message": {"role": "assistant", "content": [1], "usage": 2}}


@pytest.mark.parametrize("odd", [{}, {"type": 3}, ODD_ANSWER])
def test_odd_entries_count_for_nothing(odd):
    told = digest([odd])
    assert (told.tools, told.cost, told.files) == (0, 0.0, ())
    assert digest([]) == Digest()


async def test_digests_come_group_by_group(tmp_path: Path) -> None:
    async with opened(tmp_path, *TURN) as (runtime, session_id):
        first, second = await runtime.digests(session_id, [["u", "a"], ["r1", "not there"]])
        assert (first.text, first.answers, second.tools) == ("Fix\nthe test", 1, 1)


# ------------------------------------------------------------------ searches


async def test_entries_are_found_by_all_their_words(tmp_path: Path) -> None:
    named = {"type": "session_info", "id": "n", "parentId": "b", "timestamp": "", "name": "Flaky Retry"}
    label = {
        "type": "label",
        "id": "l",
        "parentId": "n",
        "timestamp": "",
        "targetId": "a",
        "label": "py311 ok",
    }
    async with opened(tmp_path, *TURN, named, label) as (runtime, session_id):

        async def find(text: str) -> list[str]:
            return list(await runtime.find_entries(session_id, text))

        assert await find("FIX test") == ["u"]
        assert await find("x.py") == ["a", "b"]
        assert await find('"the test"') == ["u"]
        assert await find("flaky") == ["n"]
        assert await find("py311") == ["a"]
        assert await find("toolCallId") == []
        assert await find("  ") == []
        assert await find("fix nothing") == []


async def test_a_search_ends_somewhere_and_lets_others_have_their_turn() -> None:
    session = Session.in_memory("/p")
    for _ in range(MOST_FOUND + 10):
        session.append(SessionInfoEntry("same"))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        found = await find_entries(session, "same")
        nursery.cancel_scope.cancel()
    assert len(found) == MOST_FOUND
    assert found[-1] == session.heads[-1].id
    assert turns > MOST_FOUND / 200


# ------------------------------------------------------------------ labels


async def test_a_label_is_there_again_when_the_session_is_opened_again(tmp_path: Path) -> None:
    async with opened(tmp_path, *TURN) as (runtime, session_id):
        await runtime.set_label(session_id, "a", "begin")
        await runtime.set_label(session_id, "u", "gone")
        await runtime.set_label(session_id, "u", None)
        assert (await runtime.snapshot(session_id)).labels == {"a": "begin"}
        with pytest.raises(UsageError):
            await runtime.set_label(session_id, "nobody", "x")
    assert Session.open(tmp_path / "s.jsonl", writable=False).labels() == {"a": "begin"}


# ------------------------------------------------------------------ destinations


def sha(path: Path, text: str) -> str:
    path.write_text(text)
    return hashlib.sha256(text.encode()).hexdigest()


async def test_a_destination_tells_context_model_and_changed_files(tmp_path: Path) -> None:
    one, two, three, made = (tmp_path / name for name in ("one.py", "two.py", "three.py", "made.py"))
    then_one, now_one = sha(one, "then"), sha(one, "now")
    same, was_three = sha(two, "same"), sha(three, "before the branch")
    now_three, now_made = sha(three, "changed on the branch"), sha(made, "made on the branch")
    entries = (
        fact("thinking_level_change", "t", None, thinkingLevel="high"),
        entry("u1", "t", "user", "one"),
        answer("a1", "u1", call("edit")),
        result("r1", "a1", "edit", "ok", {"path": str(one), "before": None, "after": then_one}),
        result("r2", "r1", "read", "ok", {"path": str(two), "before": same, "after": same}),
        answer("b1", "r2", {"type": "text", "text": "done"}),
        entry("u2", "b1", "user", "two"),
        answer("a2", "u2", call("edit")),
        result("r3", "a2", "edit", "ok", {"path": str(one), "before": then_one, "after": now_one}),
        result("r4", "r3", "edit", "ok", {"path": str(three), "before": was_three, "after": now_three}),
        result("r5", "r4", "write", "ok", {"path": str(made), "before": None, "after": now_made}),
    )
    async with opened(tmp_path, *entries) as (runtime, session_id):
        there = await runtime.destination(session_id, "b1")
        assert (there.leaf_id, there.context, there.model, there.thinking_level) == (
            "b1",
            1200,
            "m-1",
            "high",
        )
        assert (set(there.differ), there.compared) == ({str(one), str(three), str(made)}, 4)
        before = await runtime.destination(session_id, "u2")
        assert before == there
        here = await runtime.destination(session_id, "r5")
        assert (here.differ, here.compared) == ((), 4)
        start = await runtime.destination(session_id, "u1")
        assert (start.context, start.model) == (0, None)
        with pytest.raises(UsageError):
            await runtime.destination(session_id, "nobody")


async def test_after_a_compaction_the_context_is_not_known(tmp_path: Path) -> None:
    compaction = fact("compaction", "c", "b", summary="s", firstKeptEntryId="b")
    async with opened(tmp_path, *TURN, compaction) as (runtime, session_id):
        assert (await runtime.destination(session_id, "c")).context is None
        assert (await runtime.destination(session_id, "b")).context == 1200


async def test_only_what_can_be_compared_is(tmp_path: Path) -> None:
    """A session from elsewhere names a pipe, a device, a folder, a giant and nonsense."""
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "giant").open("wb") as giant:
        giant.truncate(LARGE + 1)
    named = tmp_path / "pipe", "/dev/zero", tmp_path, tmp_path / "giant", "relative", "/a\0b"
    odd: list[Any] = [{"path": str(path), "before": "0" * 64, "after": "0" * 64} for path in named]
    odd += [{"path": 7, "before": None, "after": None}, 3]
    odd += [{"path": str(tmp_path / "read in part"), "before": None, "after": None}]
    entries = (TURN[0], TURN[1], result("r1", "a", "edit", "ok", *odd))
    async with opened(tmp_path, *entries) as (runtime, session_id):
        there = await runtime.destination(session_id, "r1")
        assert (there.differ, there.compared) == ((), 0)


# ------------------------------------------------------------------ exports


async def test_an_export_is_of_the_branch_that_is_asked_for(tmp_path: Path) -> None:
    other = entry("v", "a", "user", "Something else")
    async with opened(tmp_path, *TURN, other) as (runtime, session_id):
        written = Path(await runtime.export(session_id, "b.md", "b"))
        assert written == tmp_path / "b.md"
        assert "Done." in written.read_text()
        assert "Something else" not in written.read_text()
        assert "Something else" in Path(await runtime.export(session_id, "v.md")).read_text()
        lines = Path(await runtime.export(session_id, "b.jsonl", "b")).read_text().splitlines()
        assert [json.loads(each)["id"] for each in lines[1:]] == ["u", "a", "r1", "r2", "b"]
        page = Path(await runtime.export(session_id, "b.html", "b")).read_text()
        assert '<body data-leaf="b">' in page
        with pytest.raises(StorageError, match="there already"):
            await runtime.export(session_id, "b.md", "b")
        with pytest.raises(UsageError, match="no entry"):
            await runtime.export(session_id, "x.md", "nobody")
