"""Starting an agent, standing aside while it runs, and ending as it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

import msgspec

from ...model.errors import DragomanError
from ..serve.service import Settings
from .gateway import Gateway, running, started
from .wiring import Client, Place

Say = Callable[[str], None]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asks for."""

    client: Client
    args: tuple[str, ...] = ()
    model: str | None = None
    settings: Settings = Settings()


def start_agent(order: Order, env: Mapping[str, str], say: Say) -> int:
    """Run the agent to its end; returns its exit code."""
    program = shutil.which(order.client.program, path=env.get("PATH"))
    if program is None:
        raise DragomanError(
            f"{order.client.title} is not installed: there is no `{order.client.program}` on the PATH; "
            f"install it with `{order.client.install}`"
        )
    return asyncio.run(_run(order, program, env, say))


def place(order: Order, gateway: Gateway, folder: Path, env: Mapping[str, str]) -> Place:
    """The gateway as this agent has to know it."""
    model = order.model
    if model is None and order.client.needs_model:
        model = next(iter(gateway.models), None)
        if model is None:
            raise DragomanError(
                f"{order.client.title} has to be told which model to use, and the gateway lists none; "
                f"name one: dragoman run --model NAME {order.client.name}"
            )
    return Place(
        url=gateway.url,
        key=gateway.key,
        model=model,
        window=gateway.window(model),
        models=gateway.models,
        folder=folder,
        env=env,
    )


async def _run(order: Order, program: str, env: Mapping[str, str], say: Say) -> int:
    gateway = running(order.settings, env)
    if gateway is not None:
        return await _agent(order, program, gateway, env)
    async with started(order.settings, env) as gateway:
        say(f"Dragoman is at {gateway.url} while {order.client.title} runs; its log is {gateway.log}")
        return await _agent(order, program, gateway, env)


async def _agent(order: Order, program: str, gateway: Gateway, env: Mapping[str, str]) -> int:
    with tempfile.TemporaryDirectory(prefix="dragoman-") as name:
        folder = Path(name)
        wiring = order.client.wire(place(order, gateway, folder, env))
        wiring.write(folder)
        plain = order.args[:1] and order.args[0] in order.client.commands
        args = order.args if plain else (*wiring.args, *order.args)
        return await attend(program, *args, env=wiring.environment(env))


async def attend(program: str, *args: str, env: Mapping[str, str]) -> int:
    """Run a program on our terminal, and let every signal that is meant for it through."""
    signals = _Signals()
    with signals.heard():
        try:
            process = await asyncio.create_subprocess_exec(program, *args, env=dict(env))
        except OSError as error:
            raise DragomanError(f"{program} cannot be started: {error.strerror or error}") from None
        signals.go_to(process)
        code = await process.wait()
    return code if code >= 0 else 128 - code  # as shells say which signal ended it


class _Signals:
    """A terminal signals all of its foreground, the agent included; what others send comes to us alone.

    They are heard before there is an agent: it may be running before we know that it does.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._early: list[int] = []

    def go_to(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        for number in self._early:
            self._send(number)

    @contextlib.contextmanager
    def heard(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        heard: list[int] = []
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
            with contextlib.suppress(NotImplementedError, AttributeError):  # Windows has few of them
                number = getattr(signal, name)
                loop.add_signal_handler(number, self._send, number)
                heard.append(number)
        try:
            yield
        finally:
            for number in heard:
                loop.remove_signal_handler(number)

    def _send(self, number: int) -> None:
        if number in (signal.SIGINT, signal.SIGQUIT) and _in_foreground():
            return
        if self._process is None:
            self._early.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno()) == os.getpgrp() if sys.__stdin__ else False
    except (OSError, ValueError, AttributeError):
        return False
