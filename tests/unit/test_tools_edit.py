from __future__ import annotations

import codecs
import hashlib
import subprocess

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi_trio.messages import text_of
from pi_trio.tool import ToolResult
from pi_trio.tools import LocalEnvironment, ToolError, edit_tool
from pi_trio.tools.diff import Diff
from pi_trio.tools.document import Document, Replacement, with_line_feeds
from pi_trio.tools.matching import Edit, find_replacements


@pytest.fixture
def edit(tmp_path):
    tool = edit_tool(LocalEnvironment(tmp_path))

    async def call(path, *edits, **args) -> ToolResult:
        args = {"path": str(path), "edits": [{"oldText": old, "newText": new} for old, new in edits]} | args
        return await tool.execute("c1", tool.prepare_arguments(args), None)

    return call


def edited(text: str, *edits: tuple[str, str]) -> str:
    document = Document.parse(text.encode(), "f")
    return document.replaced(find_replacements(document.text, [Edit(*each) for each in edits], "f")).decode()


async def test_edits_are_made_against_the_original(edit, tmp_path):
    (tmp_path / "f").write_text("a\nb\nc\n")
    result = await edit("f", ("a", "b"), ("b", "c"), ("c", "a"))
    assert (tmp_path / "f").read_text() == "b\nc\na\n"
    assert text_of(result.content) == "Successfully replaced 3 block(s) in f."
    assert result.details["firstChangedLine"] == 1


@pytest.mark.parametrize(
    ("before", "edits", "after"),
    [
        (codecs.BOM_UTF8 + b"a\r\nb\r\nc", [("a\nb", "A\nB")], codecs.BOM_UTF8 + b"A\r\nB\r\nc"),
        (b"a\r\nb\nc\rd\n", [("b", "B\nB2")], b"a\r\nB\nB2\nc\rd\n"),
        (b"a\r\nb\nc\rd\n", [("a", "a\nA")], b"a\r\nA\r\nb\nc\rd\n"),
        (b"a\r\nb\nc\nd\n", [("a\nb\nc", "a\nX\nc")], b"a\r\nX\nc\nd\n"),
        (b"a\r\nb", [("b", "b\r\nc\r\n")], b"a\r\nb\r\nc\r\n"),
        (b"a\nb\n", [("a\r\nb", "x\r\ny")], b"x\ny\n"),
        (b"a\r\r\nb", [("b", "c\nd")], b"a\r\r\nc\r\nd"),
    ],
)
async def test_line_ends_marks_and_the_end_of_the_file_stay(edit, tmp_path, before, edits, after):
    """ED-01"""
    (tmp_path / "f").write_bytes(before)
    await edit("f", *edits)
    assert (tmp_path / "f").read_bytes() == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        ("say “hi” – now\n", ('say "hi" - now', "say nothing"), "say nothing\n"),
        ("it’s “x”, y = 1\n", ("y = 1", "y = 2"), "it’s “x”, y = 2\n"),
        ("it’s “x”, it's\ty\n", ('it\'s "x"', "Z"), "Z, it's\ty\n"),
        ("a  \nb\t\nc\n", ("a\nb\nc", "A\nb\nc"), "A\nb\nc\n"),
        ("a\u00a0b  \nc", ("a b\n", "x\n"), "x\nc"),
        ("cafe\u0301 x\n", ("café x", "tea x"), "tea x\n"),
        ("\u1112\u1161\u11ab y\n", ("\ud55c y", "z y"), "z y\n"),
        ("one ﬁn two’s\n", ("in two's", "!"), "one !\n"),
    ],
)
def test_tolerant_matching_replaces_only_what_matched(before, edit, after):
    assert edited(before, edit) == after


@pytest.mark.parametrize(
    ("text", "edits", "sentence"),
    [
        ("x x x", [("x", "y")], r"edits\[0\].oldText is in f 3 times"),
        ("aaa", [("aa", "b")], "2 times"),
        ("a", [("a", "b"), ("", "c")], r"edits\[1\].oldText is empty"),
        ("a", [("a", "a")], "change nothing"),
        ("a", [("z", "b")], r"edits\[0\].oldText was not found in f"),
        ("a   \n", [(" \n \n", "b")], "not found"),
        ("abcd", [("cd", "x"), ("abc", "y")], r"edits\[1\] and edits\[0\] overlap in f"),
        ("“a” “a”", [('"a"', "b")], "2 times"),
    ],
)
async def test_edits_that_are_not_made(edit, tmp_path, text, edits, sentence):
    """ED-06"""
    (tmp_path / "f").write_text(text)
    before = (tmp_path / "f").stat()
    with pytest.raises(ToolError, match=sentence):
        await edit("f", *edits)
    assert (tmp_path / "f").stat().st_mtime_ns == before.st_mtime_ns


async def test_mode_links_and_read_only_files(edit, tmp_path):
    """ED-07"""
    script, link, hard, locked = (tmp_path / name for name in ("s", "link", "hard", "locked"))
    script.write_text("old\n")
    script.chmod(0o755)
    link.symlink_to(script)
    await edit("link", ("old", "new"))
    assert link.is_symlink()
    assert script.stat().st_mode & 0o777 == 0o755
    hard.hardlink_to(script)
    await edit("hard", ("new", "newer"))
    assert script.read_text() == "newer\n"
    locked.write_text("old")
    locked.chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        await edit("locked", ("old", "new"))


async def test_other_encodings(edit, tmp_path):
    """ED-08"""
    (tmp_path / "latin").write_bytes(b"caf\xe9 one \xff\n")
    await edit("latin", ("one", "deux é"), ("café", "thé"))
    assert (tmp_path / "latin").read_bytes() == b"th\xe9 deux \xe9 \xff\n"
    with pytest.raises(ToolError, match="Latin-1"):
        await edit("latin", ("deux", "漢"))
    (tmp_path / "wide").write_bytes("one".encode("utf-16-le"))
    with pytest.raises(ToolError, match="UTF-16 without its mark"):
        await edit("wide", ("one", "two"))
    (tmp_path / "f").write_text("x")
    with pytest.raises(ToolError, match="surrogate"):
        await edit("f", ("x", "\ud83d"))


@pytest.mark.parametrize("mark", ["\ufeff".encode("utf-16-le"), "\ufeff".encode("utf-16-be")])
async def test_utf16_stays_utf16(edit, tmp_path, mark):
    """ED-08: the mark, the byte order and the line ends stay."""
    encoding = "utf-16-le" if mark[:1] == b"\xff" else "utf-16-be"
    path = tmp_path / "wide"
    path.write_bytes(mark + "één\r\ntwo 😀\r\nlast".encode(encoding))
    await edit("wide", ("één\ntwo", "drie\nvier"))
    assert path.read_bytes() == mark + "drie\r\nvier 😀\r\nlast".encode(encoding)
    with pytest.raises(ToolError, match="surrogate"):
        await edit("wide", ("last", "\ud83d"))
    path.write_bytes(mark + b"odd")
    with pytest.raises(ToolError, match="begins as UTF-16"):
        await edit("wide", ("odd", "even"))


@pytest.mark.parametrize("path", ["a\0b", "missing", ".", "n" * 300, ""])
async def test_impossible_paths(edit, path):
    """SE-15"""
    with pytest.raises(ToolError):
        await edit(path, ("a", "b"))


async def test_parallel_edits_of_one_file(edit, tmp_path):
    """ED-03"""
    file = tmp_path / "f"
    file.write_text("".join(f"line {n}.\n" for n in range(100)))
    (tmp_path / "link").symlink_to("f")
    paths = ["f", "./f", "link", file, "@f", "../" + tmp_path.name + "/f"]
    async with trio.open_nursery() as nursery:
        for number, path in enumerate(paths):
            nursery.start_soon(edit, path, (f"line {number * 10}.", f"LINE {number * 10}."))
    lines = file.read_text().splitlines()
    assert len(lines) == 100
    assert [n for n, line in enumerate(lines) if line.startswith("LINE")] == [0, 10, 20, 30, 40, 50]


async def test_a_large_file(edit, tmp_path):
    """ED-05"""
    lines = [f"{n:06} {'x' * 42}\n" for n in range(100_000)]
    (tmp_path / "f").write_text("".join(lines))
    result = await edit("f", ("050000 ", "050000!"))
    assert len(result.details["diff"].splitlines()) == 10
    assert result.details["firstChangedLine"] == 50_001
    result = await edit("f", ("".join(lines[:40_000]), "y\n" * 40_000))
    assert len(result.details["diff"].splitlines()) <= 2001
    assert result.details["diff"].endswith("more lines")
    assert "patch" not in result.details


async def test_an_existing_file_whose_name_looks_the_same(edit, tmp_path):
    (tmp_path / "it\u2019s").write_text("a")
    await edit("it's", ("a", "b"))
    assert (tmp_path / "it\u2019s").read_text() == "b"
    assert [each.name for each in tmp_path.iterdir()] == ["it\u2019s"]


async def test_arguments_as_models_send_them(edit, tmp_path):
    for n, args in enumerate(
        [
            {"edits": '[{"oldText": "a", "newText": "b"}]'},
            {"edits": {"oldText": "a", "newText": "b"}},
            {"edits": None, "oldText": "a", "newText": "b"},
        ]
    ):
        (tmp_path / f"f{n}").write_text("a")
        await edit(f"f{n}", **args)
        assert (tmp_path / f"f{n}").read_text() == "b"


def test_the_display_diff():
    text = "".join(f"{n}\n" for n in range(1, 31))
    old = Document.parse(text.encode(), "f").text
    replacements = find_replacements(old, [Edit("\n5\n", "\nfive\nfive and a half\n"), Edit("25\n", "")], "f")
    diff = Diff.of(old, replacements)
    assert diff.display().split("\n") == [
        *(f"  {n} {n}" for n in range(1, 5)),
        "- 5 5",
        "+ 5 five",
        "+ 6 five and a half",
        *(f"  {n} {n}" for n in range(6, 10)),
        "    ...",
        *(f" {n} {n}" for n in range(21, 25)),
        "-25 25",
        *(f" {n} {n}" for n in range(26, 30)),
    ]
    assert diff.first_changed_line == 5


lines = st.lists(st.sampled_from(["a", "b", "c", "é", ""]), max_size=12)


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, list[Replacement]]:
    """A text and replacements in it that are in order, apart and change something."""
    text = "\n".join(draw(lines)) + draw(st.sampled_from(["\n", "x"]))
    cuts = draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=6))
    cuts = sorted(cuts[: len(cuts) // 2 * 2])
    news = draw(st.lists(lines, min_size=3, max_size=3))
    found = [
        Replacement(start, end, "\n".join(new))
        for start, end, new in zip(cuts[::2], cuts[1::2], news, strict=False)
    ]
    return text, [each for each in found if text[each.start : each.end] != each.text]


def applied(text: str, replacements: list[Replacement]) -> str:
    for each in reversed(replacements):
        text = text[: each.start] + each.text + text[each.end :]
    return text


@given(change=changes(), ends=st.sampled_from(["\n", "\r\n", "\r"]))
def test_documents_give_back_what_was_not_edited(change, ends):
    text, replacements = change
    data = text.replace("\n", ends).encode()
    document = Document.parse(data, "f")
    assert document.text == text
    assert document.replaced([]) == data
    if "\n" in text:
        assert document.replaced(replacements) == applied(text, replacements).replace("\n", ends).encode()


@given(change=changes())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_patches_apply(change, tmp_path):
    text, replacements = change
    after = applied(text, replacements)
    if not replacements or after == text or not after:
        return
    (tmp_path / "f").write_bytes(text.encode())
    patch = Diff.of(text, replacements).patch("f")
    subprocess.run(
        ["patch", "--quiet", "--unified", "--no-backup-if-mismatch", "f"],
        input=patch.encode(),
        cwd=tmp_path,
        check=True,
    )
    assert (tmp_path / "f").read_bytes() == after.encode()


@given(text=st.text(st.sampled_from("ab’'é \u00a0ﬁ\u0301\n"), min_size=1, max_size=30), data=st.data())
def test_a_piece_of_the_text_is_found_where_it_is_or_said_to_be_ambiguous(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    result = edited_or_error(text, (text[start:end], "Q"))
    assert result == text[:start] + "Q" + text[end:] or "times" in result


def edited_or_error(text: str, edit: tuple[str, str]) -> str:
    try:
        return edited(text, edit)
    except ToolError as error:
        return str(error)


LETTERS = st.text(st.sampled_from("ab \n\r\té€\ufeff\u2028"), max_size=30)


@given(before=LETTERS, edits=st.lists(st.tuples(LETTERS, LETTERS), min_size=1, max_size=3), data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
async def test_an_edit_is_a_plain_replacement_or_nothing_at_all(edit, tmp_path, before, edits, data):
    """What is found letter for letter once is replaced as text; else the file has every byte it had."""
    file = tmp_path / "f"
    original = before.encode()
    file.write_bytes(original)
    pieces = [(_piece(before, data), new) for _, new in edits] if data.draw(st.booleans()) else edits
    try:
        result = await edit("f", *pieces)
    except ToolError:
        assert file.read_bytes() == original
        return
    assert result.details["files"][0]["after"] == hashlib.sha256(file.read_bytes()).hexdigest()
    plain = with_line_feeds(original.decode().removeprefix("\ufeff"))
    if all(plain.count(with_line_feeds(old)) == 1 for old, _ in pieces):
        places = sorted((plain.index(with_line_feeds(old)), old, new) for old, new in pieces)
        for at, old, new in reversed(places):
            plain = plain[:at] + with_line_feeds(new) + plain[at + len(with_line_feeds(old)) :]
        mark = "\ufeff" if before.startswith("\ufeff") else ""
        assert with_line_feeds(file.read_bytes().decode()) == mark + plain


def _piece(text: str, data: st.DataObject) -> str:
    start = data.draw(st.integers(0, len(text)))
    return text[start : data.draw(st.integers(start, len(text)))]


async def test_details_tell_what_the_file_was_and_is(edit, tmp_path):
    (tmp_path / "f").write_text("a")
    result = await edit("f", ("a", "b"))
    (file,) = result.details["files"]
    assert file == {
        "path": str(tmp_path / "f"),
        "before": hashlib.sha256(b"a").hexdigest(),
        "after": hashlib.sha256(b"b").hexdigest(),
    }


@pytest.mark.parametrize(
    ("text", "old", "hint"),
    [
        (
            "def a():\n    x = 1\n    y = 2\n",
            "def a():\n    x = 1\n    y = 3\n",
            "line 3: the file has '    y = 2'",
        ),
        ("if a:\n\tb\n", "if a:\n    b\n", r"line 2: the file has '\\tb' where oldText has '    b'"),
        ("one\ntwo\n", "two\nthree", "line 3: the file has '' where oldText has 'three'"),
        ("one\ntwo", "two\nthree", "line 3: the file ends where oldText has 'three'"),
        ("alpha = compute(1)\n", "alpha = compute(2)", r"line 1: the file has 'alpha = compute\(1\)'"),
        ("one\n", "\n\none\n", "line 1: only blanks or line ends around the text differ"),
        ("one\n", "zzz", "Read the file again"),
        ("a" * 5_000_000, "b" * 5_000_000, "Read the file again"),
    ],
    ids=range(8),
)
def test_a_text_that_is_not_there_is_told_with_the_nearest(text, old, hint):
    with pytest.raises(ToolError, match=hint):
        edited(text, (old, "new"))
