"""What is shown of several sessions: rows by threads, states, the next one. And who is called back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pi_trio.messages import AssistantMessage, TextContent
from pi_trio.remote.offers import KeptSession
from pi_tui.attention import Attention
from pi_tui.open_sessions import OpenSessions, State, state_of
from pi_tui.session_rows import threaded


def _kept(name: str, modified: float, parent: str | None = None) -> KeptSession:
    return KeptSession(
        path=name, id=name, cwd="/", name=name, modified=modified, first_message="", parent_session=parent
    )


def _shown(*kept: KeptSession) -> list[str]:
    return ["-" * row.depth + row.id for row in threaded(kept)]


def test_forks_are_below_what_they_were_forked_from():
    assert _shown(
        _kept("new", 5), _kept("a", 1), _kept("a1", 2, "a"), _kept("a2", 9, "a"), _kept("a11", 3, "a1")
    ) == ["a", "-a2", "-a1", "--a11", "new"]


def test_forks_of_what_is_not_listed_stand_alone():
    assert _shown(_kept("fork", 1, "elsewhere"), _kept("other", 2)) == ["other", "fork"]


def test_forks_in_a_circle_are_listed_once():
    """TR-01: a damaged header neither hangs nor hides anything."""
    assert sorted(_shown(_kept("a", 1, "b"), _kept("b", 2, "a"), _kept("c", 3))) == ["a", "b", "c"]


class _Live:
    def __init__(self, id_: str) -> None:
        self.id = id_
        self.unseen = False
        self.summarising = False
        self.store = SimpleNamespace(
            questions={},
            running=False,
            summarising=False,
            shell=None,
            items=[],
            session=SimpleNamespace(name=None, cwd="/home/me/project"),
        )

    def said(self, reason: Any) -> None:
        self.store.items.append(
            SimpleNamespace(message=AssistantMessage((TextContent("x"),), stop_reason=reason))
        )


@pytest.mark.parametrize(
    ("changes", "unseen", "state"),
    [
        ({}, False, State.IDLE),
        ({"running": True}, False, State.RUNNING),
        ({"running": True, "questions": {"1": 1}}, True, State.ASKS),
        ({"summarising": True}, False, State.RUNNING),
        ({"shell": SimpleNamespace(running=True)}, False, State.RUNNING),
        ({"shell": SimpleNamespace(running=False)}, False, State.IDLE),
        ({}, True, State.UNSEEN),
    ],
)
def test_states(changes, unseen, state):
    live: Any = _Live("a")
    live.unseen = unseen
    vars(live.store).update(changes)
    assert state_of(live) is state


def test_a_run_that_failed_unseen_is_told_apart():
    live: Any = _Live("a")
    live.said("error")
    assert state_of(live) is State.IDLE
    live.unseen = True
    assert state_of(live) is State.FAILED


def test_the_next_one_goes_around_and_looking_is_seeing():
    opened, lives = OpenSessions(), [_Live(name) for name in "abc"]
    assert opened.next() is None
    for live in lives:
        opened.show(live)  # type: ignore[arg-type]
    assert opened.next() is lives[0]
    lives[1].unseen = True
    assert opened.next(lambda live: live.unseen) is lives[1]
    assert opened.others() == {State.UNSEEN: 1, State.IDLE: 1}
    opened.show(lives[1])  # type: ignore[arg-type]
    assert opened.others() == {State.IDLE: 2}
    opened.drop("c")
    assert opened.next() is lives[0]
    opened.drop("a")
    assert opened.next() is None


class _Watched:
    """Attention with a clock and a terminal of the test's own."""

    def __init__(self) -> None:
        self.now, self.away, self.written = 0.0, True, ""
        self.attention = Attention(self._write, lambda: self.away, lambda: self.now)
        self.live: Any = _Live("a")

    def _write(self, text: str) -> None:
        self.written += text

    def run(self, seconds: float) -> None:
        self.live.store.running = True
        self.attention.sync(self.live)
        self.now += seconds
        self.live.store.running, self.live.unseen = False, True
        self.attention.sync(self.live)


def test_a_long_run_that_ends_unseen_rings_and_the_title_comes_back():
    watched = _Watched()
    watched.run(12)
    assert watched.written == "\x1b[22;2t\x1b]2;project finished\x1b\\\x07"
    watched.run(2)  # no bell, and the title that was kept stays the one to give back
    assert watched.written.endswith("\x07\x1b]2;project finished\x1b\\")
    watched.attention.back()
    watched.attention.back()
    assert watched.written.count("\x1b[23;2t") == 1


def test_nothing_is_written_while_the_user_looks():
    watched = _Watched()
    watched.away = False
    watched.run(100)
    watched.attention.back()
    assert watched.written == ""


def test_a_question_rings_at_once_and_once():
    watched = _Watched()
    watched.live.store.running = True
    watched.attention.sync(watched.live)
    watched.live.store.questions = {"1": 1}
    watched.attention.sync(watched.live)
    watched.attention.sync(watched.live)
    assert watched.written == "\x1b[22;2t\x1b]2;project asks\x1b\\\x07"


def test_a_name_cannot_act_on_the_terminal():
    """SE-01: the title is text of a session."""
    watched = _Watched()
    watched.live.store.session.name = "x\x07\x1b]52;c;eA==\x07\x9c"
    watched.run(1)
    assert watched.written.count("\x1b") == 3
    assert "\x07" not in watched.written
    assert "\x9c" not in watched.written
