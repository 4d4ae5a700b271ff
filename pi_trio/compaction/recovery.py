"""When to try to make room, when to try again, and when to stop trying.

Neither decision may repeat for ever at the price of a request each: pressure is not answered
twice at the same size, and an overflow is answered once.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pi_trio.compaction.estimate import Meter
from pi_trio.compaction.plan import CompactionSettings
from pi_trio.llm.protocol import Failure
from pi_trio.messages import AssistantMessage

__all__ = ["Overflow", "Pressure", "overflowed"]

# ------------------------------------------------------------------ before a request


Verdict: TypeAlias = Literal["fits", "compact", "full"]
"""Go on; make room first; or no room can be made and the window is full, so do not ask at all."""


class Pressure:
    """Watches the size of one session's context before each request.

    A try is not repeated at about the same size. What ends that wait is a context that fits,
    in the provider's words if it was the provider who had said that it does not: an estimate
    that promises room after each try would let it go on for ever.
    """

    def __init__(self) -> None:
        self._next_try = 0
        self._window = 0
        self._told = False

    def verdict(self, meter: Meter, window: int, settings: CompactionSettings) -> Verdict:
        """What to do about a context of this size."""
        if not settings.presses(meter.size, window):
            if meter.measured or not self._told:
                self._next_try = 0
            return "fits"
        if meter.size >= self._next_try or window != self._window:
            return "compact"
        return "fits" if meter.size <= window else "full"

    def tried(self, before: Meter, window: int, settings: CompactionSettings) -> None:
        """Room was to be made in a context of size `before`, whatever came of it."""
        self._told, self._window = before.measured, window
        self._next_try = before.size + max(window - settings.threshold(window), 4) // 4

    def complaint(self, size: int, window: int) -> str:
        """Why the run stops at a full window: a sentence with the numbers."""
        return (
            f"The context has about {size:,} tokens, the model's window {window:,}, and compaction "
            "could not make enough room. Start a new session, leave out tools or instructions, or "
            "choose a model with a larger window."
        )


# ------------------------------------------------------------------ after a request


def overflowed(message: AssistantMessage, window: int) -> bool:
    """Whether an answer that claims to be one tells that the context did not fit.

    Some providers cut the conversation without a word, some have no room left to answer in.
    """
    if message.raw_stop_reason == "model_context_window_exceeded":
        return True
    sent = message.usage.input + message.usage.cache_read + message.usage.cache_write
    if window <= 0 or message.stop_reason not in ("stop", "length"):
        return False
    if message.stop_reason == "length":
        return message.usage.output == 0 and sent >= 0.99 * window
    return sent > window


class Overflow:
    """What was done about the overflows of one session, and whether more may be.

    After an overflow: prune, then compact once, and send the request again only if the
    context became smaller. `settled` begins anew, after a good answer and when a run ends.
    """

    def __init__(self) -> None:
        self._spent = False
        self._tried: list[str] = []

    def begin(self, failure: Failure) -> bool:
        """Whether to make room because of this failure: only for an overflow, and only once."""
        if failure.code != "context_overflow" or self._spent:
            return False
        self._spent = True
        return True

    def note(self, what: str) -> None:
        """Remember what was tried and what came of it, as a clause without a full stop."""
        self._tried.append(what)

    @staticmethod
    def retry(before: int, after: int) -> bool:
        """Whether the request has a better chance now. Give both as estimates of the whole context."""
        return after < before

    def explain(self, failure: Failure) -> str:
        """The failure's own words, and what was tried."""
        if not self._tried:
            return failure.message
        return f"{failure.message} (Tried: {'; '.join(self._tried)}.)"

    def settled(self) -> None:
        """A request was answered, or the run is over: the next overflow is a new one."""
        self._spent = False
        self._tried.clear()
