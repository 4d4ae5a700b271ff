"""Any history becomes one that the next model accepts, whichever dialect began it."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Iterator
from itertools import permutations, product
from pathlib import Path
from typing import Any

import attrs
import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.llm import (
    anthropic_messages,
    anthropic_request,
    google_generative_ai,
    google_request,
    handoff,
    openai_completions,
    openai_request,
    openai_responses,
    openai_responses_request,
)
from pi_trio.llm.handoff import CallIds, Reader, hand_over
from pi_trio.llm.protocol import Context, Model, StreamOptions
from pi_trio.messages import (
    AssistantMessage,
    ImageContent,
    LlmMessage,
    OpaqueContent,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
)

PICTURE = ImageContent("AAAA", "image/png")
READER = Reader("p", "a", "m", images=True, call_ids=CallIds(re.compile(r"[a-z0-9_]{1,8}"), length=3))
BLIND = attrs.evolve(READER, images=False)


def said(*content: Any, **fields: Any) -> AssistantMessage:
    return AssistantMessage(content, **{"api": "a", "provider": "p", "model": "m", **fields})


def result(call_id: str, *content: Any) -> ToolResultMessage:
    return ToolResultMessage(call_id, "t", content)


def handed(*messages: LlmMessage, reader: Reader = READER) -> list[LlmMessage]:
    return list(hand_over(messages, reader))


# ------------------------------------------------------------------ between dialects


@frozen
class Dialect:
    """What a dialect must bring to join: an answer in its own form, and how to look into its requests.

    `stream` are the events of an answer with thinking, text and two calls. `signed` are words
    of it that no other model may get. `calls` and `results` find ids in a body, in order.
    """

    model: Model
    decoder: Callable[[Model, StreamOptions], Any]
    stream: tuple[dict[str, Any], ...]
    encode: Callable[[Model, Context, StreamOptions], bytes]
    signed: tuple[str, ...]
    calls: Callable[[Any], list[str]]
    results: Callable[[Any], list[str]]

    def answer(self) -> AssistantMessage:
        """What this dialect makes of its stream."""
        decoder = self.decoder(self.model, StreamOptions())
        for event in self.stream:
            decoder.feed(event.get("type", ""), json.dumps(event))
        if not decoder.ended:
            decoder.finish()
        return decoder.take()[-1].message

    def body(self, *messages: LlmMessage) -> Any:
        return json.loads(self.encode(self.model, Context("Be brief.", messages), StreamOptions()))


def chat_delta(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def chat_call(index: int, call_id: str) -> dict[str, Any]:
    return {"index": index, "id": call_id, "function": {"name": "look", "arguments": '{"at":"é"}'}}


def response_item(place: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def response_call(place: int, call_id: str) -> dict[str, Any]:
    fields = {"id": f"fc_{call_id}", "call_id": call_id, "name": "look", "arguments": '{"at":"é"}'}
    return response_item(place, type="function_call", **fields)


def block(index: int, head: dict[str, Any], **deltas: str) -> list[dict[str, Any]]:
    """A block of the Messages dialect; its deltas are named by their type."""
    field = {"input_json_delta": "partial_json"}
    pieces = [
        {"type": kind, field.get(kind, kind.removesuffix("_delta")): words} for kind, words in deltas.items()
    ]
    return [
        {"type": "content_block_start", "index": index, "content_block": head},
        *({"type": "content_block_delta", "index": index, "delta": piece} for piece in pieces),
        {"type": "content_block_stop", "index": index},
    ]


def gemini_part(finish: str | None = None, **part: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [part]}, **({"finishReason": finish} if finish else {})}]}


def parts_of(body: Any, name: str) -> list[dict[str, Any]]:
    """The blocks or parts of all messages."""
    return [part for message in body.get("messages", body.get("contents")) for part in message[name]]


DIALECTS = {
    "openai-completions": Dialect(
        Model("chat", api="openai-completions", provider="deepseek", reasoning=True, input=("text", "image")),
        openai_completions.ChunkDecoder,
        (
            chat_delta(reasoning_content="chat thinks"),
            chat_delta(content="I look."),
            chat_delta(tool_calls=[chat_call(0, "call_" + "x" * 50), chat_call(1, "call_b")]),
            chat_delta("tool_calls"),
        ),
        openai_request.encode_request,
        ("chat thinks",),
        lambda body: [call["id"] for each in body["messages"] for call in each.get("tool_calls", ())],
        lambda body: [each["tool_call_id"] for each in body["messages"] if each["role"] == "tool"],
    ),
    "openai-responses": Dialect(
        Model("response", api="openai-responses", provider="openai", reasoning=True, input=("text", "image")),
        openai_responses.EventDecoder,
        (
            response_item(
                0,
                type="reasoning",
                id="rs_1",
                summary=[{"text": "response thinks"}],
                encrypted_content="gA+/=",
            ),
            response_item(1, type="message", id="msg_1", content=[{"text": "I look."}], phase="commentary"),
            response_call(2, "call_a"),
            response_call(3, "call_b"),
            {"type": "response.completed", "response": {"status": "completed"}},
        ),
        openai_responses_request.encode_request,
        ("response thinks", "gA+/=", "commentary"),
        lambda body: [each["call_id"] for each in body["input"] if each.get("type") == "function_call"],
        lambda body: [
            each["call_id"] for each in body["input"] if each.get("type") == "function_call_output"
        ],
    ),
    "anthropic-messages": Dialect(
        Model(
            "claude", api="anthropic-messages", provider="anthropic", reasoning=True, input=("text", "image")
        ),
        anthropic_messages.EventDecoder,
        (
            *block(0, {"type": "thinking"}, thinking_delta="claude thinks", signature_delta="Eu4B+/="),
            *block(1, {"type": "redacted_thinking", "data": "sealed"}),
            *block(2, {"type": "text"}, text_delta="I look."),
            *block(3, {"type": "tool_use", "id": "toolu_a", "name": "look"}, input_json_delta='{"at":"é"}'),
            *block(4, {"type": "tool_use", "id": "toolu_b", "name": "look"}, input_json_delta='{"at":"é"}'),
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ),
        anthropic_request.encode_request,
        ("claude thinks", "Eu4B+/=", "sealed"),
        lambda body: [each["id"] for each in parts_of(body, "content") if each["type"] == "tool_use"],
        lambda body: [
            each["tool_use_id"] for each in parts_of(body, "content") if each["type"] == "tool_result"
        ],
    ),
    "google-generative-ai": Dialect(
        Model(
            "gemini-4", api="google-generative-ai", provider="google", reasoning=True, input=("text", "image")
        ),
        google_generative_ai.ResponseDecoder,
        (
            gemini_part(text="gemini thinks", thought=True),
            gemini_part(text="I look.", thoughtSignature="CiQ+/w=="),
            gemini_part(functionCall={"name": "look", "args": {"at": "é"}}, thoughtSignature="EqA+/w=="),
            gemini_part("STOP", functionCall={"name": "look", "args": {"at": "é"}}),
        ),
        google_request.encode_request,
        ("gemini thinks", "CiQ+/w==", "EqA+/w=="),
        lambda body: [
            each["functionCall"]["id"] for each in parts_of(body, "parts") if "functionCall" in each
        ],
        lambda body: [
            each["functionResponse"]["id"] for each in parts_of(body, "parts") if "functionResponse" in each
        ],
    ),
}


def conversation(answer: AssistantMessage) -> list[LlmMessage]:
    """A turn with everything that providers quarrel about."""
    first, second = answer.tool_calls
    broken_off = attrs.evolve(answer, stop_reason="aborted")
    failed = attrs.evolve(answer, stop_reason="error")
    return [
        UserMessage.of("Look", [PICTURE]),
        answer,
        result(first.id, PICTURE, TextContent("seen")),
        SystemMessage("Mind the step."),
        result(second.id, TextContent("")),
        UserMessage.of("again"),
        failed,
        broken_off,
        UserMessage.of("and again"),
        answer,
    ]


@pytest.mark.parametrize(("author", "reader"), list(product(DIALECTS, DIALECTS)))
def test_every_dialect_takes_over_from_every_other(author: str, reader: str) -> None:
    """PQ-02, PQ-06, PQ-07: nothing of the author's own goes to another model; calls keep their results."""
    source, target = DIALECTS[author], DIALECTS[reader]
    answer = source.answer()
    assert (answer.text, len(answer.tool_calls)) == ("I look.", 2)
    body = target.body(*conversation(answer))
    text = json.dumps(body, ensure_ascii=False)
    for word in source.signed:
        assert (word in text) is (author == reader), word
    calls = target.calls(body)
    assert len(calls) == 4
    assert target.results(body) == calls
    assert text.count("I look.") == 3
    assert text.count("No result provided") == 2
    assert "(no output)" in text


@pytest.mark.parametrize(("author", "other"), list(permutations(DIALECTS, 2)))
def test_back_at_its_author_an_answer_is_whole_again(author: str, other: str) -> None:
    """PQ-02"""
    source = DIALECTS[author]
    own, foreign = source.answer(), DIALECTS[other].answer()
    text = json.dumps(source.body(*conversation(own)[:5], *conversation(foreign)), ensure_ascii=False)
    assert all(word in text for word in source.signed)
    assert not any(word in text for word in DIALECTS[other].signed)


@pytest.mark.parametrize("name", DIALECTS)
def test_longer_history_begins_with_the_bytes_of_the_shorter(name: str) -> None:
    """What a provider has cached stays good. Only the ends of open lists and objects may move."""
    dialect = DIALECTS[name]
    messages = conversation(dialect.answer())
    unmarked = StreamOptions(cache_retention="none")
    bodies = [dialect.encode(dialect.model, Context("", messages[:count]), unmarked) for count in (5, 6, 9)]
    shorter = common_start(bodies)
    assert set(bodies[0][len(shorter) :]) <= set(b"]}")


def common_start(bodies: list[bytes]) -> bytes:
    length = 0
    for letters in zip(*bodies, strict=False):
        if len(set(letters)) > 1:
            break
        length += 1
    return bodies[0][:length]


FOLDERS = {
    "openai-completions": ("openai-chat", "openrouter", "deepseek", "groq", "mistral", "ollama-openai"),
    "openai-responses": ("openai-responses",),
    "anthropic-messages": ("anthropic",),
    "google-generative-ai": ("gemini",),
}


def recorded_answers(dialect: Dialect, folders: list[Path]) -> Iterator[AssistantMessage]:
    """The whole answers with calls among the recordings in these folders."""
    for path in [each for folder in folders for each in sorted(folder.glob("*.sse"))]:
        decoder = dialect.decoder(dialect.model, StreamOptions())
        for line in path.read_bytes().decode().split("\n"):
            name, _, data = line.partition(": ")
            if name == "data" and not decoder.ended:
                decoder.feed("", data)
        if not decoder.ended:
            decoder.finish()
        message = decoder.take()[-1].message
        if message.stop_reason == "toolUse":
            yield message


@pytest.mark.parametrize("author", DIALECTS)
def test_recorded_answers_are_taken_over(author: str, shared: Path) -> None:
    """PQ-02, PQ-06: whatever a real model said, the next one gets calls with their results."""
    answers = list(recorded_answers(DIALECTS[author], [shared / "wire" / name for name in FOLDERS[author]]))
    assert len(answers) > 5
    for reader, answer in product(DIALECTS.values(), answers):
        results = [result(call.id, TextContent("done")) for call in answer.tool_calls]
        body = reader.body(UserMessage.of("go"), answer, *results)
        assert len(reader.calls(body)) == len(results)
        assert reader.results(body) == reader.calls(body)


# ------------------------------------------------------------------ one by one


def test_what_fits_is_handed_on_as_the_same_object() -> None:
    messages = [
        SystemMessage("s"),
        UserMessage("plain"),
        UserMessage.of("look", [PICTURE]),
        said(
            ThinkingContent("hm", "sig"), TextContent("x", "sig"), ToolCall("c1", "t", thought_signature="s")
        ),
        result("c1", PICTURE),
    ]
    assert all(new is old for new, old in zip(handed(*messages), messages, strict=True))


def test_what_was_changed_is_changed_once_and_goes_with_its_message() -> None:
    reader = attrs.evolve(READER, model="forgetful")
    message = said(TextContent("x", "sig"))
    first, second = handed(message, reader=reader), handed(message, reader=reader)
    assert first[0] is second[0]
    assert len(handoff._changes[reader]) == 1
    del message, first, second
    gc.collect()
    assert len(handoff._changes[reader]) == 0


def test_only_the_author_gets_thinking_signatures_and_blocks_of_its_own() -> None:
    content = (
        ThinkingContent("", "opaque", redacted=True),
        OpaqueContent("server_tool_use"),
        TextContent("x", "sig"),
        ToolCall("c1", "t", {"a": 1}, thought_signature="sig"),
    )
    assert handed(said(*content))[0].content == content
    plain = (TextContent("x"), ToolCall("c1", "t", {"a": 1}))
    for stranger in ({"provider": "q"}, {"api": "b"}, {"model": "n"}):
        assert handed(said(*content, **stranger))[0].content == plain


@pytest.mark.parametrize(
    "answer",
    [
        said(TextContent("half"), stop_reason="error"),
        said(ThinkingContent("hm", "sig")),
        said(TextContent(" \n")),
        said(ToolCall("c1", "t"), stop_reason="aborted"),
        said(),
    ],
)
def test_answer_that_says_nothing_is_left_out(answer: AssistantMessage) -> None:
    """PQ-07"""
    assert handed(answer, result("c1", TextContent("x"))) == []


def test_aborted_answer_keeps_its_text_only() -> None:
    aborted = said(
        ThinkingContent("hm"), TextContent("I will", "sig"), ToolCall("c1", "t"), stop_reason="aborted"
    )
    assert handed(aborted)[0].content == (TextContent("I will"),)


def test_results_without_a_call_and_second_results_are_left_out() -> None:
    call = said(ToolCall("c1", "t"))
    orphan, first, second = result("c0"), result("c1", TextContent("1")), result("c1", TextContent("2"))
    assert handed(orphan, call, first, second) == [call, first]


def test_rows_of_images_become_one_note() -> None:
    user = UserMessage.of("two", [PICTURE, PICTURE])
    note = TextContent("(image omitted: model does not support images)")
    assert handed(user, reader=BLIND)[0].content == (TextContent("two"), note)
    call = said(ToolCall("c1", "t"))
    [_, shown] = handed(call, result("c1", PICTURE, TextContent("a"), PICTURE), reader=BLIND)
    tool_note = TextContent("(tool image omitted: model does not support images)")
    assert shown.content == (tool_note, TextContent("a"), tool_note)


def test_blocks_that_nobody_knows_are_left_out() -> None:
    video = OpaqueContent("video")
    assert handed(UserMessage((video,)), UserMessage((video, TextContent("x"))))[0].content == (
        TextContent("x"),
    )


def test_ids_are_fitted_alike_wherever_they_stand() -> None:
    [call, answer] = handed(said(ToolCall("Call|1", "t")), result("Call|1", TextContent("x")))
    assert call.tool_calls[0].id == answer.tool_call_id
    assert READER.call_ids.allowed.fullmatch(answer.tool_call_id)


def test_an_id_stands_for_one_call_only() -> None:
    """Some hosts number the calls of every answer from 0, and some give all calls of one the same id."""
    step = [said(ToolCall("c0", "t")), result("c0", TextContent("1"))]
    twice = [said(ToolCall("c0", "t"), ToolCall("c0", "t")), *(result("c0", TextContent(n)) for n in "23")]
    sent = handed(*step, *twice)
    calls = [
        call.id for message in sent if isinstance(message, AssistantMessage) for call in message.tool_calls
    ]
    answers = [
        (each.tool_call_id, text_of(each.content)) for each in sent if isinstance(each, ToolResultMessage)
    ]
    assert calls[0] == "c0"
    assert len(set(calls)) == 3
    assert answers == list(zip(calls, "123", strict=True))
    assert handed(*step) == sent[:2]
    assert handed(*step, *twice) == sent


def histories() -> st.SearchStrategy[list[LlmMessage]]:
    ids = st.sampled_from(["a", "b", "Foreign|1"])
    blocks = st.one_of(
        st.text(max_size=3).map(TextContent),
        st.builds(ThinkingContent, st.text(max_size=2), st.none() | st.just("sig")),
        ids.map(lambda call_id: ToolCall(call_id, "t")),
    )
    answers = st.builds(
        said,
        blocks,
        blocks,
        model=st.sampled_from(["m", "n"]),
        stop_reason=st.sampled_from(["stop", "toolUse", "error", "aborted"]),
    )
    results = ids.map(lambda call_id: result(call_id, PICTURE))
    others = st.sampled_from([UserMessage("u"), UserMessage.of("i", [PICTURE]), SystemMessage("s")])
    return st.lists(st.one_of(answers, results, others), max_size=12)


@given(histories(), st.sampled_from([READER, BLIND]))
def test_calls_and_results_always_match(messages: list[LlmMessage], reader: Reader) -> None:
    """PQ-06: right after an answer come the results of its calls, one each, and no others."""
    rest = iter(handed(*messages, reader=reader))
    for message in rest:
        assert not isinstance(message, ToolResultMessage)
        if isinstance(message, AssistantMessage):
            wanted = {call.id for call in message.tool_calls}
            assert {answer.tool_call_id for answer in taken(rest, len(wanted))} == wanted


def taken(messages: Iterator[LlmMessage], count: int) -> Iterator[ToolResultMessage]:
    for _ in range(count):
        message = next(messages)
        assert isinstance(message, ToolResultMessage)
        yield message
