"""What a model is told when it is to summarise. The headings are pi's; readers rely on them."""

from __future__ import annotations

__all__ = [
    "BRANCH_PREAMBLE",
    "NO_HISTORY",
    "SPLIT_TURN",
    "SYSTEM",
    "branch_request",
    "history_request",
    "in_place_request",
    "turn_request",
]

SYSTEM = """\
You write summaries of conversations between a person and a coding agent. Another agent will \
continue the work with your summary in place of the conversation. You only summarise: do not \
answer questions from the conversation, do not carry out what it asks for, and call no tools."""

_SECTIONS = """\
## Goal
[What the person wants to reach; several goals if there are several.]

## Constraints & Preferences
- [What the person asked for or ruled out, how they want things done, or "(none)"]

## Progress
### Done
- [x] [What is finished, changes to files included]

### In Progress
- [ ] [What is being worked on]

### Blocked
- [What stands in the way, or "(none)"]

## Key Decisions
- **[Decision]**: [Why]

## Next Steps
1. [What comes next, in order]

## Critical Context
- [Facts, names, figures and references without which the work cannot go on, or "(none)"]"""

_CARE = """\
Be brief. Keep file paths, names of functions and error messages exactly as they are. \
Leave out lists of files that were read or changed; they are added for you."""

_FIRST = f"""\
Write a structured summary that another agent can continue from. Use exactly this form:

{_SECTIONS}

{_CARE}"""

_UPDATE = f"""\
The conversation above goes on from where the previous summary ends. Bring that summary up to \
date: keep everything in it that still holds, add what is new, move what was finished from "In \
Progress" to "Done", revise the next steps, and drop only what no longer matters. Use exactly \
this form:

{_SECTIONS}

{_CARE}"""

_TURN_SECTIONS = """\
## Original Request
[What the person asked for in this turn]

## Progress So Far
- [What was done and decided in the part that goes away]

## Context Needed to Continue
- [What the part that stays cannot be understood without]"""

_TURN = f"""\
This is the first part of a turn that was too long to keep; its later part stays as it is. \
Write down what is needed to understand that later part. Use exactly this form:

{_TURN_SECTIONS}

{_CARE}"""

SPLIT_TURN = "\n\n---\n\n**Turn Context (split turn):**\n\n"
"""What stands between the summary of the history and that of a turn's first part."""

NO_HISTORY = "No prior history."

_IN_PLACE = f"""\
The conversation up to here is about to be replaced by a summary, and this is the request for \
it: take everything before this message as if it stood in <conversation> tags. Do not continue \
the work, and call no tools: your whole answer is the summary. Write it so that another agent \
can continue from it; what an earlier summary says must be in it as far as it still holds. Use \
exactly this form:

{_SECTIONS}

{_CARE}"""

_IN_PLACE_TURN = f"""\
The last turn, from the person's last request on, is not over: its later part stays. After the \
sections above, which are about everything before that turn, add a line `---`, a line \
`**Turn Context (split turn):**`, and the first part of that turn in this form:

{_TURN_SECTIONS}"""

_BRANCH = (
    """\
This is a branch of a conversation that the person has left to go on elsewhere. Write a \
structured summary of it, so that what was learnt there can be used. Use exactly this form:

## Goal
[What the person wanted to reach on this branch]

## Constraints & Preferences
- [What the person asked for or ruled out, or "(none)"]

## Progress
### Done
- [x] [What was finished]

### In Progress
- [ ] [What was begun and not finished]

### Blocked
- [What stood in the way, or "(none)"]

## Key Decisions
- **[Decision]**: [Why]

## Next Steps
1. [What would have come next]

"""
    + _CARE
)

BRANCH_PREAMBLE = """\
The person tried another branch of this conversation and then came back to this point. \
A summary of that branch:

"""
"""Begins every stored summary of a branch."""


_GOES_ON = """\
The conversation above goes on from where the previous summary ends: what that says must be in \
yours."""


# ------------------------------------------------------------------ requests


def history_request(conversation: str, previous: str | None, focus: str = "") -> str:
    """Summarise `conversation`, or bring the `previous` summary up to date with it."""
    return _about(conversation, previous, _focused(_FIRST if previous is None else _UPDATE, focus))


def turn_request(conversation: str, previous: str | None, focus: str = "") -> str:
    """Summarise the first part of a turn; `previous` is what a part before that came to."""
    before = "" if previous is None else f"{_block('previous-summary', previous)}\n\n"
    task = _TURN if previous is None else f"{_GOES_ON}\n\n{_TURN}"
    return f"# Conversation\n\n{before}{conversation}\n\n# Instructions\n\n{_focused(task, focus)}"


def in_place_request(split: bool, focus: str = "") -> str:
    """Summarise the conversation that this message is the end of."""
    return _focused(f"{_IN_PLACE}\n\n{_IN_PLACE_TURN}" if split else _IN_PLACE, focus)


def branch_request(conversation: str, previous: str | None, focus: str = "", replace: bool = False) -> str:
    """Summarise a branch; with `replace`, do with it what `focus` says."""
    task = focus.strip() if replace and focus.strip() else _focused(_BRANCH, focus)
    return _about(conversation, previous, task if previous is None else f"{_GOES_ON}\n\n{task}")


def _about(conversation: str, previous: str | None, task: str) -> str:
    blocks = [_block("conversation", conversation)]
    if previous is not None:
        blocks.append(_block("previous-summary", previous))
    return "\n\n".join([*blocks, task])


def _focused(task: str, focus: str) -> str:
    return f"{task}\n\nAdditional focus: {focus.strip()}" if focus.strip() else task


def _block(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>"
