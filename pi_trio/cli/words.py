"""What a command says, on standard output and standard error. Nothing heavy is imported for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pi_trio.errors import StorageError
from pi_trio.text import sanitise

__all__ = ["flush", "put", "say", "tell", "told_apart"]


def tell(sentence: str, program: str = "pi-trio") -> None:
    """Say something on standard error, if there is one: a terminal that was closed is none any more."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(f"{program}: {sanitise(sentence)}\n")
            sys.stderr.flush()


def say(line: str = "") -> None:
    """A line of a command's answer on standard output. Raises like `put`."""
    put(f"{sanitise(line)}\n")


def put(text: str) -> None:
    """A command's answer on standard output, as it is.

    Raises `BrokenPipeError` if nobody reads any more, and `StorageError` if it cannot be written.
    """
    if sys.stdout is None:
        raise StorageError("standard output is closed")
    with _given_up():
        sys.stdout.write(text)


def flush() -> None:
    """Write what was put. Raises like `put`."""
    if sys.stdout is not None:
        with _given_up():
            sys.stdout.flush()


@contextmanager
def _given_up() -> Iterator[None]:
    """What could not be written is dropped: the interpreter would try once more at its end, and complain."""
    try:
        with told_apart():
            yield
    except (BrokenPipeError, StorageError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        raise


@contextmanager
def told_apart() -> Iterator[None]:
    """Errors of writing to standard output: a reader that left, and all others."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"standard output cannot be written: {error.strerror}") from error
