"""What fills the context of a session, part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pi_trio.compaction.estimate import estimate, estimate_text
from pi_trio.harness.harness import AgentHarness
from pi_trio.messages import AgentMessage, SystemMessage
from pi_trio.remote.interface import ContextPart, ContextUse

__all__ = ["context_use"]

_ROLES = {
    "user": "prompts",
    "assistant": "answers and calls",
    "toolResult": "tool results",
    "bashExecution": "your commands",
    "compactionSummary": "compaction summary",
    "branchSummary": "branch summaries",
    "custom": "extensions",
}
_SECTIONS = {"project_context": "context files", "skills": "skills"}


def context_use(harness: AgentHarness) -> ContextUse:
    """The parts of what the next request would say, largest first within system and conversation.

    A part's size is an estimate; where a provider told how large the whole is, the parts are
    scaled so that they add up to it.
    """
    estimates = Counter[str]()
    for name, size in (*_system(harness), *_messages(harness.conversation.transcript)):
        estimates[name] += size
    whole, meter = estimates.total(), harness.compactor.meter
    size = meter.size if meter.measured else whole
    parts = tuple(
        ContextPart(name=name, tokens=round(tokens * size / whole))
        for name, tokens in estimates.most_common()
    )
    return ContextUse(
        parts=parts,
        tokens=sum(part.tokens for part in parts),
        window=harness.model.context_window,
        measured=meter.measured,
    )


def _system(harness: AgentHarness) -> Iterator[tuple[str, int]]:
    """The system prompt and the tools; before the first prompt as they would be."""
    system = harness.conversation.system
    if system is None:
        tools = harness.active_tools
        system = SystemMessage(
            "", harness.options.sections(tools), tuple(tool.schema for tool in tools) or None
        )
    sections = system.sections or {}
    for name, title in _SECTIONS.items():
        if text := sections.get(name):
            yield title, estimate_text(text)
    declared = SystemMessage("", tools_added=system.tools_added)
    yield "tool definitions", estimate(declared)
    rest = {name: text for name, text in sections.items() if name not in _SECTIONS}
    yield "system prompt", estimate(SystemMessage(system.content, rest))


def _messages(transcript: list[AgentMessage]) -> Iterator[tuple[str, int]]:
    for message in transcript:
        if size := estimate(message):
            yield _ROLES.get(message.role, "other"), size
