"""The main states of the screen, for snapshots of them: what was said before, and the way there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from attrs import frozen

from pi_trio.approval import Question
from pi_trio.remote.interface import Destination
from pi_trio.remote.offers import KeptSession
from pi_tui.screens.help import HelpScreen
from pi_tui.screens.question import QuestionScreen
from pi_tui.screens.sessions import SessionsScreen

NOW = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
"""When the snapshots are taken."""

MARKDOWN = """\
## Watering by the weather

The schedule is now made from the forecast, **not** from the calendar. Three things changed:

1. `forecast.py` asks once a day and keeps the answer.
2. A bed is watered when it was dry for *more than two days*:
   - tomatoes after one,
   - herbs after three.
3. Rain in the last hours counts as water.

| bed | dry days | litres |
| --- | ---: | ---: |
| tomatoes | 1 | 12.5 |
| herbs | 3 | 2 |
| 日本のナス | 2 | 4 |

```python
def water(days_dry: int, limit: int = 2) -> bool:
    \"\"\"Whether a bed needs water.\"\"\"
    return days_dry > limit  # rain counts as water
```

> Not tried yet on real rain. See https://example.com/rain.
"""

DIFF = """\
 1  def water(days_dry: int, limit: int = 2) -> bool:
-2      return days_dry > 2
+2      if days_dry < 0:
+3          raise ValueError("days cannot be negative")
+4      return days_dry > limit
 5  
 6  
"""  # noqa: W291  # an empty line of the file stands behind its number

FAILURE = """\
tests/test_water.py ..F.                                                 [100%]

    def test_herbs_wait_longer():
>       assert not water(3, limit=3)
E       assert not True

1 failed, 3 passed in 0.21s

Command exited with code 1"""


class Story:
    """Entries of a session, one after the other; each a minute later. `at` is where the next one hangs."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.at: str | None = None
        self._time = NOW - timedelta(hours=2, minutes=30)

    def user(self, text: str) -> str:
        """A prompt. Gives the entry's id, as all of these do."""
        return self._message({"role": "user", "content": text})

    def end(self) -> None:
        """The turn ends."""
        self.add(type="custom", customType="turn/end", data={})

    def answer(self, text: str, *calls: tuple[str, Mapping[str, Any]], stop: str = "stop") -> str:
        """An answer with calls, each the name of a tool and its arguments."""
        content: list[dict[str, Any]] = [{"type": "text", "text": text}]
        for at, (name, arguments) in enumerate(calls):
            call_id = f"call-{len(self.entries)}-{at}"
            content.append({"type": "toolCall", "id": call_id, "name": name, "arguments": arguments})
        size = 12_000 + 700 * len(self.entries)
        usage = {"input": size, "output": 240, "totalTokens": size + 240, "cost": {"total": 0.03}}
        about = {"model": "fake-1", "provider": "fake", "usage": usage, "stopReason": stop}
        return self._message({"role": "assistant", "content": content, **about})

    def result(self, text: str, **more: Any) -> str:
        """The result of the first call that has none."""
        done = {entry["message"].get("toolCallId") for entry in self.entries if "message" in entry}
        calls = (
            block
            for entry in self.entries
            for block in entry.get("message", {}).get("content", ())
            if isinstance(block, dict) and block["type"] == "toolCall"
        )
        call = next(each for each in calls if each["id"] not in done)
        told = {"toolCallId": call["id"], "toolName": call["name"], "isError": False, **more}
        content = [{"type": "text", "text": text}]
        return self._message({"role": "toolResult", "content": content, **told})

    def add(self, **entry: Any) -> str:
        """Any other entry."""
        self._time += timedelta(minutes=1)
        id_ = f"said-{len(self.entries)}"
        stamp = self._time.isoformat().replace("+00:00", "Z")
        self.entries.append({"id": id_, "parentId": self.at, "timestamp": stamp, **entry})
        self.at = id_
        return id_

    def _message(self, message: Mapping[str, Any]) -> str:
        return self.add(type="message", message={**message, "timestamp": 1})


def watering() -> list[dict[str, Any]]:
    """A conversation with Markdown."""
    story = Story()
    story.user("make the watering go by the weather, and say what changed")
    story.answer(MARKDOWN)
    story.end()
    return story.entries


def with_tools() -> list[dict[str, Any]]:
    """A turn whose calls read, changed, and failed."""
    story = Story()
    story.user("herbs may stay dry for three days; run the tests as well")
    story.answer(
        "I look at the rule first.",
        ("read", {"path": "src/water.py"}),
        ("grep", {"pattern": "limit", "path": "src"}),
    )
    story.result("def water(days_dry: int, limit: int = 2) -> bool:\n    return days_dry > 2\n", durationMs=3)
    story.result("src/water.py:1:def water(days_dry: int, limit: int = 2) -> bool:", durationMs=12)
    story.answer("", ("edit", {"path": "src/water.py", "edits": []}), ("bash", {"command": "pytest -q"}))
    story.result("Changed src/water.py.", details={"diff": DIFF.rstrip("\n")}, durationMs=2)
    story.result(FAILURE, isError=True, durationMs=2140)
    story.answer("One test fails: it says that herbs wait for *three* days, and the limit is not passed on.")
    story.end()
    return story.entries


def with_branches() -> list[dict[str, Any]]:
    """Three branches, of which two begin alike, a stopped turn, a label and a compaction."""
    story = Story()
    story.user("fix the test that fails on Mondays")
    story.answer("The week began on Sunday.", ("edit", {"path": "src/week.py", "edits": []}))
    story.result("Changed.", details={"diff": "+1 import calendar"})
    fork = story.answer("Done.")
    story.user("in src/water.py replace the limit of two days by three")
    first = story.answer("It is three days now.", ("edit", {"path": "src/water.py", "edits": []}))
    story.result("Changed.", details={"diff": "-1 a\n+1 b"})
    story.at = fork
    story.user("in src/water.py replace the limit of two days by a setting")
    story.answer("That takes a moment", stop="aborted")
    story.at = fork
    story.user("leave water.py alone, and write down why")
    kept = story.answer("It is in docs/why.md.", ("write", {"path": "docs/why.md", "content": "why"}))
    story.result("Written.")
    story.add(type="label", targetId=first, label="py311 ok")
    story.add(type="compaction", summary="## Goal\nGreen tests", firstKeptEntryId=kept, tokensBefore=58_000)
    story.user("port the other three tests")
    story.answer("All three pass.", ("bash", {"command": "pytest -q"}))
    story.result("3 passed")
    return story.entries


# ------------------------------------------------------------------ the ways there


async def _nothing(screen: Any) -> None:
    """What is seen at once."""


async def _tools(screen: Any) -> None:
    await screen.press("f3")
    await screen.until(screen.sees("Tools · 4 done"))
    await screen.until(screen.sees("exit 1"))


async def _changed(screen: Any) -> None:
    await _tools(screen)
    await screen.press("]")
    await screen.until(screen.sees("ValueError"))


async def _tree(screen: Any) -> None:
    for entry in with_branches():
        screen.runtime.destinations[entry["id"]] = Destination(
            leaf_id=entry["id"], context=21_000, model="fake-1", differ=("/project/src/water.py",), compared=3
        )
    await screen.press("ctrl+t", "ctrl+t")
    await screen.until(screen.sees("port the other three"))
    await screen.press("up", "up", "up")
    await screen.until(screen.sees("py311"))
    if screen.app.size.height > 28:
        await screen.until(screen.sees("Files are not moved"))


async def _sessions(screen: Any) -> None:
    kept = [
        ("a", "watering by the weather", "/project", 30, None),
        ("b", "herbs may stay dry", "/project", 150, "/s/a"),
        ("c", "why does the test fail on Mondays, and only there?", "/project", 60 * 30, None),
        ("d", "日本のナスの水やり", "/project", 60 * 24 * 9, None),
        ("e", "notes about the pump and its two valves", "/home/ada/projects/pump-controller", 60 * 50, None),
    ]
    for name, title, folder, minutes, parent in kept:
        screen.runtime.kept[f"/s/{name}"] = KeptSession(
            path=f"/s/{name}",
            id=name,
            cwd=folder,
            name=title,
            modified=(NOW - timedelta(minutes=minutes)).timestamp(),
            first_message=title,
            parent_session=parent,
        )
    await screen.press("ctrl+s", "tab")
    await screen.until(lambda: isinstance(screen.app.screen, SessionsScreen))
    await screen.until(screen.sees("all folders · threads · 6"))
    await screen.press("down")
    if screen.app.size.height >= 24:
        await screen.until(screen.sees("last answer of /s/a"))


async def _help(screen: Any) -> None:
    await screen.press("f1")
    await screen.until(lambda: isinstance(screen.app.screen, HelpScreen))


async def _question(screen: Any) -> None:
    asked = Question(
        id="1",
        tool_name="edit",
        args={"path": "src/water.py", "edits": [{"oldText": "> 2", "newText": "> limit"}]},
        reason="edits are asked about (/mode ask)",
        rules=("edit(src/*)",),
        preview=DIFF.rstrip("\n"),
    )
    await screen.runtime_call(lambda runtime: runtime.ask("session-1", asked))
    await screen.until(lambda: isinstance(screen.app.screen, QuestionScreen))


async def _queue(screen: Any) -> None:
    await screen.send("run the tests with the tool and hold on")
    await screen.until(lambda: screen.main.live.store.running_calls)
    await screen.send("also print the slowest five tests")
    await screen.write("then read README.md")
    await screen.press("tab")
    await screen.until(screen.sees("then read README.md"))
    await screen.until(lambda: not screen.prompt.text)


async def _stopped(screen: Any) -> None:
    await screen.send("wait for rain")
    await screen.until(screen.sees("so I wait"))
    await screen.press("escape")
    await screen.until(screen.sees("You stopped turn 2"))


@frozen
class State:
    """`entries` were said before; `go` brings the screen there, and waits until it is there."""

    name: str
    entries: Callable[[], Sequence[Mapping[str, Any]]]
    go: Callable[[Any], Awaitable[None]] = _nothing
    shows: str = ""


STATES = (
    State("first", list, shows="nothing here needs trust"),
    State("markdown", watering, shows="Not tried yet on real rain"),
    State("tools", with_tools, _tools),
    State("change", with_tools, _changed),
    State("tree", with_branches, _tree),
    State("sessions", watering, _sessions),
    State("help", watering, _help, "In the prompt"),
    State("question", watering, _question, "may edit run?"),
    State("queue", watering, _queue),
    State("stopped", watering, _stopped),
)
"""`shows` is a text that is seen in the end, at whatever size."""

ANSWERS = {"wait for rain": "There is no cloud, so I wait"}
