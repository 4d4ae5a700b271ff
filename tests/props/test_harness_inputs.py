"""Whatever is said to a session, whenever, crashes included: used once, still waiting, or handed back."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import trio
from harness_bench import Bench, open_bench
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from pi_trio.events import InputReturned
from pi_trio.llm.protocol import Failure
from pi_trio.messages import UserMessage, text_of
from pi_trio.session.session import Session
from pi_trio.testing import Call, Pause
from pi_trio.tool import Tool, ToolResult

TIMES = st.integers(0, 25).map(lambda tenths: tenths / 10)
ACTIONS = st.sampled_from(
    ["prompt", "steer", "follow_up", "next_turn", "inject", "edit", "remove", "move", "clear", "abort"]
)
ANSWERS = st.sampled_from(
    [
        "Done",
        ["One", Pause(0.3), "two"],
        [Call("wait", {"seconds": 0.4}), Call("wait", {"seconds": 0.2})],
        [Pause(0.2), Failure("broken")],
        [Pause(0.1), Failure("busy", "overloaded")],
    ]
)
SCRIPT = st.lists(st.tuples(TIMES, ACTIONS), max_size=12)


async def wait(call_id, args, on_update) -> ToolResult:
    await trio.sleep(args["seconds"])
    return ToolResult("done")


WAIT = Tool(name="wait", description="", parameters={"type": "object"}, execute=wait)


class Account:
    """What was accepted, and what was taken back; the rest is in the file, waiting or handed back."""

    def __init__(self) -> None:
        self.accepted: Counter[str] = Counter()
        self.taken_back: Counter[str] = Counter()
        self._number = 0

    def copy(self) -> Account:
        other = Account()
        other.accepted, other.taken_back = self.accepted.copy(), self.taken_back.copy()
        other._number = self._number
        return other

    def new_text(self) -> str:
        self._number += 1
        return f"said {self._number}"

    async def act(self, bench: Bench, action: str) -> None:
        """Do one thing; what is refused leaves the account as it was."""
        harness, text = bench.harness, self.new_text()
        queue = harness.inbox.summary()
        waiting = dict(
            zip([*queue.steering_ids, *queue.follow_up_ids], [*queue.steering, *queue.follow_up], strict=True)
        )
        match action:
            case "abort":
                await harness.abort()
            case "clear":
                harness.clear_queue()
                self.taken_back.update(waiting.values())
            case "edit" | "remove" | "move":
                for item_id, old in list(waiting.items())[-1:]:
                    if action == "edit":
                        harness.edit_queued(item_id, text)
                        self.accepted[text] += 1
                    elif action == "remove":
                        harness.remove_queued(item_id)
                    else:
                        harness.move_queued(item_id, 0)
                        continue
                    self.taken_back[old] += 1
            case "inject":
                harness.inject(UserMessage.of(text))
                self.accepted[text] += 1
            case "prompt" if harness.running:
                pass
            case _:
                getattr(harness, action)(text)
                self.accepted[text] += 1

    async def play(self, bench: Bench, script: list[tuple[float, str]]) -> None:
        began = trio.current_time()
        for time, action in sorted(script, key=lambda each: each[0]):
            await trio.sleep_until(began + time)
            await self.act(bench, action)

    def check(self, bench: Bench, told: list[str]) -> None:
        queue = bench.harness.inbox.summary()
        entries = map(bench.session.raw, (head.id for head in bench.session.heads))
        messages = [entry["message"] for entry in entries if entry["type"] == "message"]
        used = [text_of_json(each) for each in messages if each["role"] == "user"]
        found = Counter([*used, *queue.steering, *queue.follow_up, *told]) + self.taken_back
        assert found == self.accepted


def text_of_json(message) -> str:
    return message["content"] if isinstance(message["content"], str) else message["content"][0]["text"]


def returned(bench: Bench) -> list[str]:
    events = [event for event in bench.events if isinstance(event, InputReturned)]
    return [text_of(message.content) for event in events for message in event.messages]


@given(answers=st.lists(ANSWERS, max_size=8), before=SCRIPT, crash=TIMES, after=SCRIPT)
@settings(max_examples=100, deadline=None)
def test_input_survives_a_crash_once(answers, before, crash, after) -> None:
    """QS-01, L80: a copy of the file at any moment is what a killed process would leave."""

    async def first(path: Path, copy: Path) -> tuple[Account, list[str]]:
        account = Account()
        async with (
            open_bench(Session.new("/p", path), *answers, tools=(WAIT,)) as bench,
            trio.open_nursery() as nursery,
        ):
            await account.act(bench, "prompt")
            nursery.start_soon(account.play, bench, before)
            await trio.sleep(crash)
            copy.write_bytes(path.read_bytes())
            at_crash, told = account.copy(), returned(bench)
            nursery.cancel_scope.cancel()
        return at_crash, told

    async def second(copy: Path, account: Account, told: list[str]) -> None:
        async with open_bench(Session.open(copy), *answers, tools=(WAIT,)) as bench:
            offered = [text_of(message.content) for message in bench.harness.take_returned()]
            await account.play(bench, after)
            await bench.harness.abort()
            account.check(bench, [*told, *offered, *returned(bench)])

    with tempfile.TemporaryDirectory() as folder:
        path, copy = Path(folder, "first.jsonl"), Path(folder, "copy.jsonl")
        clock = MockClock(autojump_threshold=0)
        account, told = trio.run(first, path, copy, clock=clock)
        trio.run(second, copy, account, told, clock=MockClock(autojump_threshold=0))
