"""`pi-trio batch` on a Dask cluster of two workers on this machine; skipped where Dask is missing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

distributed = pytest.importorskip("distributed", reason="Dask is not installed (extra `cluster`)")

pytestmark = [
    pytest.mark.timeout(240),
    # Dask's own, in the client that the tests look at the cluster with.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def scheduler(program, tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler with two workers, each a process with one thread."""
    file = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    worker = ["dask_worker", *common, "--nthreads", "1", "--no-nanny"]
    local = ["--local-directory", str(tmp_path)]
    commands = [["dask_scheduler", *common, "--host", "127.0.0.1", "--port", "0"]]
    commands += [[*worker, *local]] * 2
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{command}", *rest],
            env=program.environ,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for command, *rest in commands
    ]
    try:
        yield _address(file)
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def _address(file: Path) -> str:
    while True:
        try:
            address: str = json.loads(file.read_text())["address"]
        except (FileNotFoundError, ValueError):  # not written yet, or not whole
            time.sleep(0.05)
        else:
            return address


def _write(program, count: int) -> None:
    lines = [json.dumps({"id": f"t{number}", "prompt": f"task {number}"}) for number in range(count)]
    (program.project / "tasks.jsonl").write_text("\n".join(lines) + "\n")


def _command(address: str) -> list[str]:
    return ["batch", "tasks.jsonl", "--engine", "dask", "--scheduler", address]


def _results(program) -> list[dict[str, Any]]:
    data = (program.project / "tasks.results.jsonl").read_text()
    return [json.loads(line) for line in data.splitlines()]


def _last_at_work(client: Any) -> str:
    """The worker that still has tasks when the other has none any more."""
    while True:
        working = [address for address, keys in client.processing().items() if keys]
        if len(working) == 1:
            return working[0]
        time.sleep(0.05)


def test_two_workers_share_the_tasks_and_one_that_is_killed_loses_none(program, stub, scheduler) -> None:
    count = 12
    _write(program, count)
    stub.stays_silent()
    for _ in range(count):
        stub.says("Done.")
    with (
        distributed.Client(scheduler, set_as_default=False) as client,
        program.start(*_command(scheduler)) as process,
    ):
        client.wait_for_workers(2)
        assert stub.silent.acquire(timeout=60)
        stuck = _last_at_work(client)
        os.kill(client.run(os.getpid, workers=[stuck])[stuck], signal.SIGKILL)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, b"")
    assert out.startswith(b"12 tasks, 0 of them failed")
    assert Counter(each["id"] for each in _results(program)) == Counter(f"t{n}" for n in range(count))
    assert len(stub.requests) == count + 1, "only the task of the killed worker ran again"


def test_a_batch_that_is_killed_goes_on(program, stub, scheduler) -> None:
    count = 200
    _write(program, count)
    for _ in range(2 * count):
        stub.says("Done.")
    with program.start(*_command(scheduler), "--no-session", "--jobs", "4") as process:
        for _ in range(37):
            assert stub.served.acquire(timeout=60)
        process.kill()
    with program.start(*_command(scheduler), "--no-session") as process:
        out, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (0, b"")
    assert out.startswith(b"200 tasks, 0 of them failed")
    assert Counter(each["id"] for each in _results(program)) == Counter(f"t{n}" for n in range(count))


def test_a_signal_stops_it(program, stub, scheduler) -> None:
    _write(program, 3)
    for _ in range(3):
        stub.stays_silent()
    with program.start(*_command(scheduler)) as process:
        assert stub.silent.acquire(timeout=60)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == b"pi-trio: stopped: 0 of 3 are done, the same command goes on\n"
