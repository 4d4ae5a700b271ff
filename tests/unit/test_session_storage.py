"""Writing and opening files: whole lines or nothing, one writer, nothing changed by looking."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pi_trio.errors import SessionError, SessionFormatError, SessionLockedError, StorageError
from pi_trio.messages import AssistantMessage, TextContent, ToolResultMessage, UserMessage
from pi_trio.session.entries import CustomEntry, MessageEntry
from pi_trio.session.session import Session
from pi_trio.testing.storage import LimitedDisk

HEADER = '{"type":"session","version":3,"id":"s-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"}\n'


def user(text: str) -> MessageEntry:
    return MessageEntry(UserMessage.of(text))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def line(entry_id: str, parent: str | None, text: str) -> str:
    message = {"role": "user", "content": text, "timestamp": 1}
    entry = {"type": "message", "id": entry_id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z"}
    return json.dumps({**entry, "message": message}, separators=(",", ":")) + "\n"


@pytest.fixture
def saved(tmp_path: Path) -> Session:
    session = Session.new("/p", tmp_path / "s.jsonl")
    session.append(user("one"))
    return session


# ------------------------------------------------------------------ the file is made late


def test_no_file_before_the_first_input(tmp_path: Path) -> None:
    """SF-05: what came before the first input is written with it, once."""
    path = tmp_path / "deep" / "s.jsonl"
    session = Session.new("/p", path)
    for number in range(3):
        session.append(CustomEntry("note", number))
    assert not path.parent.exists()
    assert not session.is_saved
    session.append(user("hello"))
    session.append(MessageEntry(AssistantMessage((TextContent("hi"),))))
    lines = [json.loads(each) for each in path.read_bytes().splitlines()]
    assert [each["type"] for each in lines] == ["session", *["custom"] * 3, "message", "message"]
    assert len({each["id"] for each in lines}) == 6
    assert [each["parentId"] for each in lines[1:]] == [None, *[each["id"] for each in lines[1:-1]]]
    assert list(lines[1])[:4] == ["type", "id", "parentId", "timestamp"]


def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    """SE-06."""
    before = os.umask(0)
    try:
        path = tmp_path / "a" / "b" / "s.jsonl"
        Session.new("/p", path).append(user("hello"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(each.stat().st_mode) for each in (path.parent, path.parent.parent)} == {0o700}


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("mine")
    session = Session.new("/p", path)
    with pytest.raises(SessionError, match="exists already"):
        session.append(user("hello"))
    assert path.read_text() == "mine"
    assert session.heads == []


# ------------------------------------------------------------------ one writer


def test_a_second_writer_is_refused_and_a_reader_is_not(saved: Session) -> None:
    assert saved.path is not None
    with pytest.raises(SessionLockedError):
        Session.open(saved.path)
    reader = Session.open(saved.path, writable=False)
    assert len(reader.heads) == 1
    with pytest.raises(StorageError, match="opened for reading"):
        reader.append(user("no"))
    reader.close()
    saved.append(user("still the writer"))
    saved.close()
    Session.open(saved.path).close()


def test_a_dead_process_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    code = (
        "import os, signal, sys, pathlib\n"
        "from pi_trio.messages import UserMessage\n"
        "from pi_trio.session.entries import MessageEntry\n"
        "from pi_trio.session.session import Session\n"
        "session = Session.new('/p', pathlib.Path(sys.argv[1]))\n"
        "session.append(MessageEntry(UserMessage.of('hello')))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    session = Session.open(path)
    session.append(user("again"))
    assert len(session.heads) == 2


def test_a_file_that_was_removed_or_replaced_is_not_written(saved: Session) -> None:
    assert saved.path is not None
    saved.path.with_suffix(".new").write_text(HEADER)
    saved.path.with_suffix(".new").rename(saved.path)
    with pytest.raises(StorageError, match="removed"):
        saved.append(user("lost"))
    assert saved.path.read_text() == HEADER


def test_lines_of_a_program_that_does_not_lock_are_kept_apart(saved: Session) -> None:
    assert saved.path is not None
    with saved.path.open("a") as other:
        other.write(line("ffff0000", saved.get_leaf_id(), "from elsewhere"))
    mine = saved.append(user("mine"))
    assert saved.raw(mine.id)["message"]["content"][0]["text"] == "mine"
    assert saved.raw("ffff0000")["message"]["content"] == "from elsewhere"
    assert saved.get_leaf_id() == mine.id
    assert saved.findings == ["1 entry came from another program"]
    saved.close()
    assert [head.id for head in Session.open(saved.path).heads][1:] == ["ffff0000", mine.id]


def test_a_reader_follows_the_writer(saved: Session) -> None:
    """CC-01: who only reads sees what is written, line by line, and never half of one."""
    assert saved.path is not None
    reader = Session.open(saved.path, writable=False)
    assert reader.refresh() == []
    second = saved.append(user("two"))
    saved.append_label(second.id, "here")
    saved.append_session_name("named")
    assert reader.name is None
    assert [head.type for head in reader.refresh()] == ["message", "label", "session_info"]
    assert (reader.name, reader.label_of(second.id)) == ("named", "here")
    assert reader.get_leaf_id() == saved.get_leaf_id()
    assert reader.build_context() == saved.build_context()
    with saved.path.open("ab") as file:
        file.write(b'{"type":"custom","id":"half')
    assert reader.refresh() == []
    assert Session.open(saved.path, writable=False).refresh() == []


def test_a_reader_of_a_half_line_sees_it_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    second = line("b", "a", "two")
    path.write_text(HEADER + line("a", None, "one") + second[:50])
    reader = Session.open(path, writable=False)
    assert [head.id for head in reader.heads] == ["a"]
    with path.open("a") as file:
        file.write(second[50:])
    assert [head.id for head in reader.refresh()] == ["b"]
    assert reader.build_context().messages[-1].content == "two"


# ------------------------------------------------------------------ disks that fail


@pytest.mark.parametrize("space", [0, 1, 40])
def test_a_full_disk_leaves_no_half_line(tmp_path: Path, space: int) -> None:
    """SF-08: nothing changes in memory or on disk, and saving goes on when there is room again."""
    disk = LimitedDisk()
    session = Session.new("/p", tmp_path / "s.jsonl", write=disk)
    first = session.append(user("one"))
    before = (tmp_path / "s.jsonl").read_bytes()
    disk.space = space
    with pytest.raises(StorageError):
        session.append(user("two"))
    with pytest.raises(StorageError):
        session.set_leaf_id(None)
    assert (tmp_path / "s.jsonl").read_bytes() == before
    assert session.get_leaf_id() == first.id
    assert len(session.heads) == 1
    disk.space = None
    session.append(user("two"))
    session.close()
    assert len(Session.open(tmp_path / "s.jsonl").heads) == 2


def test_what_has_happened_is_kept_and_goes_first(tmp_path: Path) -> None:
    """SF-08: an answer that was paid for is in the session although the disk is full."""
    disk = LimitedDisk()
    session = Session.new("/p", tmp_path / "s.jsonl", write=disk)
    session.append(user("one"))
    heard: list[object] = []
    session.on_append = heard.append
    disk.space = 0
    for text in ("two", "three"):
        with pytest.raises(StorageError):
            session.append(MessageEntry(AssistantMessage((TextContent(text),))), keep=True)
    assert (session.unsaved, len(heard), len(session.heads)) == (2, 2, 3)
    assert len(session.build_context().messages) == 3
    with pytest.raises(StorageError):
        session.append(user("four"))
    assert len(session.heads) == 3
    disk.space = None
    session.append(user("four"))
    assert session.unsaved == 0
    context = session.build_context()
    session.close()
    again = Session.open(tmp_path / "s.jsonl")
    assert again.heads == session.heads
    assert again.build_context() == context


def test_a_first_input_that_is_kept_makes_the_file_later(tmp_path: Path) -> None:
    disk = LimitedDisk(0)
    session = Session.new("/p", tmp_path / "s.jsonl", write=disk)
    with pytest.raises(StorageError):
        session.append(user("one"), keep=True)
    assert session.unsaved == 1
    with pytest.raises(StorageError):
        session.flush()
    disk.space = None
    session.append(CustomEntry("note"))
    assert session.unsaved == 0
    session.close()
    assert [head.type for head in Session.open(tmp_path / "s.jsonl").heads] == ["message", "custom"]


def test_closing_tells_what_is_lost(tmp_path: Path) -> None:
    disk = LimitedDisk()
    session = Session.new("/p", tmp_path / "s.jsonl", write=disk)
    session.append(user("one"))
    disk.space = 0
    with pytest.raises(StorageError):
        session.append(user("two"), keep=True)
    with pytest.raises(StorageError):
        session.close()
    Session.open(tmp_path / "s.jsonl").close()  # nobody has it any more


def test_a_file_that_could_not_be_made_leaves_nothing(tmp_path: Path) -> None:
    """SF-08, at the first write."""
    disk = LimitedDisk(100)
    session = Session.new("/p", tmp_path / "s.jsonl", write=disk)
    session.append(CustomEntry("note"))
    with pytest.raises(StorageError):
        session.append(user("one"))
    assert list(tmp_path.iterdir()) == []
    assert not session.is_saved
    disk.space = None
    session.append(user("one"))
    session.close()
    assert [head.type for head in Session.open(tmp_path / "s.jsonl").heads] == ["custom", "message"]


def test_a_half_line_that_cannot_be_cut_back_is_ended_first(
    saved: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SF-08: never a half entry followed by more on the same line."""
    assert saved.path is not None
    disk = LimitedDisk(30)
    monkeypatch.setattr(saved._storage, "_write", disk)

    def refuse(descriptor: int, length: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "ftruncate", refuse)
        with pytest.raises(StorageError):
            saved.append(user("two"))
    disk.space = None
    third = saved.append(user("three"))
    assert saved.raw(third.id)["id"] == third.id
    saved.close()
    again = Session.open(saved.path)
    assert [head.id for head in again.heads][1:] == [third.id]
    assert len(again.findings) == 1


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    session = Session.new("/p", tmp_path / "file" / "s.jsonl")
    with pytest.raises(StorageError):
        session.append(user("hello"))
    assert session.heads == []


def test_what_json_cannot_say_is_not_written(saved: Session) -> None:
    with pytest.raises(StorageError, match="JSON"):
        saved.append(CustomEntry("note", {"value": object()}))
    assert len(saved.heads) == 1


# ------------------------------------------------------------------ torn and damaged files


@pytest.mark.parametrize("tail", [b"\0" * 4096, b'{"type":"message","id":"x","par', b'"half'])
def test_a_torn_tail_is_left_out_and_not_touched(tmp_path: Path, tail: bytes) -> None:
    """SF-01: everything whole is there, one finding names the line, the bytes stay."""
    path = tmp_path / "s.jsonl"
    lines = "".join(line(f"{n:08x}", f"{n - 1:08x}" if n else None, f"t{n}") for n in range(20))
    path.write_bytes((HEADER + lines).encode() + tail)
    before = path.read_bytes()
    session = Session.open(path)
    assert len(session.heads) == 20
    assert session.findings == ["line 22 is damaged and was left out"]
    assert path.read_bytes() == before
    added = session.append(user("on"))
    assert path.read_bytes().startswith(before + b"\n{")
    session.close()
    assert Session.open(path).get_leaf_id() == added.id


def test_damage_in_the_middle_costs_one_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    first, second, third = line("a", None, "one"), line("b", "a", "two"), line("c", "a", "three")
    holed = second[:90] + "\0" * 4 + second[94:]
    glued = second[:100] + line("d", "a", "four")
    path.write_text(HEADER + first + holed + glued + "\n" + "null\n[]\n" + '{"type":"message"}\n' + third)
    session = Session.open(path)
    assert [head.id for head in session.heads] == ["a", "c"]
    assert [each.split()[1] for each in session.findings] == ["3", "4", "6", "7", "8"]


def test_a_body_that_proves_damaged_when_read_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    broken = line("b", "a", "two").replace('"content":"two"', '"content":"t"o"')
    path.write_text(HEADER + line("a", None, "one") + broken + line("c", "b", "three"))
    session = Session.open(path)
    assert [each.content for each in session.build_context().messages] == ["one", "three"]
    assert session.entry("b").type == "message"
    assert len(session.findings) == 1


def test_repeated_lines_do_not_shift_the_others(tmp_path: Path) -> None:
    """TR-01, SF-05: 7,000 entries of which 40 are there twice, and two that are each other's parent."""
    entries = [line(f"{n:08x}", f"{n - 1:08x}" if n else None, f"t{n}") for n in range(7000)]
    for n in range(40):
        entries.insert(n * 150 + 3, entries[n])
    path = tmp_path / "s.jsonl"
    path.write_text(HEADER + "".join(entries) + line("x", "y", "x") + line("y", "x", "y"))
    session = Session.open(path)
    assert len(session.heads) == 7002
    assert len(session.findings) == 2
    for head in session.heads[:200]:
        assert session.raw(head.id)["id"] == head.id
    session.set_leaf_id(f"{6999:08x}")
    assert len(session.build_context().messages) == 7000


def test_one_record_is_one_line_feed(tmp_path: Path) -> None:
    """SF-04: no other character ends a line."""
    text = "a\u2028b\u2029c\u0085d\ve\ff\x1cg\x1dh\x1ei\nj\rk"
    session = Session.new("/p", tmp_path / "s.jsonl")
    session.append(user("go"))
    session.append(MessageEntry(ToolResultMessage("c", "bash", (TextContent(text),))))
    session.close()
    assert (tmp_path / "s.jsonl").read_bytes().count(b"\n") == 3
    result = Session.open(tmp_path / "s.jsonl").get_branch()[-1]
    assert isinstance(result, MessageEntry)
    assert isinstance(result.message, ToolResultMessage)
    assert result.message.content == (TextContent(text),)


def test_other_key_orders_and_spaces_are_read(tmp_path: Path) -> None:
    entries = [json.loads(line("a", None, "one")), json.loads(line("b", "a", "two"))]
    shuffled = [dict(reversed(each.items())) for each in entries]
    leaf = {"id": "l", "targetId": "a", "type": "leaf", "parentId": "a", "timestamp": ""}
    path = tmp_path / "s.jsonl"
    path.write_text(HEADER + "".join(json.dumps(each) + "\r\n" for each in [*shuffled, leaf]))
    session = Session.open(path)
    assert [(head.id, head.parent_id, head.detail) for head in session.heads] == [
        ("a", None, "user"),
        ("b", "a", "user"),
        ("l", "a", "a"),
    ]
    assert session.get_leaf_id() == "a"


# ------------------------------------------------------------------ what is not a session


def test_what_is_not_a_session_is_refused_at_once_and_untouched(tmp_path: Path) -> None:
    """SF-06, SF-02."""
    prose = tmp_path / "notes.txt"
    prose.write_text("one\ntwo\nthree\n")
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{broken\n" + line("a", None, "recover me"))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    digests = digest(prose), digest(broken)
    began = time.monotonic()
    for path in (prose, broken, fifo, tmp_path):
        for writable in (True, False):
            with pytest.raises(SessionFormatError, match=str(path)):
                Session.open(path, writable=writable)
    assert time.monotonic() - began < 1
    assert (digest(prose), digest(broken)) == digests
    with pytest.raises(SessionError, match="there is no session"):
        Session.open(tmp_path / "missing.jsonl")
    assert not (tmp_path / "missing.jsonl").exists()


def test_an_empty_file_is_a_new_session(tmp_path: Path) -> None:
    """SF-06."""
    path = tmp_path / "s.jsonl"
    path.touch()
    session = Session.open(path, cwd="/p")
    assert path.stat().st_size == 0
    session.append(user("hello"))
    session.close()
    again = Session.open(path)
    assert (again.id, again.cwd, len(again.heads)) == (session.id, "/p", 1)


def test_looking_changes_nothing(tmp_path: Path) -> None:
    """RS-04: bytes and times stay."""
    path = tmp_path / "s.jsonl"
    path.write_text(HEADER + line("a", None, "one"))
    os.utime(path, (1_000_000_000, 1_000_000_000))
    session = Session.open(path)
    session.build_context()
    session.sync()
    session.close()
    assert path.stat().st_mtime == 1_000_000_000


def test_a_file_that_may_not_be_written_is_opened_for_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(HEADER + line("a", None, "one"))
    real_open = os.open

    def guarded(name: object, flags: int, *rest: int) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return real_open(name, flags, *rest)

    monkeypatch.setattr(os, "open", guarded)
    session = Session.open(path)
    assert session.findings == ["the file cannot be written: Permission denied"]
    with pytest.raises(StorageError, match="Permission denied"):
        session.append(user("no"))


def test_a_disk_that_refuses_is_told_with_the_path_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"

    def refused(name: object, *_: int) -> int:
        raise OSError(30, "Read-only file system", str(name))

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(SessionError) as caught:
        Session.open(path)
    assert str(caught.value) == f"cannot open {path}: Read-only file system"


def test_a_file_of_a_newer_program_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "newer.jsonl"
    path.write_text(HEADER.replace('"version":3', '"version":99'))
    before = digest(path)
    for writable in (True, False):
        with pytest.raises(SessionFormatError, match=r"is of version 99, .* up to 3: a newer one wrote it"):
            Session.open(path, writable=writable)
    assert digest(path) == before
