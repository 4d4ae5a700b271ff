"""`pi-trio batch` as a person uses it: killed, stopped, gone on with."""

from __future__ import annotations

import json
import os
import pty
import random
import signal
import subprocess
from collections import Counter
from typing import Any

import pytest


def _write(program, count: int) -> None:
    lines = [json.dumps({"id": f"t{number}", "prompt": f"task {number}"}) for number in range(count)]
    (program.project / "tasks.jsonl").write_text("\n".join(lines) + "\n")


def _results(program) -> list[dict[str, Any]]:
    data = (program.project / "tasks.results.jsonl").read_text()
    return [json.loads(line) for line in data.splitlines()]


def test_every_task_has_its_result(program, stub) -> None:
    _write(program, 3)
    stub.calls(("write", {"path": "made", "content": "x"}))
    for _ in range(3):
        stub.says("Done.")
    done = program.run("batch", "tasks.jsonl", "--jobs", "1")
    path = program.project / "tasks.results.jsonl"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"3 tasks, 0 of them failed: {path}\n"
    results = _results(program)
    assert [each["answer"] for each in results] == ["Done."] * 3
    assert [each["cwd"] for each in results] == [f"{program.project}/tasks.work/t{n}" for n in range(3)]
    assert (program.project / "tasks.work" / "t0" / "made").read_text() == "x"
    assert len(program.sessions()) == 3


def test_a_broken_models_file_is_told(program, stub) -> None:
    """Its tasks may ask another model than was meant."""
    _write(program, 1)
    (program.agent_dir / "models.json").write_text("[]")
    done = program.run("batch", "tasks.jsonl", "--demo")
    assert (done.returncode, done.stderr) == (
        0,
        f"pi-trio: {program.agent_dir}/models.json:1: the file must be a JSON object\n",
    )


def test_one_that_fails_stops_no_other(program, stub) -> None:
    """HL-02"""
    _write(program, 3)
    stub.says("One.")
    stub.refuses(401, "that key is not known")
    stub.says("Three.")
    done = program.run("batch", "tasks.jsonl", "--jobs", "1")
    assert done.returncode == 1
    assert [each["status"] for each in _results(program)] == [0, 1, 0]
    assert "that key is not known" in _results(program)[1]["error"]
    again = program.run("batch", "tasks.jsonl")
    assert again.returncode == 1
    assert again.stdout.startswith("3 tasks, all done already, 1 of them failed: ")
    assert len(stub.requests) == 3, "what is done is not done again"


@pytest.mark.timeout(180)
def test_a_kill_at_any_moment_leaves_each_result_once(program, stub) -> None:
    """Killed three times, while requests are on their way and results are written."""
    count, kills, chance = 200, 3, random.Random(9)
    _write(program, count)
    for _ in range(count + 4 * kills):
        stub.says("Done.")
    command = ("batch", "tasks.jsonl", "--jobs", "4", "--no-session")
    for _ in range(kills):
        with program.start(*command) as process:
            for _ in range(chance.randint(5, 50)):
                assert stub.served.acquire(timeout=60)
            process.kill()
    with program.start(*command) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, b"")
    assert out.startswith(b"200 tasks, 0 of them failed")
    assert Counter(each["id"] for each in _results(program)) == Counter(f"t{n}" for n in range(count))
    assert count <= len(stub.requests) <= count + 4 * kills


def test_a_signal_stops_it_and_it_goes_on(program, stub) -> None:
    """HL-08"""
    _write(program, 3)
    stub.says("One.")
    stub.stays_silent()
    with program.start("batch", "tasks.jsonl", "--jobs", "1") as process:
        assert stub.silent.acquire(timeout=30)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == b"pi-trio: stopped: 1 of 3 are done, the same command goes on\n"
    for _ in range(2):
        stub.says("More.")
    assert program.run("batch", "tasks.jsonl").returncode == 0
    assert sorted(each["id"] for each in _results(program)) == ["t0", "t1", "t2"]


def test_tasks_on_standard_input_go_on_with_the_same_results(program, stub) -> None:
    (program.project / "mine").mkdir()
    tasks = b'{"prompt": "one"}\n\n{"prompt": "three", "cwd": "mine"}\n'
    command = ("batch", "-", "--results", "done.jsonl", "--jobs", "1")
    stub.says("One.")
    stub.stays_silent()
    with program.start(*command, stdin=subprocess.PIPE) as process:
        process.stdin.write(tasks)
        process.stdin.close()
        assert stub.silent.acquire(timeout=30)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 143
    stub.says("Three.")
    assert program.run(*command, piped=tasks).returncode == 0
    results = [json.loads(line) for line in (program.project / "done.jsonl").read_text().splitlines()]
    assert [(each["id"], each["answer"]) for each in results] == [("1", "One."), ("3", "Three.")]
    assert [each["cwd"] for each in results] == [f"{program.project}/done.work/1", f"{program.project}/mine"]


def test_a_mistake_on_standard_input_is_told_with_its_line(program, stub) -> None:
    done = program.run("batch", "-", "--results", "done.jsonl", piped=b'{"prompt": "one"}\n{}\n')
    assert (done.returncode, done.stderr) == (2, "pi-trio: standard input:2: the task has no prompt\n")
    assert (stub.requests, list(program.project.iterdir())) == ([], [])


def test_a_terminal_has_a_bar(program, stub) -> None:
    _write(program, 2)
    for _ in range(2):
        stub.says("Done.")
    ours, theirs = pty.openpty()
    with program.start("batch", "tasks.jsonl", "--jobs", "1", stderr=theirs) as process:
        out, _ = process.communicate(timeout=30)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert process.returncode == 0
    assert out.startswith(b"2 tasks")
    assert [part.split("]")[-1].strip().removesuffix("\x1b[K") for part in shown.split("\r[")[1:4]] == [
        "0/2",
        "1/2",
        "2/2",
    ]


def test_two_at_once_are_refused(program, stub) -> None:
    """CC-01"""
    _write(program, 1)
    stub.stays_silent()
    with program.start("batch", "tasks.jsonl") as first:
        assert stub.silent.acquire(timeout=30)
        second = program.run("batch", "tasks.jsonl")
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=30)
    assert first.returncode == 143
    assert (second.returncode, second.stdout) == (2, "")
    assert "another batch is writing" in second.stderr


def test_a_cluster_that_is_not_there_is_one_clear_line(program) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed (extra `cluster`)")
    _write(program, 1)
    command = ("batch", "tasks.jsonl", "--engine", "dask", "--scheduler", "tcp://127.0.0.1:9")
    done = program.run(*command, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pi-trio: there is no scheduler at tcp://127.0.0.1:9" in done.stderr
