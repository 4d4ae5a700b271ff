"""A model that says what a test tells it to."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import field, frozen

from pi_trio.codec import dumps
from pi_trio.llm.builder import AnswerBuilder
from pi_trio.llm.playback import Beat, Playback
from pi_trio.llm.protocol import Context, Failure, Model, ModelCost, StreamOptions
from pi_trio.messages import AssistantMessage, StopReason, Usage

__all__ = ["Call", "Hang", "Pause", "Recorded", "ScriptedModel", "Stop", "Text", "Think"]


# ------------------------------------------------------------------ what a script is made of


@frozen
class Text:
    """Visible text: one delta for each of `deltas`."""

    deltas: tuple[str, ...]

    @classmethod
    def of(cls, *deltas: str) -> Text:
        """Text in these deltas."""
        return cls(deltas)


@frozen
class Think:
    """Thinking: one delta for each of `deltas`."""

    deltas: tuple[str, ...]

    @classmethod
    def of(cls, *deltas: str) -> Think:
        """Thinking in these deltas."""
        return cls(deltas)


@frozen
class Call:
    """A tool call. `arguments` may be the raw JSON text, right or wrong; without an id it gets one."""

    name: str
    arguments: Mapping[str, Any] | str = field(factory=dict)
    id: str | None = None


@frozen
class Pause:
    """Nothing for this many seconds of trio's clock."""

    seconds: float


@frozen
class Hang:
    """Nothing ever again."""


@frozen
class Stop:
    """The reason to stop for, such as `length`, where it is not the ordinary one."""

    reason: StopReason


Part: TypeAlias = "str | Text | Think | Call | Pause | Hang | Stop | Usage | Failure | BaseException"
Answer: TypeAlias = "Part | Sequence[Part]"
"""One part, or several in order. Text may be given as a plain string; a failure or an exception ends it."""


@frozen
class Recorded:
    """One request as the model got it."""

    model: Model
    context: Context
    options: StreamOptions


# ------------------------------------------------------------------ the model


class ScriptedModel:
    """A `StreamFunction` that plays `answers` in order and records the requests.

    All events of an answer arrive together unless a pause is scripted. When the script has
    run out, a request fails with the code `configuration`, so a test that asks too often
    notices. An answer stops for `toolUse` if it has calls, else for `stop`. `record=False`
    forgets the requests, for runs of many thousand steps.
    """

    def __init__(
        self, answers: Iterable[Answer] = (), model: Model | None = None, *, record: bool = True
    ) -> None:
        self.model: Model = model or Model(
            "scripted", name="Scripted", api="scripted", provider="scripted", reasoning=True, cost=ModelCost()
        )
        self.requests: list[Recorded] = []
        self.request_count: int = 0
        self._record = record
        self._answers = iter(answers)
        self._added: deque[Answer] = deque()

    def add(self, *answers: Answer) -> None:
        """Append answers, played after those given at the start."""
        self._added.extend(answers)

    def __call__(self, model: Model, context: Context, options: StreamOptions) -> Playback:
        self.request_count += 1
        if self._record:
            self.requests.append(Recorded(model, context, options))
        return Playback(_play(model, self._next(), self.request_count))

    def _next(self) -> Answer:
        for answer in self._answers:
            return answer
        if self._added:
            return self._added.popleft()
        return Failure("The script has no answer for this request.", "configuration")


def _play(model: Model, answer: Answer, request: int) -> Iterator[Beat]:
    builder = AnswerBuilder(AssistantMessage((), model.api, model.provider, model.id))
    builder.start()
    reason: StopReason | None = None
    for number, part in enumerate(_parts(answer)):
        match part:
            case str():
                builder.text(part)
            case Text(deltas):
                for delta in deltas:
                    builder.text(delta)
            case Think(deltas):
                for delta in deltas:
                    builder.thinking(delta)
            case Call(name, arguments, given):
                raw = arguments if isinstance(arguments, str) else dumps(dict(arguments)).decode()
                builder.tool_call(number, given or f"call_{request}_{number}", name, raw)
            case Usage():
                builder.usage = part
            case Stop(chosen):
                reason = chosen
            case Pause(seconds):
                yield builder.take()
                yield seconds
            case Hang():
                yield builder.take()
                yield math.inf
            case Failure():
                builder.failed(part)
                yield builder.take()
                return
            case BaseException():
                yield builder.take()
                raise part
    builder.done(reason or ("toolUse" if builder.has_calls else "stop"))
    yield builder.take()


def _parts(answer: Answer) -> Sequence[Part]:
    return answer if isinstance(answer, (list, tuple)) else (answer,)
