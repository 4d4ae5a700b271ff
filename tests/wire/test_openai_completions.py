"""The Chat Completions dialect on recorded streams, and on a server that misbehaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from pi_trio.llm.openai_completions import stream
from pi_trio.llm.protocol import (
    Context,
    Done,
    Failed,
    Model,
    ModelCost,
    StreamOptions,
    TextDelta,
)
from pi_trio.messages import TextContent, ThinkingContent, UserMessage

from .recorded import streamed

FOLDERS = ("openai-chat", "openrouter", "deepseek", "groq", "mistral", "llamacpp", "ollama-openai")
HELLO = Context("", (UserMessage.of("hello"),))


def model_at(server, **fields) -> Model:
    values = {"api": "openai-completions", "provider": "test", "cost": ModelCost(1, 5, 0.1, 1.25), **fields}
    return Model("test-model", base_url=server.base_url, **values)


async def events_of(server, context: Context = HELLO, model: Model | None = None, **options) -> list[Any]:
    async with stream(model or model_at(server), context, StreamOptions(**options)) as events:
        return [event async for event in events]


async def last_of(serve, body: bytes | str, **reply_fields) -> Done | Failed:
    async def answer(request, reply):
        await reply.whole(body, **reply_fields)

    return (await events_of(await serve(answer), idle_timeout=5))[-1]


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **fields) -> str:
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return f"data: {json.dumps({'id': 'c1', 'model': 'm', 'choices': choices, **fields})}\n\n"


def call_chunk(index: int | None = 0, **fields) -> str:
    """A piece of a tool call: `id`, `name`, `arguments`."""
    function = {key: fields[key] for key in ("name", "arguments") if key in fields}
    call = {"function": function, **({"id": fields["id"]} if "id" in fields else {})}
    return chunk({"tool_calls": [call if index is None else {"index": index, **call}]})


DONE = "data: [DONE]\n\n"


# ------------------------------------------------------------------ recorded streams


def recordings(shared: Path) -> list[Path]:
    files = [path for folder in FOLDERS for path in sorted((shared / "wire" / folder).glob("*.sse"))]
    return [*files, *sorted((shared / "wire" / "constructed").glob("openai-chat.*.sse"))]


@pytest.mark.parametrize("size", [13, None])
async def test_recorded_streams_are_read_right(serve, shared: Path, size: int | None) -> None:
    """Every recording, in one piece and in pieces of 13 bytes."""

    async def answer(request, reply):
        body = await trio.Path(request.headers["x-recording"]).read_bytes()
        await reply.begin()
        step = size or len(body)
        pieces = [body[start : start + step] for start in range(0, len(body), step)]
        await reply.stream.send_all(b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces))
        await reply.end()

    server = await serve(answer)
    files = recordings(shared)
    assert len(files) > 40
    for path in files:
        events = await events_of(server, headers={"x-recording": str(path)})
        expected = json.loads(path.with_suffix(".expected.json").read_bytes())
        assert read_as(events) == wanted(expected), path.name


def read_as(events: list[Any]) -> dict[str, Any]:
    last = events[-1]
    message, usage = last.message, last.message.usage
    return {
        "text": "".join(block.text for block in message.content if isinstance(block, TextContent)),
        "thinking": "".join(
            block.thinking for block in message.content if isinstance(block, ThinkingContent)
        ),
        "tool_calls": [(call.id, call.name, call.arguments) for call in message.tool_calls],
        "stop_reason": message.raw_stop_reason,
        "id": message.response_id,
        "model": message.response_model,
        "input": usage.input + usage.cache_read + usage.cache_write,
        "cached": usage.cache_read,
        "total": usage.total_tokens,
        "complete": isinstance(last, Done),
        "error": last.failure.message if isinstance(last, Failed) else None,
        "streamed": streamed(events),
    }


def wanted(expected: dict[str, Any]) -> dict[str, Any]:
    usage, error = expected["usage"] or {}, expected["error"]
    filtered = expected["stop_reason"] == "content_filter"
    message = f"{error['code']} {error['message']}" if error and error.get("code") == 400 else None
    if error and not message:
        status = error.get("status_code")
        message = f"{status} {error['message']}" if status else error["message"]
    return {
        "text": expected["text"],
        "thinking": expected["thinking"],
        "tool_calls": [(call["id"], call["name"], call["arguments"]) for call in expected["tool_calls"]],
        "stop_reason": expected["stop_reason"],
        "id": expected["id"] or None,
        "model": expected["model"],
        "input": usage.get("prompt_tokens", 0),
        "cached": (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0),
        "total": usage.get("total_tokens", 0),
        # the mark ends an answer as well as a finish reason does; a filter's cut is a failure
        "complete": not filtered and not error and (expected["complete"] or expected["done_marker"]),
        "error": "The provider ended the answer with the reason content_filter." if filtered else message,
        "streamed": True,
    }


async def test_recorded_refusals_are_classified(serve, shared: Path) -> None:
    """RT-01 and others: every recorded HTTP error gets the right code, its status and no second wording."""
    names = {"tool_call_failed": "malformed_response"}
    files = sorted((shared / "wire" / "http_errors").glob("*.json"))
    assert len(files) > 15
    for path in files:
        case = json.loads(path.read_bytes())

        async def answer(request, reply, case=case):
            kind = case["headers"].get("content-type", "application/json")
            headers = {name: value for name, value in case["headers"].items() if name != "content-type"}
            await reply.whole(case["body"], case["status"], headers, kind)

        [failed] = await events_of(await serve(answer))
        category = case["expected"]["category"]
        assert isinstance(failed, Failed), path.name
        assert failed.failure.code == names.get(category, category), path.name
        assert failed.failure.status == case["status"], path.name


# ------------------------------------------------------------------ endings


async def test_close_without_any_mark_is_a_failure(serve) -> None:
    """ST-03: half an answer is not an answer; what came is kept, and no call can run."""
    failed = await last_of(serve, chunk({"content": "half"}))
    assert isinstance(failed, Failed)
    assert (failed.failure.code, failed.message.text) == ("transport", "half")
    failed = await last_of(serve, call_chunk(id="a", name="bash", arguments='{"command": "rm '))
    assert isinstance(failed, Failed)
    assert failed.message.tool_calls == ()


@pytest.mark.parametrize("cut", [True, False])
async def test_close_after_the_finish_reason_is_success(serve, cut: bool) -> None:
    """ST-03: what matters has come, even if the connection then breaks."""

    async def answer(request, reply):
        await reply.begin()
        await reply.piece((chunk({"content": "all"}) + chunk(finish="stop")).encode())
        await (reply.cut() if cut else reply.end())

    done = (await events_of(await serve(answer)))[-1]
    assert isinstance(done, Done)
    assert (done.message.text, done.reason) == ("all", "stop")


@pytest.mark.parametrize(
    ("word", "reason"),
    [("end", "stop"), ("eos", "stop"), ("max_tokens", "length"), ("function_call", "stop")],
)
async def test_unknown_finish_words_end_the_answer(serve, word: str, reason: str) -> None:
    """PQ-04: a word nobody knows is kept as it is, and the text with it."""
    done = await last_of(serve, chunk({"content": "x"}) + chunk(finish=word) + DONE)
    assert isinstance(done, Done)
    assert (done.reason, done.message.raw_stop_reason, done.message.text) == (reason, word, "x")


@pytest.mark.parametrize("word", ["", None])
async def test_empty_finish_word_is_none(serve, word: str | None) -> None:
    """PQ-04: some hosts send an empty finish reason in every chunk."""
    done = await last_of(serve, chunk({"content": "a"}, word) + chunk({"content": "b"}, word) + DONE)
    assert isinstance(done, Done)
    assert (done.reason, done.message.raw_stop_reason, done.message.text) == ("stop", None, "ab")


@pytest.mark.parametrize(
    ("word", "code"),
    [("sensitive", "content_filter"), ("model_context_window_exceeded", "context_overflow")],
)
async def test_finish_words_that_tell_of_a_failure(serve, word: str, code: str) -> None:
    """PQ-04, RT-01: the text that came is kept with the failure."""
    failed = await last_of(serve, chunk({"content": "x"}) + chunk(finish=word) + DONE)
    assert isinstance(failed, Failed)
    assert (failed.failure.code, failed.message.text) == (code, "x")


async def test_calls_decide_over_the_word_stop(serve) -> None:
    body = call_chunk(id="a", name="ls") + chunk(finish="stop") + DONE
    done = await last_of(serve, body)
    assert done.message.stop_reason == "toolUse"
    cut_off = await last_of(
        serve, call_chunk(id="a", name="ls", arguments="{") + chunk(finish="length") + DONE
    )
    assert cut_off.message.stop_reason == "length"


async def test_mark_without_anything_before_it_is_an_empty_response(serve) -> None:
    failed = await last_of(serve, DONE)
    assert isinstance(failed, Failed)
    assert failed.failure.code == "empty_response"


async def test_answer_ends_at_the_mark_even_if_the_connection_stays(serve) -> None:
    async def answer(request, reply):
        await reply.begin()
        await reply.piece((chunk({"content": "x"}) + DONE).encode())
        await trio.sleep_forever()

    server = await serve(answer)
    assert isinstance((await events_of(server))[-1], Done)
    await server.none_open()


# ------------------------------------------------------------------ odd chunks


async def test_chunks_without_choices_are_skipped(serve) -> None:
    """ST-05: empty, null and missing parts are nothing; usage counts once."""
    odd = [{}, {"choices": []}, {"choices": None}, {"choices": [{"delta": None}]}, {"choices": [None]}]
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in odd)
    usage = (
        f"data: {json.dumps({'usage': {'prompt_tokens': 3, 'completion_tokens': 2, 'total_tokens': 5}})}\n\n"
    )
    nulls = {"content": None, "tool_calls": None, "reasoning": None}
    body += "event: strange\ndata: {}\n\n" + chunk(nulls) + chunk({"content": "x"}) + usage + usage
    done = await last_of(serve, body + chunk(finish="stop") + DONE)
    assert isinstance(done, Done)
    assert done.message.text == "x"
    assert (done.message.usage.input, done.message.usage.output, done.message.usage.total_tokens) == (3, 2, 5)


async def test_letters_cut_by_the_network_stay_whole(serve) -> None:
    """ST-04: one byte at a time, in text, thinking and arguments."""
    text = "한😀é"
    delta = json.dumps({"choices": [{"delta": {"reasoning": text}}]}, ensure_ascii=False)
    body = f"data: {delta}\n\n" + f"data: {delta.replace('reasoning', 'content')}\n\n"
    call = {
        "index": 0,
        "id": "a",
        "function": {"name": "t", "arguments": json.dumps({"x": text}, ensure_ascii=False)},
    }
    body += (
        f"data: {json.dumps({'choices': [{'delta': {'tool_calls': [call]}}]}, ensure_ascii=False)}\n\n{DONE}"
    )

    async def answer(request, reply):
        await reply.begin()
        await reply.stream.send_all(b"".join(b"1\r\n%c\r\n" % byte for byte in body.encode()))
        await reply.end()

    message = (await events_of(await serve(answer)))[-1].message
    assert (message.content[0].thinking, message.text, message.tool_calls[0].arguments) == (
        text,
        text,
        {"x": text},
    )


async def test_line_separators_in_text_are_text(serve) -> None:
    """ST-01: they do not split the event that holds them."""
    text = "a\u2028b\u2029c\u0085d\x0b"
    raw = json.dumps({"choices": [{"delta": {"content": text}}]}, ensure_ascii=False)
    done = await last_of(serve, f"data: {raw}\r\n\r\n{DONE}".encode())
    assert done.message.text == text


async def test_half_a_surrogate_pair_is_joined_or_replaced(serve) -> None:
    """TA-09: a pair split over deltas is one letter; a lone half becomes U+FFFD."""
    halves = 'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n'
    done = await last_of(serve, halves % "a\\ud83d" + halves % "\\ude00b\\ud83d" + halves % "c\\ud83d" + DONE)
    assert done.message.text == "a😀b\ufffdc\ufffd"
    done = await last_of(serve, call_chunk(id="a", name="t", arguments='{"x": "\\ud83d"}') + DONE)
    assert done.message.tool_calls[0].arguments == {"x": "\ufffd"}


async def test_chunk_that_is_not_json_is_a_malformed_response(serve) -> None:
    failed = await last_of(serve, "data: {oops\n\n")
    assert isinstance(failed, Failed)
    assert failed.failure.code == "malformed_response"


@pytest.mark.parametrize("head", ["", "event: error\n"])
async def test_error_inside_the_stream_is_the_failure(serve, head: str) -> None:
    """RT-08: as the first event, and after text."""
    error = f"{head}data: {json.dumps({'error': {'message': 'Overloaded', 'type': 'overloaded_error'}})}\n\n"
    for before in ("", chunk({"content": "x"}) * 10):
        failed = await last_of(serve, before + error)
        assert isinstance(failed, Failed)
        assert (failed.failure.code, failed.failure.message) == ("overloaded", "Overloaded")


async def test_error_body_with_status_200_is_the_failure(serve) -> None:
    """RT-08: JSON where a stream was asked for."""
    failed = await last_of(serve, '{"error": {"message": "Overloaded"}}', kind="application/json")
    assert isinstance(failed, Failed)
    assert failed.failure.code == "overloaded"


# ------------------------------------------------------------------ tool calls


async def calls_of(serve, *pieces: str) -> list[tuple[str, str, Any]]:
    done = await last_of(serve, "".join(pieces) + chunk(finish="tool_calls") + DONE)
    return [(call.id, call.name, call.arguments_error or call.arguments) for call in done.message.tool_calls]


async def test_parallel_calls_may_interleave(serve) -> None:
    calls = await calls_of(
        serve,
        call_chunk(1, id="b", name="second"),
        call_chunk(0, id="a", name="first", arguments="{"),
        call_chunk(1, arguments='{"x":'),
        call_chunk(0, arguments="}"),
        call_chunk(1, arguments="1}"),
    )
    assert calls == [("b", "second", {"x": 1}), ("a", "first", {})]


async def test_calls_told_apart_by_id_alone(serve) -> None:
    for index in (0, None):
        calls = await calls_of(
            serve,
            call_chunk(index, id="a", name="first", arguments='{"x":'),
            call_chunk(index, arguments="1}"),
            call_chunk(index, id="b", name="second", arguments="{}"),
        )
        assert calls == [("a", "first", {"x": 1}), ("b", "second", {})]


async def test_equal_ids_at_two_indexes_are_two_calls(serve) -> None:
    calls = await calls_of(serve, call_chunk(0, id="a", name="t"), call_chunk(1, id="a", name="t"))
    assert calls == [("a", "t", {}), ("a", "t", {})]


async def test_names_in_pieces_and_names_repeated(serve) -> None:
    pieces = (call_chunk(id="a", name="get_"), call_chunk(name="time"), call_chunk(arguments="{}"))
    assert await calls_of(serve, *pieces) == [("a", "get_time", {})]
    pieces = (
        call_chunk(id="a", name="t"),
        call_chunk(name="t", arguments="{"),
        call_chunk(name="t", arguments="}"),
    )
    assert await calls_of(serve, *pieces) == [("a", "t", {})]


async def test_call_without_an_id_gets_one(serve) -> None:
    [(call_id, name, _)] = await calls_of(serve, call_chunk(name="t", arguments="{}"))
    assert call_id.startswith("call_")
    assert name == "t"


# ------------------------------------------------------------------ usage


@pytest.mark.parametrize(
    ("raw", "tokens"),
    [
        (
            {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}},
            (40, 7, 60, 0, None),
        ),
        ({"prompt_tokens": 100, "completion_tokens": 7, "prompt_cache_hit_tokens": 30}, (70, 7, 30, 0, None)),
        ({"prompt_tokens": 100, "completion_tokens": 7, "cached_tokens": 10}, (90, 7, 10, 0, None)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 20},
            },
            (20, 7, 60, 20, None),
        ),
        (
            {
                "prompt_tokens": 307,
                "completion_tokens": 26,
                "total_tokens": 560,
                "completion_tokens_details": {"reasoning_tokens": 227},
            },
            (307, 253, 0, 0, 227),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 26,
                "total_tokens": 36,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            (10, 26, 0, 0, 20),
        ),
        ({"prompt_tokens": None, "completion_tokens": "7"}, (0, 0, 0, 0, None)),
    ],
)
async def test_usage_is_counted_once_and_in_our_terms(serve, raw: dict[str, Any], tokens: tuple) -> None:
    """PQ-05: cached tokens apart from input, reasoning inside output, wherever the host puts it."""
    places = (
        chunk(usage=raw),
        f"data: {json.dumps({'choices': [{'index': 0, 'delta': {}, 'usage': raw}]})}\n\n",
        chunk(x_groq={"usage": raw}),
    )
    for place in places:
        done = await last_of(serve, chunk({"content": "x"}) + place * 3 + DONE)
        usage = done.message.usage
        assert (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning) == tokens
        assert usage.total_tokens == sum(tokens[:4])
        rates = zip(tokens, (1, 5, 0.1, 1.25), strict=False)
        assert usage.cost.total == pytest.approx(sum(count * rate for count, rate in rates) / 1e6)


async def test_bill_of_the_provider_replaces_our_sum(serve) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost": 0.0123}
    cost = (await last_of(serve, chunk({"content": "x"}, usage=usage) + DONE)).message.usage.cost
    assert (cost.total, cost.total_from_provider) == (0.0123, True)


# ------------------------------------------------------------------ the request, the hooks, the connection


async def test_request_says_what_was_asked(serve) -> None:
    async def answer(request, reply):
        await reply.whole(chunk({"content": "x"}) + DONE)

    server = await serve(answer)
    model = model_at(server, reasoning=True, headers={"X-Team": "a"})
    await events_of(
        server, HELLO, model, api_key="sk-secret", thinking_level="high", temperature=0.5, max_tokens=9
    )
    [request] = server.requests
    assert request.headers["authorization"] == "Bearer sk-secret"
    assert request.headers["x-team"] == "a"
    assert request.json == {
        "model": "test-model",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_tokens": 9,
        "reasoning_effort": "high",
        "messages": [{"role": "user", "content": "hello"}],
    }


async def test_hooks_see_and_change_the_exchange(serve) -> None:
    async def answer(request, reply):
        await reply.whole(chunk({"content": "x"}) + DONE, headers={"x-seen": "yes"})

    async def on_payload(payload, model):
        return {**payload, "seed": 1}

    seen = []

    async def on_response(status, headers, model):
        seen.append((status, headers["x-seen"], model.id))

    server = await serve(answer)
    await events_of(server, on_payload=on_payload, on_response=on_response)
    assert server.requests[0].json["seed"] == 1
    assert seen == [(200, "yes", "test-model")]


async def test_key_is_never_in_a_failure(serve) -> None:
    """PQ-08: some hosts repeat the key in their refusal."""
    key = 'sk-"quoted\\é'

    async def answer(request, reply):
        body = json.dumps({"error": {"message": f"Incorrect API key provided: {key}"}})
        await reply.whole(body, 401, kind="application/json")

    [failed] = await events_of(await serve(answer), api_key=key)
    assert failed.failure.code == "auth"
    assert key not in failed.failure.message
    assert key not in failed.message.error_message


async def test_refusal_carries_wait_and_request_id(serve) -> None:
    async def answer(request, reply):
        await reply.whole("slow down", 429, {"retry-after": "7", "x-request-id": "req-1"}, "text/plain")

    [failed] = await events_of(await serve(answer))
    failure = failed.failure
    assert (failure.code, failure.retry_after, failure.request_id) == ("rate_limit", 7.0, "req-1")
    assert failure.message == "429 slow down (the provider asks to wait 7 s)"


async def test_steps_share_one_connection(serve) -> None:
    async def answer(request, reply):
        await reply.begin()
        await reply.piece((chunk({"content": "x"}) + DONE).encode())
        await trio.testing.wait_all_tasks_blocked()  # the end comes late, as it may on a network
        await reply.end()

    server = await serve(answer)
    for _ in range(10):
        async with stream(model_at(server), HELLO, StreamOptions()) as events:
            async for event in events:
                if isinstance(event, Done):
                    break
    assert (len(server.requests), server.connections) == (10, 1)


async def test_abort_in_the_middle_closes_the_connection(serve) -> None:
    """ST-06, through the dialect."""

    async def answer(request, reply):
        await reply.begin()
        await reply.piece(chunk({"content": "x"}).encode())
        await trio.sleep_forever()

    server = await serve(answer)
    with trio.CancelScope() as scope:
        async with stream(model_at(server), HELLO, StreamOptions()) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    scope.cancel()
    assert scope.cancelled_caught
    await server.none_open()
