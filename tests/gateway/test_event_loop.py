"""The gateway runs on uvloop, and on asyncio's own event loop where there is none or it is not wanted."""

import asyncio
import sys

import pytest
import uvloop

from dragoman.gateway import event_loop


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(event_loop.VARIABLE, raising=False)


async def running() -> type:
    return type(asyncio.get_running_loop())


def test_it_is_uvloop(wanted: None) -> None:
    assert event_loop.run(running()) is uvloop.Loop


def test_who_does_not_want_it_gets_asyncios_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(event_loop.VARIABLE, "asyncio")
    assert issubclass(event_loop.run(running()), asyncio.BaseEventLoop)


def test_where_it_is_not_installed_asyncios_own_does(wanted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert issubclass(event_loop.run(running()), asyncio.BaseEventLoop)
