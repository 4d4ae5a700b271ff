"""grep, find and ls over real folders."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.messages import text_of
from pi_trio.tools import LocalEnvironment, ToolError, coding_tools
from pi_trio.tools.globs import Glob
from pi_trio.tools.grep import MAX_COLUMNS


@pytest.fixture
async def environment(tmp_path):
    return LocalEnvironment(tmp_path)


@pytest.fixture
def call(environment):
    tools = {tool.name: tool for tool in coding_tools(environment, ["grep", "find", "ls"])}

    async def call(name, **args):
        with trio.fail_after(20):
            return await tools[name].execute("c1", args, None)

    return call


def text(result):
    return text_of(result.content)


def lines(result):
    return text(result).split("\n")


def fill(folder: Path, **files: str) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


# ---------------------------------------------------------------- grep


async def test_matches_with_file_line_and_text(call, tmp_path):
    fill(tmp_path, b="one\ntwo\n", a="Two\nthree\ntwo two\n", sub__c="two\r\n")
    assert lines(await call("grep", pattern="two")) == ["a:3: two two", "b:2: two", "sub/c:1: two"]
    assert lines(await call("grep", pattern="two", ignoreCase=True, path="a")) == ["a:1: Two", "a:3: two two"]
    assert lines(await call("grep", pattern="T.o", glob="./a")) == ["a:1: Two"]
    assert lines(await call("grep", pattern="two", path="sub")) == ["c:1: two"]
    assert text(await call("grep", pattern="t.o", literal=True)) == "No matches found"


async def test_context_around_matches(call, tmp_path):
    fill(tmp_path, f="a\nx1\nb\nc\nd\ne\nx2\n")
    result = await call("grep", pattern="x", context=1)
    assert lines(result) == ["f-1- a", "f:2: x1", "f-3- b", "f-6- e", "f:7: x2"]


@pytest.mark.parametrize(("limit", "more"), [(2, True), (3, False), (4, False)])
async def test_the_limit_is_told_only_if_there_is_more(call, tmp_path, limit, more):
    fill(tmp_path, f="x\nx\nx\n")
    result = await call("grep", pattern="x", limit=limit)
    note = f"[{limit} matches limit reached. Use limit={2 * limit} for more, or refine pattern]"
    assert text(result).endswith(note) == more
    assert result.details == ({"matchLimitReached": limit} if more else None)


async def test_a_match_in_the_last_context_is_shown_as_context(call, tmp_path):
    fill(tmp_path, f="x1\nx2\nx3\nx4\n")
    shown, _, note = text(await call("grep", pattern="x", limit=1, context=2)).partition("\n\n")
    assert shown.split("\n") == ["f:1: x1", "f-2- x2", "f-3- x3"]
    assert note.startswith("[1 matches limit reached.")


@pytest.mark.parametrize("letter", ["a", "é", "😀"])
async def test_long_lines_are_cut(call, tmp_path, letter):
    """RD-02"""
    fill(tmp_path, exact=f"x{letter * 499}\n", longer=f"x{letter * 500}\n", huge=f"x{letter * 5_000_000}\n")
    result = await call("grep", pattern="^x")
    cut = f"x{letter * 499}... [truncated]"
    assert lines(result)[:3] == [f"exact:1: x{letter * 499}", f"huge:1: {cut}", f"longer:1: {cut}"]
    assert text(result).endswith("[Some lines truncated to 500 chars. Use read tool to see full lines]")
    assert result.details == {"linesTruncated": True}
    assert len(f"x{letter * 499}".encode()) < MAX_COLUMNS


async def test_much_is_cut_by_size(call, tmp_path):
    fill(tmp_path, f="".join(f"{n:0400}\n" for n in range(200)))
    result = await call("grep", pattern="0", limit=150)
    assert text(result).endswith(
        "[150 matches limit reached. Use limit=300 for more, or refine pattern. 50.0KB limit reached]"
    )
    assert result.details["truncation"]["truncatedBy"] == "bytes"
    assert result.details["truncation"]["totalLines"] == 150


async def test_names_with_line_ends_and_numbers_are_not_mixed_up(call, tmp_path):
    (tmp_path / "a\nb:3: x").write_text("y\nx\n")
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("x\n")
    assert lines(await call("grep", pattern="x")) == ['"a\\nb:3: x":2: x', "caf\ufffd:1: x"]


async def test_binary_files(call, tmp_path):
    (tmp_path / "bin").write_bytes(b"x\n" + bytes(100_000) + b"x\n")
    (tmp_path / "text").write_text("x\n")
    assert lines(await call("grep", pattern="x"))[-1] == "text:1: x"
    assert text(await call("grep", pattern="x", path="bin")).startswith("bin: binary file matches")


async def test_ignored_files_and_a_persons_own_configuration(call, tmp_path, monkeypatch):
    """The configuration of ripgrep must not change what a model sees."""
    fill(tmp_path, **{".hidden": "x\n", "ignored": "x\n", ".ignore": "ignored\n", ".git__config": "x\n"})
    fill(tmp_path, rc="--max-count=0\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rc"))
    assert lines(await call("grep", pattern="x")) == [".hidden:1: x", "rc:1: --max-count=0"]


async def test_secrets_are_left_out_unless_they_are_named(call, tmp_path):
    """SE-12"""
    fill(tmp_path, **{".env": "KEY=1\n", "a": "KEY\n", ".ssh__id_rsa": "KEY\n", "sub__.ENV": "KEY\n"})
    assert lines(await call("grep", pattern="KEY")) == ["a:1: KEY"]
    assert lines(await call("grep", pattern="KEY", glob=".env")) == ["No matches found"]
    assert lines(await call("grep", pattern="KEY", path=".env")) == [".env:1: KEY=1"]
    assert lines(await call("grep", pattern="KEY", path=".ssh")) == ["id_rsa:1: KEY"]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(.*a){20}"])
async def test_wicked_patterns_take_no_time(call, tmp_path, pattern):
    """SE-11"""
    fill(tmp_path, f=f"{'a' * 40}!\n", long="a" * 5_000_000)
    with trio.fail_after(5):
        await call("grep", pattern=pattern, path="f")
        await call("grep", pattern="(a+)+$")


async def test_wrong_patterns_are_told_in_ripgreps_words(call, tmp_path):
    with pytest.raises(ToolError, match="unclosed group"):
        await call("grep", pattern="(a")
    with pytest.raises(ToolError):
        await call("grep", pattern="(" * 1_000_000)


async def test_endless_output_stays_out_of_memory(call, tmp_path):
    fill(tmp_path, f="x\n" * 5_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert text(await call("grep", pattern="x", context=3)).count("\n") > 100
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


async def test_what_is_no_file_is_refused(call, tmp_path):
    """RD-04"""
    os.mkfifo(tmp_path / "pipe")
    for tool in ("grep", "find"):
        for path in ("pipe", "/dev/zero", "missing"):
            with pytest.raises(ToolError, match=path):
                await call(tool, pattern="x", path=path)
    fill(tmp_path, f="")
    with pytest.raises(ToolError, match="not a folder"):
        await call("find", pattern="x", path="f")
    with pytest.raises(ToolError, match="not a folder"):
        await call("ls", path="f")


@pytest.mark.parametrize("tool", ["grep", "find", "ls"])
@pytest.mark.parametrize("bad", ["a\0b", "\ud800", "x" * 300, "x/" * 2500])
async def test_impossible_texts_are_errors(call, tool, bad):
    """SE-15"""
    with pytest.raises(ToolError):
        await call(tool, pattern="x", path=bad)
    if tool != "ls" and len(bad) < 10:
        with pytest.raises(ToolError):
            await call(tool, pattern=bad)


# ---------------------------------------------------------------- find


async def test_files_and_folders_by_name(call, tmp_path):
    fill(tmp_path, a__b__c_test="", a__d="", **{".hidden__test.py": "", "Test.PY": ""})
    (tmp_path / "empty_test").mkdir()
    (tmp_path / "a" / "link_test").symlink_to("d")
    found = lines(await call("find", pattern="*test*"))
    assert found == [".hidden/test.py", "Test.PY", "a/b/c_test", "a/link_test", "empty_test/"]
    assert lines(await call("find", pattern="*.PY")) == ["Test.PY"]
    assert lines(await call("find", pattern="b")) == ["a/b/"]
    assert lines(await call("find", pattern="a/*")) == ["a/b/", "a/d", "a/link_test"]
    assert lines(await call("find", pattern="./a/**/*_test")) == ["a/b/c_test", "a/link_test"]
    assert lines(await call("find", pattern=f"{tmp_path}/a/d")) == ["a/d"]
    assert lines(await call("find", pattern="d", path="a")) == ["d"]
    assert lines(await call("find", pattern="*.{py,md}")) == [".hidden/test.py", "Test.PY"]
    assert text(await call("find", pattern="*.rs")) == "No files found matching pattern"
    with pytest.raises(ToolError, match="another folder"):
        await call("find", pattern="/elsewhere/*")


async def test_ignored_files_are_not_found(call, tmp_path):
    fill(
        tmp_path, **{".gitignore": "built/\n*.log\n", "built__x": "", "a.log": "", "a.txt": "", ".git__x": ""}
    )
    assert lines(await call("find", pattern="*")) == [".gitignore", "a.txt"]


@pytest.mark.parametrize(("limit", "more"), [(2, True), (3, False)])
async def test_the_limit_of_find(call, tmp_path, limit, more):
    fill(tmp_path, a="", b="", c="")
    result = await call("find", pattern="*", limit=limit)
    note = f"[{limit} results limit reached. Use limit={2 * limit} for more, or refine pattern]"
    assert text(result).endswith(note) == more
    assert result.details == ({"resultLimitReached": limit} if more else None)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*", "a/b", True),
        ("a*c", "x/abc", True),
        ("a*c", "abc/d", False),
        ("**/x", "x", True),
        ("**/x", "a/b/x", True),
        ("a/**", "a/b/c", True),
        ("a/**/b", "a/b", True),
        ("a/**/b/**/c", "a/x/b/b/y/c", True),
        ("a/**/b/**/c", "a/x/b/y/d", False),
        ("a/*", "a/b/c", False),
        ("{a,b{1,2}}/c", "b2/c", True),
        ("[!a]x", "bx", True),
        ("[^a]x", "ax", False),
        ("README*", "readme.md", False),
        ("readme*", "README.md", True),
        ("[", "[", True),
    ],
)
def test_globs(pattern, path, fits):
    assert Glob(pattern).matches(path) == fits


def test_wicked_globs_take_no_time():
    """SE-11"""
    assert not Glob("*a" * 60 + "b").matches("a" * 250)
    assert not Glob("/".join(["**", "a"] * 60) + "/b").matches("/".join("a" * 250))
    with pytest.raises(ToolError, match="alternatives"):
        Glob("{a,b}" * 40)


@given(st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=6), st.data())
def test_a_glob_made_from_a_path_matches_it(parts, data):
    for at in range(len(parts)):
        change = data.draw(st.sampled_from(["same", "star", "folders"]))
        if change == "star":
            parts[at] = parts[at][0] + "*"
        elif change == "folders":
            parts[at] = "**"
    pattern = "/".join(parts)
    path = "/".join(part.replace("**", "x/y").replace("*", "") for part in parts)
    assert Glob(f"./{pattern}").matches(path)


# ---------------------------------------------------------------- ls


async def test_a_folder_sorted_without_regard_for_capitals(call, tmp_path):
    fill(tmp_path, b="", C="", a__x="", **{".hidden": "", "x\ny": ""})
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "round").symlink_to("round")
    assert lines(await call("ls")) == [".hidden", "a/", "b", "C", "link/", "round", '"x\\ny"']
    assert text(await call("ls", path="a")) == "x"
    result = await call("ls", limit=2)
    assert lines(result) == [".hidden", "a/", "", "[2 entries limit reached. Use limit=4 for more]"]
    assert result.details == {"entryLimitReached": 2}
    (tmp_path / "nothing").mkdir()
    assert text(await call("ls", path="nothing")) == "(empty directory)"
