"""An embedded agent touches nothing of its host: files, environment, signals, output, processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = '''
import os, signal, sys

touched = []

def by_us():
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("pi_trio"):
            return True
        frame = frame.f_back
    return False

def watched(method):
    def watching(self, *args):
        if by_us():
            touched.append(f"environment: {args}")
        return method(self, *args)
    return watching

for name in ("__getitem__", "__setitem__", "__delitem__", "__iter__", "__contains__"):
    if name in vars(os._Environ):
        setattr(os._Environ, name, watched(vars(os._Environ)[name]))

import trio
import pi_trio
from pi_trio.testing import Call, Hang, ScriptedModel, Text
for name in pi_trio.__all__:
    getattr(pi_trio, name)
from pi_trio import *

CODE = (sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(pi_trio.__file__)))
WORLD = ("open", "os.", "subprocess.", "socket.", "shutil.", "tempfile.", "glob.", "signal.")

def audit(event, args):
    if not event.startswith(WORLD):
        return
    place = args[0] if args and isinstance(args[0], (str, bytes, os.PathLike)) else None
    if place is None or not os.fsdecode(place).startswith(CODE):
        if by_us():
            touched.append(f"{event}: {args}")

sys.addaudithook(audit)

@function_tool
async def add(a: float, b: float = 1) -> float:
    """Adds."""
    return a + b

@function_tool
def slow(context: ToolContext) -> str:
    """Works in a thread."""
    trio.from_thread.run(context.update, "half")
    return "done"

async def use_agent():
    model = ScriptedModel([[Call("add", {"a": 1}), Call("slow")], Text.of("It is ", "2."), Hang()])
    agent = Agent(model=model.model, stream_fn=model, tools=[add, slow], hooks=Hooks())
    agent.follow_up("And now?")
    async with agent.open_events() as events, trio.open_nursery() as nursery:
        nursery.start_soon(agent.prompt, "1 + 1?")
        async for event in events:
            if isinstance(event, MessageStart) and len(agent.messages) > 5:
                agent.abort()
    return len(agent.messages)

async def use_harness():
    model = ScriptedModel([Call("slow"), "Fine.", "Bye."])
    options = HarnessOptions(stream_function=lambda _: model, tools=(add, slow))
    async with open_harness(Session.in_memory("/nowhere"), options, model=model.model) as harness:
        harness.prompt("Go.")
        await harness.wait_for_idle()
        harness.set_session_name("a name")
        harness.follow_up("Bye.")
        await harness.wait_for_idle()
        return len(harness.conversation.transcript)

async def main():
    handlers = {each: signal.getsignal(each) for each in signal.valid_signals()}
    counts = [await use_agent(), await use_harness()]
    assert {each: signal.getsignal(each) for each in signal.valid_signals()} == handlers
    return counts

counts = trio.run(main)
import json
print(json.dumps({"touched": touched, "counts": counts}))
'''

TOUCHES = "open('/etc/passwd').close(); os.environ.get('HOME'); __import__('subprocess').run(['true'])"


def _run(program: str, home: Path) -> dict[str, list[Any]]:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        cwd=home,
        env={"HOME": str(home), "PI_TRIO_DIR": str(home), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)  # and nothing else was printed


def test_nothing_of_the_host_is_touched(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("not even JSON")
    assert _run(PROGRAM, tmp_path) == {"touched": [], "counts": [6, 6]}
    assert [each.name for each in tmp_path.iterdir()] == ["settings.json"]


def test_it_would_be_noticed(tmp_path: Path) -> None:
    """What the test above looks for is seen when a tool of the agent does it."""
    touched = _run(PROGRAM.replace("    return a + b", f"    {TOUCHES}\n    return a + b"), tmp_path)[
        "touched"
    ]
    assert [
        each.partition(":")[0] for each in touched if "'/etc" in each or "true" in each or "HOME" in each
    ] == [
        "open",
        "environment",
        "subprocess.Popen",
    ]
