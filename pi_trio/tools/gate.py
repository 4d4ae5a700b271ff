"""The gate: what may run, what may not, and what a person is asked about first.

`Gate` is the last `before_tool_call` handler. A policy judges each call; `Policy` is the
default one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from attrs import field, frozen

from pi_trio.approval import Ask, Question
from pi_trio.loop.hooks import BeforeToolCallContext, BeforeToolCallResult
from pi_trio.messages import as_tuple
from pi_trio.tools.edit import preview_edit
from pi_trio.tools.environment import ToolEnvironment
from pi_trio.tools.failure import ToolError

__all__ = ["ALLOW", "Gate", "JudgesCalls", "Verdict", "edit_preview"]


@frozen
class Verdict:
    """What becomes of a call. `reason` is a sentence; `rules` are what an answer `always` allows."""

    action: Literal["allow", "deny", "ask"]
    reason: str = ""
    rules: tuple[str, ...] = field(default=(), converter=as_tuple)


ALLOW = Verdict("allow")


class JudgesCalls(Protocol):
    """The seam for other policies."""

    async def judge(self, tool: str, args: Mapping[str, Any]) -> Verdict:
        """What becomes of a call whose arguments have been validated."""

    def remember(self, rules: Sequence[str], *, once: bool = False) -> None:
        """Allow from now on what these rules say; `once`: for the call that was just judged."""


class Gate:
    """Stands before every call. Without `ask` nobody is there, and what would be asked is denied."""

    def __init__(
        self,
        policy: JudgesCalls,
        ask: Ask | None = None,
        preview: Callable[[str, Mapping[str, Any]], Awaitable[str | None]] | None = None,
    ) -> None:
        self._policy = policy
        self._ask = ask
        self._preview = preview

    async def before_tool_call(self, context: BeforeToolCallContext) -> BeforeToolCallResult | None:
        """The hook. See `pi_trio.loop.hooks.Hooks`."""
        name, args = context.tool_call.name, context.args
        verdict = await self._policy.judge(name, args)
        if verdict.action == "allow":
            return None
        if verdict.action == "deny":
            return _blocked(f"Not allowed: {verdict.reason}")
        if self._ask is None:
            return _blocked(
                f"Not run, because a person must be asked and none is here: {verdict.reason}"
                + _way_out(verdict.rules)
            )
        preview = await self._preview(name, args) if self._preview else None
        answer = await self._ask(
            Question(
                id=context.tool_call.id,
                tool_name=name,
                args=args,
                reason=verdict.reason,
                rules=verdict.rules,
                preview=preview,
            )
        )
        if answer == "no":
            return _blocked("The user did not allow this call. Go on without it, or ask what to do instead.")
        self._policy.remember(verdict.rules, once=answer == "once")
        return None


def _way_out(rules: Sequence[str]) -> str:
    if not rules:
        return ""
    return f" The user can allow it in the settings, in gate.allow, by {' and '.join(rules)}."


def _blocked(reason: str) -> BeforeToolCallResult:
    return BeforeToolCallResult(block=True, reason=reason)


async def edit_preview(environment: ToolEnvironment, name: str, args: Mapping[str, Any]) -> str | None:
    """The diff of a call of the edit tool; None for others, and for one that will fail anyway."""
    if name != "edit":
        return None
    try:
        return await preview_edit(environment, args)
    except ToolError:
        return None
