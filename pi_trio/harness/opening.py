"""A harness for a block, for programs that embed one."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from pi_trio.harness.harness import AgentHarness, HarnessOptions
from pi_trio.llm.protocol import Model, ThinkingLevel
from pi_trio.nursery import in_nursery
from pi_trio.session.session import Session

__all__ = ["open_harness"]


def open_harness(
    session: Session, options: HarnessOptions, *, model: Model, thinking_level: ThinkingLevel = "off"
) -> AbstractAsyncContextManager[AgentHarness]:
    """A harness, and the nursery that its runs are tasks of.

    Leaving the block, also by cancellation, stops the run, saves the session and lets go of its
    file. Raises `StorageError` then if there was no room for what was said last.
    """
    return in_nursery(
        lambda nursery: AgentHarness(session, options, nursery, model=model, thinking_level=thinking_level)
    )
