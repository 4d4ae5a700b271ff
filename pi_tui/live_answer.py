"""The answer that is being streamed, as blocks that grow."""

from __future__ import annotations

from pi_trio.llm.protocol import StreamEvent, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd
from pi_trio.messages import AssistantMessage, TextContent, ThinkingContent
from pi_tui.shown import LiveBlock

__all__ = ["LiveAnswer"]


class LiveAnswer(dict[int, LiveBlock]):
    """Its text and its thinking, by their places in the message. Empty while none is streamed."""

    def begin(self, message: AssistantMessage) -> None:
        """An answer begins, or is met in the middle."""
        self.clear()
        for index, block in enumerate(message.content):
            if isinstance(block, TextContent):
                self[index] = LiveBlock("text", [block.text])
            elif isinstance(block, ThinkingContent):
                self[index] = LiveBlock("thinking", [block.thinking])

    def grow(self, piece: StreamEvent) -> bool:
        """Take in a piece. False if it shows nothing: arguments of calls are shown when the call starts."""
        match piece:
            case TextDelta(index, delta):
                self.setdefault(index, LiveBlock("text")).pieces.append(delta)
            case ThinkingDelta(index, delta):
                self.setdefault(index, LiveBlock("thinking")).pieces.append(delta)
            case TextEnd(index, text):
                self[index] = LiveBlock("text", [text])
            case ThinkingEnd(index, text):
                self[index] = LiveBlock("thinking", [text])
            case _:
                return False
        return True
