"""The prompts of a session as a tree of text lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from pi_trio.session.tree import EntryHead
from pi_trio.session.withdrawn import withdrawn

__all__ = ["PromptNode", "prompt_tree"]


@frozen
class PromptNode:
    """A prompt. `number` counts in the order of the file from 1; `depth` grows only where paths part."""

    id: str
    number: int
    depth: int
    active: bool


def prompt_tree(heads: Sequence[EntryHead], leaf_id: str | None) -> list[PromptNode]:
    """The prompts, each before those that follow it. `active` are those on the way to the leaf.

    Those that are withdrawn are left out.
    """
    above, gone = _prompts_above(heads), withdrawn(heads, leaf_id)
    prompts = [head.id for head in heads if _is_prompt(head) and head.id not in gone]
    numbers = {each: number for number, each in enumerate(prompts, 1)}
    parents = {head.id: above.get(head.parent_id or "") for head in heads if head.id in numbers}
    children: dict[str | None, list[str]] = {}
    for each in prompts:
        children.setdefault(parents[each], []).append(each)
    active = set(_upward(above.get(leaf_id or ""), parents))
    return [PromptNode(each, numbers[each], depth, each in active) for each, depth in _downward(children)]


def _is_prompt(head: EntryHead) -> bool:
    return head.type == "message" and head.detail == "user"


def _prompts_above(heads: Iterable[EntryHead]) -> dict[str, str]:
    """For each entry the nearest prompt on its way to the root, itself included."""
    above: dict[str, str] = {}
    for head in heads:
        nearest = head.id if _is_prompt(head) else above.get(head.parent_id or "")
        if nearest is not None:
            above[head.id] = nearest
    return above


def _upward(prompt: str | None, parents: dict[str, str | None]) -> Iterator[str]:
    while prompt is not None:
        yield prompt
        prompt = parents[prompt]


def _downward(children: dict[str | None, list[str]]) -> Iterator[tuple[str, int]]:
    stack = [(each, 0) for each in reversed(children.get(None, []))]
    while stack:
        prompt, depth = stack.pop()
        yield prompt, depth
        below = children.get(prompt, [])
        stack += [(each, depth + (len(below) > 1)) for each in reversed(below)]
