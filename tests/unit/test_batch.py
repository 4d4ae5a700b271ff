"""A batch: its tasks, its results, and who works them off."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve

from pi_trio.cli.batch import work as work_module
from pi_trio.cli.batch.command import run
from pi_trio.cli.batch.engines import run_here
from pi_trio.cli.batch.results import Results
from pi_trio.cli.batch.tasks import Task, read_tasks
from pi_trio.cli.batch.work import Work, work_off
from pi_trio.errors import StorageError, UsageError
from pi_trio.resources.config import RuntimeConfig

pytestmark = pytest.mark.usefixtures("demo_in_a_hurry")


def task(task_id: str, cwd: Path = Path("/p"), prompt: str = "hello") -> Task:
    return Task(id=task_id, prompt=prompt, cwd=str(cwd), model=None, digest=f"d-{task_id}")


def result(task_id: str, status: int = 0) -> dict[str, Any]:
    return {"id": task_id, "digest": f"d-{task_id}", "status": status}


# ------------------------------------------------------------------ tasks


def test_tasks_have_ids_and_directories(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(
        '{"prompt": "one"}\n\n{"id": "b", "prompt": "two", "cwd": "sub"}\r\n'
        '{"prompt": "three\\u2028", "cwd": "/abs", "model": "p/m"}'
    )
    tasks = read_tasks(path, tmp_path / "work")
    assert [(each.id, each.prompt, each.cwd, each.model) for each in tasks] == [
        ("1", "one", str(tmp_path / "work" / "1"), None),
        ("b", "two", str(tmp_path / "sub"), None),
        ("4", "three\u2028", "/abs", "p/m"),
    ]
    assert len({each.digest for each in tasks}) == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is no task in"),
        ("{}", r":1: the task has no prompt"),
        ('{"prompt": " "}', r":1: the task has no prompt"),
        ('{"prompt": "a"}\n{"prompt": 5}', r":2: prompt must be a text"),
        ('{"prompt": "a"}\nnonsense', r":2: the line is not JSON: "),
        ("[]", r":1: a task is a JSON object"),
        ('{"promt": "a"}', r":1: 'promt' is no field of a task; there are id, prompt"),
        ('{"prompt": "a", "id": "../x"}', r":1: the id '../x' may have"),
        ('{"prompt": "a", "id": "2"}\n{"prompt": "b"}', r":2: another task has the id '2'"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "tasks").write_text(text)
    with pytest.raises(UsageError, match=told):
        read_tasks(tmp_path / "tasks", tmp_path)


# ------------------------------------------------------------------ results


def test_results_are_there_after_a_restart(tmp_path: Path) -> None:
    tasks = [task("a"), task("b")]
    results = Results(tmp_path / "r", tasks)
    results.add(result("b", 3))
    results.close()
    again = Results(tmp_path / "r", tasks)
    assert again.statuses == {"b": 3}
    again.add(result("a"))
    again.close()
    assert [json.loads(line)["id"] for line in (tmp_path / "r").read_text().splitlines()] == ["b", "a"]


@pytest.mark.parametrize("torn", ['{"id": "b"', '{"id":"b","digest":"d-b","status":0}', "\x00"])
def test_a_line_that_was_cut_off_was_no_result(torn: str, tmp_path: Path) -> None:
    (tmp_path / "r").write_text(json.dumps(result("a")) + "\n" + torn)
    results = Results(tmp_path / "r", [task("a"), task("b")])
    assert results.statuses == {"a": 0}
    results.add(result("b"))
    results.close()
    assert [json.loads(line)["id"] for line in (tmp_path / "r").read_text().splitlines()] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"id": "a", "digest": "other", "status": 0}\n', r"r:1 is of a task 'a' that is another now"),
        ('{"id": "z", "digest": "d-z", "status": 0}\n', r"r:1 is of a task 'z' that is another now, or gone"),
        ("my notes\n", r"r:1 is no result of a batch"),
        ("[]\n", r"r:1 is no result of a batch"),
    ],
)
def test_results_of_something_else_are_left_alone(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "r").write_text(content)
    for _ in range(2):  # and the lock is let go
        with pytest.raises(UsageError, match=told):
            Results(tmp_path / "r", [task("a")])
    assert (tmp_path / "r").read_text() == content


def test_two_batches_do_not_write_one_file(tmp_path: Path) -> None:
    """CC-01"""
    first = Results(tmp_path / "r", [])
    with pytest.raises(UsageError, match="another batch is writing"):
        Results(tmp_path / "r", [])
    first.close()
    Results(tmp_path / "r", []).close()


@pytest.mark.parametrize("device", ["/dev/full", "/dev/null"])
def test_results_are_kept_in_a_file(device: str) -> None:
    """One that never ends is not read."""
    with pytest.raises(UsageError, match=f"{device} cannot be opened: it is not a regular file"):
        Results(Path(device), [task("a")])


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SF-08"""
    results = Results(tmp_path / "r", [task("a"), task("b")])
    results.add(result("a"))
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    with pytest.raises(StorageError, match="no space is left"):
        results.add(result("b"))
    assert results.statuses == {"a": 0}
    monkeypatch.undo()

    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageError, match="No space left on device"):
        results.add(result("b"))
    monkeypatch.undo()
    results.add(result("b"))
    results.close()
    assert [json.loads(line)["id"] for line in (tmp_path / "r").read_text().splitlines()] == ["a", "b"]


# ------------------------------------------------------------------ work


@pytest.fixture
def work(tmp_path: Path) -> Work:
    config = RuntimeConfig(cwd=tmp_path, agent_dir=tmp_path / "agent", demo=True, approve=True)
    return Work(config=config)


async def test_each_task_has_a_directory_and_a_session(work: Work, tmp_path: Path) -> None:
    said = [
        await work_off(task(name, tmp_path / name, f"write {name} to note.txt"), work) for name in ("a", "b")
    ]
    assert [(tmp_path / name / "note.txt").read_text().strip() for name in ("a", "b")] == ["a", "b"]
    assert [each["status"] for each in said] == [0, 0]
    assert len({each["session"] for each in said}) == 2
    assert all(Path(each["path"]).is_file() and each["cost"] == 0 for each in said)
    assert said[0]["model"] == "demo/demo"


async def test_what_fails_is_a_result(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    said = await work_off(task("a", tmp_path / "file"), work)
    assert said["error"].endswith("file cannot be made: File exists")
    unknown = evolve(task("a", tmp_path / "a"), model="no/such")
    said = await work_off(unknown, evolve(work, config=evolve(work.config, demo=False)))
    assert said["status"] == 2
    assert "There is no model 'no/such'" in said["error"]

    def broken(*_: object) -> None:
        raise ZeroDivisionError("an extension's")

    monkeypatch.setattr(work_module, "open_runtime", broken)
    assert (await work_off(task("a", tmp_path / "a"), work))["error"] == "ZeroDivisionError: an extension's"


async def test_an_answer_that_does_not_match_is_told(work: Work, tmp_path: Path) -> None:
    said = await work_off(task("a", tmp_path / "a"), evolve(work, schema={"type": "integer"}))
    assert said["status"] == 4
    assert "no answer matched the schema: it is not JSON" in said["error"]
    said = await work_off(task("b", tmp_path / "b"), evolve(work, timeout=1e-9))
    assert said["status"] == 3


def test_work_travels(work: Work) -> None:
    assert pickle.loads(pickle.dumps((task("a"), work))) == (task("a"), work)


async def test_so_many_run_at_once_and_each_once(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once: list[int] = []
    running: set[str] = set()

    async def pretend(each: Task, _: Work) -> dict[str, Any]:
        running.add(each.id)
        at_once.append(len(running))
        for _round in range(int(each.id) % 3):
            await trio.lowlevel.checkpoint()
        running.remove(each.id)
        return result(each.id)

    done: list[str] = []

    async def deliver(each: Mapping[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        done.append(each["id"])

    monkeypatch.setattr("pi_trio.cli.batch.engines.work_off", pretend)
    await run_here([task(str(number)) for number in range(20)], work, 3, deliver)
    assert sorted(done, key=int) == [str(number) for number in range(20)]
    assert max(at_once) == 3


# ------------------------------------------------------------------ the command line


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--engine", "dask"], "--engine dask and --scheduler ADDRESS go together"),
        (["--scheduler", "tcp://x"], "--engine dask and --scheduler ADDRESS go together"),
        (["--output-schema", "/nowhere"], "/nowhere cannot be read"),
        (["-e", "/nowhere.py"], "there is no extension /nowhere.py"),
        ([], "tasks.jsonl cannot be read"),
    ],
)
def test_a_mistake_stops_it_before_it_begins(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PI_TRIO_DIR", str(tmp_path / "agent"))
    assert run([str(tmp_path / "tasks.jsonl"), *arguments]) == 2
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["/"], ["-", "--results", "/"]])
def test_a_folder_is_no_file(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*arguments, "--demo"]) == 2
    assert "pi-trio: / is a folder\n" in capsys.readouterr().err


def test_tasks_on_standard_input_need_a_place_for_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-", "--demo"]) == 2
    assert "tasks on standard input need --results FILE" in capsys.readouterr().err


# ------------------------------------------------------------------ docs/batch.md


PAGE = (Path(__file__).parents[2] / "docs" / "batch.md").read_text("utf-8")


def test_the_tasks_of_the_page_are_tasks(tmp_path: Path) -> None:
    sample = PAGE.partition("```json\n")[2].partition("```")[0]
    (tmp_path / "tasks").write_text(sample)
    assert [each.id for each in read_tasks(tmp_path / "tasks", tmp_path)] == ["readme", "2"]


async def test_the_page_names_every_field_of_a_result(work: Work, tmp_path: Path) -> None:
    good = await work_off(task("a", tmp_path / "a"), work)
    matched = await work_off(task("b", tmp_path / "b"), evolve(work, schema={"type": "integer"}))
    table = PAGE.partition("## Results")[2].partition("\n\n|")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == {*good, *matched, "value"}
