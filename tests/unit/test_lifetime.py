"""The scope of a run, its shelters, and nurseries whose failures are plain."""

from __future__ import annotations

import pytest
import trio

from pi_trio.loop.lifetime import Lifetime
from pi_trio.nursery import plain_nursery


async def test_a_cancel_ends_the_running_part_and_nothing_else(autojump_clock) -> None:
    lifetime = Lifetime(2)
    async with lifetime.running():
        assert not lifetime.ending
        lifetime.cancel()
        await trio.sleep_forever()
    assert lifetime.ending
    await trio.sleep(1)


async def test_a_cancel_from_outside_passes_through(autojump_clock) -> None:
    lifetime = Lifetime(2)
    with trio.move_on_after(1) as scope:
        async with lifetime.running():
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert lifetime.ending


@pytest.mark.parametrize("outside", [False, True])
async def test_a_shelter_holds_for_the_grace(autojump_clock, outside) -> None:
    """Counted from the cancel, for the open shelter and for each later one."""
    lifetime, began, left = Lifetime(2), trio.current_time(), []
    with trio.CancelScope() as scope:
        async with lifetime.running():
            scope.deadline = began + 1 if outside else began + 99
            lifetime.scope.deadline = began + 99
            with lifetime.shelter():
                await trio.sleep(1.5 if outside else 1)
                if not outside:
                    lifetime.cancel()
                await trio.sleep_forever()
            left.append(trio.current_time() - began)
            with lifetime.shelter():
                await trio.sleep_forever()
            left.append(trio.current_time() - began)
            await trio.sleep_forever()
    assert left == [3, 3]


async def test_work_that_is_done_within_the_grace_is_whole(autojump_clock) -> None:
    lifetime, done = Lifetime(2), []
    async with lifetime.running():
        lifetime.cancel()
        with lifetime.shelter():
            await trio.sleep(1.9)
            done.append("settled")
        await trio.sleep_forever()
    assert done == ["settled"]


async def test_a_second_cancel_does_not_lengthen_the_grace(autojump_clock) -> None:
    lifetime, began = Lifetime(2), trio.current_time()
    async with lifetime.running():
        lifetime.cancel()
        with lifetime.shelter():
            await trio.sleep(1)
            lifetime.cancel()
            await trio.sleep_forever()
    assert trio.current_time() - began == 2


async def test_a_failure_is_no_cancel(autojump_clock) -> None:
    lifetime = Lifetime(2)
    with pytest.raises(ValueError, match="own fault"):
        async with lifetime.running():
            raise ValueError("own fault")
    assert not lifetime.ending


async def test_after_a_whole_run_nothing_holds_a_cancel_off(autojump_clock) -> None:
    lifetime = Lifetime(2)
    async with lifetime.running():
        await trio.lowlevel.checkpoint()
    with trio.move_on_after(1) as scope, lifetime.shelter():
        await trio.sleep_forever()
    assert scope.cancelled_caught


# ------------------------------------------------------------------ plain nurseries


async def fail(error: BaseException) -> None:
    raise error


async def test_a_nursery_raises_the_failure_itself() -> None:
    error = ValueError("child")
    error.__cause__ = KeyError("cause")

    async def run() -> None:
        async with plain_nursery() as nursery:
            nursery.start_soon(fail, error)
            await trio.sleep_forever()

    with pytest.raises(ValueError, match="child") as raised:
        await run()
    assert raised.value is error
    assert isinstance(error.__cause__, KeyError)
    assert not isinstance(error.__context__, BaseExceptionGroup)


async def test_a_failure_in_a_nested_group_is_found() -> None:
    async def nested() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail, ValueError("deep"))
            await trio.sleep_forever()

    with pytest.raises(ValueError, match="deep"):
        async with plain_nursery() as nursery:
            nursery.start_soon(nested)


async def test_a_failure_wins_over_a_cancellation(autojump_clock) -> None:
    async def cleans_up_badly() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("clean up")

    with pytest.raises(ValueError, match="clean up"), trio.move_on_after(1):
        async with plain_nursery() as nursery:
            nursery.start_soon(cleans_up_badly)


async def test_a_cancellation_alone_stays_one(autojump_clock) -> None:
    with trio.move_on_after(1) as scope:
        async with plain_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
    assert scope.cancelled_caught
