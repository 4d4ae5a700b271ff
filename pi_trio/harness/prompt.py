"""The system prompt of a session: how a change of it is recorded.

The transcript keeps the prompt as pi's system messages: named sections and the tools
declared. The first one declares everything; later ones are patches, so that a provider's
cached prefix stays valid as far as it can. `fold_system` adds them up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pi_trio import codec
from pi_trio.messages import SystemMessage, ToolSchema, text_of

__all__ = ["reconcile", "render"]


def reconcile(
    state: SystemMessage | None, sections: Mapping[str, str], tools: Iterable[ToolSchema]
) -> SystemMessage | None:
    """The message that makes `state` (folded) the wanted one; None if it is that already.

    Text that an older writer put outside sections cannot be patched away; it stays.
    """
    said = (state.sections if state else None) or {}
    changed: dict[str, str | None] = {name: text for name, text in sections.items() if said.get(name) != text}
    changed.update((name, None) for name in said if name not in sections)
    declared = {tool.name: tool for tool in (state.tools_added if state else None) or ()}
    wanted = {tool.name: tool for tool in tools}
    added = tuple(tool for name, tool in wanted.items() if not _same(declared.get(name), tool))
    removed = tuple({"name": name} for name in declared if not _same(wanted.get(name), declared[name]))
    if state is not None and not (changed or added or removed):
        return None
    return SystemMessage("", changed or None, added or None, removed or None)


def render(state: SystemMessage | None) -> str:
    """The text that a model is sent."""
    if state is None:
        return ""
    parts = (text_of(state.content), *(state.sections or {}).values())
    return "\n\n".join(part for part in parts if part)


def _same(one: ToolSchema | None, other: ToolSchema | None) -> bool:
    """Equal as declared: what counts is the JSON of a definition."""
    return one is other or codec.to_json(one) == codec.to_json(other)
