"""A task that waits goes on inside whoever wakes it, and is otherwise a task like any other."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import pytest

from dragoman.http.waking import Waking

Scene = Callable[[Waking, list[str]], Awaitable[None]]
said_by: ContextVar[str] = ContextVar("said_by", default="nobody")


async def waits(waking: Waking, log: list[str]) -> None:
    said_by.set("the task")
    while True:
        try:
            await waking
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        log.append(f"woken, {said_by.get()}")


def play(scene: Scene) -> list[str]:
    """What `scene` and a task that waits have said."""
    log: list[str] = []

    async def run() -> None:
        waking = Waking(asyncio.get_running_loop())
        task = asyncio.create_task(waits(waking, log))
        await asyncio.sleep(0)
        await scene(waking, log)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert log.pop() == "cancelled"
    return log


def test_who_is_woken_goes_on_at_once_in_its_own_context() -> None:
    async def scene(waking: Waking, log: list[str]) -> None:
        def wake() -> None:
            for _ in range(2):
                waking.set_result()
                log.append(f"on, {said_by.get()}")

        asyncio.get_running_loop().call_soon(wake)
        await asyncio.sleep(0.01)

    assert play(scene) == ["woken, the task", "on, nobody"] * 2


def test_a_task_does_not_run_inside_another() -> None:
    async def scene(waking: Waking, log: list[str]) -> None:
        waking.set_result()
        waking.set_result()
        log.append("on")
        await asyncio.sleep(0.01)

    assert play(scene) == ["on", "woken, the task"]


def test_who_is_cancelled_is_not_woken_as_well() -> None:
    async def run() -> None:
        for cancelled_first in (True, False):
            log: list[str] = []
            waking = Waking(asyncio.get_running_loop())
            task = asyncio.create_task(waits(waking, log))
            await asyncio.sleep(0)
            steps: list[Callable[[], object]] = [task.cancel, waking.set_result]
            for step in steps if cancelled_first else reversed(steps):
                step()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert log == ["cancelled"]

    asyncio.run(run())


def test_news_that_nobody_waited_for_is_there_unless_it_is_forgotten() -> None:
    async def run() -> None:
        waking = Waking(asyncio.get_running_loop())
        waking.set_result()
        await asyncio.wait_for(_taken(waking), 5)
        waking.set_result()
        waking.woken = False
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await waking
        waking.set_result()
        await asyncio.wait_for(_taken(waking), 5)

    asyncio.run(run())


async def _taken(waking: Waking) -> None:
    await waking
