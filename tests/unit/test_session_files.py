"""Session files as wholes: searching, renaming, deleting, copying, taking in from elsewhere."""

from __future__ import annotations

import json
import os
import stat
import sys
from datetime import datetime
from pathlib import Path

import pytest

from pi_trio.errors import SessionError, SessionFormatError, SessionLockedError, StorageError, UsageError
from pi_trio.messages import AssistantMessage, TextContent, ToolResultMessage, UserMessage
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session

HEADER = {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/p"}


@pytest.fixture
def repository(tmp_path: Path) -> SessionRepository:
    (tmp_path / "project").mkdir()
    return SessionRepository(tmp_path / "agent", tmp_path / "project")


def started(repository: SessionRepository, *texts: str, name: str | None = None) -> Session:
    """A session of prompts and answers, closed."""
    session = repository.create()
    for number, text in enumerate(texts):
        message = AssistantMessage((TextContent(text),)) if number % 2 else UserMessage.of(text)
        session.append_message(message)
    if name is not None:
        session.append_session_name(name)
    session.close()
    return session


def entry_line(entry_id: str, parent: str | None, text: str) -> str:
    message = {"role": "user", "content": text, "timestamp": 1}
    entry = {"type": "message", "id": entry_id, "parentId": parent, "timestamp": HEADER["timestamp"]}
    return json.dumps({**entry, "message": message}) + "\n"


# ------------------------------------------------------------------ search


def found(repository: SessionRepository, words: str) -> list[str]:
    return [hit.summary.first_message for hit in repository.search(words)]


def test_all_words_must_be_there(repository: SessionRepository) -> None:
    started(repository, "Fix the PARSER", "It was the tokenizer.")
    started(repository, "fix the docs", "Done: parser docs.")
    assert set(found(repository, "parser fix")) == {"Fix the PARSER", "fix the docs"}
    assert found(repository, "tokenizer parser") == ["Fix the PARSER"]
    assert found(repository, '"the parser"') == ["Fix the PARSER"]
    assert found(repository, "parser nowhere") == []


def test_what_json_writes_otherwise_is_found(repository: SessionRepository) -> None:
    texts = ['say "quoted/path" \\ twice', "line one\nline two", "Straße ÄRGER 目录", "tab\there"]
    for text in texts:
        started(repository, text)
    assert found(repository, "quoted/path") == [texts[0]]
    assert found(repository, '"one\nline"') == [texts[1]]
    assert found(repository, "STRASSE ärger") == [texts[2]]
    assert found(repository, "目录") == [texts[2]]
    assert found(repository, "\\") == [texts[0]]


def test_only_what_was_said_counts(repository: SessionRepository) -> None:
    session = repository.create()
    session.append_message(UserMessage.of("hello"))
    session.append_message(ToolResultMessage("c", "read", (TextContent("needle"),)))
    session.close()
    for word in ("needle", "toolResult", "parentId", "timestamp"):
        assert found(repository, word) == []


def test_names_come_first_and_excerpts_show_where(repository: SessionRepository) -> None:
    started(repository, "about parsers", name="Other")
    named = started(repository, "hello", name="Parsers")
    started(repository, "x" * 100 + " then parsers come " + "y" * 100)
    hits = repository.search("parsers")
    assert hits[0].summary.id == named.id
    assert hits[0].excerpt == ""
    assert any("then parsers come" in hit.excerpt and hit.excerpt.startswith("…") for hit in hits[1:])


def test_everywhere_or_here(repository: SessionRepository, tmp_path: Path) -> None:
    elsewhere = SessionRepository(tmp_path / "agent", tmp_path)
    started(elsewhere, "needle")
    assert found(repository, "needle") == []
    assert len(repository.search("needle", everywhere=True)) == 1
    assert len(repository.list(everywhere=True)) == 1


@pytest.mark.parametrize("before", [0, 1, 1000, (1 << 20) - 300, 3 << 20])
def test_lines_of_any_length_are_whole(repository: SessionRepository, before: int) -> None:
    """ME-02: a file is looked through in blocks, and where they part does not matter."""
    started(repository, "first needle", "x" * before + " second", "third", name="named")
    assert found(repository, "needle second third") == ["first needle"]
    assert repository.list()[0].name == "named"


def test_a_line_of_many_megabytes_is_passed_over(repository: SessionRepository) -> None:
    """ME-02: it costs neither the lines around it nor the memory."""
    session = started(repository, "start", "x" * (9 << 20) + " inside", "end")
    assert found(repository, "start end") == ["start"]
    assert found(repository, "inside") == []
    assert repository.list()[0].modified.timestamp() == pytest.approx(session_time(session), abs=0.01)


def session_time(session: Session) -> float:
    assert session.path is not None
    last = json.loads(session.path.read_bytes().splitlines()[-1])
    return datetime.fromisoformat(last["timestamp"]).timestamp()


# ------------------------------------------------------------------ rename, delete, copy


def test_rename_only_adds_a_line(repository: SessionRepository) -> None:
    """RS-03, RS-04: the latest name counts, and looking after a session does not make it the latest."""
    session = started(repository, "hello", name="old")
    assert session.path is not None
    before = session.path.read_bytes()
    modified = repository.list()[0].modified
    repository.rename(session.id, "new\nname ")
    assert session.path.read_bytes().startswith(before)
    (summary,) = repository.list()
    assert (summary.name, summary.modified) == ("new name", modified)
    repository.rename(session.id[:20], "")
    assert repository.list()[0].name is None


def test_what_is_open_elsewhere_is_left_alone(repository: SessionRepository) -> None:
    session = started(repository, "hello")
    held = repository.open(session.id)
    with pytest.raises(SessionLockedError):
        repository.rename(session.id, "no")
    with pytest.raises(SessionLockedError):
        repository.delete(session.id)
    held.close()


def test_delete_without_a_trash(repository: SessionRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    session, other = started(repository, "hello"), started(repository, "other")
    assert repository.delete(session.id) == (session.path, False)
    assert [each.id for each in repository.list()] == [other.id]


def test_delete_into_the_trash(
    repository: SessionRepository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trash, programs = tmp_path / "trash", tmp_path / "bin"
    trash.mkdir()
    programs.mkdir()
    script = f"#!{sys.executable}\nimport shutil, sys\nshutil.move(sys.argv[1], {str(trash)!r})\n"
    (programs / "trash").write_text(script)
    (programs / "trash").chmod(0o700)
    monkeypatch.setenv("PATH", str(programs))
    session = started(repository, "hello")
    assert session.path is not None
    assert repository.delete(session.id) == (session.path, True)
    assert [each.name for each in trash.iterdir()] == [session.path.name]
    (programs / "trash").write_text("#!/bin/sh\necho no room >&2\nexit 1\n")
    session = started(repository, "hello")
    with pytest.raises(StorageError, match="no room"):
        repository.delete(session.id)
    assert session.path is not None
    assert session.path.exists()


@pytest.mark.parametrize("reference", ["..%2fx", "a\0b", ".", "x" * 300, "", "-rf"])
def test_nothing_but_a_session_is_deleted(repository: SessionRepository, reference: str) -> None:
    """SE-05."""
    started(repository, "hello")
    with pytest.raises(SessionError):
        repository.delete(reference)
    with pytest.raises(SessionError):
        repository.rename(reference, "no")
    assert len(repository.list()) == 1


def test_a_file_that_is_no_session_is_not_deleted(repository: SessionRepository, tmp_path: Path) -> None:
    """SE-05, SF-06."""
    notes = tmp_path / "notes.jsonl"
    notes.write_text("mine\n")
    with pytest.raises(SessionFormatError):
        repository.delete(str(notes))
    assert notes.read_text() == "mine\n"


def test_clone_is_the_branch_and_copy_is_the_tree(repository: SessionRepository, tmp_path: Path) -> None:
    source = repository.create()
    first = source.append_message(UserMessage.of("one"))
    second = source.append_message(AssistantMessage((TextContent("two"),)))
    source.append_label(second.id, "here")
    source.set_leaf_id(first.id)
    third = source.append_message(AssistantMessage((TextContent("three"),)))
    assert source.path is not None
    whole = source.path.read_bytes()

    clone = repository.clone(source)
    assert [head.id for head in clone.heads] == [first.id, third.id]
    clone.save()
    assert clone.header.parent_session == str(source.path)

    copy = SessionRepository(tmp_path / "agent", tmp_path).copy(source)
    assert copy.heads == source.heads
    assert copy.cwd == str(tmp_path)
    assert copy.label_of(second.id) == "here"
    assert copy.get_leaf_id() == third.id
    assert copy.build_context() == source.build_context()
    assert len({source.id, clone.id, copy.id}) == 3
    copy.append_message(UserMessage.of("on"))
    assert source.path.read_bytes() == whole
    with pytest.raises(UsageError):
        repository.clone(repository.create())


# ------------------------------------------------------------------ import


def test_import_takes_the_bytes_and_makes_them_private(repository: SessionRepository, tmp_path: Path) -> None:
    """SE-06, SE-18: it lies under the directory that it names, and nothing of it is changed or run."""
    path = tmp_path / "from-pi.jsonl"
    path.write_text(json.dumps({**HEADER, "cwd": "/etc"}) + "\n" + entry_line("a", None, "hello"))
    path.chmod(0o644)
    target = repository.import_file(path)
    assert target.read_bytes() == path.read_bytes()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert target.parent.name == "--etc--"
    assert repository.list() == []
    assert [each.cwd for each in repository.list(everywhere=True)] == ["/etc"]
    with pytest.raises(SessionError, match="here already"):
        repository.import_file(path)
    assert list(target.parent.iterdir()) == [target]


def test_import_never_overwrites(repository: SessionRepository, tmp_path: Path) -> None:
    for number in range(3):
        path = tmp_path / str(number) / "same.jsonl"
        path.parent.mkdir()
        path.write_text(json.dumps({**HEADER, "id": f"s-{number}"}) + "\n")
    targets = [repository.import_file(tmp_path / str(number) / "same.jsonl") for number in range(3)]
    assert [each.name for each in targets] == ["same.jsonl", "same-1.jsonl", "same-2.jsonl"]
    assert [Session.open(each).id for each in targets] == ["s-0", "s-1", "s-2"]


def test_a_broken_header_is_recovered_into_a_new_file(repository: SessionRepository, tmp_path: Path) -> None:
    """SF-02."""
    path = tmp_path / "broken.jsonl"
    path.write_text(
        "{broken\n" + entry_line("a", None, "recover me") + "{broken too\n" + entry_line("b", "a", "me too")
    )
    before = path.read_bytes()
    target = repository.import_file(path)
    assert path.read_bytes() == before
    session = Session.open(target)
    assert [each.content for each in session.build_context().messages] == ["recover me", "me too"]
    assert session.cwd == repository.cwd
    assert repository.latest() == target


@pytest.mark.parametrize("content", ["", "one\ntwo\n", "{broken\n", "{}\n[]\n"])
def test_what_is_no_session_is_not_imported(
    repository: SessionRepository, tmp_path: Path, content: str
) -> None:
    """SF-06."""
    path = tmp_path / "notes.txt"
    path.write_text(content)
    os.mkfifo(tmp_path / "fifo")
    for each in (path, tmp_path / "fifo", tmp_path, tmp_path / "missing"):
        with pytest.raises(SessionError):
            repository.import_file(each)
    assert not (tmp_path / "agent").exists()


@pytest.mark.parametrize("session_id", ["../../x", "/tmp/x", "a/b", "", ".", "x" * 300])
def test_ids_from_elsewhere_do_not_leave_the_folder(
    repository: SessionRepository, tmp_path: Path, session_id: str
) -> None:
    """SE-05."""
    path = tmp_path / "odd.jsonl"
    path.write_text(json.dumps({**HEADER, "id": session_id}) + "\n")
    with pytest.raises(SessionError):
        repository.import_file(path)


def test_older_spellings_are_read(repository: SessionRepository, tmp_path: Path) -> None:
    """F23: `parentSessionPath`, `metadata` and `mediaType`; what is written is pi's."""
    header = {**HEADER, "parentSessionPath": "/p/parent.jsonl", "metadata": {"a": 1}}
    image = {"type": "image", "data": "AAAA", "mediaType": "image/png", "more": 1}
    message = {"role": "user", "content": [image], "timestamp": 1}
    entry = {"type": "message", "id": "a", "parentId": None, "timestamp": "", "message": message}
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(header) + "\n" + json.dumps(entry) + "\n")
    session = Session.open(path)
    assert session.header.parent_session == "/p/parent.jsonl"
    assert session.header.extra == {"metadata": {"a": 1}}
    (block,) = session.entry("a").message.content
    assert (block.mime_type, block.extra) == ("image/png", {"more": 1})
    assert session.raw("a")["message"]["content"] == [image]
