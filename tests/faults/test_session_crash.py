"""Real processes, signals and limits: what was acknowledged is in the file, and nothing is half there."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_trio.errors import SessionLockedError, StorageError
from pi_trio.messages import AssistantMessage, TextContent, UserMessage
from pi_trio.session.entries import MessageEntry
from pi_trio.session.session import Session

APPEND = """
import sys
from pathlib import Path
from pi_trio.messages import UserMessage
from pi_trio.session.session import Session

path = Path(sys.argv[1])
session = Session.open(path) if path.exists() else Session.new("/p", path)
for number in range(1_000_000):
    entry = session.append_message(UserMessage.of(f"{number} " + "x" * (number * 37 % 3000)))
    sys.stdout.write(entry.id + "\\n")
    sys.stdout.flush()
"""
"""Appends for ever, and acknowledges each entry after it was written."""

UNTIL_IT_FAILS = """
import sys
from pathlib import Path
from pi_trio.errors import StorageError
from pi_trio.messages import UserMessage
from pi_trio.session.session import Session

session = Session.new("/p", Path(sys.argv[1]))
for number in range(1_000_000):
    try:
        entry = session.append_message(UserMessage.of("x" * 700))
    except StorageError as error:
        sys.stdout.write(f"failed: {error}\\n")
        sys.exit(len(session.heads) % 200)
    sys.stdout.write(entry.id + "\\n")
"""


def start(code: str, path: Path, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload,no-any-return]


def whole_ids(path: Path) -> list[str]:
    """The ids of the entries. Every line must be whole."""
    *whole, last = path.read_bytes().split(b"\n")
    assert last == b""
    return [json.loads(line)["id"] for line in whole[1:]]


# ------------------------------------------------------------------ killed


def test_nothing_that_was_acknowledged_is_lost_by_kill(tmp_path: Path) -> None:
    """RS-02: killed 50 times, at any moment, on the same file; each time it opens and goes on."""
    path = tmp_path / "s.jsonl"
    chance = random.Random(4)
    acknowledged: list[str] = []
    for kills in range(1, 51):
        process = start(APPEND, path)
        assert process.stdout is not None
        acknowledged += [process.stdout.readline().strip() for _ in range(chance.randint(1, 40))]
        process.kill()
        acknowledged += [line.strip() for line in process.stdout if line.endswith("\n")]
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
        session = Session.open(path)
        assert len(session.findings) <= kills  # the kernel may end a write between two pages of memory
        assert all("damaged" in finding for finding in session.findings)
        assert session.get_leaf_id() == session.heads[-1].id
        session.close()
    known = {head.id for head in Session.open(path).heads}
    assert set(acknowledged) <= known
    assert len(known) - len(acknowledged) <= 50  # written, and killed before it could say so


def test_a_session_cut_at_every_byte_of_its_end_and_after_every_line(tmp_path: Path) -> None:
    """SF-01: all complete entries are kept, and it goes on."""
    path = tmp_path / "s.jsonl"
    session = Session.new("/p", path)
    for number in range(12):
        session.append_message(UserMessage.of(f"n{number} é\u2028"))
    session.close()
    whole = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    for cut in sorted({*ends[1:], *range(ends[-4], len(whole) + 1)}):
        path.write_bytes(whole[:cut])
        again = Session.open(path)
        complete = sum(end <= cut + 1 for end in ends) - 1
        assert [head.id for head in again.heads] == [head.id for head in session.heads[:complete]]
        added = again.append_message(UserMessage.of("on"))
        again.close()
        assert path.read_bytes().startswith(whole[:cut])
        reader = Session.open(path, writable=False)
        assert [head.id for head in reader.heads] == [
            *(head.id for head in session.heads[:complete]),
            added.id,
        ]
        reader.close()


# ------------------------------------------------------------------ no room, no right


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """SF-08 with a limit of the system: an error in the same step, and no half line."""
    path = tmp_path / "s.jsonl"

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))

    process = start(UNTIL_IT_FAILS, path, preexec_fn=limit)
    told, _ = process.communicate()
    *written, failure = told.splitlines()
    assert failure.startswith("failed: cannot write")
    assert process.returncode == len(written) % 200
    assert whole_ids(path) == written
    session = Session.open(path)
    assert session.findings == []
    session.append_message(UserMessage.of("there is room again"))
    session.close()
    assert len(whole_ids(path)) == len(written) + 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or sys.platform != "linux":
        pytest.skip("no small disk can be made here")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("no small disk may be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill_last_block(session: Session) -> None:
    """The last block of a full disk still takes a few entries; then it raises."""
    while True:
        session.append_message(UserMessage.of("x" * 700))


def test_a_full_disk_and_room_again(small_disk: Path) -> None:
    """SF-08 on a real file system: what was kept goes first when space returns."""
    filler = small_disk / "filler"
    filler.write_bytes(b"\0" * (200 << 10))
    session = Session.new("/p", small_disk / "sessions" / "s.jsonl")
    path = session.path
    assert path is not None
    big = UserMessage.of("x" * 700)
    session.append_message(big)
    while os.statvfs(small_disk).f_bavail:
        session.append_message(big)
    with pytest.raises(StorageError):
        fill_last_block(session)
    count = len(session.heads)
    assert path.read_bytes().endswith(b"\n")
    with pytest.raises(StorageError):
        session.append(MessageEntry(AssistantMessage((TextContent("kept" * 2000),))), keep=True)
    assert len(whole_ids(path)) == count
    filler.unlink()
    session.append_message(UserMessage.of("on"))
    session.close()
    assert whole_ids(path) == [head.id for head in session.heads]


NOBODY = 65534


@pytest.fixture
def bound_folder() -> Iterator[Path]:
    """A folder of a user whom modes bind: for a while this process is that user."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        user = os.geteuid()
        if user == 0:
            os.chown(folder, NOBODY, -1)
            os.seteuid(NOBODY)
        yield folder
        os.seteuid(user)
        folder.chmod(0o700)


def test_a_folder_that_becomes_read_only(bound_folder: Path) -> None:
    """SF-08: what is open goes on; a new session says why it cannot be saved, and can be later."""
    session = Session.new("/p", bound_folder / "s.jsonl")
    session.append_message(UserMessage.of("one"))
    other = Session.new("/p", bound_folder / "t.jsonl")
    bound_folder.chmod(0o500)
    session.append_message(UserMessage.of("two"))
    with pytest.raises(StorageError, match="Permission denied"):
        other.append_message(UserMessage.of("one"))
    assert other.heads == []
    bound_folder.chmod(0o700)
    other.append_message(UserMessage.of("one"))
    assert [len(whole_ids(bound_folder / name)) for name in ("s.jsonl", "t.jsonl")] == [2, 1]
    session.close()
    other.close()


# ------------------------------------------------------------------ two processes


def test_two_processes_on_one_session(tmp_path: Path) -> None:
    """CC-01: the second is refused or reads, and no stale lock stays when the first is killed."""
    path = tmp_path / "s.jsonl"
    process = start(APPEND, path)
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(SessionLockedError):
        Session.open(path)
    reader = Session.open(path, writable=False)
    for _ in range(20):
        process.stdout.readline()
        reader.refresh()
        assert reader.get_leaf_id() == reader.heads[-1].id
    process.kill()
    process.wait()
    process.stdout.close()
    session = Session.open(path)
    reader.refresh()
    assert reader.heads == session.heads
    assert [head.parent_id for head in session.heads[1:]] == [head.id for head in session.heads[:-1]]
