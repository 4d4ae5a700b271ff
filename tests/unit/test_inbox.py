"""The two lists where input waits, and the splices that make them durable."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.errors import StorageError, UsageError
from pi_trio.harness.inbox import Inbox, InboxItem, Splice
from pi_trio.messages import UserMessage


def _item(text: str, *, parked: bool = False) -> InboxItem:
    return InboxItem(text, UserMessage(text, timestamp=0), parked)


class Log:
    """An inbox with every splice it recorded."""

    def __init__(self, **modes: Any) -> None:
        self.splices: list[Splice] = []
        self.inbox = Inbox(self.splices.append, **modes)

    def fill(self, steps: str = "", turns: str = "", parked: str = "") -> Inbox:
        for letter in steps:
            self.inbox.add("next-step", _item(letter))
        for letter in parked:
            self.inbox.add("next-turn", _item(letter, parked=True))
        for letter in turns:
            self.inbox.add("next-turn", _item(letter))
        self.splices.clear()
        return self.inbox

    @property
    def ids(self) -> str:
        return "".join(item.id for target in ("next-step", "next-turn") for item in self.inbox.items(target))


def test_an_insertion_has_no_outcome_and_no_removed_count() -> None:
    """L2"""
    log = Log()
    log.inbox.add("next-turn", _item("a"))
    (splice,) = log.splices
    assert splice.to_json() == {"target": "next-turn", "start": 0, "inserted": [_item("a").to_json()]}


def test_a_claim_is_a_pure_deletion_without_outcome() -> None:
    """L7"""
    log = Log()
    log.fill(turns="ab").claim_turn()
    assert [splice.to_json() for splice in log.splices] == [
        {"target": "next-turn", "start": 0, "removedCount": 1, "inserted": []}
    ]


def test_the_first_claim_takes_all_of_next_step_and_one_prompt() -> None:
    """L5, L6"""
    log = Log()
    claimed = log.fill(steps="ab", turns="123").claim_turn()
    assert "".join(item.id for item in claimed) == "ab1"
    assert log.ids == "23"


def test_parked_input_goes_in_before_the_prompt_and_not_with_steering_alone() -> None:
    log = Log()
    inbox = log.fill(steps="s", parked="p")
    assert [item.id for item in inbox.claim_turn()] == ["s"]
    assert not inbox.wakes
    inbox.add("next-turn", _item("1"))
    assert [item.id for item in inbox.claim_turn()] == ["p", "1"]


@pytest.mark.parametrize(
    ("modes", "claimed"),
    [
        ({"steering_mode": "one-at-a-time"}, "a1"),
        ({"follow_up_mode": "all"}, "ab12"),
        ({"steering_mode": "one-at-a-time", "follow_up_mode": "all"}, "a12"),
    ],
)
def test_the_modes_are_what_one_claim_takes(modes: dict[str, Any], claimed: str) -> None:
    log = Log(**modes)
    assert "".join(item.id for item in log.fill(steps="ab", turns="12").claim_turn()) == claimed


def test_an_id_that_waits_is_refused_and_nothing_is_recorded() -> None:
    """L12"""
    log = Log()
    inbox = log.fill(turns="a")
    for target in ("next-step", "next-turn"):
        with pytest.raises(UsageError):
            inbox.add(target, _item("a"))  # type: ignore[arg-type]
    assert log.splices == []


def test_editing_is_one_splice_that_cancels_the_old_message() -> None:
    """L13"""
    log = Log()
    change = log.fill(turns="abc").replace("b", UserMessage.of("B"))
    assert change is not None
    assert (change.start, change.removed, change.canceled) == (1, (_item("b"),), True)
    assert log.splices == [change]


def test_removing_moving_and_clearing() -> None:
    log = Log()
    inbox = log.fill(steps="s", turns="abc")
    inbox.move("c", 0)
    assert log.ids == "scab"
    inbox.remove("a")
    assert log.ids == "scb"
    assert [splice.target for splice in inbox.clear()] == ["next-step", "next-turn"]
    assert log.ids == ""
    with pytest.raises(UsageError):
        inbox.remove("a")


def test_a_splice_that_changes_nothing_is_not_recorded() -> None:
    log = Log()
    inbox = log.fill(turns="a")
    assert inbox.splice("next-turn", 5, 3) is None
    assert inbox.splice("next-step", -1, 0) is None
    assert inbox.claim_step() == []
    assert log.splices == []


def test_what_cannot_be_recorded_does_not_happen() -> None:
    def full(change: Splice) -> None:
        raise StorageError("disk full")

    inbox = Inbox(full)
    with pytest.raises(StorageError):
        inbox.add("next-turn", _item("a"))
    assert not inbox.wakes


@given(st.lists(st.tuples(st.sampled_from("sptrcmx"), st.integers(0, 5)), max_size=40))
def test_the_lists_are_the_fold_of_their_splices(actions: list[tuple[str, int]]) -> None:
    log = Log()
    for number, (action, place) in enumerate(actions):
        waiting = [*log.inbox.items("next-step"), *log.inbox.items("next-turn")]
        chosen = waiting[place % len(waiting)].id if waiting else None
        match action:
            case "s":
                log.inbox.add("next-step", _item(str(number)))
            case "p":
                log.inbox.add("next-turn", _item(str(number), parked=True))
            case "t":
                log.inbox.splice("next-turn", place, insert=(_item(str(number)),))
            case "c":
                log.inbox.claim_turn() if place % 2 else log.inbox.claim_step()
            case "r" if chosen:
                log.inbox.replace(chosen, UserMessage.of("new"))
            case "m" if chosen:
                log.inbox.move(chosen, place)
            case "x" if chosen:
                log.inbox.remove(chosen)
            case _:
                pass
    folded = Inbox(lambda change: None)
    for splice in log.splices:
        folded.apply(splice)
    for target in ("next-step", "next-turn"):
        assert folded.items(target) == log.inbox.items(target)  # type: ignore[arg-type]
