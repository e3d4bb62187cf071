"""The gateway runs on uvloop, or on asyncio's loop if uvloop is missing or disabled."""

import asyncio
import sys

import pytest
import uvloop

from dragoman.gateway.process import event_loop


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(event_loop.VARIABLE, raising=False)


async def running() -> type:
    return type(asyncio.get_running_loop())


def test_uvloop_is_the_default(wanted: None) -> None:
    assert event_loop.run(running()) is uvloop.Loop


def test_a_variable_selects_asyncios_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(event_loop.VARIABLE, "asyncio")
    assert issubclass(event_loop.run(running()), asyncio.BaseEventLoop)


def test_without_uvloop_asyncios_loop_is_used(wanted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert issubclass(event_loop.run(running()), asyncio.BaseEventLoop)
