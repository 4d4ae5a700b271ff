"""The exceptions of the runtime, drawn by who must act.

    PiError
    ├── UsageError            the caller: a call that makes no sense now
    │   └── BusyError         … because a run is in progress
    ├── LimitError            the caller: what it allowed to be spent is spent
    ├── ProviderError         the provider: a request that failed for good
    ├── SummaryError          the model: a summary that cannot be used, so nothing was changed
    ├── StorageError          the disk: something could not be written or read
    │   └── SessionError      … a session file
    │       ├── SessionExistsError   it is here already
    │       ├── SessionFormatError   the file is not a session, or a damaged one
    │       └── SessionLockedError   another process is writing it
    ├── ConnectionLostError   the connection to a server: it did not come back, or not to the session
    ├── ConfigError           the configuration: a file, key, flag or credential
    └── InternalError         us: a broken invariant, please report

A tool's exception never leaves the loop: it becomes an error result for the model.
Plain errors leave the public API, never an `ExceptionGroup`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pi_trio.llm.protocol import Failure

__all__ = [
    "BusyError",
    "ConfigError",
    "ConnectionLostError",
    "InternalError",
    "LimitError",
    "PiError",
    "ProviderError",
    "SessionError",
    "SessionExistsError",
    "SessionFormatError",
    "SessionLockedError",
    "StorageError",
    "SummaryError",
    "UsageError",
]


class PiError(Exception):
    """Base of every error that the runtime raises on purpose. `str()` is one clear sentence."""


class UsageError(PiError):
    """The call makes no sense in this state, or with these arguments."""


class BusyError(UsageError):
    """A run is in progress, and the call needs an idle agent."""


class LimitError(PiError):
    """A limit on cost or steps is reached; what it would have gone on with was not sent."""


class ProviderError(PiError):
    """A request failed and was not, or no longer, retried."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class SummaryError(PiError):
    """No summary came of it: the request failed, or what came back cannot stand for the conversation.

    Nothing was changed.
    """


class StorageError(PiError):
    """The disk refused; nothing was half written."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class SessionError(StorageError):
    """A session file could not be read, found or written."""


class SessionFormatError(SessionError):
    """The file is not a session. It was left as it is, byte for byte."""


class SessionExistsError(SessionError):
    """A session of this id is here already; nothing was made."""


class SessionLockedError(SessionError):
    """Another process writes this session."""


class ConnectionLostError(PiError):
    """A server is gone, or does not have the session any more. What it was asked for may have been done."""


class ConfigError(PiError):
    """A settings file, model file, flag or credential is wrong; the message names it."""


class InternalError(PiError):
    """An invariant of the runtime broke. Not the caller's fault."""
