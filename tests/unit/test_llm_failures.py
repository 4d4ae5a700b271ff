"""What is said to have gone wrong."""

from __future__ import annotations

import json

import pytest

from pi_trio.llm.failures import error_failure, http_failure, redact
from pi_trio.llm.protocol import Failure


def code_of(status: int, message: str = "", **error: str) -> str:
    body = json.dumps({"error": {"message": message, **error}}).encode()
    return http_failure(status, {}, body).code


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (429, "tokens per minute exceeded, maximum 8000", "rate_limit"),
        (400, "prompt is too long: 210000 > 200000", "context_overflow"),
        (400, "This model's maximum context length is 8192 tokens", "context_overflow"),
        (413, "", "context_overflow"),
        (413, "Request too large for model: tokens per minute (TPM): Limit 6000", "rate_limit"),
        (429, "You exceeded your current quota. Please retry in 48s.", "rate_limit"),
        (429, "insufficient_quota", "quota"),
        (402, "", "quota"),
        (400, "Your credit balance is too low", "quota"),
        (401, "", "auth"),
        (403, "", "auth"),
        (400, "API key not valid", "auth"),
        (404, "", "not_found"),
        (400, "model `x` does not exist", "not_found"),
        (408, "", "timeout"),
        (500, "", "server"),
        (502, "", "server"),
        (503, "", "overloaded"),
        (529, "", "overloaded"),
        (500, "Overloaded", "overloaded"),
        (422, "temperature must be below 2", "invalid_request"),
        (400, "blocked by the content filter", "content_filter"),
    ],
)
def test_status_and_words_give_the_code(status: int, message: str, code: str) -> None:
    """RT-01: a rate limit is no overflow, and the reverse."""
    assert code_of(status, message) == code


def test_error_codes_count_as_words() -> None:
    assert code_of(429, "Slow down", code="insufficient_quota") == "quota"
    assert code_of(400, "Too much", code="context_length_exceeded") == "context_overflow"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":"A"}}', "400 A"),
        (b'{"error":"A"}', "400 A"),
        (b'{"detail":"A"}', "400 A"),
        (b'{"message":"A"}', "400 A"),
        (b'[{"error":{"message":"A"}}]', "400 A"),
        (b'{"error":{"message":"A","metadata":{"raw":"B"}}}', "400 A: B"),
        (b"  A\n B ", "400 A B"),
        (b"", "400 Bad Request"),
        (b"\xff{", "400 \ufffd{"),
        (b'{"error":{}}', '400 {"error":{}}'),
    ],
)
def test_message_is_found_wherever_it_stands(body: bytes, message: str) -> None:
    assert http_failure(400, {"content-type": "text/plain"}, body).message == message


def test_page_for_a_browser_is_not_shown() -> None:
    failure = http_failure(502, {"content-type": "text/html; charset=utf-8"}, b"<html><h1>nginx</h1>")
    assert failure.message == "502 Bad Gateway"


def test_long_message_is_cut() -> None:
    assert len(http_failure(500, {}, b"x" * 100_000).message) < 3000


def test_unknown_status_has_words_too() -> None:
    assert http_failure(599, {}, b"").message == "599 an error without a description"


def test_wait_is_told_and_counts_only_where_it_helps() -> None:
    """RT-02: the time is shown."""
    failure = http_failure(429, {"retry-after": "3600"}, b"Slow down")
    assert (failure.retry_after, failure.message) == (
        3600,
        "429 Slow down (the provider asks to wait 1 h)",
    )
    failure = http_failure(429, {}, b"Please retry in 48.9s.")
    assert (failure.retry_after, failure.message) == (48.9, "429 Please retry in 48.9s.")
    assert http_failure(401, {"retry-after": "3600"}, b"") == Failure("401 Unauthorized", "auth", status=401)


def test_error_in_a_stream_may_carry_a_status() -> None:
    failure = error_failure({"error": {"code": 429, "message": "Slow down"}})
    assert (failure.status, failure.code, failure.message) == (429, "rate_limit", "429 Slow down")
    failure = error_failure({"error": {"code": "server_error", "message": "Sorry"}})
    assert (failure.status, failure.code, failure.message) == (None, "server", "Sorry")
    assert error_failure({"error": True}).code == "unknown"


def test_credential_is_taken_out() -> None:
    """PQ-08; a placeholder such as `none` is no secret."""
    assert redact(Failure("bad key sk-12345678!"), "sk-12345678").message == "bad key [key]!"
    assert redact(Failure("none of it"), "none").message == "none of it"
    assert redact(Failure("x"), None).message == "x"


def test_a_page_or_another_address_tells_of_base_url() -> None:
    page = http_failure(200, {"content-type": "text/html; charset=utf-8"}, b"<html>Welcome</html>")
    assert "no event stream" in page.message
    assert "baseUrl" in page.message
    moved = http_failure(302, {"location": "https://elsewhere.example/v1"}, b"Redirecting")
    assert "https://elsewhere.example/v1" in moved.message
    assert "baseUrl" in moved.message
