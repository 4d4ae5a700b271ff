"""Finding, listing and opening the sessions of a directory."""

from __future__ import annotations

import json
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pi_trio.errors import SessionError, SessionExistsError, SessionLockedError
from pi_trio.messages import AssistantMessage, TextContent, UserMessage
from pi_trio.session.entries import MessageEntry, SessionInfoEntry
from pi_trio.session.repository import SessionRepository, folder_name
from pi_trio.session.session import Session


def user(text: str) -> MessageEntry:
    return MessageEntry(UserMessage.of(text))


def started(repository: SessionRepository, text: str = "hello") -> Session:
    session = repository.create()
    session.append(user(text))
    session.close()
    return session


@pytest.fixture
def agent_dir(tmp_path: Path) -> Path:
    return tmp_path / "agent"


def test_files_are_where_pi_has_them(agent_dir: Path, tmp_path: Path) -> None:
    session = started(SessionRepository(agent_dir, tmp_path))
    assert session.path is not None
    assert session.path.parent == agent_dir / "sessions" / folder_name(str(tmp_path))
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{{3}}Z_{session.id}\.jsonl", session.path.name)
    assert folder_name("/home/u/p") == "--home-u-p--"
    assert folder_name("/") == "----"
    assert folder_name("C:\\a/b") == "--C--a-b--"


def test_two_directories_of_one_folder_name_are_told_apart(agent_dir: Path, tmp_path: Path) -> None:
    """SF-07."""
    names = ["a-b", "a/b", "a_b", "x" * 200 + "/" + "y" * 50, "x" * 200 + "/" + "z" * 50, "目录/名字" * 20]
    repositories = []
    for name in names:
        (tmp_path / name).mkdir(parents=True)
        repositories.append(SessionRepository(agent_dir, tmp_path / name))
    assert folder_name(repositories[0].cwd) == folder_name(repositories[1].cwd)
    sessions = [started(each, each.cwd) for each in repositories]
    for repository, session in zip(repositories, sessions, strict=True):
        assert repository.latest() == session.path
        assert [each.first_message for each in repository.list()] == [repository.cwd]


def test_latest_is_the_file_written_last(agent_dir: Path, tmp_path: Path) -> None:
    repository = SessionRepository(agent_dir, tmp_path)
    assert repository.latest() is None
    older, newer = started(repository), started(repository)
    assert older.path is not None
    assert newer.path is not None
    os.utime(older.path, (1, 1))
    (newer.path.parent / "notes.jsonl").write_text("not a session\n")
    os.mkfifo(newer.path.parent / "pipe.jsonl")
    assert repository.latest() == newer.path
    os.utime(newer.path, (0, 0))
    assert repository.latest() == older.path


def test_the_list_is_ordered_by_the_last_message(agent_dir: Path, tmp_path: Path) -> None:
    """RS-04: renaming or touching a session does not move it up."""
    repository = SessionRepository(agent_dir, tmp_path)
    older = repository.create()
    older.append(user("first\nsecond line"))
    newer = started(repository, "newer")
    older.append(SessionInfoEntry("renamed"))
    older.close()
    assert older.path is not None
    os.utime(older.path)
    listed = repository.list()
    assert [each.id for each in listed] == [newer.id, older.id] or listed[0].modified == listed[1].modified
    summary = next(each for each in listed if each.id == older.id)
    assert (summary.name, summary.first_message, summary.cwd) == (
        "renamed",
        "first\nsecond line",
        str(tmp_path),
    )
    assert summary.path == older.path


def test_the_latest_name_is_found_however_long_the_session(agent_dir: Path, tmp_path: Path) -> None:
    """RS-03."""
    repository = SessionRepository(agent_dir, tmp_path)
    session = repository.create()
    session.append(user("hello"))
    session.append(SessionInfoEntry("old"))
    session.append(SessionInfoEntry("kept"))
    for number in range(3):
        session.append(
            MessageEntry(AssistantMessage((TextContent(f'{number} "session_info" ' + "x" * 2_000_000),)))
        )
    assert repository.list()[0].name == "kept"
    session.append(SessionInfoEntry("new"))
    assert repository.list()[0].name == "new"
    session.append(SessionInfoEntry(""))
    assert repository.list()[0].name is None


def test_references(agent_dir: Path, tmp_path: Path) -> None:
    repository = SessionRepository(agent_dir, tmp_path)
    session = started(repository)
    for reference in (session.id, session.id[:13], str(session.path)):
        opened = repository.open(reference)
        assert opened.id == session.id
        opened.close()
    (tmp_path / "other").mkdir()
    elsewhere = SessionRepository(agent_dir, tmp_path / "other")
    assert elsewhere.open(session.id, writable=False).id == session.id
    started(repository)
    with pytest.raises(SessionError, match="several"):
        repository.open(session.id[:2])
    with pytest.raises(SessionError, match="no session ffff"):
        repository.open("ffff")


def test_a_whole_id_wins_over_a_longer_one(tmp_path: Path) -> None:
    for session_id in ("abc", "abcd"):
        header = {"type": "session", "version": 3, "id": session_id, "timestamp": "", "cwd": str(tmp_path)}
        (tmp_path / f"{session_id}.jsonl").write_text(json.dumps(header) + "\n")
    repository = SessionRepository(tmp_path / "agent", tmp_path, tmp_path)
    assert repository.open("abc", writable=False).id == "abc"


@pytest.mark.parametrize(
    "reference",
    ["../../x", "/tmp/x", "..%2fx", "a/b", "a\0b", ".", "..", "", "x" * 300, "/tmp/a\0b", "-", "*"],
)
def test_ids_cannot_leave_the_folder(agent_dir: Path, tmp_path: Path, reference: str) -> None:
    """SE-05."""
    with pytest.raises(SessionError):
        SessionRepository(agent_dir, tmp_path).open(reference)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_of_ones_own_is_flat_and_filtered(agent_dir: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one = SessionRepository(agent_dir, tmp_path / "a", own)
    other = SessionRepository(agent_dir, tmp_path / "b", own)
    session = started(one)
    assert session.path is not None
    assert session.path.parent == own
    assert one.latest() == session.path
    assert other.latest() is None
    assert other.open(session.id).id == session.id


def test_damaged_lines_and_times_do_not_spoil_a_list(agent_dir: Path, tmp_path: Path) -> None:
    repository = SessionRepository(agent_dir, tmp_path, tmp_path)
    header = {"type": "session", "id": "s", "timestamp": "yesterday", "cwd": str(tmp_path)}
    path = tmp_path / "s.jsonl"
    tail = '{"type":"message"}\n{"type":"session_info"\n\0\0{"type":"message","message":{"role":"user"}\n'
    path.write_text(json.dumps(header) + "\n" + tail)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    summary = repository.list()[0]
    assert (summary.name, summary.first_message) == (None, "")
    assert summary.modified.timestamp() == 1_000_000_000


def begun_twice(agent_dir: Path, first: str | Path, second: str | Path) -> tuple[Session, Session]:
    """A session that two programs began before either made a file of it."""
    repositories = [SessionRepository(agent_dir, each) for each in (first, second)]
    assert [each.path_of("two") for each in repositories] == [None, None]
    ours, theirs = (each.create(session_id="two") for each in repositories)
    return ours, theirs


def test_a_chosen_id_is_the_first_ones_that_says_something(agent_dir: Path, tmp_path: Path) -> None:
    """Also in another directory: an id names one session, wherever it is asked for."""
    (tmp_path / "other").mkdir()
    ours, theirs = begun_twice(agent_dir, tmp_path, tmp_path / "other")
    ours.append(user("a"))
    with pytest.raises(SessionLockedError, match="is open for writing elsewhere"):
        theirs.append(user("b"))
    assert theirs.path is not None
    assert not theirs.path.exists()
    assert [each.id for each in SessionRepository(agent_dir, tmp_path).list(everywhere=True)] == ["two"]
    ours.append(user("c"))
    ours.close()


def test_a_chosen_id_that_is_taken_and_let_go_is_taken(agent_dir: Path, tmp_path: Path) -> None:
    ours, theirs = begun_twice(agent_dir, tmp_path, tmp_path)
    ours.append(user("a"))
    ours.close()
    with pytest.raises(SessionExistsError, match="another program has just made"):
        theirs.append(user("b"))
    assert theirs.heads == []


def test_an_id_that_another_one_ends_with_is_free(agent_dir: Path, tmp_path: Path) -> None:
    repository = SessionRepository(agent_dir, tmp_path)
    for each in ("one_two", "two"):
        session = repository.create(session_id=each)
        session.append(user(each))
        session.close()
    assert {each.id for each in repository.list()} == {"one_two", "two"}


def test_of_programs_that_begin_one_id_at_once_one_makes_it(agent_dir: Path, tmp_path: Path) -> None:
    """In threads, whose descriptors lock each other out as those of processes do."""
    sessions = [SessionRepository(agent_dir, tmp_path).create(session_id="many") for _ in range(8)]
    together = threading.Barrier(len(sessions))

    def said(session: Session) -> bool:
        together.wait()
        try:
            session.append(user("hello"))
        except SessionError:
            return False
        return True

    with ThreadPoolExecutor(len(sessions)) as pool:
        assert sum(pool.map(said, sessions)) == 1
    for each in sessions:
        each.close()
    assert SessionRepository(agent_dir, tmp_path).count() == 1
