"""Leaving a branch: where one stands before a prompt, and what a fork takes along."""

from __future__ import annotations

from collections.abc import Sequence

from pi_trio import codec
from pi_trio.messages import UserMessage, text_of
from pi_trio.session import facts
from pi_trio.session.entries import CompactionEntry, CustomMessageEntry, Entry, MessageEntry
from pi_trio.session.scan import parent_span
from pi_trio.session.session import Session
from pi_trio.session.tree import EntryHead, Tree

__all__ = ["before", "fork_lines", "prompt_text"]


def before(tree: Tree, entry_id: str) -> str | None:
    """The leaf that stands before an entry; None: before everything. Raises `KeyError`.

    Before input of our own that is before what its turn or step wrote first: at the parent of
    its `turn/start`, or, if it came into a running turn, at the `step/end` before it. Any other
    entry, and input without brackets, leads to its parent.
    """
    parent = tree.parent(entry_id)
    if not is_input(tree.heads[tree.position(entry_id)]):
        return parent
    for head in tree.up(parent):
        match head.type, head.detail:
            case "custom", facts.TURN_START:
                return tree.parent(head.id)
            case "custom", facts.STEP_END:
                return head.id
            case ("custom", facts.TURN_END) | ("message", "assistant" | "toolResult" | "bashExecution"):
                return parent
    return parent


def is_input(head: EntryHead) -> bool:
    """Whether the entry is something that was said to the model."""
    return head.type == "custom_message" or (head.type == "message" and head.detail == "user")


def prompt_text(entry: Entry) -> str:
    """What a person would edit to say it again; empty for what is no input."""
    match entry:
        case MessageEntry(message=UserMessage(content=content)) | CustomMessageEntry(content=content):
            return text_of(content)
        case _:
            return ""


# ------------------------------------------------------------------ forks


def fork_lines(session: Session, leaf: str | None) -> list[bytes]:
    """The lines of a new file that has the path to `leaf`, and the labels of what is on it.

    They are those of the source, byte for byte; only `parentId` is another where an entry in
    between is left out. Left out are the inbox's facts (a fork inherits no queue) and labels of
    entries that are not taken along, unless a compaction names one as its first kept entry.
    """
    branch = session.tree.branch(leaf)
    boundaries = _boundaries(session, branch)
    path = {head.id for head in branch}
    kept = [head for head in branch if head.id in boundaries or _goes_along(head, path)]
    kept += _labels_from_elsewhere(session.heads, path)
    lines: list[bytes] = []
    parent: str | None = None
    for head in kept:
        line = session.line(head.id).rstrip(b"\r\n")
        lines.append(line if head.parent_id == parent else with_parent(line, parent))
        parent = head.id
    return lines


def with_parent(line: bytes, parent: str | None) -> bytes:
    """The line with another `parentId`; everything else stays as it is."""
    span = parent_span(line)
    if span is not None:
        return line[: span[0]] + codec.dumps(parent) + line[span[1] :]
    return codec.dumps({**codec.loads(line), "parentId": parent})


def _goes_along(head: EntryHead, path: set[str]) -> bool:
    if head.type == "label":
        return head.detail in path
    return not (head.type == "custom" and head.detail in facts.INBOX_FACTS)


def _boundaries(session: Session, branch: Sequence[EntryHead]) -> set[str]:
    entries = (session.entry(head.id) for head in branch if head.type == "compaction")
    return {entry.first_kept_entry_id for entry in entries if isinstance(entry, CompactionEntry)}


def _labels_from_elsewhere(heads: Sequence[EntryHead], path: set[str]) -> list[EntryHead]:
    """The labels that hold for entries of the path but were given while the leaf was elsewhere."""
    last = {head.detail: head for head in heads if head.type == "label" and head.detail in path}
    return [head for head in last.values() if head.id not in path]
