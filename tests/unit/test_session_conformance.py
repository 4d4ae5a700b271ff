"""What every storage of a session must do, whatever it is made of. A new one is one more maker here."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pi_trio.errors import StorageError
from pi_trio.session.migration import replace_file
from pi_trio.session.opening import open_file
from pi_trio.session.storage import JsonlStorage, MemoryStorage, SessionStorage, StagedStorage
from pi_trio.testing.storage import LimitedDisk

HEADER = b'{"type":"session","version":3,"id":"s-1","timestamp":"","cwd":"/p"}'


def entry(number: int, parent: int | None = None) -> bytes:
    up = f'"{parent:08x}"' if parent is not None else "null"
    return (
        b'{"type":"custom","id":"%08x","parentId":%s,"timestamp":"","customType":"note","data":"\xe2\x80\xa8"}'
        % (number, up.encode())
    )


def in_memory(folder: Path) -> SessionStorage:
    return MemoryStorage([entry(0)])


def in_a_file(folder: Path) -> SessionStorage:
    return JsonlStorage.create(folder / "s.jsonl", HEADER, [entry(0)])


def in_a_file_opened_again(folder: Path) -> SessionStorage:
    in_a_file(folder).close()
    opened = open_file(folder / "s.jsonl", writable=True)
    assert opened is not None
    return opened[1]


def after_a_torn_line(folder: Path) -> SessionStorage:
    (folder / "s.jsonl").write_bytes(HEADER + b"\n" + entry(0) + b'\n{"type":"cus')
    opened = open_file(folder / "s.jsonl", writable=True)
    assert opened is not None
    return opened[1]


def without_a_file_yet(folder: Path) -> SessionStorage:
    return StagedStorage([entry(0)], lambda lines: JsonlStorage.create(folder / "s.jsonl", HEADER, lines))


def made_from_an_older_file(folder: Path) -> SessionStorage:
    (folder / "s.jsonl").write_bytes(HEADER.replace(b":3,", b":2,") + b"\n" + entry(0) + b"\n")
    opened = open_file(folder / "s.jsonl", writable=True)
    assert opened is not None
    staged = opened[1]
    assert isinstance(staged, StagedStorage)
    return staged.made()


@pytest.fixture(
    params=[
        in_memory,
        in_a_file,
        in_a_file_opened_again,
        after_a_torn_line,
        without_a_file_yet,
        made_from_an_older_file,
    ]
)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionStorage]:
    """A storage with one line, `entry(0)`."""
    make: Callable[[Path], SessionStorage] = request.param
    made = make(tmp_path)
    yield made
    made.close()


def test_lines_are_numbered_from_0_and_come_back_as_they_were(storage: SessionStorage) -> None:
    for number in range(1, 50):
        storage.append(entry(number, number - 1))
    assert [storage.line(number).rstrip(b"\n") for number in range(50)] == [
        entry(number, number - 1 if number else None) for number in range(50)
    ]


def test_a_kept_line_has_its_number_and_its_place(storage: SessionStorage) -> None:
    storage.keep(entry(1))
    storage.keep(entry(2))
    assert [storage.line(number) for number in (1, 2)] == [entry(1), entry(2)]
    storage.append(entry(3))
    assert [storage.line(number) for number in (1, 2, 3)] == [entry(1), entry(2), entry(3)]


def test_nobody_else_has_written(storage: SessionStorage) -> None:
    assert storage.is_writable
    storage.append(entry(1))
    assert not storage.was_overtaken
    assert storage.look() == []


def test_everything_may_be_done_twice(storage: SessionStorage) -> None:
    storage.sync()
    storage.append(entry(1))
    storage.flush()
    storage.sync()
    storage.sync()
    assert storage.line(1) == entry(1)
    storage.close()
    storage.close()


# ------------------------------------------------------------------ those with a file


FILES = [in_a_file, in_a_file_opened_again, after_a_torn_line, made_from_an_older_file]


@pytest.mark.parametrize("make", FILES)
def test_the_file_only_grows_and_has_what_the_storage_has(
    make: Callable[[Path], SessionStorage], tmp_path: Path
) -> None:
    storage = make(tmp_path)
    before = (tmp_path / "s.jsonl").read_bytes()
    storage.append(entry(1))
    storage.keep(entry(2))
    assert storage.unsaved == 1
    storage.flush()
    assert storage.unsaved == 0
    storage.close()
    after = (tmp_path / "s.jsonl").read_bytes()
    assert after.startswith(before)
    assert after[len(before) :].lstrip(b"\n") == entry(1) + b"\n" + entry(2) + b"\n"


@pytest.mark.parametrize("make", FILES)
def test_a_closed_storage_says_so(make: Callable[[Path], SessionStorage], tmp_path: Path) -> None:
    storage = make(tmp_path)
    storage.close()
    with pytest.raises(StorageError, match="closed"):
        storage.append(entry(1))


def test_what_is_kept_waits_for_room(tmp_path: Path) -> None:
    """SF-08: what could not be written goes first, in order, and each line once."""
    disk = LimitedDisk()
    storage = JsonlStorage.create(tmp_path / "s.jsonl", HEADER, [entry(0)], write=disk)
    disk.space = 0
    for number in (1, 2):
        with pytest.raises(StorageError):
            storage.append(entry(number))
        storage.keep(entry(number))
    assert storage.unsaved == 2
    disk.space = len(entry(1)) + 5  # for one of them only
    with pytest.raises(StorageError):
        storage.append(entry(3))
    assert storage.unsaved == 1
    disk.space = None
    storage.append(entry(3))
    storage.close()
    lines = (tmp_path / "s.jsonl").read_bytes().splitlines()[1:]
    assert lines == [entry(number) for number in range(4)]


def test_an_older_file_that_cannot_be_replaced_stays(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(HEADER.replace(b":3,", b":1,") + b"\n")
    whole = path.read_bytes()
    opened = open_file(path, writable=True)
    assert opened is not None
    older = opened[1]
    assert isinstance(older, StagedStorage)
    assert older.older is not None
    with pytest.raises(StorageError):
        replace_file(older.older, 1, HEADER, [entry(0)], write=LimitedDisk(60))
    assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]
    older.close()


def test_a_storage_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(HEADER + b"\n")
    opened = open_file(tmp_path / "s.jsonl", writable=True)
    assert opened is not None
    found, storage = opened
    assert found.offsets == array("q")
    with pytest.raises(IndexError):
        storage.line(0)
    storage.close()
