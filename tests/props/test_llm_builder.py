"""However an answer is cut into pieces, it is the same answer."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pi_trio.llm.builder import AnswerBuilder
from pi_trio.llm.protocol import TextDelta
from pi_trio.messages import AssistantMessage

UNITS = st.lists(
    st.sampled_from(["a", "é", "한", "😀", "\ud83d", "\ude00", '"', "\\", "\u2028", "\n"]), max_size=12
)


def split(text: str, cuts: list[int]) -> list[str]:
    """The text cut between UTF-16 units, as a provider that counts in those would send it."""
    units = text.encode("utf-16-le", "surrogatepass")
    places = sorted({2 * (cut % (len(units) // 2 + 1)) for cut in cuts})
    bounds = zip([0, *places], [*places, len(units)], strict=True)
    return [units[start:end].decode("utf-16-le", "surrogatepass") for start, end in bounds]


def new_builder() -> AnswerBuilder:
    return AnswerBuilder(AssistantMessage(()))


@given(UNITS, st.lists(st.integers(0, 40), max_size=6))
def test_text(units: list[str], cuts: list[int]) -> None:
    text = "".join(units)
    builder = new_builder()
    for piece in split(text, cuts):
        builder.text(piece)
    builder.done("stop")
    events = builder.take()
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert events[-1].message.text == whole
    assert "".join(event.delta for event in events if isinstance(event, TextDelta)) == whole


@given(UNITS, st.lists(st.integers(0, 60), max_size=6), st.booleans())
def test_arguments(units: list[str], cuts: list[int], escaped: bool) -> None:
    text = "".join(units)
    builder = new_builder()
    for piece in split(json.dumps({"x": text}, ensure_ascii=escaped), cuts):
        builder.tool_call(0, "id", "name" if not builder.has_calls else "", piece)
    builder.done("toolUse")
    [call] = builder.take()[-1].message.tool_calls
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert (call.arguments, call.arguments_error) == ({"x": whole}, None)
