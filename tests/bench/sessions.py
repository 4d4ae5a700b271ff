"""What sessions cost: `python tests/bench/sessions.py FILE…`. Prints medians of five.

Each FILE (100,000 entries, from a generator) is opened in a process of its own: time, and
memory over that of the interpreter with the library imported, until the path, the context and
the rows of the tree are there. Then appends and moves in a copy of it, an append in a new
session, and a search through 1,000 sessions.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from pi_trio.messages import UserMessage
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session

_OPEN = """
import json, os, sys, time
from pathlib import Path
from pi_trio.session.session import Session
import pi_trio.session.context

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

before, began = resident(), time.perf_counter()
session = Session.open(Path(sys.argv[1]), writable=False)
path = session.tree.path(session.get_leaf_id())
rows = [(head.id, head.type, head.detail) for head in session.heads]
roots = session.tree.children(None)
opened = time.perf_counter()
memory = resident() - before
context = session.build_context()
ended = time.perf_counter()
print(json.dumps({"open": opened - began, "context": ended - opened, "memory": memory / 2**20,
                  "whole memory": (resident() - before) / 2**20, "messages": len(context.messages)}))
"""


def opened(path: Path) -> dict[str, Any]:
    """One opening in a fresh process. Seconds and MiB."""
    done = subprocess.run([sys.executable, "-c", _OPEN, path], capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def each(count: int, action: Callable[[int], object]) -> float:
    """The median of `count` times, in microseconds."""
    times = []
    for number in range(count):
        began = time.perf_counter_ns()
        action(number)
        times.append((time.perf_counter_ns() - began) / 1000)
    return median(times)


def appends(session: Session) -> float:
    """An append of a prompt of 200 characters."""
    return each(2000, lambda number: session.append_message(UserMessage.of("x" * 200)))


def moves(session: Session) -> float:
    """A move of the leaf to somewhere far away."""
    ids = [head.id for head in session.heads if head.type == "message"]
    return each(500, lambda number: session.set_leaf_id(ids[number * 7919 % len(ids)]))


def searches(folder: Path, count: int = 1000) -> float:
    """A search for two words through this many sessions of 40 messages. Seconds."""
    repository = SessionRepository(folder / "agent", folder)
    for number in range(count):
        session = repository.create()
        for turn in range(40):
            session.append_message(UserMessage.of(f"prompt {turn} of session {number} " + "word " * 200))
        session.close()
    return each(5, lambda _: repository.search("session 977 prompt")) / 1e6


def main(paths: list[Path]) -> None:
    for path in paths:
        runs = [opened(path) for _ in range(5)]
        print(path.name)
        for key in runs[0]:
            print(f"  {key:<38} {median(run[key] for run in runs):>10.3f}")
        with tempfile.TemporaryDirectory() as name:
            copy = Path(shutil.copy(path, name))
            session = Session.open(copy)
            session.build_context()
            print(f"  {'append, median':<38} {appends(session):>10.1f} µs")
            print(f"  {'move, median':<38} {moves(session):>10.1f} µs")
            session.close()
    with tempfile.TemporaryDirectory() as name:
        session = Session.new("/p", Path(name) / "s.jsonl")
        print(f"{'append in a new session, median':<40} {appends(session):>10.1f} µs")
        session.close()
        print(f"{'search through 1,000 sessions':<40} {searches(Path(name)):>10.3f} s")


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
