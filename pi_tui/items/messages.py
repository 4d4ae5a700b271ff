"""What people and models said, in the stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.style import Style
from textual.strip import Strip

from pi_trio.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    UserMessage,
    text_of,
)
from pi_trio.text import settled
from pi_tui.items.markdown import Growing, Progress, markdown
from pi_tui.items.paint import BOLD, ITALIC, Budget, Look, Span, beginning, indented, line, painted, wrapped
from pi_tui.items.tools import call_strips
from pi_tui.items.words import clock, plural
from pi_tui.keymap import hint
from pi_tui.shown import Call, LiveBlock, Shell

__all__ = ["LiveAnswer", "answer", "bash_execution", "labelled", "running_shell", "user"]

THINKING_LINES = 3

PROMPT_LINES = 20
"""Lines that are shown of a prompt, unless it is unfolded."""

SHELL_LINES = 12
"""Lines that are shown of what a command of the user printed, unless it is unfolded."""


def user(message: UserMessage, look: Look) -> list[Strip]:
    """A prompt, behind a bar on its own ground."""
    theme = look.theme
    ground = theme["userMessageBg"]
    inside, style = look.narrower(3), theme["userMessageText"]
    lines, more = _opening(text_of(message.content), PROMPT_LINES, inside, style, ground)
    if more:
        lines.append(line(inside.width, [(f"{more}{_unfolds(look)}", theme["muted"])], ground=ground))
    pictures = sum(isinstance(block, ImageContent) for block in message.content)
    if pictures:
        lines.append(line(look.width - 3, [(f"[{pictures} image]", theme["muted"])], ground=ground))
    mark: Span = ("▌", theme["accent"] + ground)
    return [_padded(strip, mark, look.width, ground) for strip in lines]


def answer(
    message: AssistantMessage, calls: Mapping[str, Call], look: Look, progress: Progress | None = None
) -> list[Strip]:
    """An answer: its thinking, its text, its calls, and how it ended if that was not well."""
    parts: list[list[Strip]] = []
    for index, block in enumerate(message.content):
        if isinstance(block, ThinkingContent) and block.thinking.strip():
            parts.append(thinking(block.thinking, look))
        elif isinstance(block, TextContent) and block.text.strip():
            parts.append(_text(block.text, index, look, progress))
    lines = [
        strip
        for call in message.tool_calls
        if call.id in calls
        for strip in call_strips(calls[call.id], look)
    ]
    parts += [lines, _ending(message, look)]
    return _joined(parts, look)


def thinking(text: str, look: Look) -> list[Strip]:
    """Reasoning: its first lines, all of it when unfolded."""
    inside = look.narrower(2)
    strips, more = _opening(text.strip(), THINKING_LINES, inside, look.theme["thinkingText"] + ITALIC)
    if more:
        strips.append(line(inside.width, [(more, look.theme["dim"])]))
    mark: Span = ("┊ ", look.theme["borderMuted"])
    return indented(strips, mark, mark)


class LiveAnswer:
    """The streaming answer. Keeps what is already drawn of it, for one look."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._growing: dict[int, Growing] = {}

    def strips(self, blocks: Mapping[int, LiveBlock], budget: Budget | None = None) -> list[Strip]:
        """The answer so far."""
        parts: list[list[Strip]] = []
        for index in sorted(blocks):
            block = blocks[index]
            if not block.text.strip():
                continue
            if block.kind == "thinking":
                parts.append(self._thinking(block.text))
            else:
                parts.append(self._growing_at(index).strips(block.text, budget=budget))
        return _joined(parts, self.look)

    def _growing_at(self, index: int) -> Growing:
        if index not in self._growing:
            self._growing[index] = Growing(self.look, self.look.theme["text"])
        return self._growing[index]

    def _thinking(self, text: str) -> list[Strip]:
        """While it goes on the end of it is worth seeing, and only that is drawn."""
        mark: Span = ("┊ ", self.look.theme["borderMuted"])
        recent = text.strip()[-self.look.width * (THINKING_LINES + 1) :]
        strips = wrapped(recent, self.look.width - 2, self.look.theme["thinkingText"] + ITALIC)
        return indented(strips[-THINKING_LINES:], mark, mark)


def bash_execution(message: BashExecutionMessage, look: Look) -> list[Strip]:
    """A command that the user ran, and the end of what it printed."""
    if message.cancelled:
        ending: list[Span] = [("stopped", look.theme["warning"])]
    elif message.exit_code:
        ending = [(f"exit {message.exit_code}", look.theme["error"])]
    else:
        ending = []
    return _shell(message.command, message.output, ending, look, private=bool(message.exclude_from_context))


def running_shell(shell: Shell, look: Look) -> list[Strip]:
    """A command of the user that runs, or whose entry is not written yet."""
    if shell.message is not None:
        return bash_execution(shell.message, look)
    return _shell(shell.command, shell.output, [(clock(look.now - shell.started), look.theme["muted"])], look)


def _shell(
    command: str, output: str, ending: Sequence[Span], look: Look, *, private: bool = False
) -> list[Strip]:
    theme = look.theme
    head: list[Span] = [("!! " if private else "! ", theme["bashMode"] + BOLD), (command, theme["text"])]
    seen = settled(output).strip("\n")
    lines = wrapped(seen, look.width - 2, theme["toolOutput"]) if seen.strip() else []
    if len(lines) > SHELL_LINES and not look.expanded:
        more = line(look.width - 2, [(f"… {plural(len(lines) - SHELL_LINES, 'line')} above", theme["dim"])])
        lines = [more, *lines[-SHELL_LINES:]]
    mark: Span = ("│ ", theme["borderMuted"])
    return [line(look.width, head, ending), *indented(lines, mark, mark)]


def labelled(label: str, text: str, look: Look) -> list[Strip]:
    """A summary or an application's message: a label, and its text when there is room for it."""
    theme = look.theme
    ground = theme["customMessageBg"]
    head = line(look.width, [(f" {label} ", theme["customMessageLabel"] + BOLD)], ground=ground)
    if not text.strip():
        return [head]
    body = markdown(text, look.narrower(2), theme["customMessageText"])
    shown = body if look.expanded else body[:THINKING_LINES]
    return [head, *(_padded(strip, (" ", Style()), look.width, ground) for strip in shown)]


def _unfolds(look: Look) -> str:
    """The key that shows all of it, if there is one."""
    label = hint({"app.tools.expand": ""}, look.keymap).strip()
    return f", {label}" if label else ""


def _opening(
    text: str, lines: int, look: Look, style: Style, ground: Style | None = None
) -> tuple[list[Strip], str]:
    """The first lines of a text and what is said of the rest; all of it when unfolded."""
    if look.expanded:
        return wrapped(text, look.width, style, ground), ""
    strips, more = beginning(text, lines, look.width, style, ground)
    return strips, f"… {plural(more, 'more line')}" if more else ""


def _text(text: str, index: int, look: Look, progress: Progress | None) -> list[Strip]:
    style = look.theme["text"]
    if progress is None:
        return markdown(text, look, style)
    growing = progress.growing.setdefault(index, Growing(look, style))
    return growing.strips(text, final=True, budget=progress.budget)


def _ending(message: AssistantMessage, look: Look) -> list[Strip]:
    theme = look.theme
    if message.stop_reason == "error":
        return wrapped(f"✗ {message.error_message or 'the request failed'}", look.width, theme["error"])
    if message.stop_reason == "aborted":
        return [line(look.width, [("■ stopped here", theme["warning"])])]
    if message.stop_reason == "length":
        return [line(look.width, [("■ cut: the answer reached the output limit", theme["warning"])])]
    return []


def _joined(parts: Sequence[list[Strip]], look: Look) -> list[Strip]:
    """Parts with a blank line between them."""
    out: list[Strip] = []
    for part in parts:
        if out and part:
            out.append(painted([], look.width))
        out += part
    return out


def _padded(strip: Strip, mark: Span, width: int, ground: Style) -> Strip:
    first = indented([strip], (mark[0] + " ", mark[1]), (mark[0] + " ", mark[1]))[0]
    return painted(first, width, ground)
