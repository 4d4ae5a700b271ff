"""Whatever is said to an agent, whenever: used once, still queued, or handed back."""

from __future__ import annotations

from collections import Counter

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from pi_trio.agent import Agent
from pi_trio.agent_queue import QueueItem
from pi_trio.errors import UsageError
from pi_trio.events import InputReturned
from pi_trio.llm.protocol import Failure
from pi_trio.loop.hooks import Hooks
from pi_trio.messages import UserMessage, text_of
from pi_trio.testing import Call, Pause, Recorder, ScriptedModel, Text
from pi_trio.tool import Tool, ToolResult

MODES = st.sampled_from(["one-at-a-time", "all"])
TIMES = st.integers(0, 30).map(lambda tenths: tenths / 10)
ACTIONS = st.sampled_from(
    [
        *["prompt", "continue", "steer", "follow_up", "next_turn", "clear", "abort", "cancel"],
        *["edit", "remove", "move"],
    ]
)
ANSWERS = st.sampled_from(
    [
        "Done",
        [Text.of("One", " two"), Pause(0.3), "three"],
        [Call("wait", {"seconds": 0.4}), Call("wait", {"seconds": 0.2})],
        [Text.of("Hm"), Call("wait", {"seconds": 0.1}), Call("unheard of")],
        [Pause(0.2), Failure("broken")],
        [Text.of("Half"), ValueError("cut")],
    ]
)


async def wait(call_id, args, on_update) -> ToolResult:
    await trio.sleep(args["seconds"])
    await on_update(ToolResult("nearly"))
    return ToolResult("done")


async def slow(*_context) -> None:
    await trio.sleep(0.05)


async def slow_poll() -> tuple[()]:
    await trio.sleep(0.05)
    return ()


class Talk:
    """Says things to an agent at given times, and keeps account of them."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.said: list[str] = []
        self.cleared: list[str] = []
        self.heard = Recorder()
        agent.subscribe(self.heard)
        self._scopes: set[trio.CancelScope] = set()

    async def act(self, number: int, time: float, action: str) -> None:
        await trio.sleep_until(self.began + time)
        text = f"{action} {number}"
        match action:
            case "abort":
                self.agent.abort()
            case "cancel":
                for scope in self._scopes:
                    scope.cancel()
            case "clear":
                queued = (*self.agent.steering_queue, *self.agent.follow_up_queue)
                self.cleared += texts(each.message for each in queued)
                self.agent.clear_all_queues()
            case "edit" | "remove" | "move":
                if waiting := self.waiting():
                    self._rearrange(action, waiting[number % len(waiting)], text)
            case "prompt" | "continue":
                await self._run(text if action == "prompt" else None)
            case _:
                getattr(self.agent, action)(text)
                self.said.append(text)

    def _rearrange(self, action: str, item: QueueItem, text: str) -> None:
        if action == "move":
            self.agent.move_queued(item.id, 0)
            return
        self.cleared += texts([item.message])
        if action == "remove":
            self.agent.remove_queued(item.id)
        else:
            self.agent.edit_queued(item.id, text)
            self.said.append(text)

    def waiting(self) -> list[QueueItem]:
        """All that is queued."""
        return [*self.agent.steering_queue, *self.agent.follow_up_queue, *self.agent.next_turn_queue]

    async def _run(self, text: str | None) -> None:
        with trio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                if text is None:
                    await self.agent.continue_()
                elif not self.agent.is_streaming:
                    self.said.append(text)
                    await self.agent.prompt(text)
            except (UsageError, ValueError):
                pass  # nothing to continue from, or the stream was cut: the account is the same
        self._scopes.discard(scope)

    async def play(self, actions: list[tuple[float, str]]) -> None:
        self.began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for number, (time, action) in enumerate(actions):
                nursery.start_soon(self.act, number, time, action)

    def account(self) -> Counter[str]:
        """Everything that was accepted, by where it is now."""
        used = texts(each for each in self.agent.messages if isinstance(each, UserMessage))
        waiting = texts(each.message for each in self.waiting())
        returned = [text for event in self.heard.of(InputReturned) for text in texts(event.messages)]
        return Counter([*used, *waiting, *returned, *self.cleared])


def texts(messages) -> list[str]:
    return [text_of(message.content) for message in messages]


@given(
    actions=st.lists(st.tuples(TIMES, ACTIONS), max_size=14).map(lambda actions: [(0.0, "prompt"), *actions]),
    answers=st.lists(ANSWERS, max_size=8),
    modes=st.tuples(MODES, MODES),
    hooked=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_input_is_used_once_or_kept(actions, answers, modes, hooked) -> None:
    """QS-01, QS-02: and the events are legal, whatever happened."""
    hooks = Hooks(
        prepare_request=slow, prepare_next_turn=slow, get_steering_messages=slow_poll,
        get_follow_up_messages=slow_poll, before_tool_call=slow, after_tool_call=slow,
    )  # fmt: skip

    async def main() -> None:
        model = ScriptedModel(answers)
        tool = Tool(name="wait", description="", parameters={"type": "object"}, execute=wait)
        agent = Agent(
            model=model.model, stream_fn=model, tools=[tool], hooks=hooks if hooked else Hooks(),
            steering_mode=modes[0], follow_up_mode=modes[1],
        )  # fmt: skip
        talk = Talk(agent)
        await talk.play(actions)
        talk.heard.check()
        assert not agent.is_streaming
        assert talk.account() == Counter(talk.said)

    trio.run(main, clock=MockClock(autojump_threshold=0))
