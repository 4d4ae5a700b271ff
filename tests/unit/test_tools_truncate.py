from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.tools.truncate import cut_line, format_size, truncate_head, truncate_tail

texts = st.text(alphabet=st.sampled_from("a😀é\n\u2028\ud800\r"), max_size=60)
limits = {"max_lines": st.integers(1, 8), "max_bytes": st.integers(1, 40)}


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


@given(text=texts, **limits)
def test_head_is_the_most_whole_lines_that_fit(text, max_lines, max_bytes):
    part = truncate_head(text, max_lines=max_lines, max_bytes=max_bytes)
    lines = lines_of(text)
    assert part.total_lines == len(lines)
    assert part.total_bytes == size(text)
    if not part.truncated:
        assert part.content == text
        return
    kept = lines[: part.output_lines]
    assert part.content == "\n".join(kept)
    assert size(part.content) == part.output_bytes <= max_bytes
    assert len(kept) <= max_lines < len(lines) or part.truncated_by == "bytes"
    following = "\n".join(lines[: len(kept) + 1])
    assert size(following) > max_bytes if part.truncated_by == "bytes" else len(kept) == max_lines
    assert part.first_line_exceeds_limit == (not kept)


@given(text=texts, **limits)
def test_tail_is_the_most_whole_lines_that_fit(text, max_lines, max_bytes):
    part = truncate_tail(text, max_lines=max_lines, max_bytes=max_bytes)
    lines = lines_of(text)
    if not part.truncated:
        assert part.content == text
        return
    assert size(part.content) == part.output_bytes <= max_bytes
    if part.last_line_partial:
        assert lines[-1].endswith(part.content)
        assert size(lines[-1]) > max_bytes
        assert size(part.content) > max_bytes - 4
    else:
        assert part.content == "\n".join(lines[len(lines) - part.output_lines :])


@pytest.mark.parametrize("final", ["", "\n"])
@pytest.mark.parametrize("more", [0, 1, 2])
def test_hidden_lines_are_counted_exactly(final, more):
    """BA-09"""
    text = "\n".join("x" * (2000 + more)) + final
    for part in (truncate_head(text), truncate_tail(text)):
        assert part.total_lines - part.output_lines == more


def test_details_have_the_names_that_clients_know():
    part = truncate_tail("a" * 60_000)
    assert part.details() == {
        "truncated": True,
        "truncatedBy": "bytes",
        "totalLines": 1,
        "totalBytes": 60_000,
        "outputLines": 1,
        "outputBytes": 51_200,
        "lastLinePartial": True,
        "firstLineExceedsLimit": False,
        "maxLines": 2000,
        "maxBytes": 51_200,
    }


def test_sizes():
    assert [format_size(n) for n in (5, 51_200, 3 * 1024 * 1024)] == ["5B", "50.0KB", "3.0MB"]


def test_long_lines_are_cut_with_a_mark():
    assert cut_line("x" * 500) == "x" * 500
    assert cut_line("x" * 501) == "x" * 500 + "... [truncated]"


LETTERS = [
    "a",
    "é",
    "e\u0301",
    "😀",
    "👩\u200d👧",
    "👍🏽",
    "🇳🇴",
    "\u1112\u1161\u11ab",
    "न\u093f",
    "🏴\U000e0067\U000e007f",
]


@given(letters=st.lists(st.sampled_from(LETTERS), min_size=1, max_size=30), data=st.data())
def test_no_letter_is_cut(letters, data):
    """RD-02"""
    text = "".join(letters)
    starts = {len("".join(letters[:n])) for n in range(len(letters) + 1)}
    limit = data.draw(st.integers(0, len(text)))
    assert len(cut_line(text, limit).removesuffix("... [truncated]")) in starts
    size = len(text.encode())
    end = truncate_tail(text, max_bytes=data.draw(st.integers(1, size)))
    assert text.endswith(end.content)
    assert len(text) - len(end.content) in starts
    assert end.output_bytes == len(end.content.encode())


def test_a_letter_without_end_is_cut_all_the_same():
    endless = "e" + "\u0301" * 100_000
    assert truncate_tail(endless).output_bytes == 51_200
    assert cut_line(endless) == f"{endless[:500]}... [truncated]"
