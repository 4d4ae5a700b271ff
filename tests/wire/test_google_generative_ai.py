"""The Generative AI dialect on recorded streams, on its own, and on a server that misbehaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_trio.llm.google_generative_ai import ResponseDecoder, stream
from pi_trio.llm.protocol import (
    Context,
    Done,
    Failed,
    Model,
    ModelCost,
    StreamOptions,
    StreamStart,
    TextDelta,
    ToolCallEnd,
)
from pi_trio.messages import TextContent, ThinkingContent, UserMessage

from .recorded import cut, decoded, read_as, recordings, replay, wanted

MODEL = Model("gemini-x", api="google-generative-ai", provider="google", cost=ModelCost(2, 12, 0.2))
HELLO = Context("Be brief.", (UserMessage.of("hello"),))


def decoder(**options: Any) -> ResponseDecoder:
    return ResponseDecoder(MODEL, StreamOptions(**options))


async def events_of(server, context: Context = HELLO, **options: Any) -> list[Any]:
    model = attrs.evolve(MODEL, base_url=server.base_url)
    async with stream(model, context, StreamOptions(**options)) as events:
        return [event async for event in events]


async def read(*responses: dict[str, Any]) -> list[Any]:
    return await decoded([sse(*responses)], decoder())


async def last_of(*responses: dict[str, Any]) -> Done | Failed:
    return (await read(*responses))[-1]


def sse(*responses: dict[str, Any]) -> bytes:
    return b"".join(f"data: {json.dumps(each)}\r\n\r\n".encode() for each in responses)


def parts(*given: dict[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(given), "role": "model"}, "index": 0}
    if finish:
        candidate |= {"finishReason": finish, **fields.pop("candidate", {})}
    return {"candidates": [candidate], "modelVersion": "gemini-x-1", "responseId": "r1", **fields}


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"text": words, **fields}


def call(name: str, arguments: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    function = {"name": name} if arguments is None else {"name": name, "args": arguments}
    return {"functionCall": {**function, **fields.pop("more", {})}, **fields}


STOP = parts(finish="STOP")


# ------------------------------------------------------------------ recorded streams


def expectation(expected: dict[str, Any]) -> dict[str, Any]:
    usage = expected["usage"]
    thoughts = usage.get("thoughtsTokenCount", 0)
    return {
        **wanted(expected, complete=expected["complete"]),
        "signatures": [each.get("thought_signature") for each in expected["tool_calls"]],
        "usage": [
            usage["promptTokenCount"] + usage.get("toolUsePromptTokenCount", 0),
            usage["candidatesTokenCount"] + thoughts,
            usage["totalTokenCount"],
            thoughts or None,
        ],
    }


def reading(events: list[Any]) -> dict[str, Any]:
    message = events[-1].message
    usage = message.usage
    return {
        **read_as(events),
        "signatures": [each.thought_signature for each in message.tool_calls],
        "usage": [usage.input + usage.cache_read, usage.output, usage.total_tokens, usage.reasoning],
    }


def signatures_of(events: list[Any]) -> int:
    """How many signatures the blocks of an answer keep."""
    content = events[-1].message.content
    names = ("text_signature", "thinking_signature", "thought_signature")
    return sum(any(getattr(block, name, None) for name in names) for block in content)


@pytest.mark.parametrize("size", [1, None])
async def test_recorded_streams_are_read_right(serve, shared: Path, size: int | None) -> None:
    """Every recording, in one piece and byte by byte."""
    server = await serve(replay(size))
    cases = recordings(shared, "gemini", "gemini")
    assert len(cases) > 10
    for path, expected in cases:
        events = await events_of(server, headers={"x-recording": str(path)})
        assert reading(events) == expectation(expected), path.name
        if "executableCode" not in expected["parts"]:  # whose signature goes with what it is not for us
            assert signatures_of(events) == expected["thought_signatures"], path.name


@given(st.data())
async def test_recorded_streams_cut_anywhere_are_the_same(shared: Path, data: st.DataObject) -> None:
    path, expected = data.draw(st.sampled_from(recordings(shared, "gemini", "gemini")))
    body = path.read_bytes()
    places = data.draw(st.lists(st.integers(0, len(body)), max_size=12))
    assert reading(await decoded(cut(body, places), decoder())) == expectation(expected), path.name


# ------------------------------------------------------------------ own streams


USAGE = {
    "promptTokenCount": 107,
    "cachedContentTokenCount": 100,
    "candidatesTokenCount": 35,
    "thoughtsTokenCount": 25,
    "totalTokenCount": 167,
}
CONVERSATION = (
    parts(text("I shall look — ", thought=True), usageMetadata={"promptTokenCount": 107}),
    parts(text("한😀é", thought=True, thoughtSignature="VGg=")),
    parts(text("Let me see:\u2028")),
    parts(text("one"), text("", thoughtSignature="VHg=")),
    parts(call("read", {"path": "a.txt"}, thoughtSignature="Q2E="), call("ls")),
    parts(text(""), finish="STOP", usageMetadata=USAGE),
)


async def test_events_tell_the_whole_answer() -> None:
    """Each signature stays with the block that it came on."""
    events = await read(*CONVERSATION)
    done = events[-1]
    assert isinstance(events[0], StreamStart)
    assert isinstance(done, Done)
    thought, words, first, second = done.message.content
    assert thought == ThinkingContent("I shall look — 한😀é", "VGg=")
    assert words == TextContent("Let me see:\u2028one", "VHg=")
    assert (first.name, first.arguments, first.thought_signature) == ("read", {"path": "a.txt"}, "Q2E=")
    assert (second.name, second.arguments, second.thought_signature) == ("ls", {}, None)
    assert (done.message.stop_reason, done.message.raw_stop_reason) == ("toolUse", "STOP")
    assert (done.message.response_id, done.message.response_model) == ("r1", "gemini-x-1")


async def test_calls_without_ids_get_different_ones() -> None:
    """The same call twice is two calls; ids that the provider gives are kept."""
    done = await last_of(parts(call("ls"), call("ls"), call("ls", more={"id": "g1"})), STOP)
    first, second, third = (each.id for each in done.message.tool_calls)
    assert first.startswith("call_")
    assert first != second
    assert third == "g1"


async def test_usage_is_counted_once_and_in_our_terms() -> None:
    """PQ-05: cached tokens apart from input, thinking inside output; later figures replace earlier ones."""
    usage = (await last_of(*CONVERSATION)).message.usage
    assert (usage.input, usage.output, usage.cache_read, usage.reasoning) == (7, 60, 100, 25)
    assert usage.total_tokens == 167
    assert usage.cost.total == pytest.approx((7 * 2 + 60 * 12 + 100 * 0.2) / 1e6)


async def test_figures_may_come_after_the_finish_reason() -> None:
    done = await last_of(parts(text("x"), finish="STOP"), {"usageMetadata": USAGE})
    assert isinstance(done, Done)
    assert done.message.usage.output == 60


@given(st.lists(st.integers(0, 4000), max_size=20))
@settings(max_examples=50)
async def test_own_stream_cut_anywhere_is_the_same(places: list[int]) -> None:
    """ST-04"""
    body = sse(*CONVERSATION)
    assert read_as(await decoded(cut(body, places), decoder())) == read_as(await read(*CONVERSATION))


async def test_signature_without_words_is_kept() -> None:
    """It comes on an empty part at the end, and is wanted back."""
    done = await last_of(parts(call("ls"), text("", thoughtSignature="VHg=")), STOP)
    assert done.message.content[1] == TextContent("", "VHg=")
    bare = await last_of(parts(call("ls"), text("")), parts({"thought": True}), STOP)
    assert len(bare.message.content) == 1


async def test_what_the_provider_runs_itself_is_not_for_us() -> None:
    done = await last_of(
        parts({"executableCode": {"code": "1+1"}, "thoughtSignature": "Q28="}),
        parts({"codeExecutionResult": {"output": "2"}}, {"inlineData": {"data": "AAAA"}}),
        parts(text("Two."), finish="STOP"),
    )
    assert done.message.content == (TextContent("Two."),)
    assert done.message.stop_reason == "stop"


async def test_odd_responses_are_skipped() -> None:
    """ST-05"""
    odd: list[dict[str, Any]] = [
        {},
        {"candidates": None},
        {"candidates": [None, {"content": None}, {"content": {"parts": None}}, {"index": 1, "content": {}}]},
        {"candidates": [{"index": 1, "content": {"parts": [text("other")]}}]},
        parts({"text": None}, {"functionCall": None}, {"strange": 1}),
        {"usageMetadata": None, "promptFeedback": {}},
    ]
    done = await last_of(*odd, parts(text("x"), finish="STOP"))
    assert isinstance(done, Done)
    assert done.message.content == (TextContent("x"),)


async def test_half_a_surrogate_pair_is_joined_or_replaced() -> None:
    """TA-09"""
    done = await last_of(parts(text("a\ud83d")), parts(text("\ude00b\ud83d")), parts(text("c\ud83d")), STOP)
    assert done.message.text == "a😀b\ufffdc\ufffd"
    done = await last_of(parts(call("t", {"x": "\ud83d"})), STOP)
    assert done.message.tool_calls[0].arguments == {"x": "\ufffd"}


# ------------------------------------------------------------------ arguments in pieces


def growing(*pieces: dict[str, Any], more: bool = True) -> dict[str, Any]:
    return parts({"functionCall": {"partialArgs": list(pieces), "willContinue": more}})


async def test_arguments_may_come_value_by_value() -> None:
    events = await read(
        parts(call("edit", more={"willContinue": True}, thoughtSignature="Q2E=")),
        growing({"jsonPath": "$.path", "stringValue": "a.", "willContinue": True}),
        growing({"jsonPath": "$.path", "stringValue": "txt"}, {"jsonPath": "$.line", "numberValue": 3.0}),
        growing({"jsonPath": "$.edits[0].old", "stringValue": "x"}, {"jsonPath": "$.all", "boolValue": True}),
        growing({"jsonPath": "$.edits[1]['new']", "nullValue": "NULL_VALUE"}),
        parts({"functionCall": {}}),
        parts(call("ls"), finish="STOP"),
    )
    first, second = events[-1].message.tool_calls
    assert first.arguments == {
        "path": "a.txt",
        "line": 3,
        "edits": [{"old": "x"}, {"new": None}],
        "all": True,
    }
    assert (first.thought_signature, second.name) == ("Q2E=", "ls")
    assert [isinstance(event, ToolCallEnd) for event in events].count(True) == 2


async def test_call_that_never_ends_does_not_run() -> None:
    """TA-01"""
    begun = parts(call("write", more={"willContinue": True}))
    done = await last_of(begun, growing({"jsonPath": "$.path", "stringValue": "a"}), STOP)
    [found] = done.message.tool_calls
    assert found.arguments == {}
    assert found.arguments_error


@pytest.mark.parametrize("path", ["", "path", "$", "$[0]", "$.a[99999999]"])
async def test_place_that_cannot_be_is_a_malformed_response(serve, path: str) -> None:
    async def answer(request, reply):
        await reply.whole(sse(growing({"jsonPath": path, "stringValue": "x"})))

    failed = (await events_of(await serve(answer)))[-1]
    assert isinstance(failed, Failed)
    assert failed.failure.code == "malformed_response"


# ------------------------------------------------------------------ endings


@pytest.mark.parametrize(
    ("word", "reason"),
    [("STOP", "stop"), ("MAX_TOKENS", "length"), ("CONTINUATION", "length"), ("BRAND_NEW", "stop")],
)
async def test_finish_reasons(word: str, reason: str) -> None:
    """PQ-04: an unknown word ends the answer, and is kept."""
    done = await last_of(parts(text("x"), finish=word))
    assert isinstance(done, Done)
    assert (done.reason, done.message.raw_stop_reason) == (reason, word)


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "malformed_response"),
        ("MISSING_THOUGHT_SIGNATURE", "invalid_request"),
        ("OTHER", "server"),
    ],
)
async def test_words_that_tell_of_a_failure(word: str, code: str) -> None:
    """PQ-04: the text that came is kept with the failure, and no call of it can run."""
    failed = await last_of(parts(text("x"), call("ls"), finish=word))
    assert isinstance(failed, Failed)
    assert (failed.failure.code, failed.message.text, failed.message.tool_calls) == (code, "x", ())
    explained = await last_of(parts(finish=word, candidate={"finishMessage": "Because."}))
    assert isinstance(explained, Failed)
    assert explained.failure.message == "Because."


async def test_prompt_that_is_refused_says_so() -> None:
    failed = await last_of({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": USAGE})
    assert isinstance(failed, Failed)
    assert failed.failure.code == "content_filter"
    assert "PROHIBITED_CONTENT" in failed.failure.message


async def test_close_without_a_finish_reason_is_a_failure() -> None:
    """ST-03"""
    failed = await last_of(parts(text("half"), call("bash", {"command": "ls"})))
    assert isinstance(failed, Failed)
    assert (failed.failure.code, failed.message.text, failed.message.tool_calls) == ("transport", "half", ())


@pytest.mark.parametrize("late", [True, False])
async def test_connection_that_breaks(serve, late: bool) -> None:
    """ST-03: after the finish reason all that matters has come."""

    async def answer(request, reply):
        await reply.begin()
        await reply.piece(sse(parts(text("x"), finish="STOP" if late else None)))
        await reply.cut()

    last = (await events_of(await serve(answer)))[-1]
    assert isinstance(last, Done if late else Failed)
    assert last.message.text == "x"


@pytest.mark.parametrize(
    ("status", "name", "code"),
    [
        (503, "UNAVAILABLE", "overloaded"),
        (429, "RESOURCE_EXHAUSTED", "rate_limit"),
        (500, "INTERNAL", "server"),
        (None, "UNAVAILABLE", "overloaded"),
        (None, "INTERNAL", "server"),
        (None, "INVALID_ARGUMENT", "invalid_request"),
    ],
)
async def test_error_inside_the_stream_is_the_failure(status: int | None, name: str, code: str) -> None:
    """RT-08: as the first event, and after text."""
    error = {"error": {"message": "It failed.", "status": name, **({"code": status} if status else {})}}
    for before in ((), (parts(text("x")),)):
        failed = await last_of(*before, error)
        assert isinstance(failed, Failed)
        assert (failed.failure.code, failed.failure.status) == (code, status)


async def test_recorded_refusals_are_classified(serve, shared: Path) -> None:
    """RT-01: a limit of tokens that passes is not a conversation that is too long."""
    files = sorted((shared / "wire" / "http_errors").glob("gemini.*.json"))
    assert len(files) == 3
    for path in files:
        case = json.loads(path.read_bytes())

        async def answer(request, reply, case=case):
            await reply.whole(case["body"], case["status"], kind=case["headers"]["content-type"])

        [failed] = await events_of(await serve(answer))
        assert (failed.failure.code, failed.failure.status) == (case["expected"]["category"], case["status"])


# ------------------------------------------------------------------ the request, the connection


async def test_request_says_who_asks_and_whom(serve) -> None:
    """PQ-08: the key is a header, not a part of the address, and is in no failure."""

    async def answer(request, reply):
        error = {"error": {"code": 400, "message": "API key not valid: g-very-secret", "status": "X"}}
        await reply.whole(json.dumps(error), 400, kind="application/json")

    server = await serve(answer)
    [failed] = await events_of(server, api_key="g-very-secret")
    [request] = server.requests
    assert request.path == "/v1/models/gemini-x:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == "g-very-secret"
    assert failed.failure.code == "auth"
    assert "secret" not in failed.failure.message


async def test_abort_in_the_middle_closes_the_connection(serve) -> None:
    """ST-06, through the dialect."""

    async def answer(request, reply):
        await reply.begin()
        await reply.piece(sse(parts(text("x"))))
        await trio.sleep_forever()

    server = await serve(answer)
    with trio.CancelScope() as scope:
        async with stream(attrs.evolve(MODEL, base_url=server.base_url), HELLO, StreamOptions()) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    scope.cancel()
    assert scope.cancelled_caught
    await server.none_open()
