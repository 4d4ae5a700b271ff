"""The Responses dialect on recorded streams, and on a server that misbehaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.llm.openai_responses import EventDecoder, stream
from pi_trio.llm.openai_responses_request import encode_request
from pi_trio.llm.protocol import Context, Done, Failed, Model, ModelCost, StreamOptions
from pi_trio.messages import TextContent, ThinkingContent, ToolCall, ToolResultMessage, UserMessage

from .recorded import cut, decoded, read_as, recordings, replay, wanted

HELLO = Context("Be brief.", (UserMessage.of("hello"),))
MODEL = Model("gpt-x", api="openai-responses", provider="openai", reasoning=True, cost=ModelCost(1, 5, 0.1))


async def events_of(server, context: Context = HELLO, **options: Any) -> list[Any]:
    model = attrs.evolve(MODEL, base_url=server.base_url)
    async with stream(model, context, StreamOptions(**options)) as events:
        return [event async for event in events]


async def last_of(serve, *events: dict[str, Any]) -> Done | Failed:
    async def answer(request, reply):
        await reply.whole(sse(*events))

    return (await events_of(await serve(answer), idle_timeout=5))[-1]


def decoder() -> EventDecoder:
    return EventDecoder(MODEL, StreamOptions())


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)


def response(kind: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {"id": "r1", "model": "m", "status": kind, **fields}}


def item(kind: str, place: int | None = 0, /, **fields: Any) -> dict[str, Any]:
    """`added` or `done`."""
    event = {"type": f"response.output_item.{kind}", "item": fields}
    return event if place is None else {**event, "output_index": place}


def delta(kind: str, words: str, place: int | None = 0, **fields: Any) -> dict[str, Any]:
    event = {"type": f"response.{kind}.delta", "delta": words, **fields}
    return event if place is None else {**event, "output_index": place}


# ------------------------------------------------------------------ recorded streams


def reading(events: list[Any]) -> dict[str, Any]:
    last = events[-1]
    message, usage = last.message, last.message.usage
    signatures = [each.thinking_signature for each in message.content if isinstance(each, ThinkingContent)]
    return {
        **read_as(events),
        "ids": [call.id for call in message.tool_calls],
        "encrypted": [json.loads(signature or "{}").get("encrypted_content") for signature in signatures],
        "stop": message.stop_reason,
        "usage": [usage.input + usage.cache_read + usage.cache_write, usage.cache_read, usage.output],
        "reasoning": usage.reasoning or 0,
        "billed": usage.cost.total if usage.cost.total_from_provider else None,
        "error": last.failure.message if isinstance(last, Failed) else None,
    }


def expectation(expected: dict[str, Any]) -> dict[str, Any]:
    """A failed response comes to its proper end, but it is no answer, and its calls never run."""
    usage, failed = expected["usage"] or {}, expected["error"]
    calls = [] if failed else expected["tool_calls"]
    named = [{"arguments": {"input": call.get("input")}, **call} for call in calls]
    stop = {"failed": "error", "incomplete": "length"}.get(expected["stop_reason"])
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens", 0)
    return {
        **wanted({**expected, "tool_calls": named}, complete=not failed),
        "ids": [call["id"] for call in calls],
        "encrypted": [
            item["encrypted_content"]
            for item in expected["reasoning_items"]
            if item["encrypted_content"] or item["text"] or item["summary"]
        ],
        "stop": stop or ("toolUse" if calls else "stop"),
        "usage": [usage.get("input_tokens", 0), cached, usage.get("output_tokens", 0)],
        "reasoning": (usage.get("output_tokens_details") or {}).get("reasoning_tokens", 0),
        "billed": usage.get("cost"),
        "error": failed["message"] if failed else None,
    }


@pytest.mark.parametrize("size", [1, None])
async def test_recorded_streams_are_read_right(serve, shared: Path, size: int | None) -> None:
    """Every recording, in one piece and byte by byte."""
    server = await serve(replay(size))
    cases = recordings(shared, "openai-responses", "openai-responses")
    assert len(cases) > 20
    for path, expected in cases:
        events = await events_of(server, headers={"x-recording": str(path)})
        assert reading(events) == expectation(expected), path.name


@given(st.data())
async def test_recorded_streams_cut_anywhere_are_the_same(shared: Path, data: st.DataObject) -> None:
    path, expected = data.draw(st.sampled_from(recordings(shared, "openai-responses", "openai-responses")))
    body = path.read_bytes()
    places = data.draw(st.lists(st.integers(0, len(body)), max_size=12))
    assert reading(await decoded(cut(body, places), decoder())) == expectation(expected), path.name


# ------------------------------------------------------------------ own streams


SAID = "I’ll 한😀\u2028look."
REASONING = {"type": "reasoning", "id": "rs1", "summary": [], "encrypted_content": "gAAA"}
CALL = {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "read"}
CONVERSATION = (
    response("created"),
    item("added", 0, **REASONING),
    delta("reasoning_summary_text", "First", 0, summary_index=0),
    delta("reasoning_summary_text", "Sec", 0, summary_index=1),
    delta("reasoning_summary_text", "ond", 0, summary_index=1),
    item("done", 0, **REASONING),
    item("added", 1, type="message", id="m1", phase="commentary"),
    delta("output_text", SAID, 1),
    item("done", 1, type="message", id="m1", phase="commentary", content=[]),
    item("added", 2, **CALL),
    delta("function_call_arguments", '{"path":', 2),
    delta("function_call_arguments", '"é"}', 2),
    item("done", 2, **CALL, arguments='{"path":"é"}'),
    response(usage={"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}}),
)


async def test_answer_with_everything(serve) -> None:
    done = await last_of(serve, *CONVERSATION)
    thinking, said, call = done.message.content
    assert thinking.thinking == "First\n\nSecond"
    assert json.loads(thinking.thinking_signature) == REASONING
    assert said.text == SAID
    assert json.loads(said.text_signature) == {"v": 1, "id": "m1", "phase": "commentary"}
    assert call == ToolCall("c1", "read", {"path": "é"})
    usage = done.message.usage
    assert (done.reason, usage.input, usage.cache_read, usage.output) == ("toolUse", 6, 4, 5)
    assert usage.cost.total == pytest.approx((6 * 1 + 4 * 0.1 + 5 * 5) / 1e6)


@given(st.lists(st.integers(0)))
async def test_pieces_of_any_size_read_the_same(places: list[int]) -> None:
    """ST-04"""
    [*_, last] = await decoded(cut(sse(*CONVERSATION), places), decoder())
    assert isinstance(last, Done)
    assert [type(block) for block in last.message.content] == [ThinkingContent, TextContent, ToolCall]


@given(st.integers(0, len(sse(*CONVERSATION)) - 3))
async def test_answer_that_breaks_off_is_a_failure(length: int) -> None:
    """ST-03: what had come is kept, and no call of it can run."""
    [*_, last] = await decoded([sse(*CONVERSATION)[:length]], decoder())
    assert isinstance(last, Failed)
    assert last.failure.code == "transport"
    assert last.message.tool_calls == ()
    assert SAID.startswith(last.message.text)


async def test_what_is_only_told_at_the_end_of_an_item_counts(serve) -> None:
    done = await last_of(
        serve,
        item("done", 0, type="reasoning", summary=[{"text": "a"}, {"text": "b"}]),
        item("done", 1, type="message", content=[{"type": "output_text", "text": "hi"}, {"refusal": "no"}]),
        item("done", 2, **CALL, arguments="{}"),
        response(),
    )
    assert done.message.content[0].thinking == "a\n\nb"
    assert done.message.text == "hino"
    assert done.message.tool_calls == (ToolCall("c1", "read"),)


async def test_items_are_told_apart_by_id_where_there_are_no_places(serve) -> None:
    first, second = {**CALL}, {**CALL, "id": "fc2", "call_id": "c2"}
    done = await last_of(
        serve,
        item("added", None, **first),
        item("added", None, **second),
        delta("function_call_arguments", '{"n":2}', None, item_id="fc2"),
        delta("function_call_arguments", '{"n":1}', None, item_id="fc1"),
        item("done", None, **second, arguments='{"n":2}'),
        item("done", None, **first, arguments='{"n":1}'),
        response(),
    )
    assert [(call.id, call.arguments) for call in done.message.tool_calls] == [
        ("c1", {"n": 1}),
        ("c2", {"n": 2}),
    ]


@pytest.mark.parametrize(
    ("event", "code", "message"),
    [
        ({"type": "error", "code": "server_error", "message": "Oh"}, "server", "Oh"),
        (
            {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Slow"}},
            "rate_limit",
            "Slow",
        ),
        (response("failed", error={"code": "insufficient_quota", "message": "Pay"}), "quota", "Pay"),
        (
            response("failed", error={"code": "context_length_exceeded", "message": "Long"}),
            "context_overflow",
            "Long",
        ),
        (
            response("incomplete", incomplete_details={"reason": "content_filter"}),
            "content_filter",
            "The provider's content filter ended the answer.",
        ),
    ],
)
async def test_failures_inside_the_stream(serve, event: dict[str, Any], code: str, message: str) -> None:
    """RT-08"""
    failed = await last_of(serve, response("created"), delta("output_text", "half"), event)
    assert isinstance(failed, Failed)
    assert (failed.failure.code, failed.failure.message, failed.message.text) == (code, message, "half")
    assert failed.message.raw_stop_reason == "failed"


async def test_length_stop_runs_no_call(serve) -> None:
    done = await last_of(
        serve,
        item("added", 0, **CALL),
        delta("function_call_arguments", '{"path": "a', 0),
        response("incomplete", incomplete_details={"reason": "max_output_tokens"}),
    )
    assert done.reason == "length"
    assert done.message.tool_calls[0].arguments_error


async def test_own_reasoning_goes_back_and_ids_do_not(serve) -> None:
    """PQ-02: what the provider needs to go on with its own thinking, and nothing that it did not keep."""
    message = (await last_of(serve, *CONVERSATION)).message
    asked = UserMessage.of("read")
    context = Context("", (asked, message, ToolResultMessage("c1", "read", "text")))
    body = json.loads(encode_request(MODEL, context, StreamOptions()))
    assert body["input"] == [
        {"role": "user", "content": "read"},
        REASONING,
        {"role": "assistant", "content": SAID, "phase": "commentary"},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path":"é"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "text"},
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KINDS = sorted(
    {event["type"] for event in CONVERSATION} | {"error", "response.failed", "response.incomplete"}
)
FIELDS = {
    "output_index": st.integers(0, 2) | JSON,
    "item_id": st.sampled_from("ab") | JSON,
    "delta": st.text() | JSON,
    "item": JSON
    | st.fixed_dictionaries(
        {"type": st.sampled_from(["message", "reasoning", "function_call", "custom_tool_call"])},
        optional=dict.fromkeys(("id", "content", "summary", "call_id", "name", "arguments", "input"), JSON),
    ),
    "response": JSON | st.fixed_dictionaries({}, optional={"status": JSON, "usage": JSON, "error": JSON}),
}


@given(
    st.lists(
        st.fixed_dictionaries({"type": st.sampled_from(KINDS)}, optional=FIELDS),
        max_size=6,
    )
)
def test_no_host_can_break_the_reader(chunks: list[dict[str, Any]]) -> None:
    """ST-05: every stream ends with exactly one last event, whatever its events hold."""
    reader = decoder()
    for chunk in chunks:
        if not reader.ended:
            reader.feed("", json.dumps(chunk))
    if not reader.ended:
        reader.finish()
    events = reader.take()
    assert [isinstance(event, (Done, Failed)) for event in events].count(True) == 1
    assert isinstance(events[-1], (Done, Failed))


# ------------------------------------------------------------------ proxies


@pytest.mark.parametrize("place", ["option", "environment"])
async def test_request_goes_through_a_proxy(serve, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(request, reply):
        await reply.whole(sse(*CONVERSATION))

    proxy = await serve(answer)
    address = f"http://127.0.0.1:{proxy.port}"
    for name in ("ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    if place == "environment":
        monkeypatch.setenv("http_proxy", address)
    model = attrs.evolve(MODEL, base_url="http://provider.invalid/v1")
    options = StreamOptions(proxy=address if place == "option" else None, api_key="sk-1")
    async with stream(model, HELLO, options) as events:
        last = [event async for event in events][-1]
    assert isinstance(last, Done)
    [request] = proxy.requests
    assert request.path == "http://provider.invalid/v1/responses"
    assert request.headers["authorization"] == "Bearer sk-1"


async def test_this_machine_is_asked_past_the_proxy(serve) -> None:
    async def answer(request, reply):
        await reply.whole(sse(*CONVERSATION))

    server = await serve(answer)
    assert isinstance((await events_of(server, proxy="http://127.0.0.1:9"))[-1], Done)
    assert server.requests[0].path == "/v1/responses"


async def test_proxy_that_cannot_be_used_is_told(serve) -> None:
    model = attrs.evolve(MODEL, base_url="http://provider.invalid/v1")
    async with stream(model, HELLO, StreamOptions(proxy="nonsense")) as events:
        [failed] = [event async for event in events]
    assert failed.failure.code == "configuration"
    assert failed.failure.message.startswith("The proxy nonsense cannot be used")
