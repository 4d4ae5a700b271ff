"""Lines of standard input as they come."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from pi_trio.cli.lines import ByteLines, Lines


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue  # the test closed it


async def _all(lines: Lines) -> list[str]:
    found = []
    while (line := await lines.next()) is not None:
        found.append(line)
    return found


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\n\r\nlast", ["one", "", "last"]),
        (b"one\\\ntwo\\\nthree\nfour\n", ["one\ntwo\nthree", "four"]),
        (b"open\\\n", ["open"]),
        (b"\xef\xbb\xbfa\nb\xff\n", ["a", "b�"]),
        ("a\u2028b\n".encode(), ["a\u2028b"]),
    ],
)
async def test_lines_are_split_at_line_feeds(
    tmp_path: Path, pipe: tuple[int, int], data: bytes, lines: list[str]
) -> None:
    out, into = pipe
    os.write(into, data)
    os.close(into)
    assert await _all(Lines(out)) == lines
    (tmp_path / "file").write_bytes(data)
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        assert await _all(Lines(descriptor)) == lines
    finally:
        os.close(descriptor)


async def test_a_line_comes_before_the_end_of_input(pipe: tuple[int, int]) -> None:
    out, into = pipe
    os.write(into, b"one\ntw")
    lines = Lines(out)
    assert await lines.next() == "one"
    with trio.move_on_after(0.01) as waiting:
        await lines.next()
    assert waiting.cancelled_caught
    os.write(into, b"o\n")
    assert await lines.next() == "two"


async def test_byte_lines_end_at_line_feeds_only(pipe: tuple[int, int]) -> None:
    out, into = pipe
    os.write(into, "one\r\n\n\x0btwo\x1c\u2028\u0085\nthree".encode())
    os.close(into)
    lines = ByteLines(out)
    read = []
    while (line := await lines.next()) is not None:
        read.append(line.decode())
    assert read == ["one", "", "\x0btwo\x1c\u2028\u0085", "three"]
    assert await lines.next() is None
