from __future__ import annotations

import hashlib
import os

import pytest
import trio

from pi_trio.messages import text_of
from pi_trio.tools import LocalEnvironment, ToolError, read_tool, write_tool


@pytest.fixture
def environment(tmp_path):
    return LocalEnvironment(tmp_path)


@pytest.fixture
def write(environment):
    tool = write_tool(environment)

    async def call(path, content):
        return await tool.execute("c1", {"path": str(path), "content": content}, None)

    return call


@pytest.fixture
def mask():
    before = os.umask(0o027)
    yield
    os.umask(before)


def names(folder):
    return sorted(each.name for each in folder.iterdir())


async def test_a_new_file_with_its_folders(write, tmp_path, mask):
    result = await write("a/b/c.txt", "x\r\ny😀")
    assert text_of(result.content) == "Successfully wrote to a/b/c.txt"
    assert (tmp_path / "a/b/c.txt").read_bytes() == "x\r\ny😀".encode()
    assert (tmp_path / "a/b/c.txt").stat().st_mode & 0o777 == 0o640
    assert names(tmp_path / "a/b") == ["c.txt"]


async def test_mode_links_and_hard_links_stay(write, tmp_path):
    """ED-07"""
    script, link, other = tmp_path / "s.sh", tmp_path / "link", tmp_path / "other"
    script.write_text("old")
    script.chmod(0o755)
    link.symlink_to("s.sh")
    await write("link", "new")
    assert link.is_symlink()
    assert script.read_text() == "new"
    assert script.stat().st_mode & 0o777 == 0o755
    other.hardlink_to(script)
    await write("other", "newer")
    assert script.read_text() == "newer"
    assert script.stat().st_ino == other.stat().st_ino


async def test_what_cannot_be_written(write, tmp_path):
    """ED-07, SE-15"""
    (tmp_path / "locked").write_text("old")
    (tmp_path / "locked").chmod(0o444)
    os.mkfifo(tmp_path / "pipe")
    for path in ("locked", "pipe", ".", "/dev/null", "locked/x", "a\0b", "\udcff", "n" * 300, ""):
        with pytest.raises(ToolError):
            await write(path, "new")
    with pytest.raises(ToolError, match="surrogate"):
        await write("x", "\ud83d")
    assert (tmp_path / "locked").read_text() == "old"
    assert names(tmp_path) == ["locked", "pipe"]


async def test_what_somebody_else_changed_is_not_overwritten(environment, write, tmp_path):
    """ED-04"""
    file = tmp_path / "f"
    file.write_text("one\n")
    read = read_tool(environment)
    await read.execute("r", {"path": "f"}, None)
    file.write_text("one\nby hand\n")
    with pytest.raises(ToolError, match="changed by somebody else"):
        await write("./f", "all new")
    assert file.read_text() == "one\nby hand\n"
    await read.execute("r", {"path": "f"}, None)
    await write("f", "all new")
    await write("f", "again")
    assert file.read_text() == "again"


async def test_readers_never_see_half_a_file(write, tmp_path):
    file = tmp_path / "f"
    file.write_text("a" * 100_000)
    seen = set()

    async def look(done):
        while not done.is_set():
            seen.add(await trio.to_thread.run_sync(file.read_text))

    done = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(look, done)
        for letter in "bcdefgh":
            await write("f", letter * 100_000)
        done.set()
    assert all(len(content) == 100_000 and len(set(content)) == 1 for content in seen)


async def test_details_tell_what_the_file_was_and_is(write, tmp_path):
    first, second = await write("f", "a"), await write("f", "b")
    digests = [hashlib.sha256(data).hexdigest() for data in (b"a", b"b")]
    for result, before, after in ((first, None, digests[0]), (second, *digests)):
        assert result.details == {"files": [{"path": str(tmp_path / "f"), "before": before, "after": after}]}
