"""The Messages dialect on recorded streams, on its own, and on a server that misbehaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_trio.llm.anthropic_messages import EventDecoder, stream
from pi_trio.llm.protocol import (
    Context,
    Done,
    Failed,
    Model,
    ModelCost,
    StreamOptions,
    StreamStart,
    TextDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallEnd,
)
from pi_trio.messages import TextContent, ThinkingContent, ToolCall, UserMessage

from .recorded import cut, decoded, read_as, recordings, replay, wanted

MODEL = Model("claude-x", api="anthropic-messages", provider="anthropic", cost=ModelCost(3, 15, 0.3, 3.75))
HELLO = Context("Be brief.", (UserMessage.of("hello"),))


def decoder(**options: Any) -> EventDecoder:
    return EventDecoder(MODEL, StreamOptions(**options))


async def events_of(server, context: Context = HELLO, model: Model = MODEL, **options: Any) -> list[Any]:
    model = attrs.evolve(model, base_url=server.base_url)
    async with stream(model, context, StreamOptions(**options)) as events:
        return [event async for event in events]


async def read(*events: dict[str, Any]) -> list[Any]:
    return await decoded([sse(*events)], decoder())


async def last_of(*events: dict[str, Any]) -> Done | Failed:
    return (await read(*events))[-1]


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)


def begin(**usage: int) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "msg_1", "model": "claude-x-1", "usage": usage}}


def block(index: int, head: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": head},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, *words: str) -> list[dict[str, Any]]:
    return block(
        index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": each} for each in words)
    )


def thinking(index: int, *words: str, signature: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    return block(
        index,
        {"type": "thinking", "thinking": "", "signature": ""},
        *({"type": "thinking_delta", "thinking": each} for each in words),
        *({"type": "signature_delta", "signature": each} for each in signature),
    )


def call(index: int, call_id: str, name: str, *pieces: str) -> list[dict[str, Any]]:
    head = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return block(index, head, *({"type": "input_json_delta", "partial_json": each} for each in pieces))


def end(reason: str | None = "end_turn", **fields: Any) -> list[dict[str, Any]]:
    delta = {"stop_reason": reason, "stop_sequence": None, **fields.pop("delta", {})}
    return [{"type": "message_delta", "delta": delta, **fields}, {"type": "message_stop"}]


PING = {"type": "ping"}


# ------------------------------------------------------------------ recorded streams


def expectation(expected: dict[str, Any]) -> dict[str, Any]:
    """A refusal comes to its proper end, but it is no answer."""
    usage = expected["usage"]
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return {
        **wanted(expected, complete=expected["complete"] and expected["stop_reason"] != "refusal"),
        "ids": [each["id"] for each in expected["tool_calls"]],
        "signatures": expected["signatures"],
        "sealed": expected["redacted_thinking"],
        "usage": [usage.get(name, 0) for name in names],
        "thought": (usage.get("output_tokens_details") or {}).get("thinking_tokens"),
        "error": expected["error"] and expected["error"]["message"],
    }


def reading(events: list[Any]) -> dict[str, Any]:
    last = events[-1]
    usage = last.message.usage
    thoughts = [each for each in last.message.content if isinstance(each, ThinkingContent)]
    reported = isinstance(last, Failed) and last.failure.code not in ("transport", "content_filter")
    return {
        **read_as(events),
        "ids": [each.id for each in last.message.tool_calls],
        "signatures": [each.thinking_signature for each in thoughts if not each.redacted],
        "sealed": [each.thinking_signature for each in thoughts if each.redacted],
        "usage": [usage.input, usage.output, usage.cache_read, usage.cache_write],
        "thought": usage.reasoning,
        "error": last.failure.message if reported else None,
    }


@pytest.mark.parametrize("size", [1, None])
async def test_recorded_streams_are_read_right(serve, shared: Path, size: int | None) -> None:
    """Every recording, in one piece and byte by byte."""
    server = await serve(replay(size))
    cases = recordings(shared, "anthropic", "anthropic")
    assert len(cases) > 30
    for path, expected in cases:
        events = await events_of(server, headers={"x-recording": str(path)})
        assert reading(events) == expectation(expected), path.name


@given(st.data())
async def test_recorded_streams_cut_anywhere_are_the_same(shared: Path, data: st.DataObject) -> None:
    path, expected = data.draw(st.sampled_from(recordings(shared, "anthropic", "anthropic")))
    body = path.read_bytes()
    places = data.draw(st.lists(st.integers(0, len(body)), max_size=12))
    assert reading(await decoded(cut(body, places), decoder())) == expectation(expected), path.name


# ------------------------------------------------------------------ own streams


CONVERSATION = (
    begin(input_tokens=7, cache_read_input_tokens=100, cache_creation_input_tokens=20, output_tokens=1),
    PING,
    *thinking(0, "I shall ", "look — 한😀é"),
    *block(1, {"type": "redacted_thinking", "data": "c2VhbGVk"}),
    *text(2, "Let me ", "", "see:\u2028one"),
    *text(3, "And another."),
    *call(4, "toolu_a", "read", "", '{"path": ', '"a.txt"}'),
    PING,
    *call(5, "toolu_b", "ls"),
    *end("tool_use", usage={"output_tokens": 60, "output_tokens_details": {"thinking_tokens": 25}}),
)


async def test_events_tell_the_whole_answer() -> None:
    """Blocks end where the provider says so; two of a kind stay two."""
    events = await read(*CONVERSATION)
    done = events[-1]
    assert isinstance(events[0], StreamStart)
    assert isinstance(done, Done)
    assert done.message.content == (
        ThinkingContent("I shall look — 한😀é"),
        ThinkingContent("", "c2VhbGVk", redacted=True),
        TextContent("Let me see:\u2028one"),
        TextContent("And another."),
        ToolCall("toolu_a", "read", {"path": "a.txt"}),
        ToolCall("toolu_b", "ls", {}),
    )
    message = done.message
    assert (message.stop_reason, message.raw_stop_reason) == ("toolUse", "tool_use")
    assert (message.response_id, message.response_model) == ("msg_1", "claude-x-1")
    first_end = next(place for place, event in enumerate(events) if isinstance(event, ToolCallEnd))
    assert first_end < len(events) - 2, "a call is told as soon as it is whole"


async def test_usage_is_counted_once_and_in_our_terms() -> None:
    """PQ-05: input comes without cached tokens, later totals replace earlier ones."""
    usage = (await last_of(*CONVERSATION)).message.usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (7, 60, 100, 20)
    assert (usage.reasoning, usage.total_tokens) == (25, 187)
    assert usage.cost.total == pytest.approx((7 * 3 + 60 * 15 + 100 * 0.3 + 20 * 3.75) / 1e6)


async def test_long_cache_writes_are_told_apart_and_cost_more() -> None:
    written = {"cache_creation_input_tokens": 30, "cache_creation": {"ephemeral_1h_input_tokens": 10}}
    start = begin(input_tokens=1, output_tokens=0, **written)
    usage = (await last_of(start, *text(0, "x"), *end(usage={"output_tokens": None}))).message.usage
    assert (usage.cache_write, usage.cache_write_1h) == (30, 10)
    assert usage.cost.cache_write == pytest.approx((20 * 3.75 + 10 * 2 * 3) / 1e6)


@given(st.lists(st.integers(0, 4000), max_size=20))
@settings(max_examples=50)
async def test_own_stream_cut_anywhere_is_the_same(places: list[int]) -> None:
    """ST-04: in text, in thinking and in arguments, between the bytes of a letter as well."""
    body = sse(*CONVERSATION)
    assert read_as(await decoded(cut(body, places), decoder())) == read_as(await read(*CONVERSATION))


@pytest.mark.parametrize("end_of_line", [b"\r\n", b"\r", b"\n"])
async def test_every_end_of_line_and_a_mark_of_the_byte_order(end_of_line: bytes) -> None:
    """ST-01"""
    body = b"\xef\xbb\xbf" + sse(*CONVERSATION)
    events = await decoded([body.replace(b"\n", end_of_line)], decoder())
    assert read_as(events) == read_as(await read(*CONVERSATION))


async def test_signatures_are_joined_and_stay_with_their_block() -> None:
    """One comes in pieces; thinking that is not shown has nothing else."""
    answer = [*thinking(0, "a", signature=("Eu4", "B")), *thinking(1, signature=("Zz==",)), *text(2, "x")]
    events = await read(begin(), *answer, *end())
    assert events[-1].message.content == (
        ThinkingContent("a", "Eu4B"),
        ThinkingContent("", "Zz=="),
        TextContent("x"),
    )
    assert [isinstance(event, ThinkingStart) for event in events].count(True) == 2
    assert [isinstance(event, ThinkingEnd) for event in events].count(True) == 2


async def test_what_the_provider_runs_itself_is_not_for_us() -> None:
    """Searches and code have calls of their own, with arguments; nothing here may run them."""
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    pieces = ({"type": "input_json_delta", "partial_json": each} for each in ('{"query"', ': "x"}'))
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    cited = {"type": "citations_delta", "citation": {"cited_text": "y"}}
    words = block(2, {"type": "text", "text": ""}, cited, {"type": "text_delta", "text": "Found."})
    done = await last_of(begin(), *block(0, search, *pieces), *block(1, found), *words, *end())
    assert isinstance(done, Done)
    assert done.message.content == (TextContent("Found."),)
    assert done.message.stop_reason == "stop"


async def test_servers_may_send_a_block_whole() -> None:
    words = block(0, {"type": "text", "text": "all at once"})
    whole = block(1, {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "é"}})
    done = await last_of(begin(), *words, *whole, *end("tool_use"))
    assert done.message.content == (TextContent("all at once"), ToolCall("a", "read", {"path": "é"}))


async def test_servers_may_give_every_block_the_same_index() -> None:
    answer = [*text(0, "x"), *call(0, "a", "read", '{"n": 1}'), *call(0, "b", "ls", "{}")]
    done = await last_of(begin(), *answer, *end("tool_use"))
    assert done.message.content == (
        TextContent("x"),
        ToolCall("a", "read", {"n": 1}),
        ToolCall("b", "ls", {}),
    )


async def test_gateway_may_start_twice_and_add_a_mark_of_another_dialect() -> None:
    start = begin(input_tokens=17, output_tokens=1)
    body = sse(start, start, *text(0, "x"), end()[0]) + b"data: [DONE]\n\n" + sse(end()[1])
    events = await decoded([body], decoder())
    assert [isinstance(event, StreamStart) for event in events].count(True) == 1
    assert (events[-1].message.text, events[-1].message.usage.input) == ("x", 17)


async def test_odd_events_are_skipped() -> None:
    """ST-05"""
    odd: list[dict[str, Any]] = [
        {"type": "message_start", "message": None},
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_start", "index": 0, "content_block": None},
        {"type": "content_block_delta", "index": 0, "delta": None},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "strange_delta", "text": "y"}},
        {"type": "content_block_stop"},
        {"type": "message_delta", "delta": None, "usage": None},
        {"type": "strange"},
        {"type": None},
    ]
    done = await last_of(begin(), *odd, *text(0, "x"), *end())
    assert isinstance(done, Done)
    assert "".join(each.text for each in done.message.content) == "x"


async def test_half_a_surrogate_pair_is_joined_or_replaced() -> None:
    """TA-09"""
    done = await last_of(begin(), *text(0, "a\ud83d", "\ude00b\ud83d", "c\ud83d"), *end())
    assert done.message.text == "a😀b\ufffdc\ufffd"
    done = await last_of(begin(), *call(0, "a", "t", '{"x": "\\ud83d"}'), *end("tool_use"))
    assert done.message.tool_calls[0].arguments == {"x": "\ufffd"}


@pytest.mark.parametrize("arguments", ["null", "[]", '"x"', "3", "true", '{"path": "a.txt", "content": "x'])
async def test_arguments_that_are_no_object_do_not_run(arguments: str) -> None:
    """TA-01, TA-05"""
    done = await last_of(begin(), *call(0, "a", "write", arguments), *end("tool_use"))
    [found] = done.message.tool_calls
    assert found.arguments == {}
    assert found.arguments_error


async def test_eight_megabytes_of_arguments_in_small_pieces() -> None:
    words = "x" * 1024
    done = await last_of(
        begin(), *call(0, "a", "write", '{"content": "', *[words] * 8192, '"}'), *end("tool_use")
    )
    assert done.message.tool_calls[0].arguments == {"content": words * 8192}


# ------------------------------------------------------------------ endings


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("pause_turn", "stop"),
        ("eos", "stop"),
    ],
)
async def test_stop_reasons(word: str, reason: str) -> None:
    """PQ-04: an unknown word ends the answer, and is kept."""
    done = await last_of(begin(), *text(0, "x"), *end(word))
    assert isinstance(done, Done)
    assert (done.reason, done.message.raw_stop_reason) == (reason, word)


async def test_a_pause_says_that_more_is_to_come() -> None:
    for word, end_turn in (("pause_turn", False), ("end_turn", None)):
        assert (await last_of(begin(), *text(0, "x"), *end(word))).message.end_turn is end_turn


async def test_calls_decide_over_the_word() -> None:
    done = await last_of(begin(), *call(0, "a", "ls"), *end("end_turn"))
    assert done.message.stop_reason == "toolUse"
    cut_off = await last_of(begin(), *call(0, "a", "ls", "{"), *end("max_tokens"))
    assert cut_off.message.stop_reason == "length"


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("refusal", "content_filter"),
        ("sensitive", "content_filter"),
        ("model_context_window_exceeded", "context_overflow"),
    ],
)
async def test_words_that_tell_of_a_failure(word: str, code: str) -> None:
    """PQ-04, RT-01: the text that came is kept with the failure."""
    failed = await last_of(begin(), *text(0, "x"), *end(word))
    assert isinstance(failed, Failed)
    assert (failed.failure.code, failed.message.text, failed.message.raw_stop_reason) == (code, "x", word)


async def test_a_refusal_says_why() -> None:
    details = {"stop_details": {"type": "refusal", "explanation": "Not this."}}
    failed = await last_of(begin(), *end("refusal", delta=details))
    assert isinstance(failed, Failed)
    assert failed.failure.message == "Not this."


async def test_close_without_a_stop_reason_is_a_failure() -> None:
    """ST-03: half an answer is not an answer; what came is kept, and no call can run."""
    failed = await last_of(begin(), *text(0, "half")[:2])
    assert isinstance(failed, Failed)
    assert (failed.failure.code, failed.message.text) == ("transport", "half")
    failed = await last_of(begin(), *call(0, "a", "bash", '{"command": "rm '))
    assert failed.message.tool_calls == ()


async def test_close_after_the_stop_reason_is_success() -> None:
    """ST-03"""
    done = await last_of(begin(), *text(0, "all"), end()[0])
    assert isinstance(done, Done)
    assert done.message.text == "all"


@pytest.mark.parametrize("late", [True, False])
async def test_connection_that_breaks_in_an_event(serve, late: bool) -> None:
    """ST-03: half an event is no other fault than a connection that broke."""

    async def answer(request, reply):
        await reply.begin()
        said = [begin(), *text(0, "x"), *(end()[:1] if late else ())]
        await reply.piece(sse(*said) + b'event: message_delta\ndata: {"type":"message_del')
        await reply.end()

    last = (await events_of(await serve(answer)))[-1]
    if late:
        assert isinstance(last, Done)
    else:
        assert isinstance(last, Failed)
        assert last.failure.code == "transport"


async def test_answer_without_anything_is_empty() -> None:
    failed = await last_of(begin(), *end(None))
    assert isinstance(failed, Failed)
    assert failed.failure.code == "empty_response"


async def test_event_that_is_not_json_is_a_malformed_response(serve) -> None:
    async def answer(request, reply):
        await reply.whole(sse(begin()) + b"data: {oops\n\n" + sse(*text(0, "x"), *end()))

    failed = (await events_of(await serve(answer)))[-1]
    assert isinstance(failed, Failed)
    assert failed.failure.code == "malformed_response"


@pytest.mark.parametrize("before", [(), (begin(), *text(0, "x"))])
async def test_error_inside_the_stream_is_the_failure(before: tuple[dict[str, Any], ...]) -> None:
    """RT-08: as the first event, and after text."""
    told = {"type": "overloaded_error", "message": "Overloaded"}
    failed = await last_of(*before, {"type": "error", "error": told, "request_id": "req_1"})
    assert isinstance(failed, Failed)
    assert (failed.failure.code, failed.failure.message) == ("overloaded", "Overloaded")
    assert failed.failure.request_id == "req_1"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("api_error", "server"),
        ("rate_limit_error", "rate_limit"),
        ("authentication_error", "auth"),
        ("permission_error", "auth"),
        ("not_found_error", "not_found"),
        ("request_too_large", "context_overflow"),
        ("billing_error", "quota"),
        ("timeout_error", "timeout"),
        ("invalid_request_error", "invalid_request"),
    ],
)
async def test_errors_are_classified_by_their_type(kind: str, code: str) -> None:
    failed = await last_of({"type": "error", "error": {"type": kind, "message": "It failed."}})
    assert isinstance(failed, Failed)
    assert failed.failure.code == code


async def test_recorded_refusals_are_classified(serve, shared: Path) -> None:
    """RT-01 and others, as this dialect sees them."""
    files = sorted((shared / "wire" / "http_errors").glob("anthropic.*.json"))
    assert len(files) > 3
    for path in files:
        case = json.loads(path.read_bytes())

        async def answer(request, reply, case=case):
            await reply.whole(case["body"], case["status"], kind=case["headers"]["content-type"])

        [failed] = await events_of(await serve(answer))
        assert (failed.failure.code, failed.failure.status) == (case["expected"]["category"], case["status"])


# ------------------------------------------------------------------ the request, the connection


async def test_request_says_who_asks_and_where(serve) -> None:
    async def answer(request, reply):
        await reply.whole(sse(begin(), *text(0, "x"), *end()))

    server = await serve(answer)
    await events_of(server, api_key="sk-ant-1", headers={"X-Team": "a"})
    bare = attrs.evolve(MODEL, base_url=server.base_url.removesuffix("/v1"))
    async with stream(bare, HELLO, StreamOptions()) as events:
        assert isinstance([event async for event in events][-1], Done)
    first, second = server.requests
    assert first.headers["x-api-key"] == "sk-ant-1"
    assert first.headers["anthropic-version"] == "2023-06-01"
    assert first.headers["x-team"] == "a"
    assert "authorization" not in first.headers
    assert "x-api-key" not in second.headers
    assert first.path == second.path == "/v1/messages"


async def test_key_is_never_in_a_failure(serve) -> None:
    """PQ-08"""
    key = "sk-ant-very-secret"

    async def answer(request, reply):
        body = json.dumps(
            {"type": "error", "error": {"type": "authentication_error", "message": f"Bad {key}"}}
        )
        await reply.whole(body, 401, {"request-id": "req-1"}, "application/json")

    [failed] = await events_of(await serve(answer), api_key=key)
    assert (failed.failure.code, failed.failure.request_id) == ("auth", "req-1")
    assert key not in failed.failure.message


async def test_abort_in_the_middle_closes_the_connection(serve) -> None:
    """ST-06, through the dialect."""

    async def answer(request, reply):
        await reply.begin()
        await reply.piece(sse(begin(), *text(0, "x")[:2]))
        await trio.sleep_forever()

    server = await serve(answer)
    with trio.CancelScope() as scope:
        async with stream(attrs.evolve(MODEL, base_url=server.base_url), HELLO, StreamOptions()) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    scope.cancel()
    assert scope.cancelled_caught
    await server.none_open()
