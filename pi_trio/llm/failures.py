"""What went wrong with a request, told once: from an HTTP answer, a stream or a connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import attrs

from pi_trio.codec import loads
from pi_trio.llm.loose import text as text_field
from pi_trio.llm.protocol import Failure, FailureCode
from pi_trio.llm.waits import asked_wait, retry_after, spoken

__all__ = ["error_failure", "http_failure", "redact", "transport_failure"]

_LONGEST_MESSAGE = 2000
_REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id")
_SHORTEST_SECRET = 8  # a placeholder such as `none` is no secret, and would garble the words


# ------------------------------------------------------------------ the three sources


def http_failure(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """The failure that an HTTP answer with this status and body tells of."""
    error = _parsed(body)
    said = _message(error) or _plain_text(body, headers)
    words = _wrong_address(status, headers) or said or _phrase(status)
    failure = _failure(status, error, words, retry_after(headers))
    request_id = next((headers[name] for name in _REQUEST_IDS if name in headers), failure.request_id)
    return attrs.evolve(failure, request_id=request_id)


def error_failure(error: Any) -> Failure:
    """The failure that an error object in the middle of a stream tells of."""
    status = _status(error)
    words = _message(error) or "The provider reported an error without saying which."
    return _failure(status, error, words, None)


def _failure(status: int | None, error: Any, words: str, wait: float | None) -> Failure:
    """The failure of an error object. A wait counts only where a later request may succeed."""
    code = _classify(status, _names(error), words)
    request_id = text_field(error, "request_id") or None
    text = _clipped(f"{status} {words}" if status else words)
    if code not in ("rate_limit", "overloaded", "server"):
        return Failure(text, code, status=status, request_id=request_id)
    if wait is None:
        wait = asked_wait(error, words)
    elif wait >= 1:
        text = f"{text} (the provider asks to wait {spoken(wait)})"
    return Failure(text, code, status=status, retry_after=wait, request_id=request_id)


def transport_failure(error: Exception, host: str) -> Failure:
    """The failure of a connection to `host`. `error` is one of httpx's."""
    import httpx

    detail = str(error) or type(error).__name__
    match error:
        case httpx.ConnectTimeout():
            return Failure(f"No connection to {host} within the time limit.", "timeout")
        case httpx.TimeoutException():
            return Failure(f"{host} sent nothing for too long.", "timeout")
        case httpx.InvalidURL() | httpx.UnsupportedProtocol():
            return Failure(f"The address of the provider cannot be used: {detail}", "configuration")
        case httpx.ConnectError():
            return Failure(f"No connection to {host}: {detail}", "transport")
        case httpx.DecodingError():
            return Failure(f"The answer of {host} cannot be decoded: {detail}", "malformed_response")
        case _:
            return Failure(f"The connection to {host} broke: {detail}", "transport")


def redact(failure: Failure, secret: str | None) -> Failure:
    """The failure without the credential, which some providers repeat in their message."""
    if not secret or len(secret) < _SHORTEST_SECRET or secret not in failure.message:
        return failure
    return attrs.evolve(failure, message=failure.message.replace(secret, "[key]"))


# ------------------------------------------------------------------ which kind


_OVERFLOW = re.compile(
    r"prompt (is )?too long|input is too long|context[ _-]?(length|window|size)|maximum context"
    r"|exceeds? the (maximum number of tokens|available context)|context_length_exceeded"
    r"|exceed_context_size|input token count|too many (input )?tokens|request_too_large"
    r"|maximum prompt length|reduce the length of",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"rate[ _-]?limit|too many requests|tokens per (minute|day)|requests per|throttl|resource_exhausted",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient[_ ](quota|credits?|balance|funds)|credit balance|billing_(hard_limit|not_active)"
    r"|payment required|out of credits",
    re.IGNORECASE,
)
_AUTH = re.compile(
    r"api[ _-]?key|authenticat|unauthori[sz]ed|invalid[ _](token|credential)|permission_error|access denied",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"model_not_found|not_found_error|no such model|model .{0,80}(not found|does not exist)",
    re.IGNORECASE,
)
_OVERLOADED = re.compile(
    r"overload|at capacity|capacity exceeded|temporarily unavailable|try again later",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content[ _-]?(filter|policy)|responsible ?ai", re.IGNORECASE)
_BAD_CALL = re.compile(r"tool_use_failed|tool call validation failed", re.IGNORECASE)

# The order matters: a rate limit may speak of tokens and a maximum, an overflow of neither.
_BY_WORDS: tuple[tuple[re.Pattern[str], FailureCode], ...] = (
    (_QUOTA, "quota"),
    (_RATE, "rate_limit"),
    (_OVERFLOW, "context_overflow"),
    (_BAD_CALL, "malformed_response"),
    (_MISSING, "not_found"),
    (_FILTERED, "content_filter"),
    (_AUTH, "auth"),
    (_OVERLOADED, "overloaded"),
)
_CERTAIN: Mapping[int, FailureCode] = {
    401: "auth",
    402: "quota",
    404: "not_found",
    408: "timeout",
    529: "overloaded",
}
_LIKELY: Mapping[int, FailureCode] = {403: "auth", 413: "context_overflow", 503: "overloaded"}
_BY_NAME: Mapping[str, FailureCode] = {
    "api_error": "server",
    "billing_error": "quota",
    "internal": "server",
    "internal_error": "server",
    "invalid_argument": "invalid_request",
    "invalid_request_error": "invalid_request",
    "timeout_error": "timeout",
    "unavailable": "overloaded",
}
"""What an error in the middle of a stream is called, where there is no status any more."""


def _classify(status: int | None, names: str, words: str) -> FailureCode:
    """The kind of failure, by status where that is enough, else by what is said."""
    text, number = f"{names} {words}", status or 0
    if number in _CERTAIN:
        return _CERTAIN[number]
    if number == 429:  # "quota" there is a limit that passes, unless the money has run out
        return "quota" if _QUOTA.search(text) else "rate_limit"
    for pattern, code in _BY_WORDS:
        if pattern.search(text):
            return code
    if number in _LIKELY:
        return _LIKELY[number]
    if number >= 500 or "server_error" in names:
        return "server"
    if number >= 400:
        return "invalid_request"
    return next((_BY_NAME[name] for name in names.lower().split() if name in _BY_NAME), "unknown")


# ------------------------------------------------------------------ reading error bodies


def _parsed(body: bytes) -> Any:
    try:
        value = loads(body)
    except (ValueError, RecursionError):
        return None
    return value[0] if isinstance(value, list) and value else value


def _inner(error: Any) -> Any:
    """The part that tells the error: providers wrap it in `error` or `detail`, or not at all."""
    for key in ("error", "detail"):
        if isinstance(error, dict) and error.get(key):
            return error[key]
    return error


def _message(error: Any) -> str:
    inner = _inner(error)
    if isinstance(inner, str):
        return inner
    if not isinstance(inner, dict):
        return ""
    parts = [inner.get("message") or inner.get("msg")]
    if isinstance(metadata := inner.get("metadata"), dict):
        parts.append(metadata.get("raw"))  # what a router's own provider said
    return ": ".join(part for part in parts if isinstance(part, str) and part)


def _names(error: Any) -> str:
    """The machine-readable words: types and codes of both levels."""
    levels = [level for level in (error, _inner(error)) if isinstance(level, dict)]
    return " ".join(str(level.get(key, "")) for level in levels for key in ("type", "code", "status"))


def _status(error: Any) -> int | None:
    inner = _inner(error)
    if not isinstance(inner, dict):
        return None
    for key in ("status_code", "status", "code"):
        value = inner.get(key)
        if isinstance(value, int) and value in range(400, 600):
            return value
    return None


def _plain_text(body: bytes, headers: Mapping[str, str]) -> str:
    """A body that is not JSON, unless it is a page for a browser."""
    if "html" in headers.get("content-type", ""):
        return ""
    return " ".join(body.decode("utf-8", "replace").split())


def _wrong_address(status: int, headers: Mapping[str, str]) -> str:
    """What the answer of something else than a model's interface says about the address in use."""
    if 300 <= status < 400 and (target := headers.get("location")):
        return f"{_phrase(status)}: the provider is at {target}, which is not followed. Put it into baseUrl."
    if status < 300 and "html" in headers.get("content-type", ""):
        return "The answer is a page (text/html) and no event stream: baseUrl does not lead to an interface."
    return ""


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "an error without a description"


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]} …"
