"""The standard streams, with real pipes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from pi_trio.cli import stdio
from pi_trio.cli.stdio import Output, read_piped, reserved_output


@contextmanager
def _as_standard_input(descriptor: int) -> Iterator[None]:
    """Put `descriptor` in the place of standard input, which pytest has closed to programs."""
    kept = os.dup(0)
    os.dup2(descriptor, 0)
    try:
        with open(0, closefd=False) as stdin, pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdin", stdin)
            yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


async def test_a_silent_pipe_is_left_alone_when_there_is_a_prompt(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """HL-01: `sleep 100 | program -p hi`"""
    monkeypatch.setattr(stdio, "FIRST_BYTE_SECONDS", 0.01)
    with _as_standard_input(pipe[0]):
        assert await read_piped(needed=False) == ""
    assert "standard input was silent" in capsys.readouterr().err


async def test_a_pipe_that_speaks_is_read_to_its_end(pipe: tuple[int, int]) -> None:
    """HL-01: 10 MB of input."""
    data = b"0123456789" * 1_000_000
    read, write = pipe
    with _as_standard_input(read):
        async with trio.open_nursery() as nursery:

            def fill() -> None:
                with os.fdopen(os.dup(write), "wb") as file:
                    os.dup2(2, write)  # now the only writing end is `file`
                    file.write(data)

            nursery.start_soon(trio.to_thread.run_sync, fill)
            text = await read_piped(needed=False)
    assert text.encode() == data


async def test_no_input_is_no_text() -> None:
    """HL-01: `</dev/null`, closed standard input."""
    null = os.open(os.devnull, os.O_RDONLY)
    with _as_standard_input(null):
        assert await read_piped(needed=False) == ""
    os.close(null)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", None)
        assert await read_piped(needed=True) == ""


async def test_a_cancelled_write_is_whole_and_before_the_next(pipe: tuple[int, int]) -> None:
    """HL-07: what a slow reader has not taken yet arrives, in order."""
    read, write = pipe
    output = Output(write)
    first, second = b"a" * 1_000_000, b"b" * 10
    with trio.CancelScope() as scope:
        scope.cancel()
        await output.write(b"not begun")
    async with trio.open_nursery() as nursery:

        async def write_both() -> None:
            with trio.move_on_after(0.01):
                await output.write(first)
            await output.write(second)

        nursery.start_soon(write_both)
        received = b""
        while len(received) < len(first) + len(second):
            received += await trio.to_thread.run_sync(os.read, read, 1 << 16)
    assert received == first + second


def test_only_the_answer_goes_to_reserved_output(capfd: pytest.CaptureFixture[str]) -> None:
    """HL-03: a library that prints."""
    with reserved_output() as output:
        os.write(1, b"noise\n")
        trio.run(output.write, b"answer\n")
    os.write(1, b"after\n")
    captured = capfd.readouterr()
    assert captured.out == "answer\nafter\n"
    assert captured.err == "noise\n"
